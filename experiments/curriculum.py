r"""When should a network train on which examples? Curricula by item difficulty, and DDaCLAE, by the network's ability.

Strategies:

  baseline              all data in every epoch
  no-effect             the same with other seeds: the null control
  CB-linear, CB-root    a growing share of the data, the easiest first
  CB-…-average          the same with average difficulty first, outliers last; not among the defaults
  CB-…-length           the same with the shortest texts first
  DDaCLAE               items no harder than the network's ability, which is estimated before each epoch
  DDaCLAE-hard          items no easier than it
  window                items within --window logits of it

  python -m experiments.curriculum --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/curriculum

Ends with report.md and its pictures in the run directory. Durations and expected numbers: docs/results/curriculum.md.
"""

from absl import flags

from experiments.common import app, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.arguments import LARGEST
from irtjax.selection.choices import USUAL

define_output_dir("run directory")
define_path("items", "items.csv with the difficulty of every training example", required=True)
flags.DEFINE_list("strategies", None, f"which to compare with the baseline (default: {','.join(USUAL)})")
flags.DEFINE_integer("seeds", 5, "networks for each strategy", lower_bound=1, upper_bound=LARGEST)
flags.DEFINE_integer(
    "monitor",
    0,
    "adaptive items that networks are asked after each epoch, to see whether a few track their accuracy; 0 for none",
    lower_bound=0,
    upper_bound=LARGEST,
)
USED = settings.of_stage("curriculum") - {"curriculum_seeds"}  # --seeds takes its place here
task_flags.define_flags(USED)
shared_flags.define_tensorboard()
shared_flags.define_processes()


def main() -> None:
    """Trains under each strategy unless that has been done already, then writes the report."""
    from experiments.commands import curriculum  # here, as `--help` and wrong flags need not wait for JAX

    curriculum.run()


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
