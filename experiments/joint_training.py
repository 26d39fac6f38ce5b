r"""Can a network learn a task and predict how difficult its items are? Trains on both, and on the task alone.

A second head predicts the difficulty of the item that is read, with a standard deviation. It learns from a crowd's
difficulties of the training items (--items), or from the network's own answers after each epoch. Networks of one seed
begin with the same weights.

  python -m experiments.joint_training --task=digits --items=runs/digits/fit/items.csv \
    --test_items=runs/digits/test/items.csv --output_dir=runs/joint

Writes report.md, networks.csv (one row per network), outside.csv (how well out-of-distribution examples are
detected), said.csv (one row per example) and pictures. Method: docs/guide/joint_training.md.
"""

from absl import flags

from experiments.common import app, settings, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.arguments import LARGEST

define_output_dir("run directory")
define_path("items", "items.csv with the difficulty of every training example, and its error", required=True)
define_path("test_items", "items.csv with that of every test example: what predictions are compared with")
flags.DEFINE_float(
    "difficulty_weight", 0.3, "weight of the difficulties' part of the loss", lower_bound=0, upper_bound=1e6
)
define_path("outside", "text: CSV of ids and texts that are of none of the classes")
flags.DEFINE_list("outside_columns", [], "its columns of text, one or two (default: text, or premise and hypothesis)")
flags.DEFINE_float(
    "attack",
    0.1,
    "images: step of the fast gradient sign method against each network, as a share of the range of pixels; 0 for none",
    lower_bound=0,
    upper_bound=1,
)
flags.DEFINE_integer("seeds", 10, "networks for each method", lower_bound=1, upper_bound=LARGEST)
USED = settings.of_training()
task_flags.define_flags(USED)


def main() -> None:
    """Trains by each method unless that is done already, then writes the report."""
    from experiments.commands import joint_training  # here, as `--help` and wrong flags need not wait for JAX

    joint_training.run()


if __name__ == "__main__":
    app.run(main, device_per_core=True)
