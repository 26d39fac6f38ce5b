r"""How exact is MML on nodes when posteriors and their sums are in float32, as a TPU would have them?

  python -m benchmarks.single_precision
  python -m benchmarks.single_precision --num_subjects=4000 --num_items=100 --models=2pl

A TPU emulates float64. Here the E-step alone, nearly all of whose work is matrix products, goes by float32: curves at
nodes, posteriors, expected counts. What follows from them for items stays in float64. Answers are simulated by the 4PL,
complete and with a fifth missing; each model is fitted in both precisions, on a CPU. Printed are differences at the
end: of the log-likelihood, in nats; of abilities and difficulties the largest, in their standard errors; and whether
the fit met the engine's criterion. Expected duration on 2 CPU cores: three minutes.
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app
from irtjax.integration import e_step
from irtjax.integration.curves import Curves
from irtjax.integration.nodes import Answers
from irtjax.kernels.models import ItemParameters, probabilities

MODELS = ("rasch", "1pl", "2pl", "3pl", "4pl")
_MODELS = flags.DEFINE_list("models", list(MODELS), "which to fit")
_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 40, "I", lower_bound=3)
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
flags.register_validator("models", lambda given: set(given) <= set(MODELS), f"expected some of {', '.join(MODELS)}")


def simulate(missing: float) -> irtjax.ResponseMatrix:
    """Responses by the 4PL, of which this share is missing."""
    rng = np.random.default_rng(_SEED.value)
    number = _NUM_ITEMS.value
    slope = np.exp(rng.normal(0.2, 0.4, (number, 1)))
    items = ItemParameters(slope, rng.normal(size=number), rng.normal(-1.8, 0.5, number), rng.normal(3, 0.5, number))
    p = probabilities(items, rng.normal(size=(_NUM_SUBJECTS.value, 1)))[0]
    values = (rng.random(p.shape) < p).astype(np.int8)
    values[rng.random(p.shape) < missing] = -1
    ids = ([f"{letter}{k}" for k in range(n)] for letter, n in zip("si", p.shape, strict=True))
    return irtjax.ResponseMatrix(values, *ids)


@contextlib.contextmanager
def single_precision() -> Iterator[None]:
    """Within it, E-steps are in float32."""

    def single(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.astype(np.float32), tree)

    def told(method: Any) -> Any:
        return lambda answers: single(method(answers))  # None has no leaves

    jax.clear_caches()  # programs of other numbers go by the same names
    with (
        mock.patch.object(e_step, "Curves", lambda *leaves: single(Curves(*leaves))),
        mock.patch.object(Answers, "statistics", told(Answers.statistics)),
        mock.patch.object(Answers, "observed", told(Answers.observed)),
    ):
        yield
    jax.clear_caches()


def compared(model: str, missing: float) -> dict[str, Any]:
    """A row of the table."""
    responses = simulate(missing)
    double = irtjax.fit(responses, model)
    with single_precision():
        found = irtjax.fit(responses, model)

    def far(name: str) -> float:
        errors = np.asarray(getattr(double, f"{name}_se"))
        return float(np.nanmax(np.abs(np.asarray(getattr(found, name)) - np.asarray(getattr(double, name))) / errors))

    return {
        "model": model.upper(),
        "missing": f"{missing:.0%}",
        "log-likelihood": f"{double.log_likelihood:.3f}",
        "difference": f"{found.log_likelihood - double.log_likelihood:+.1e}",
        "ability, SE": f"{far('ability'):.1e}",
        "difficulty, SE": f"{far('difficulty'):.1e}",
        "float64": double.status.value,
        "float32": found.status.value,
    }


def main() -> None:
    """Fits and prints."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    rows = [compared(model, missing) for missing in (0.0, 0.2) for model in _MODELS.value]
    print(f"{_NUM_SUBJECTS.value:,} subjects × {_NUM_ITEMS.value:,} items")
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
