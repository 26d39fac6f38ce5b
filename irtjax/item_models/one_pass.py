"""The log-likelihood of items of one family at the ability of each subject, and its gradients, in one pass.

Families of categories and counts have passes of their own (`kernels.one_pass`); others have what the family says of a
block, with gradients by automatic differentiation. Log h, which depends on no parameter, is left out.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.item_models.beta_binomial import BETA_BINOMIAL
from irtjax.item_models.binomial import BINOMIAL
from irtjax.item_models.categories import there
from irtjax.item_models.families import Families
from irtjax.item_models.graded import GRADED, log_between, offsets
from irtjax.item_models.nominal import NOMINAL, of_categories
from irtjax.item_models.partial_credit import PARTIAL_CREDIT, tau
from irtjax.item_models.protocol import PredictorParameters
from irtjax.item_models.unit_interval import BETA, CUT, FAR, LOG_GAP, ORDERED_BETA, PRECISION
from irtjax.kernels import one_pass
from irtjax.kernels.one_pass import NEVER, Sums
from irtjax.types import AnyArray, Float, Shaped


class Cells(NamedTuple):
    """Responses as the pass reads them.

    Attributes:
        values: (J, I) categories, successes or shares; negative where missing.
        trials: (J, I) of counts, else None.
    """

    values: Shaped[AnyArray, "J I"]
    trials: Shaped[AnyArray, "J I"] | None = None


def log_likelihood(
    model: Families, theta: Float[AnyArray, " J"], items: PredictorParameters, cells: Cells
) -> Float[AnyArray, ""]:
    """Σ log p(y_ji | θ_j, φ_i) - log h over the responses, in nats.

    Args:
        model: of one family.
        theta: (J,) abilities; their dtype is that of the sums.
        items: of I items in one dimension.
        cells: the responses.
    """
    (family,) = model.families
    slope, top, number = items.slope[:, 0], items.top, model.per_item
    if family == BINOMIAL:
        assert cells.trials is not None
        of_trials = cells.values, cells.trials
        return one_pass.log_likelihood(one_pass.trials, theta, (slope, items.intercept), of_trials)
    if family == BETA_BINOMIAL:
        assert cells.trials is not None
        arrays = slope, items.intercept, items.others[:, 0]
        return one_pass.log_likelihood(one_pass.agreeing_trials, theta, arrays, (cells.values, cells.trials))
    if family in (BETA, ORDERED_BETA):
        return _of_shares(family, theta, items, cells.values)
    own = there(top, number)
    if family == GRADED:
        places = jnp.where(own, items.intercept[:, None] + offsets(items.others, top, number), -NEVER)
        value = one_pass.log_likelihood(one_pass.graded, theta, (slope, places.T), (cells.values,))
        between = jnp.where(own[:, 1:], log_between(items.others[:, : number - 1]), 0.0)
        counts = [(cells.values == k).sum(axis=0) for k in range(1, number)]
        return value + sum(((between[:, k] * of_k).sum() for k, of_k in enumerate(counts)), jnp.zeros(()))
    if family in (PARTIAL_CREDIT, NOMINAL):
        slopes, intercepts = _of_categories(model, items)
        lines = jnp.where(own, slopes, 0.0).T, jnp.where(own, intercepts, -NEVER).T
        return one_pass.log_likelihood(one_pass.categories, theta, lines, (cells.values,))
    # items along the last axis
    all_arrays = slope, items.intercept, items.others.T, jnp.broadcast_to(top, slope.shape).astype(slope.dtype)
    of_cells = tuple(leaf for leaf in cells if leaf is not None)
    return one_pass.log_likelihood(_block_of(model), theta, all_arrays, of_cells)


def _of_shares(
    family: Any, theta: Float[AnyArray, " J"], items: PredictorParameters, values: Float[AnyArray, "J I"]
) -> Float[AnyArray, ""]:
    """Of the Beta model cuts are so far out that no share is there."""
    log_phi = items.others[:, PRECISION]
    if family == ORDERED_BETA:
        low, gap = items.others[:, CUT], jnp.exp(items.others[:, LOG_GAP])
    else:
        low, gap = jnp.full_like(log_phi, -FAR), jnp.full_like(log_phi, 2 * FAR)
    arrays = items.slope[:, 0], items.intercept, log_phi, low, low + gap
    value = one_pass.log_likelihood(one_pass.shares, theta, arrays, (values,))
    between = ((values > 0) & (values < 1)).sum(axis=0)
    return value + (between * jnp.log(-jnp.expm1(-gap))).sum()


def _of_categories(
    model: Families, items: PredictorParameters
) -> tuple[Float[AnyArray, "I K"], Float[AnyArray, "I K"]]:
    """Slopes and intercepts of categories 1 … K, those of category 0 being 0."""
    slope, intercept, number = items.slope, items.intercept[:, None], model.per_item
    if model.families == (PARTIAL_CREDIT,):
        k = jnp.arange(1, number + 1, dtype=slope.dtype)[None]
        return k * slope, k * intercept + jnp.cumsum(tau(items.others, number), axis=1)
    slopes, intercepts = (part[:, 1:] - part[:, :1] for part in of_categories(items.others, number))
    return slope * slopes, intercept * slopes + intercepts


@functools.cache
def _block_of(model: Families) -> one_pass.Block:
    """A block by what the family says; made once, as it is part of what is compiled."""

    def block(theta: AnyArray, items: tuple[AnyArray, ...], cells: tuple[AnyArray, ...]) -> Sums:
        *arrays, top = items
        values = cells[0]
        observed = (values >= 0).astype(theta.dtype)
        if len(cells) > 1:
            observed = observed * cells[1]

        def value(theta: AnyArray, slope: AnyArray, intercept: AnyArray, others: AnyArray) -> AnyArray:
            parameters = PredictorParameters(slope[:, None], intercept, others.T, top)
            eta, log_normalizer = model.natural(parameters, theta[:, None], asymptotes=False)
            return (model.statistics(values) * eta).sum() - (observed * log_normalizer).sum()

        found, pull = jax.vjp(value, theta, *arrays)
        by_subject, *by_item = pull(jnp.ones_like(found))
        return Sums(found, by_subject, (*by_item, jnp.zeros_like(top)))

    return block
