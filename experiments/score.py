r"""Scores subjects on items of known parameters.

Reads items.csv as experiments.fit_irt writes it, and a file of responses to some or all of its items; writes
subjects.csv with ability, standard error and percentile.

  python -m experiments.score --items=runs/fit/items.csv --responses=new.csv --method=eap --output_dir=runs/score
  python -m experiments.score --items=runs/scale/items.csv --responses=network.csv \
    --population=runs/scale/subjects.csv --output_dir=runs/score

The second gives percentiles among the people that the scale was built from: the percentage with a lower ability, plus
half of those with the same ability.

On 2 CPU cores, a few seconds.
"""

from absl import flags

from experiments.common import app, shared_flags
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.scoring.choices import METHODS

define_path("items", "items.csv with known parameters, or the folder of a saved fit", required=True)
define_path("responses", "file or folder of scored responses", required=True)
shared_flags.define_metric()
shared_flags.define_filter()
shared_flags.define_columns()
shared_flags.define_trials()
shared_flags.define_transpose()
flags.DEFINE_enum("method", "eap", METHODS, "posterior mean or mode, maximum or weighted likelihood")
define_output_dir("folder for subjects.csv")
flags.DEFINE_float(
    "population_mean",
    0.0,
    "mean of the population that map, eap and the percentile refer to; that of the fit, if --items is its folder",
)
define_path(
    "population",
    "subjects.csv of the sample that percentiles refer to; without it, they refer to the normal population",
)
flags.DEFINE_string(
    "group", None, "group of the fit that the subjects are of: its population, and its own items; --items is a folder"
)
shared_flags.define_guard()
flags.DEFINE_float("population_sd", 1.0, "standard deviation of that population", lower_bound=1e-6)

shared_flags.define_processes()


def main() -> None:
    """Reads, scores, writes."""
    from experiments.commands import score  # here, as `--help` and wrong flags need not wait for JAX

    score.run()


if __name__ == "__main__":
    app.run(main)
