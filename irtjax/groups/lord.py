"""DIF by Lord's chi-square: differences of the items' parameters in separate fits of the groups (Lord 1980, ch. 14).

With v the parameters of an item in all groups, on one scale, S their covariance, and C the differences from the first
group: (C v)' (C S C')⁻¹ (C v), of G groups (Kim, Cohen and Park 1995); of two, with the link taken as known, (v₁ - v₂)'
(S₁ + S₂)⁻¹ (v₁ - v₂). Where a group's slope cannot be told from 0, difficulties b have no finite variance, and v has
a b in place of b, which by the delta method is the same in large samples.
"""

from typing import NamedTuple

import numpy as np

from irtjax.groups.separate_fits import Linked
from irtjax.types import Float, Int

HELD = 1e-12  # variance of a parameter that is held
RELATIVE = 1e-12  # of a variance, that is rounding


class Lord(NamedTuple):
    """Of each item (I,).

    Attributes:
        statistic: chi-square; NaN of items that have no finite estimate in two groups.
        df: parameters that may differ.
        effect: as of `separate_fits.Linked`.
    """

    statistic: Float[np.ndarray, " I"]
    df: Int[np.ndarray, " I"]
    effect: Float[np.ndarray, " I"]


def lord(items: Linked, test: str = "both") -> Lord:
    """Tests of all items.

    Args:
        items: as the groups have them.
        test: of discrimination and difficulty or thresholds ("both"), of difficulty or thresholds ("uniform"), or of
            discrimination ("nonuniform"); asymptotes that were estimated are left open.
    """
    number = items.estimates.shape[1]
    statistic, df = np.full(number, np.nan), np.zeros(number, int)
    for i in range(number):
        there = ~np.isnan(items.estimates[:, i]).all(axis=1)
        if there.sum() < 2:
            continue
        v, errors = items.estimates[there, i], items.covariances[i][there][:, :, there]
        if not items.discriminates[there, i].all():
            v, errors = _with_intercepts(v, errors)
        chosen = (np.einsum("gpgp->gp", errors) > HELD).all(axis=0)
        is_slope = np.arange(v.shape[1]) == 0
        chosen &= {"both": True, "uniform": ~is_slope, "nonuniform": is_slope}[test]
        others, size = len(v) - 1, int(chosen.sum())
        if not size:
            continue
        contrast = np.kron(np.column_stack([-np.ones(others), np.eye(others)]), np.eye(size))
        change = contrast @ v[:, chosen].ravel()
        of_all = errors[:, chosen][..., chosen].reshape(len(v) * size, -1)
        inverse = np.linalg.pinv(contrast @ of_all @ contrast.T, rcond=RELATIVE, hermitian=True)
        statistic[i], df[i] = change @ inverse @ change, len(change)
    return Lord(statistic, df, items.effects)


def _with_intercepts(
    v: Float[np.ndarray, "G P"], errors: Float[np.ndarray, "G P G P"]
) -> tuple[Float[np.ndarray, "G P"], Float[np.ndarray, "G P G P"]]:
    """Of each group a and a b, out of a and b, and their covariances."""
    by = np.stack([np.diag([1.0, *[a] * (v.shape[1] - 1)]) for a in v[:, 0]])
    by[:, 1:, 0] = v[:, 1:]
    return np.column_stack([v[:, 0], v[:, :1] * v[:, 1:]]), np.einsum("gpq,gqhr,hsr->gphs", by, errors, by)
