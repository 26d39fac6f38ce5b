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

import sys

import pandas as pd
from absl import flags

from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import steps
from experiments.common.table_columns import column_of
from experiments.reports import audit as report
from irtjax.auditing.audit import audit
from irtjax.auditing.findings import REASONS
from irtjax.errors import InputError
from irtjax.storage.tables import read_table

NAMES = tuple(name.replace(" ", "_") for name in REASONS)

_RESPONSES = define_path("responses", "file or folder of responses; by default --choices, scored by --key")
_CHOICES = define_path("choices", "table of the options that subjects chose: ids first, one column per item")
_KEY = flags.DEFINE_string("key", None, "TABLE.csv:COLUMN has the right option of each item; ids in its first column")
_DATES = flags.DEFINE_string("dates", None, "TABLE.csv:COLUMN has the date of each item")
_CUTOFFS = flags.DEFINE_string("cutoffs", None, "TABLE.csv:COLUMN has the date until which each subject could know")
_MODEL = flags.DEFINE_string("model", "auto", "item response model, as of experiments.fit_irt")
_LEVEL = flags.DEFINE_float("level", 0.05, "of tests of items and pairs, adjusted for their number", 0.0, 1.0)
_SEED = flags.DEFINE_integer("seed", 0, "of what is simulated and shuffled", lower_bound=0)
_FAIL_ON = flags.DEFINE_list("fail_on", [], f"reasons for exit status 3, of {', '.join(NAMES)}")
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, examines, writes."""
    app.keep_inputs(["responses", "choices"], _OUTPUT_DIR.value, report.FILES)
    if _RESPONSES.value is None and _CHOICES.value is None:
        raise InputError("--responses or --choices: expected one of them")
    for one, other in (("choices", "key"), ("dates", "cutoffs")):
        if (flags.FLAGS[one].value is None) != (flags.FLAGS[other].value is None):
            raise InputError(f"--{one} and --{other} are given together")
    fatal = set(app.choose("fail_on", _FAIL_ON.value, NAMES)) if _FAIL_ON.value else set()
    if _RESPONSES.value is None:
        app.without_effect(response_files.NAMES, "--choices")
    else:
        response_files.require_effect([_RESPONSES.value])
    columns = {name: _column(name) for name in ("key", "dates", "cutoffs")}
    choice = {"columns": _COLUMNS.value, "metric": _METRIC.value, "filter": _FILTER.value}
    source = _RESPONSES.value or _CHOICES.value
    with formulas.guarded_results(_OUTPUT_DIR.value) as directory:
        with app.naming(source), steps("audit") as on_step:
            found = audit(
                _RESPONSES.value,
                choices=_choices(),
                **columns,
                level=_LEVEL.value,
                seed=_SEED.value,
                on_step=on_step,
                model=_MODEL.value,
                **{name: value for name, value in choice.items() if value},
            )
        given = {name: flags.FLAGS[name].value for name in ("responses", "choices", *columns, "model", "level", "seed")}
        lines = report.write(found, given, directory)
    print("\n".join(lines))
    print(f"Done: {_OUTPUT_DIR.value}/report.md, audit.csv, ranking.csv")
    counted = dict(zip(NAMES, found.reasons.values(), strict=True))
    wrong = [f"{name} ({counted[name]:,})" for name in NAMES if name in fatal and counted[name]]
    if wrong:
        print(f"error: --fail_on: items with {', '.join(wrong)}", file=sys.stderr)
        sys.exit(3)


def _column(flag: str) -> pd.Series | None:
    given = flags.FLAGS[flag].value
    return None if given is None else column_of(given, flag, text=True)


def _choices() -> pd.DataFrame | None:
    """The table of choices, by subject."""
    if _CHOICES.value is None:
        return None
    table = read_table(_CHOICES.value, 0, text=True)
    return table.set_index(table.columns[0])


if __name__ == "__main__":
    app.run(main)
