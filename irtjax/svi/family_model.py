"""The NumPyro model of items that are not right or wrong, its priors, and the guide.

As of right/wrong items (`svi.model`, `svi.guide`): abilities, difficulties b = -intercept / a, and positive slopes a
where items have slopes of their own. What else an item has, such as the gaps between thresholds, is normal on the scale
of `PredictorParameters.others`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions.transforms import AffineTransform, ExpTransform, biject_to

from irtjax.item_models.beta_binomial import BETA_BINOMIAL
from irtjax.item_models.families import Families
from irtjax.item_models.listing import MODELS, OF_SHARES
from irtjax.item_models.one_pass import log_likelihood
from irtjax.item_models.protocol import PredictorParameters
from irtjax.svi.answers import drawn
from irtjax.svi.guide import Start, draw
from irtjax.svi.model import Directions, Size, batch_of, hyperparameters, plate, population, without_value
from irtjax.types import AnyArray

WIDE = math.sqrt(1e3)  # vague, as of difficulties
LOGARITHM = 2.0  # vague, of the logarithm of a gap or a precision
OPTION = 3.0  # of slopes of categories without order, in either kind of prior


@dataclasses.dataclass(frozen=True)
class ModelOfItems:
    """One model for all items.

    Attributes:
        name: by which users know it.
        per_item: the most statistics that an item has.
        num_others: L.
    """

    name: str
    per_item: int
    num_others: int

    @property
    def families(self) -> Families:
        """The model as engines have it."""
        return Families((MODELS[self.name].family,), (0,), self.per_item)

    @property
    def has_places(self) -> bool:
        """Whether items have a difficulty; those of the nominal model have slopes and intercepts of categories."""
        return self.name != "nominal"

    @property
    def own_slopes(self) -> bool:
        """Whether items have slopes."""
        return MODELS[self.name].own_slopes and self.has_places

    @property
    def common_steps(self) -> bool:
        """Whether all items have the same others."""
        return MODELS[self.name].common_steps

    @property
    def groups(self) -> tuple[int, ...]:
        """Of each of the others, the number of its group, in which a hierarchical prior has one variance."""
        if self.name in OF_SHARES:
            return tuple(range(self.num_others))
        if not self.has_places:
            return (0,) * (self.num_others // 2) + (1,) * (self.num_others - self.num_others // 2)
        return (0,) * self.num_others

    @property
    def vague_sds(self) -> tuple[float, ...]:
        """Of each of the others."""
        if self.name in (*OF_SHARES, BETA_BINOMIAL.name):
            return (LOGARITHM, WIDE, LOGARITHM)[: self.num_others]
        if not self.has_places:
            return tuple(OPTION if group == 0 else WIDE for group in self.groups)
        return ((LOGARITHM if self.name == "graded" else WIDE),) * self.num_others


class FamilyPriors(NamedTuple):
    """Distributions of one ability, one difficulty, one slope, and the others (L,) of an item."""

    ability: dist.Distribution
    difficulty: dist.Distribution
    discrimination: dist.Distribution
    others: dist.Normal | None


def vague(model: ModelOfItems) -> FamilyPriors:
    """θ ~ N(0, 1), b ~ N(0, 10³), log a ~ N(0, 1); logarithms of gaps and precisions N(0, 2²), other others as b."""
    others = dist.Normal(0.0, jnp.array(model.vague_sds)) if model.num_others else None
    return FamilyPriors(dist.Normal(0.0, 1.0), dist.Normal(0.0, WIDE), dist.LogNormal(0.0, 1.0), others)


def hierarchical(model: ModelOfItems) -> FamilyPriors:
    """θ ~ N(0, 1), others ~ N(m, 1/u), each m ~ N(0, 10⁶), u ~ Gamma(1, 1); where slopes are 1, θ too.

    Every one of the others has a mean of its own, and the variance of its group. Steps that all items share, and slopes
    of categories without order, have vague priors.
    """
    ability: dist.Distribution = dist.Normal(0.0, 1.0)
    if model.has_places and not model.own_slopes:
        ability = dist.Normal(*population("ability"))
    difficulty: dist.Distribution = dist.Normal(0.0, 1.0)
    if model.has_places:
        difficulty = dist.Normal(*population("difficulty"))
    slope = dist.LogNormal(*population("discrimination")) if model.own_slopes else dist.Delta(1.0)
    others = vague(model).others
    if others is not None and not model.common_steps:
        held = jnp.array([not model.has_places and group == 0 for group in model.groups])
        mean = numpyro.sample("others_mean", dist.Normal(0.0, math.sqrt(1e6)).expand([model.num_others]))
        precision = numpyro.sample("others_precision", dist.Gamma(1.0, 1.0).expand([max(model.groups) + 1]))
        sds = precision[jnp.array(model.groups)] ** -0.5
        others = dist.Normal(jnp.where(held, others.loc, mean), jnp.where(held, others.scale, sds))
    return FamilyPriors(ability, difficulty, slope, others)


PRIORS: dict[str, Callable[[ModelOfItems], FamilyPriors]] = {"vague": vague, "hierarchical": hierarchical}


class FamilyResponses(NamedTuple):
    """Responses, and what is known of the items.

    Attributes:
        cells: the responses; `svi.answers.Dealt` of single ones.
        top: (I,) highest categories.
        free: (I, L) which others are estimated; (L,) where all items have the same.
        held: (I, L) what the rest is, or (L,).
        between: (I, B) how many responses are between the ends (`item_models.one_pass.numbers_between`).
    """

    cells: Any
    top: AnyArray
    free: AnyArray
    held: AnyArray
    between: AnyArray


def response_model(
    responses: FamilyResponses,
    *,
    model: ModelOfItems,
    priors: Callable[[ModelOfItems], FamilyPriors],
    subjects: Size,
    items: Size,
    mesh: jax.sharding.Mesh | None = None,
    directions: Directions | None = None,
    with_value: bool | jax.Array = True,
) -> None:
    """Responses of subjects by the model of the items; batches stand for all (see `svi.model.response_model`)."""
    del directions
    given, block = priors(model), drawn(responses.cells)
    with plate("subjects", subjects, block) as rows:
        theta = numpyro.sample("ability", given.ability)
    common = _others(given, responses) if model.common_steps and model.num_others else None
    with plate("items", items) as columns:
        chosen = _of_items(responses, columns, model.common_steps)
        b = numpyro.sample("difficulty", given.difficulty) if model.has_places else jnp.zeros(chosen.top.shape)
        a = numpyro.sample("discrimination", given.discrimination) if model.own_slopes else jnp.ones_like(b)
        others = common
        if model.num_others and not model.common_steps:
            others = _others(given, chosen)
    if others is None:
        others = jnp.zeros((*b.shape, 0))
    parameters = PredictorParameters(
        a[:, None], -a * b, jnp.broadcast_to(others, (*b.shape, others.shape[-1])), chosen.top
    )
    families = model.families
    cells: Any
    between: AnyArray | None
    if block is not None:
        cells, scale = block.answers, float(block.number)
        between = chosen.between / scale  # on average over blocks
    else:
        cells, scale = batch_of(responses.cells, (rows, columns), (subjects, items))
        between = chosen.between if rows is None else None  # those of some subjects are counted anew

    def value(theta: AnyArray, parameters: PredictorParameters, cells: Any, between: AnyArray | None) -> AnyArray:
        return log_likelihood(families, theta, parameters, cells, between, mesh)

    with handlers.scale(scale=scale):
        found = jax.lax.cond(
            with_value, value, lambda *arguments: without_value(value, *arguments), theta, parameters, cells, between
        )
        numpyro.factor("responses", found)


def _of_items(responses: FamilyResponses, columns: jax.Array | None, common: bool) -> FamilyResponses:
    """With what is known of some items; the responses to all."""
    if columns is None:
        return responses
    known = responses._replace(top=responses.top[columns], between=responses.between[columns])
    return known if common else known._replace(free=responses.free[columns], held=responses.held[columns])


def _others(given: FamilyPriors, responses: FamilyResponses) -> jax.Array:
    """A draw of the others; those that are held are N(0, 1), and have no part in anything."""
    free, prior = responses.free, given.others
    assert prior is not None
    own = dist.Normal(jnp.where(free, prior.loc, 0.0), jnp.where(free, prior.scale, 1.0))
    return jnp.where(free, numpyro.sample("others" if free.ndim > 1 else "steps", own.to_event(1)), responses.held)


def guide(
    start: Start,
    responses: FamilyResponses,
    *,
    model: ModelOfItems,
    priors: Callable[[ModelOfItems], FamilyPriors],
    subjects: Size,
    items: Size,
    mesh: jax.sharding.Mesh | None,
    sign: float | jax.Array = 1.0,
) -> None:
    """Independent normal distributions, intercepts at pivots, as `svi.guide.guide`; and normal others."""
    del mesh
    block = drawn(responses.cells)
    for site, support in hyperparameters(priors, model).items():
        draw(site, site, start, sign, [biject_to(support)])
    with plate("subjects", subjects, block) as rows:
        draw("ability", "ability", start, sign, [], rows)
    if "steps" in start.sites:
        draw("steps", "steps", start, sign, [], event_dims=1)
    with plate("items", items) as columns:
        if model.own_slopes:
            a = draw("discrimination", "discrimination", start, sign, [ExpTransform()], columns)
            assert start.pivots is not None
            pivots = start.pivots if columns is None else start.pivots[columns]
            draw("difficulty", "intercept", start, sign, [AffineTransform(pivots, -1 / a)], columns)
        elif model.has_places:
            draw("difficulty", "difficulty", start, sign, [], columns)
        if "others" in start.sites:
            draw("others", "others", start, sign, [], columns, event_dims=1)
