"""Local dependence: do pairs and triplets of items share more, or less, than the ability explains?"""

import numpy as np
import pandas as pd
from scipy.stats import binom

from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.responses.matrix import MISSING
from irtjax.scale.conditional_tables import two_sided_p_values
from irtjax.scale.tetrachoric import pair_tables, phi
from irtjax.types import Int


def pair_dependence(values: Int[np.ndarray, "J I"], items: ItemParameters, quadrature: Quadrature) -> pd.DataFrame:
    """Local dependence of each pair of items: X² of Chen and Thissen (1997, eq. 7), and an exact test.

        X² = Σ_{u,v} (O_uv - E_uv)² / E_uv,   E_uv = n ∫ P_i(u | θ) P_j(v | θ) φ(θ) dθ

    Where cells of E are small, X² has no chi-square distribution. The p-value is therefore that of the table given its
    margins, which is free of the difficulties: the count of subjects with both items right against what the odds ratio
    of E says (`conditional_tables`). Under local independence it is below a level at most as often as the level says.

    Args:
        values: responses; the subjects that answered both items count for a pair.
        items: the model.
        quadrature: nodes of the population.

    Returns:
        One row per pair: `first` and `second` (positions, first < second); `ld_x2`, with the sign of the observed minus
        the expected correlation; `residual_correlation`, the root of X² / n with that sign; and `p_value`.
    """
    p, q = map(np.asarray, probabilities(items, quadrature.nodes))
    weights = np.exp(quadrature.log_weights)[:, None]
    observed = pair_tables(values)
    n = observed.sum((2, 3))
    expected = np.empty_like(observed)
    for u, at_first in enumerate((q, p)):
        for v, at_second in enumerate((q, p)):
            expected[:, :, u, v] = n * ((weights * at_first).T @ at_second)
    statistic = ((observed - expected) ** 2 / expected).sum((2, 3))
    sign = np.where(phi(observed) >= phi(expected), 1.0, -1.0)
    first, second = np.triu_indices(values.shape[1], 1)
    statistic, sign, n, observed, expected = (
        array[first, second] for array in (statistic, sign, n, observed, expected)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # nobody answered both
        odds = expected[:, 1, 1] * expected[:, 0, 0] / (expected[:, 1, 0] * expected[:, 0, 1])
    tested = np.isfinite(odds) & (odds > 0)
    p_value = np.full(len(first), np.nan)
    p_value[tested] = two_sided_p_values(observed[tested], odds[tested])
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "ld_x2": sign * statistic,
            "residual_correlation": sign * np.sqrt(statistic / n),
            "p_value": p_value,
        }
    )


def triplet_dependence(values: Int[np.ndarray, "J I"], items: ItemParameters, quadrature: Quadrature) -> pd.DataFrame:
    """Standardised residual of each triplet of items: the number of subjects with all three right, against the model.

        z = (O - E) / sqrt(E (1 - E/n)),   E = n ∫ P_i P_j P_k φ(θ) dθ

    Args:
        values: responses; the subjects that answered all three items count for a triplet.
        items: the model.
        quadrature: nodes of the population.

    Returns:
        One row per triplet: positions `first` < `second` < `third`, `residual`, and `p_value`, two-sided, of the
        binomial distribution of O with mean E.
    """
    p = np.asarray(probabilities(items, quadrature.nodes)[0])
    weights = np.exp(quadrature.log_weights)
    right, seen = (values == 1).astype(np.float32), (values != MISSING).astype(np.float32)
    parts = []
    for first in range(values.shape[1] - 2):
        later = slice(first + 1, None)
        second, third = np.triu_indices(values.shape[1] - first - 1, 1)
        observed = (right[:, later].T @ (right[:, [first]] * right[:, later]))[second, third].astype(float)
        n = (seen[:, later].T @ (seen[:, [first]] * seen[:, later]))[second, third].astype(float)
        share = (p[:, later].T @ ((weights * p[:, first])[:, None] * p[:, later]))[second, third]
        with np.errstate(invalid="ignore"):  # no subject answered all three
            residual = (observed - n * share) / np.sqrt(n * share * (1 - share))
        tails = np.minimum(binom.cdf(observed, n, share), binom.sf(observed - 1, n, share))
        p_value = np.where(n > 0, np.minimum(1.0, 2 * tails), np.nan)
        places = np.full(len(second), first), second + first + 1, third + first + 1
        parts.append(np.stack([*places, residual, p_value], axis=1))
    table = np.concatenate(parts) if parts else np.empty((0, 5))
    frame = pd.DataFrame(table[:, :3].astype(int), columns=["first", "second", "third"])
    return frame.assign(residual=table[:, 3], p_value=table[:, 4])
