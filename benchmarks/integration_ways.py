r"""Several dimensions: nodes that subjects share against nodes around each posterior, on the same responses.

  python -m benchmarks.integration_ways
  python -m benchmarks.integration_ways --dims=2 --num_subjects=4000 --num_items=60

Simulates answers by the compensatory 2PL, fits them twice in each way (the first fit compiles), and prints the marginal
log-likelihood at the estimate by one exact rule for both, less that of shared nodes; the error that each fit reports;
and CPU seconds in units of those of shared nodes. Expected duration on 2 CPU cores: five minutes.
"""

import time
import warnings

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app
from irtjax.integration.posteriors import posteriors
from irtjax.kernels.models import ItemParameters, probabilities

_DIMS = flags.DEFINE_multi_integer("dims", [2, 3], "D", lower_bound=2, upper_bound=3)
_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 40, "I", lower_bound=3)
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
WAYS = ("nodes", "around")


def simulate(dims: int) -> irtjax.ResponseMatrix:
    """Responses to items of which a third lack each slope; the first D fix the rotation."""
    rng = np.random.default_rng(_SEED.value)
    size = _NUM_ITEMS.value, dims
    slope = np.abs(rng.normal(0.9, 0.5, size)) * (rng.random(size) < 0.7)
    slope[:dims] = np.tril(slope[:dims], -1) + 1.2 * np.eye(dims)
    ends = np.full(size[0], np.inf)
    items = ItemParameters(slope, rng.normal(size=size[0]), -ends, ends)
    p = probabilities(items, rng.normal(size=(_NUM_SUBJECTS.value, dims)))[0]
    values = (rng.random(p.shape) < p).astype(np.int8)
    ids = ([f"{letter}{k}" for k in range(n)] for letter, n in zip("si", p.shape, strict=True))
    return irtjax.ResponseMatrix(values, *ids)


def exact_log_likelihood(fit: irtjax.Fit, responses: irtjax.ResponseMatrix) -> float:
    """Marginal log-likelihood at the estimate, on nodes as fine as each posterior asks for."""
    parts = posteriors(fit.parameters, responses.values, *fit.population)
    return sum(float(part.log_likelihood.sum()) for part in parts)


def main() -> None:
    """Fits and prints."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    rows = []
    for dims in _DIMS.value:
        responses, reference = simulate(dims), None
        for way in WAYS:
            irtjax.fit(responses, "2pl", dims=dims, integration=way)
            began = time.process_time()
            fit = irtjax.fit(responses, "2pl", dims=dims, integration=way)
            taken, reached = time.process_time() - began, exact_log_likelihood(fit, responses)
            reference = reference or (taken, reached)
            rows.append(
                {
                    "D": dims,
                    "integration": way,
                    "log-likelihood - that of nodes": f"{reached - reference[1]:.3f}",
                    "reported error": f"{fit.log_likelihood_error:.2g}",
                    "nodes a subject": fit.details["nodes_per_subject"],
                    "CPU / that of nodes": f"{taken / reference[0]:.2f}",
                    "status": fit.status.value,
                }
            )
    print(f"{_NUM_SUBJECTS.value:,} subjects × {_NUM_ITEMS.value:,} items, 2PL")
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
