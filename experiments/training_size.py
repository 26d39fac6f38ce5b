r"""What does more training data do for easy and for hard items? Trains networks on sets of several sizes.

  python -m experiments.training_size --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/training_size

Every network of every size trains in one pool, on a random subset with its own labels. Their right answers to the items
are regressed on difficulty and log size (Lalor, Wu, Munkhdalai and Yu 2018). Writes report.md, coefficients.csv,
observed.csv and training_size.png, and `crowd/` with members and answers as experiments.crowd does.
"""

from absl import flags

from experiments.common import app, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir
from irtjax.arguments import LARGEST

define_output_dir("run directory")
flags.DEFINE_list(
    "items", [], "items.csv files with difficulties of items of the validation, test or extra split; one scale each"
)
flags.DEFINE_list("names", [], "what to call these scales, in their order (default: their paths)")
flags.DEFINE_list(
    "sizes", [], "training examples, of which `all` is all (default: 100, 320, 1000, 3200 and so on, and all)"
)
flags.DEFINE_integer("seeds", 10, "networks of each size and architecture", lower_bound=1, upper_bound=LARGEST)
NOT_USED = {  # of what a crowd is drawn by: here no label is corrupted, and sizes are given
    *settings.OF_DRAWN_MEMBERS,
    "members",
    "only",
    "out_of_bag",
    "stop_on",
}
USED = settings.of_stage("crowd") - NOT_USED
task_flags.define_flags(USED)
shared_flags.define_processes()


def main() -> None:
    """Trains the networks unless that is done already, regresses, and writes the report."""
    from experiments.commands import training_size  # here, as `--help` and wrong flags need not wait for JAX

    training_size.run()


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
