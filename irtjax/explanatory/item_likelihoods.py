"""What the responses to each item say of its slope and intercept, the abilities being as a fit found them.

A prior of items draws at the scale of abilities as well as at single items. What the responses alone say is therefore
taken on the scale on which the abilities that were found have mean 0 and variance 1, and not from the errors of the
items, which hold that of the scale and their prior.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax import processes
from irtjax.fits.result import Fit
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.matrix import MISSING
from irtjax.responses.values import mine
from irtjax.types import Float

POSTERIOR = gauss_hermite(11)
CELLS = 2**21  # responses at a time
BLOCK = 8  # items, of which there are whole blocks at a time


class ItemLikelihoods(NamedTuple):
    """The marginal log-likelihood of each item near its estimate, as a parabola.

    Attributes:
        slope: (I,) a, at which the parabola is taken.
        intercept: (I,) c, at which it is taken, of the logit a θ + c.
        gradient: (I, 2) in slope and intercept.
        information: (I, 2, 2), minus the second derivatives.
        origin: of the scale of θ, on that of the fit.
        unit: of the scale of θ, on that of the fit.
    """

    slope: Float[np.ndarray, " I"]
    intercept: Float[np.ndarray, " I"]
    gradient: Float[np.ndarray, "I 2"]
    information: Float[np.ndarray, "I 2 2"]
    origin: float
    unit: float


def item_likelihoods(fit: Fit) -> ItemLikelihoods:
    """The likelihoods of the items of a Rasch model, a 1PL or 2PL (D = 1).

    With x = (θ, 1), p = σ(a θ + c) and the posterior N(m_j, s_j²) of each ability, the gradient is Σ_j E (y_j - p) x,
    and the information Σ_j E p (1 - p) x x' - Cov (y_j - p) x: that of complete data without what is missing of it
    (Louis 1982). Where items have no slopes of their own the unit is that of the fit.
    """
    origin, unit = float(fit.ability.mean()), 1.0
    if fit.model == "2pl":
        unit = float(np.sqrt(fit.ability.var() + (fit.ability_se**2).mean()))
    ability, ability_sd = (fit.ability - origin) / unit, fit.ability_se / unit
    of_fit = np.asarray(fit.parameters.slope)[:, 0]
    slope, intercept = of_fit * unit, np.asarray(fit.parameters.intercept) + of_fit * origin
    rows, columns = mine(fit.responses.values)
    subjects, items = np.arange(ability.size)[rows], np.arange(slope.size)[columns]
    sums = np.zeros((slope.size, 5))
    step = max(1, CELLS // (BLOCK * max(subjects.size, 1))) * BLOCK
    step = min(step, max(1, -(-items.size // BLOCK)) * BLOCK)
    with jax.enable_x64(True):
        for at in range(0, items.size, step):
            some = items[at : at + step]
            part = np.asarray(fit.responses.values[rows, some[0] : some[-1] + 1])
            more = step - some.size  # one shape is compiled
            padded = np.pad(part, ((0, 0), (0, more)), constant_values=MISSING)
            parameters = (np.pad(array[some], (0, more)) for array in (slope, intercept))
            sums[some] = np.asarray(_sums(ability[rows], ability_sd[rows], padded, *parameters))[: some.size]
    sums = processes.total(sums)
    by_slope, by_intercept, *second = sums.T
    information = np.array([[second[0], second[1]], [second[1], second[2]]]).transpose(2, 0, 1)
    return ItemLikelihoods(slope, intercept, np.stack([by_slope, by_intercept], 1), information, origin, unit)


@jax.jit
def _sums(m: jax.Array, s: jax.Array, y: jax.Array, slope: jax.Array, intercept: jax.Array) -> jax.Array:
    """(B, 5): gradient in slope and intercept, information of slope, of slope and intercept, of intercept."""
    observed = (y != MISSING).astype(m.dtype)
    zeros: tuple[jax.Array, ...] = (jnp.zeros(y.shape, m.dtype),) * 5

    def add(totals: tuple[jax.Array, ...], node: tuple[jax.Array, jax.Array]) -> tuple[tuple[jax.Array, ...], None]:
        z, weight = node
        theta = (m + s * z)[:, None]
        p = jax.nn.sigmoid(slope[None, :] * theta + intercept[None, :])
        rest = y - p
        # of complete data, less the mean square of the score; the square of its mean is added at the end
        bend = p * (1 - p) - rest * rest
        terms = (rest * theta, rest, bend * theta * theta, bend * theta, bend)
        return tuple(total + weight * term for total, term in zip(totals, terms, strict=True)), None

    nodes = jnp.asarray(POSTERIOR.nodes[:, 0]), jnp.asarray(np.exp(POSTERIOR.log_weights))
    means, _ = jax.lax.scan(add, zeros, nodes)
    by_slope, by_intercept, *second = means
    squares = by_slope * by_slope, by_slope * by_intercept, by_intercept * by_intercept
    second = [mean + square for mean, square in zip(second, squares, strict=True)]
    return jnp.stack([(observed * term).sum(0) for term in (by_slope, by_intercept, *second)], axis=1)
