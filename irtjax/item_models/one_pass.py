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
from irtjax.kernels import one_pass, one_pass_answers
from irtjax.kernels.one_pass import NEVER, Sums
from irtjax.kernels.one_pass_answers import ScaledAnswers
from irtjax.kernels.one_pass_counts import agreeing_trials, trials
from irtjax.kernels.one_pass_grades import categories, graded, partial_credit
from irtjax.kernels.one_pass_shares import shares
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
    model: Families,
    theta: Float[AnyArray, " J"],
    items: PredictorParameters,
    cells: Cells | ScaledAnswers,
    between: Float[AnyArray, "I B"] | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """Σ log p(y_ji | θ_j, φ_i) - log h over the responses, in nats.

    Args:
        model: of one family.
        theta: (J,) abilities; their dtype is that of the sums.
        items: of I items in one dimension.
        cells: the responses, in a matrix or by the answer.
        between: `numbers_between` of these, for those who ask often; None to count.
        mesh: of devices, over which answers are spread as in `kernels.answers`.
    """
    (family,) = model.families
    slope, top, number = items.slope[:, 0], items.top, model.per_item

    def summed(of_block: one_pass.Block, arrays: tuple[AnyArray, ...]) -> AnyArray:
        if isinstance(cells, ScaledAnswers):
            return one_pass_answers.log_likelihood(of_block, theta, arrays, cells, mesh)
        return one_pass.log_likelihood(of_block, theta, arrays, tuple(leaf for leaf in cells if leaf is not None))

    if family == BINOMIAL:
        return summed(trials, (slope, items.intercept))
    if family == BETA_BINOMIAL:
        return summed(agreeing_trials, (slope, items.intercept, items.others[:, 0]))
    if between is None:
        between = numbers_between(model, cells, len(top))
    if family in (BETA, ORDERED_BETA):
        gap, arrays = _of_shares(family, items)
        return summed(shares, arrays) + (between[:, 0] * jnp.log(-jnp.expm1(-gap))).sum()
    own = there(top, number)
    if family == GRADED:
        places = jnp.where(own, items.intercept[:, None] + offsets(items.others, top, number), -NEVER)
        value = summed(graded, (slope, places.T))
        return value + (between * jnp.where(own[:, 1:], log_between(items.others[:, : number - 1]), 0.0)).sum()
    if family == PARTIAL_CREDIT:
        heights = jnp.cumsum(tau(items.others, number), axis=1)[:, :-1]
        steps = slope, items.intercept, heights.T, jnp.broadcast_to(top, slope.shape).astype(slope.dtype)
        return summed(partial_credit, steps)
    if family == NOMINAL:
        slopes, intercepts = _of_categories(items, number)
        lines = jnp.where(own, slopes, 0.0).T, jnp.where(own, intercepts, -NEVER).T
        return summed(categories, lines)
    # items along the last axis
    all_arrays = slope, items.intercept, items.others.T, jnp.broadcast_to(top, slope.shape).astype(slope.dtype)
    return summed(_block_of(model), all_arrays)


def numbers_between(model: Families, cells: Cells | ScaledAnswers, num_items: int) -> Float[AnyArray, "I B"]:
    """How many responses of each item are of each grade but the ends (`graded`), or shares between 0 and 1.

    They are all that terms of the log-likelihood need which depend on no ability. Other models have none.
    """
    values = cells.by_item.cells[0] if isinstance(cells, ScaledAnswers) else cells.values
    if model.families == (GRADED,):
        which = [values == k for k in range(1, model.per_item)]
    elif model.families[0] in (BETA, ORDERED_BETA):
        which = [(values > 0) & (values < 1)]
    else:
        which = []

    def counted(chosen: AnyArray) -> jax.Array:
        if not isinstance(cells, ScaledAnswers):
            return chosen.sum(axis=0)
        return jax.ops.segment_sum(chosen.sum(axis=-1).ravel(), cells.by_item.keys.ravel(), num_items)

    counts = [counted(one).astype(jnp.float32) for one in which]
    return jnp.stack(counts, axis=1) if counts else jnp.zeros((num_items, 0), jnp.float32)


def _of_shares(family: Any, items: PredictorParameters) -> tuple[Float[AnyArray, " I"], tuple[AnyArray, ...]]:
    """The gap between cuts, and arrays of items; of the Beta model cuts are so far out that no share is there."""
    log_phi = items.others[:, PRECISION]
    if family == ORDERED_BETA:
        low, gap = items.others[:, CUT], jnp.exp(items.others[:, LOG_GAP])
    else:
        low, gap = jnp.full_like(log_phi, -FAR), jnp.full_like(log_phi, 2 * FAR)
    return gap, (items.slope[:, 0], items.intercept, log_phi, low, low + gap)


def _of_categories(items: PredictorParameters, number: int) -> tuple[Float[AnyArray, "I K"], Float[AnyArray, "I K"]]:
    """Slopes and intercepts of categories 1 … K without order, those of category 0 being 0."""
    slopes, intercepts = (part[:, 1:] - part[:, :1] for part in of_categories(items.others, number))
    return items.slope * slopes, items.intercept[:, None] * slopes + intercepts


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
