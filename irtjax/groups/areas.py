"""DIF by the area between the curves of an item in two groups (Raju 1988, 1990).

Between P₁ and P₂ with discriminations a₁, a₂, difficulties b₁, b₂ and the same asymptotes c and d, all on one scale,
with x = b₂ - b₁ and m = 1 / a₂ - 1 / a₁:

    signed area    ∫ P₁ - P₂ dθ    = (d - c) x
    unsigned area  ∫ |P₁ - P₂| dθ  = (d - c) (|x| + 2 |m| log(1 + exp(-|x / m|)))

The second is Raju's 2 (a₂ - a₁) / (a₁ a₂) log(1 + exp(a₁ a₂ x / (a₂ - a₁))) - x in size, and his D a is our a.
Standard errors are by the delta method, z the area over its error.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.groups.separate_fits import Linked
from irtjax.types import Float, Shaped

ANGLES = 720  # at which the null distribution of the unsigned area is averaged
EQUAL = 1e-6  # difference of asymptotes that is none


class Areas(NamedTuple):
    """Of each item (I,), in units of ability on the scale of the first group.

    Attributes:
        effect: the area: signed, the first group's curve above the second's, so that more is harder for the second; or
            unsigned.
        error: standard error.
        p_value: of z; of the unsigned area as in `p_of_unsigned`.
    """

    effect: Float[np.ndarray, " I"]
    error: Float[np.ndarray, " I"]
    p_value: Float[np.ndarray, " I"]

    @property
    def statistic(self) -> Float[np.ndarray, " I"]:
        """z²."""
        return (self.effect / self.error) ** 2

    @property
    def df(self) -> int:
        """One number, the area, is tested."""
        return 1


def areas(items: Linked, item_ids: Shaped[np.ndarray, " I"], *, signed: bool) -> Areas:
    """Areas of all items, NaN where one of two groups has no slope that can be told from 0: areas are then without end.

    Args:
        items: right/wrong ones, as the two groups have them.
        item_ids: for errors.
        signed: whether areas in which the second group is better count as negative.

    Raises:
        InputError: an item whose asymptotes differ between the groups, which no finite area is between.
    """
    unlike = np.flatnonzero(np.abs(items.bounds[0] - items.bounds[1]).max(axis=1) > EQUAL)
    if len(unlike):
        first, second = items.bounds[:, unlike[0], 0]
        raise InputError(
            f"`method` raju: item '{item_ids[unlike[0]]}' has guessing {first:.3f} in one group and {second:.3f} in "
            "the other, and the area between such curves has no end: hold it by `guessing`, or take lord"
        )
    (a, b), height = items.estimates.transpose(2, 0, 1)[:2], items.bounds[0, :, 1] - items.bounds[0, :, 0]
    with np.errstate(all="ignore"):
        known = items.discriminates.all(axis=0) & (a[0] * a[1] > 0)
        x, m = np.where(known, b[1] - b[0], np.nan), np.where(known, 1 / a[1] - 1 / a[0], np.nan)
        covariance = _of_x_and_m(items.covariances[:, :, :2, :, :2], a)
        if signed:
            error = np.sqrt(covariance[:, 0, 0])
            return Areas(height * x, height * error, chi2.sf((x / error) ** 2, 1))
        area, gradient = unsigned(x, m)
        error = np.sqrt(np.einsum("ik,ikl,il->i", gradient, covariance, gradient))
        return Areas(height * area, height * error, p_of_unsigned(area / error, covariance))


def _of_x_and_m(errors: Float[np.ndarray, "I 2 2 2 2"], a: Float[np.ndarray, "2 I"]) -> Float[np.ndarray, "I 2 2"]:
    """Covariances of x and m, out of those of a and b of both groups."""
    by = np.zeros((a.shape[1], 2, 2, 2))  # of x and m by group and parameter
    by[:, 0, :, 1], by[:, 1, :, 0] = [-1.0, 1.0], np.stack([1 / a[0] ** 2, -1 / a[1] ** 2], axis=1)
    return np.einsum("ikgp,igphq,ilhq->ikl", by, errors, by)


def unsigned(
    x: Float[np.ndarray, "..."], m: Float[np.ndarray, "..."]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "... 2"]]:
    """The unsigned area, and its derivatives by x and m; see the module."""
    with np.errstate(all="ignore"):
        y = np.where(m == 0, np.inf, np.abs(x / m))
    tail = np.log1p(np.exp(-y))
    by_m = 2 * (tail + np.where(np.isinf(y), 0.0, y) * expit(-y))
    gradient = np.stack([np.sign(x) * np.tanh(y / 2), np.sign(m) * by_m], axis=-1)
    return np.abs(x) + 2 * np.abs(m) * tail, gradient


@checks_types
def p_of_unsigned(z: Float[np.ndarray, " I"], covariance: Float[np.ndarray, "I 2 2"]) -> Float[np.ndarray, " I"]:
    """Chances of an unsigned area so large where the item is the same for both groups.

    Raju (1990) takes z as standard normal. It is not: the area is as x and m, which are then normal around 0, are far
    from 0, and no smooth function of them there. With (x, m) = r L u, L L' their covariance, u at angle φ on the unit
    circle and r² of chi-square with two degrees of freedom, z = r k(φ), and P(z > z₀) is the mean of exp(-z₀² / 2 k²)
    over φ. Where m has no variance, as of the Rasch model, this is the normal distribution.

    Args:
        z: areas over their errors.
        covariance: of x and m.
    """
    angle = (np.arange(ANGLES) + 0.5) * 2 * np.pi / ANGLES
    (xx, xm), (_, mm) = covariance.transpose(1, 2, 0)
    with np.errstate(all="ignore"):
        sd = np.sqrt(xx)
        slope = xm / sd
        left = np.sqrt(np.maximum(mm - slope**2, 0.0))
        x, m = np.outer(sd, np.cos(angle)), np.outer(slope, np.cos(angle)) + np.outer(left, np.sin(angle))
        area, gradient = unsigned(x, m)
        k = area / np.sqrt(np.einsum("iak,ikl,ial->ia", gradient, covariance, gradient))
        return np.exp(-0.5 * (z[:, None] / k) ** 2).mean(axis=1)
