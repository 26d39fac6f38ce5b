r"""Which examples should a network train on? Filters training data by item difficulty and trains on the rest.

Strategies: AVI keeps |b - c| < d, AVO |b - c| > d, UB b < d, LB b > d, PCUB pc < d and PCLB pc > d; random keeps any.
Here b is the difficulty of an item, c that of an average one (--centre), and pc the share of the crowd that answered it
right. The threshold d is set so that each of --shares of the data is kept.

  python -m experiments.filtering --task=digits --items=runs/demo/difficulty/hierarchical/items.csv \
    --output_dir=runs/filtering

Writes report.md and its pictures to the run directory. Durations and expected numbers: docs/results/filtering.md.
"""

from absl import flags

from experiments.common import app, settings, shared_flags, task_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.arguments import LARGEST
from irtjax.selection.choices import FILTERS

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

define_output_dir("run directory")
define_path("items", "items.csv with the difficulty of every training example", required=True)
define_path("responses", "answers of the crowd, for the percent correct of PCUB and PCLB; default: that of --items")
shared_flags.define_columns()
shared_flags.define_transpose()
flags.DEFINE_list("strategies", list(FILTERS), "strategies to compare")
flags.DEFINE_list("shares", [f"{share:g}" for share in SHARES], "shares of the training data to keep, 0 to 1")
flags.DEFINE_integer("seeds", 5, "networks for each strategy and share", lower_bound=1, upper_bound=LARGEST)
USED = settings.of_stage("filtering") - {"filtering_seeds"}  # which is --seeds here
task_flags.define_flags(USED)
shared_flags.define_processes()


def main() -> None:
    """Trains all networks unless that is done already, then writes the report."""
    from experiments.commands import filtering  # here, as `--help` and wrong flags need not wait for JAX

    filtering.run()


if __name__ == "__main__":
    app.run(main, resumes=True, device_per_core=True)
