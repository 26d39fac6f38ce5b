"""Is there one ability? The strongest direction that the fit leaves in the residuals, against simulated responses."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from irtjax.responses.sparse import SparseResponses
from irtjax.types import Float

DENSE = 0.1  # share of the cells from which on a matrix is faster
TOLERANCE = 1e-8  # of a singular value


class SecondDimension(NamedTuple):
    """How much of the residuals one more direction explains.

    Attributes:
        share: of the sum of squared residuals.
        expected: the mean of that under the model.
        highest: the highest of it among the simulations.
        p_value: one-sided, by simulation.
        loading: (I,) of the items on that direction; its sign is arbitrary.
        score: (J,) of the subjects.
    """

    share: float
    expected: float
    highest: float
    p_value: float
    loading: Float[np.ndarray, " I"]
    score: Float[np.ndarray, " J"]


def second_dimension(
    single: SparseResponses, p: Float[np.ndarray, " N"], simulations: int = 19, seed: int = 0
) -> SecondDimension:
    """The first singular vectors of y - p, and how strong they are without a second dimension.

    That is Horn's parallel analysis (1965) of residuals, at any numbers of subjects and items. They are not divided by
    √(p (1 - p)): a single response against all odds would be a dimension. Simulated responses are those of the model at
    the same abilities, which were not estimated from them: their residuals are a little larger, in no one direction.

    Args:
        single: right and wrong answers.
        p: the probability that each is right, at the estimated abilities.
        simulations: of responses.
        seed: of them.
    """
    rng, number, dense = np.random.default_rng(seed), single.num_items, single.density >= DENSE
    cells = single.subjects.astype(np.int64) * number + single.items

    def strongest(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        if not dense:
            return _of_few(scipy.sparse.csr_array((y - p, single.items, single.starts), single.values.shape))
        x = np.zeros(single.values.shape)
        x.ravel()[cells] = y - p
        return _strongest(x)

    def drawn() -> np.ndarray:
        return rng.random(len(p)) if not dense else rng.random(single.values.shape).ravel()[cells]

    share, score, loading = strongest(single.answers)
    null = np.array([strongest(drawn() < p)[0] for _ in range(simulations)])
    p_value = float((1 + (null >= share).sum()) / (1 + simulations))
    return SecondDimension(share, float(null.mean()), float(null.max()), p_value, loading, score)


def _of_few(x: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """As `_strongest`, of a sparse array, by Lanczos iterations."""
    score, size, loading = svds(x, k=1, tol=TOLERANCE, v0=np.ones(min(x.shape)))
    return float(size[0] ** 2 / max((x.data**2).sum(), 1e-12)), score[:, 0] * size[0], loading[0]


def _strongest(x: Float[np.ndarray, "J I"]) -> tuple[float, np.ndarray, np.ndarray]:
    """Share of the squares of the first singular value, and its vectors."""
    wide = x.shape[0] <= x.shape[1]
    gram = x @ x.T if wide else x.T @ x
    size, vectors = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])
    first = vectors[:, 0]
    other = (x.T @ first if wide else x @ first) / np.sqrt(max(size[0], 1e-12))
    score, loading = (first, other) if wide else (other, first)
    return float(size[0] / max(np.trace(gram), 1e-12)), score, loading
