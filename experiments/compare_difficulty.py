r"""Who finds which items hard? Compares difficulties from several sources: people, crowds of networks, language models.

Reads items.csv files or files of responses, joins them by item id, and writes report.md, agreement.csv (one row per
pair of sources), difficulty.csv (one row per item) and difficulty.png.

  python -m experiments.compare_difficulty --responses=people.csv,crowd.npz --texts=items.csv --output_dir=runs/compare
  python -m experiments.compare_difficulty --items=runs/a/items.csv,runs/b/items.csv --reliabilities=0.99,0.95 \
    --output_dir=runs/compare

To responses it fits the Rasch model by marginal maximum likelihood, three times: to all subjects, and to two halves of
them, which tell how reliable the difficulties are.

On 2 CPU cores, seconds; half a minute for responses of 1,000 networks to 10,000 items.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.tasks.choices import ID_COLUMNS

flags.DEFINE_list("items", [], "items.csv files with a column difficulty, or folders of saved fits")
flags.DEFINE_list("responses", [], "files or folders of scored responses; they come after --items in all tables")
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_transpose()
flags.DEFINE_list("names", [], "what to call the sources, in their order (default: their paths)")
flags.DEFINE_list(
    "reliabilities",
    [],
    "split-half reliabilities (by Spearman and Brown) of --items, in their order; of --responses they are computed",
)
define_path(
    "texts", f"CSV of {', '.join(ID_COLUMNS[:-1])} or {ID_COLUMNS[-1]}, and label, text, or premise and hypothesis"
)
flags.DEFINE_integer("shown", 10, "items in each table of the report", lower_bound=1, upper_bound=1000)
flags.DEFINE_integer("seed", 0, "seed of the bootstrap", lower_bound=0, upper_bound=2**31 - 1)
define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, fits, joins and writes the report."""
    from experiments.commands import compare_difficulty  # here, as `--help` and wrong flags need not wait for JAX

    compare_difficulty.run()


if __name__ == "__main__":
    app.run(main)
