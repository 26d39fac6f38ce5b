r"""Does a network learn from how people divide over the classes of an item? Trains on soft labels beside hard ones.

Soft labels are shares of answers: of people (--answers), given (--soft_labels), or of the networks of a crowd
(--predictions, which is distillation from an ensemble). Methods, from the same initial weights for the same seed:

  B0            the training data
  B1            with the soft items and their gold labels
  B2            with these and further data (--extra_data)
  B3            with every answer as an example of its own
  I-CCE, I-MSE  SLMG-I: in every epoch the training data, then the soft items with their soft labels
  S-CCE, S-MSE  SLMG-S: --epochs_in_a_row epochs on the training data, then as many on the soft items, and so on

  python -m experiments.soft_labels --task=digits --predictions=runs/demo/crowd/predictions_train.npz \
    --output_dir=runs/soft_labels

With --held_out, also says how far the networks' probabilities are from the shares of people on items that they did not
learn from.

Writes report.md, methods.csv, confusion.csv and pictures. Method and sources: docs/guide/soft_labels.md.
"""

from absl import flags

from experiments.common import app, settings, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.arguments import LARGEST
from irtjax.soft_labels.choices import METHODS

define_output_dir("run directory")
define_path(
    "answers", "CSV of answers of people: subject id first in each row, one column per item; or a row per label"
)
flags.DEFINE_list("codes", [], "what answers stand for, as 1:negative,2:negative (default: names of classes)")
define_path(
    "soft_labels", "CSV of item_id and one column per class, of shares or numbers of answers, in place of --answers"
)
define_path("predictions", "predictions_train.npz of a crowd, in place of --answers")
flags.DEFINE_float(
    "soft_share",
    0.1,
    "share of the training items that have soft labels, of --predictions",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_list("methods", [], f"which to compare (default: {','.join(METHODS)}, as far as possible)")
define_path("extra_data", "CSV of further training data of method B2: ids, texts and labels")
flags.DEFINE_integer(
    "respondents",
    0,
    "also train by I-CCE on the soft labels of so many people, drawn anew for each seed (--answers)",
    lower_bound=0,
    upper_bound=LARGEST,
)
flags.DEFINE_float(
    "held_out",
    0,
    "share of the items with soft labels that are not learned from: how far the networks are from their soft labels",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_bool(
    "permuted", False, "also train by I-CCE on soft labels that are exchanged among the items of a gold label"
)
flags.DEFINE_bool(
    "equal_passes", False, "SLMG-S has as many passes over the training data as the others, in up to twice the epochs"
)
define_path("networks", "predictions_extra.npz of a crowd: compare its soft labels with those of --answers")
define_path("items", "items.csv with the items' difficulties, for --networks")
flags.DEFINE_integer(
    "epochs_in_a_row", 3, "epochs in a row on either kind of data, of SLMG-S", lower_bound=1, upper_bound=LARGEST
)
flags.DEFINE_integer("seeds", 20, "networks for each method", lower_bound=1, upper_bound=LARGEST)
USED = settings.of_training() | {"extra_items"}
task_flags.define_flags(USED)


def main() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    from experiments.commands import soft_labels  # here, as `--help` and wrong flags need not wait for JAX

    soft_labels.run()


if __name__ == "__main__":
    app.run(main, device_per_core=True)
