r"""Is a benchmark sound? Wrong keys, dependent and useless items, contamination, and what a ranking can claim.

Reads the responses of subjects, such as language models, to the items of a benchmark; writes report.md, audit.csv (one
row per item, with reasons to look at it), ranking.csv, pictures, pairs.csv (of dependent items) and gains.csv.

  python -m experiments.audit --responses=docs/guide/responses.csv --output_dir=runs/audit
  python -m experiments.audit --choices=choices.csv --key=items.csv:answer --output_dir=runs/audit
  python -m experiments.audit --responses=responses.csv --dates=items.csv:date --cutoffs=models.csv:cutoff \
      --output_dir=runs/audit

With --fail_on the exit status is 3 if an item has one of these reasons, for the tests of a benchmark.

On 2 CPU cores, ten seconds for 25 subjects and 500 items, half a minute for 28 and 12,000, for 4,000 and 100, or
for 100,000 and 2,000 with 20 answers of each subject.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.auditing.reasons import REASONS

NAMES = tuple(name.replace(" ", "_") for name in REASONS)

define_path("responses", "file or folder of responses; by default --choices, scored by --key")
define_path("choices", "table of the options that subjects chose: ids first, one column per item")
flags.DEFINE_string("key", None, "TABLE.csv:COLUMN has the right option of each item; ids in its first column")
flags.DEFINE_string("dates", None, "TABLE.csv:COLUMN has the date of each item")
flags.DEFINE_string("cutoffs", None, "TABLE.csv:COLUMN has the date until which each subject could know")
flags.DEFINE_string("model", "auto", "item response model, as of experiments.fit_irt")
flags.DEFINE_float("level", 0.05, "of tests of items and pairs, adjusted for their number", 0.0, 1.0)
flags.DEFINE_integer("seed", 0, "of what is simulated and shuffled", lower_bound=0)
flags.DEFINE_list("fail_on", [], f"reasons for exit status 3, of {', '.join(NAMES)}")
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, examines, writes."""
    from experiments.commands import audit  # here, as `--help` and wrong flags need not wait for JAX

    audit.run(NAMES)


if __name__ == "__main__":
    app.run(main)
