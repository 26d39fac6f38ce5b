"""Weighted likelihood estimates of ability (WLE): free of the first term of the bias of ML, and always finite."""

import jax
import jax.numpy as jnp

from irtjax.kernels.ability import Ability, on_scale, rescaled, scale_of
from irtjax.kernels.models import ItemParameters, log_probabilities, log_sigmoids
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.roots import grid, interval, root_between
from irtjax.types import AnyArray, Int


@in_full_precision
def ability_wle(
    responses: Int[AnyArray, " I"], items: ItemParameters, scale: tuple[jax.Array, jax.Array] | None = None
) -> Ability:
    """Weighted likelihood estimate of one subject (Warm 1989, eq. 6), D = 1; `jax.vmap` it over many.

    The root of

        l'(θ) + J(θ) / (2 I(θ)),     I = Σ P'² / (P Q),   J = Σ P' P'' / (P Q),

    over the observed items, with l the log-likelihood. Without asymptotes J = I', and it is where log L + ½ log I is
    highest. Where there are several roots, it is that beside which this is highest. It does not depend on origin and
    unit of the scale.

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items, one slope each.
        scale: origin (1,) and unit (1,) in which to look; None for those of the items.

    Returns:
        Scalars: the ability, finite also where all answers are right, or all wrong; and 1/√I there, which Warm gives as
        its standard error. NaN where no item that was answered depends on ability.
    """
    centre, unit = scale or scale_of(items, None)
    own = rescaled(items, centre, unit)
    slope = own.slope.T  # (1, I)
    right, wrong = responses[None, :] == 1, responses[None, :] == 0
    informative = (right | wrong) & (slope != 0)
    log_slope = jnp.log(jnp.where(informative, jnp.abs(slope), 1))

    def terms(points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The slope of which the root is asked, log L and log I at points (Q,)."""
        p, q, by_logit = log_probabilities(own, points[:, None])
        residual = jnp.where(right, jnp.exp(by_logit - p), jnp.where(wrong, -jnp.exp(by_logit - q), 0))
        weights = jnp.where(informative, 2 * (by_logit + log_slope) - p - q, -jnp.inf)  # logarithms of P'² / (P Q)
        largest = weights.max(axis=1, keepdims=True)
        shares = jnp.exp(weights - jnp.where(jnp.isfinite(largest), largest, 0))
        total = jnp.maximum(shares.sum(axis=1), jnp.finfo(slope.dtype).tiny)
        above, below = (jnp.exp(part) for part in log_sigmoids(points[:, None] * slope + own.intercept[None, :]))
        # P'' / P' = a (1 - 2σ): J / I is a mean over the items, and no underflow of theirs matters
        ratio = (shares * slope * (below - above)).sum(axis=1) / total
        likelihood = jnp.where(right, p, jnp.where(wrong, q, 0)).sum(axis=1)
        return residual @ slope[0] + ratio / 2, likelihood, largest[:, 0] + jnp.log(total)

    points = grid(slope.dtype)
    falling, likelihood, log_information = terms(points)
    place = interval(falling, likelihood + log_information / 2)
    ends, values = ((of[place], of[place + 1]) for of in (points, falling))
    z = root_between(lambda x: terms(x[None])[0][0], ends, values)
    error = jnp.exp(-terms(z[None])[2][0] / 2)
    z, error = (jnp.where(informative.any(), x, jnp.nan)[None] for x in (z, error))
    return on_scale(z, error, centre, unit)
