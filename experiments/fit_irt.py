r"""Fits an item response model to a file of graded responses.

Reads a response matrix and writes items.csv, subjects.csv and fit.json. Formats, told by ending or content: CSV matrix
(a header of item ids, the subject id first in each row, cells 0, 1 or empty), long CSV (subject_id, item_id, response),
py-irt JSON lines, Parquet, NPZ.

  python -m experiments.fit_irt --responses=responses.csv --model=2pl --output_dir=runs/fit
  python -m experiments.fit_irt --responses=responses.csv --model=1pl --estimator=svi --output_dir=runs/fit

On 2 CPU cores, a few seconds for a thousand people and 100 items, most of them start and compilation.
"""

from pathlib import Path

from absl import flags

import irtjax
from experiments import app
from experiments.progress import fit_bar
from irtjax.files import writable_directory
from irtjax.inference import ESTIMATORS, MODELS
from irtjax.inference.svi import PRIORS
from irtjax.responses import require_estimable

_RESPONSES = flags.DEFINE_string("responses", None, "file of graded responses", required=True)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder for the results; made where missing", required=True)
_MODEL = flags.DEFINE_enum("model", "2pl", MODELS, "item response model; svi fits the 1pl")
_DIMS = flags.DEFINE_integer("dims", 1, "dimensions of ability (mml)", lower_bound=1)
_ESTIMATOR = flags.DEFINE_enum(
    "estimator", "mml", ESTIMATORS, "marginal maximum likelihood or stochastic variational inference"
)
_PRIORS = flags.DEFINE_enum("priors", "hierarchical", PRIORS, "priors of abilities and difficulties (svi)")
_ASYMPTOTE_PRIORS = flags.DEFINE_bool("asymptote_priors", True, "weak priors on the asymptotes of 3pl and 4pl (mml)")
_ANCHORS = flags.DEFINE_string("anchors", None, "items.csv of items whose parameters are held (mml)")
_EXTREMES = flags.DEFINE_enum(
    "extremes", "refuse", ["refuse", "keep"], "items that everyone or no one answered right (mml)"
)
_SEED = flags.DEFINE_integer("seed", 0, "seed of every random draw (svi)", lower_bound=0, upper_bound=2**31 - 1)
_MAX_ITERATIONS = flags.DEFINE_integer(
    "max_iterations",
    4000,
    "most EM steps, in rounds of 3 (mml), or optimisation steps, in rounds of 50 (svi)",
    lower_bound=1,
)


def main() -> None:
    """Reads, fits, writes."""
    responses = irtjax.read_responses(_RESPONSES.value)
    with app.naming(_RESPONSES.value):
        require_estimable(responses)
    anchors = None if _ANCHORS.value is None else irtjax.read_items(_ANCHORS.value)
    directory = writable_directory(_OUTPUT_DIR.value)
    with fit_bar(_MODEL.value, _MAX_ITERATIONS.value) as on_step:
        if _ESTIMATOR.value == "svi":
            options = {
                "priors": _PRIORS.value, "seed": _SEED.value, "max_steps": _MAX_ITERATIONS.value, "on_chunk": on_step,
            }  # fmt: skip
        else:
            options = {
                "dims": _DIMS.value, "anchors": anchors, "extremes": _EXTREMES.value,
                "max_iterations": _MAX_ITERATIONS.value, "on_iteration": on_step,
            }  # fmt: skip
            if not _ASYMPTOTE_PRIORS.value:
                options |= {"guessing_prior": None, "upper_prior": None}
        with app.naming(_RESPONSES.value):
            fit = irtjax.fit(responses, model=_MODEL.value, estimator=_ESTIMATOR.value, **options)
    irtjax.write_fit(fit, directory)
    print(
        f"Done: {Path(directory, 'items.csv')}, subjects.csv and fit.json "
        f"({responses.num_subjects:,} subjects, {responses.num_items:,} items)"
    )


if __name__ == "__main__":
    app.run(main)
