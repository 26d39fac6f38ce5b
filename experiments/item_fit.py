r"""Does the model fit? Fit of items, subjects, pairs of items and the whole test, for responses of every kind.

Reads the folder of a fit, as experiments.fit_irt writes it, and the responses that it is of, or others to its items;
writes report.md, item_fit.csv, person_fit.csv, local_dependence.csv and overall_fit.json.

  python -m experiments.fit_irt --responses=docs/guide/grades.csv --model=auto --output_dir=runs/grades
  python -m experiments.item_fit --fit=runs/grades --output_dir=runs/item_fit
  python -m experiments.item_fit --fit=runs/grades --responses=new.csv --output_dir=runs/item_fit_new

Without --responses they are those that were fitted. From others no parameter was estimated: degrees of freedom follow.

On 2 CPU cores, half a minute.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path

define_path("fit", "folder of a saved fit, or its fit.npz", required=True)
define_path("responses", "file or folder of responses to its items; by default those that were fitted")
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_transpose()
flags.DEFINE_integer("pairs", 1000, "rows of local_dependence.csv, the most dependent first", lower_bound=1)
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, computes, writes."""
    from experiments.commands import item_fit  # here, as `--help` and wrong flags need not wait for JAX

    item_fit.run()


if __name__ == "__main__":
    app.run(main)
