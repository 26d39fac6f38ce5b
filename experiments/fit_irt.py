r"""Fits an item response model to a file of graded responses.

Reads a response matrix (CSV: a header of item ids, the subject id first in each row, cells 0, 1 or empty; or NPZ) and
writes items.csv, subjects.csv and fit.json.

  python -m experiments.fit_irt --responses=responses.csv --output_dir=runs/fit

On 2 CPU cores, about a second for each 200,000 responses, and a few seconds to start.
"""

import sys
from pathlib import Path

from absl import flags

import irtjax
from experiments import app
from experiments.progress import fit_bar
from irtjax.files import writable_directory
from irtjax.inference import ESTIMATORS, MODELS
from irtjax.inference.svi import PRIORS
from irtjax.responses import require_estimable

_RESPONSES = flags.DEFINE_string("responses", None, "response matrix, .csv or .npz", required=True)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder for the results; made where missing", required=True)
_MODEL = flags.DEFINE_enum("model", "1pl", MODELS, "item response model")
_ESTIMATOR = flags.DEFINE_enum("estimator", "svi", ESTIMATORS, "how it is fitted")
_PRIORS = flags.DEFINE_enum("priors", "hierarchical", PRIORS, "of abilities and difficulties")
_SEED = flags.DEFINE_integer("seed", 0, "of every random draw", lower_bound=0)
_MAX_STEPS = flags.DEFINE_integer("max_steps", 4000, "most steps of the optimisation", lower_bound=1)


def main() -> None:
    """Reads, fits, writes."""
    responses = irtjax.read_responses(_RESPONSES.value)
    try:
        require_estimable(responses)
    except irtjax.InputError as error:
        raise irtjax.InputError(f"{_RESPONSES.value}: {error}") from error
    directory = writable_directory(_OUTPUT_DIR.value)
    with fit_bar(_PRIORS.value, _MAX_STEPS.value) as on_chunk:
        fit = irtjax.fit(
            responses,
            model=_MODEL.value,
            estimator=_ESTIMATOR.value,
            priors=_PRIORS.value,
            seed=_SEED.value,
            max_steps=_MAX_STEPS.value,
            on_chunk=on_chunk,
        )
    irtjax.write_fit(fit, directory)
    if not fit.converged:
        print(
            f"warning: the ELBO was still improving after {fit.iterations} steps: raise --max_steps",
            file=sys.stderr,
        )
    print(
        f"Done: {Path(directory, 'items.csv')}, subjects.csv and fit.json "
        f"({responses.num_subjects:,} subjects, {responses.num_items:,} items)"
    )


if __name__ == "__main__":
    app.run(main)
