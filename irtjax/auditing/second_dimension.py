"""Is there one ability? The strongest direction that the fit leaves in the residuals, against simulated responses."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from irtjax.types import Float


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
    p: Float[np.ndarray, "J I"], values: Float[np.ndarray, "J I"], simulations: int = 19, seed: int = 0
) -> SecondDimension:
    """The first singular vectors of y - p, and how strong they are without a second dimension.

    That is Horn's parallel analysis (1965) of residuals, at any numbers of subjects and items. They are not divided by
    √(p (1 - p)): a single response against all odds would be a dimension. Simulated responses are those of the model at
    the same abilities, which were not estimated from them: their residuals are a little larger, in no one direction.

    Args:
        p: probabilities of right answers, at the estimated abilities.
        values: right answers 1, wrong ones 0, NaN where missing.
        simulations: of responses.
        seed: of them.
    """
    seen, rng = ~np.isnan(values), np.random.default_rng(seed)

    def residuals(y: np.ndarray) -> np.ndarray:
        return np.where(seen, y - p, 0.0)

    share, score, loading = _strongest(residuals(np.nan_to_num(values)))
    null = np.array([_strongest(residuals(rng.random(p.shape) < p))[0] for _ in range(simulations)])
    p_value = float((1 + (null >= share).sum()) / (1 + simulations))
    return SecondDimension(share, float(null.mean()), float(null.max()), p_value, loading, score)


def _strongest(x: Float[np.ndarray, "J I"]) -> tuple[float, np.ndarray, np.ndarray]:
    """Share of the squares of the first singular value, and its vectors."""
    wide = x.shape[0] <= x.shape[1]
    gram = x @ x.T if wide else x.T @ x
    size, vectors = eigh(gram, subset_by_index=[len(gram) - 1, len(gram) - 1])
    first = vectors[:, 0]
    other = (x.T @ first if wide else x @ first) / np.sqrt(max(size[0], 1e-12))
    score, loading = (first, other) if wide else (other, first)
    return float(size[0] / max(np.trace(gram), 1e-12)), score, loading
