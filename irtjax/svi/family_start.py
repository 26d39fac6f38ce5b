"""Where variational inference of items that are not right or wrong begins: from frequencies and mean responses.

Abilities are logits of mean responses at first. Then items and abilities are estimated in turn, each given the other
(Fisher scoring), with subjects of about the same ability taken together: a few passes over the responses.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.item_step import scoring_step
from irtjax.estimation.problem import Specification, as_array, as_items
from irtjax.estimation.quadrature.item_score import Counts, score
from irtjax.estimation.specify_families import plan_families
from irtjax.integration.nodes import moments
from irtjax.item_models.listing import OF_COUNTS, num_others
from irtjax.item_models.one_pass import Cells, log_likelihood, numbers_between
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.one_pass_answers import ScaledAnswers
from irtjax.processes import fetch
from irtjax.responses.scaled import ScaledResponses, smallest
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.svi.answers import Dealt, over_blocks, sums_of_subjects
from irtjax.svi.family_groups import counts_by_group, groups, parts
from irtjax.svi.family_model import FamilyResponses, ModelOfItems
from irtjax.svi.guide import Normal, Start
from irtjax.svi.start import LEAST_INFORMATION, LEAST_SLOPE, LEAST_VARIANCE
from irtjax.types import Bool, Float, Int

ROUNDS, STEPS = 6, 2  # items and abilities in turn; steps of the items in each
FURTHEST = 6.0  # that an ability may be from 0


class Begun(NamedTuple):
    """Where a fit begins: responses as the plan has them, without categories that nobody was given.

    Attributes:
        responses: of all subjects.
        model: of the items.
        cells: responses, and what is known of the items, as the programs read them.
        start: of the guide.
    """

    responses: OnScales
    model: ModelOfItems
    cells: FamilyResponses
    start: Start


class _Grouped(NamedTuple):
    """Items that are estimated from groups of subjects."""

    items: PredictorParameters
    counts: Counts


def begin(
    responses: OnScales,
    name: str,
    hierarchical: bool,
    deal: Callable[[SparseResponses], Dealt],
    mesh: jax.sharding.Mesh | None = None,
) -> Begun:
    """The start of a fit of one model to all items.

    Args:
        responses: of all subjects.
        name: of the model.
        hierarchical: whether priors are.
        deal: of single answers, as the plan has them, to the blocks on the devices.
        mesh: of these devices.

    Raises:
        InputError: see `specify_families.plan_families`.
    """
    plan = plan_families(responses, (name,) * responses.num_items, 1, "auto")
    specification = _items_alone(plan.specification)
    model = ModelOfItems(name, plan.model.per_item, num_others(plan.model))
    given = plan.responses
    if name not in OF_COUNTS and given.trials is not None:  # as where other items were of counts
        given = dataclasses.replace(given, trials=None)
    cells = deal(given) if isinstance(given, SparseResponses) else _cells(given)
    theta, found = _in_turn(given, cells, plan.items, specification, model, mesh)
    free = np.asarray(specification.free)[:, 2:]
    held = np.asarray(found.items.others)
    if model.common_steps:
        free, held = free[0], held[0]
    start = _start(theta, found, specification, model, given, hierarchical)
    known = FamilyResponses(
        cells,
        jnp.asarray(found.items.top),
        jnp.asarray(free),
        jnp.asarray(np.where(free, 0.0, held).astype(np.float32)),
        _between(model, cells, responses.num_items),
    )
    return Begun(plan.responses, model, known, start)


def _items_alone(specification: Specification) -> Specification:
    """With slopes that are shared held at 1: abilities have the spread."""
    free = np.array(specification.free)
    free[np.asarray(specification.shared), 0] = False
    return dataclasses.replace(
        specification, free=free, shared=np.zeros(len(free), bool), has_shared=False, estimated=()
    )


def _cells(responses: ScaledResponses) -> Cells:
    """Responses on the device."""
    return Cells(
        jnp.asarray(smallest(np.asarray(responses.values))),
        None if responses.trials is None else jnp.asarray(smallest(np.asarray(responses.trials))),
    )


def _between(model: ModelOfItems, cells: Cells | Dealt, num_items: int) -> jax.Array:
    """`numbers_between` of all responses."""
    counted: Callable[[Any], Any] = functools.partial(numbers_between, model.families, num_items=num_items)
    return jax.vmap(counted)(cells.answers).sum(axis=0) if isinstance(cells, Dealt) else counted(cells)


def _in_turn(
    responses: OnScales,
    cells: Cells | Dealt,
    items: PredictorParameters,
    specification: Specification,
    model: ModelOfItems,
    mesh: jax.sharding.Mesh | None,
) -> tuple[Float[np.ndarray, " J"], _Grouped]:
    """Abilities (J,), and items with the counts that they were last estimated from."""
    totals, observed = responses.counts(axis=1)
    share = (totals + 0.5) / (observed + 1)
    theta = np.log(share / (1 - share))
    scaled = model.own_slopes or not model.has_places
    theta = _standardised(theta) if scaled else theta - theta.mean()
    counts = counts_by_group(responses, model.families)
    found = _Grouped(items, counts(theta))
    for number in range(ROUNDS):
        for _ in range(STEPS):
            found = found._replace(items=_item_step(found, specification))
        if number < ROUNDS - 1:
            theta = _ability_step(theta, found, cells, observed, model, mesh)
            theta = _standardised(theta) if scaled else theta
            found = found._replace(counts=counts(theta))
    return theta, found


def _standardised(theta: Float[np.ndarray, " J"]) -> Float[np.ndarray, " J"]:
    return (theta - theta.mean()) / max(theta.std(), LEAST_VARIANCE)


def _of_part(found: _Grouped, part: slice) -> _Grouped:
    counts = found.counts
    per_item = counts.statistics.shape[1] // counts.observed.shape[1]
    stop = min(part.stop, counts.observed.shape[1])
    statistics = counts.statistics[:, part.start * per_item : stop * per_item]
    return _Grouped(
        found.items.take(part),
        dataclasses.replace(counts, statistics=statistics, observed=counts.observed[:, part]),
    )


def _score(found: _Grouped) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """Gradient and information of the items, some of them at a time."""
    size = found.counts.statistics.size // found.counts.observed.shape[1] * (2 + found.items.others.shape[1])
    of_parts = [score(*_of_part(found, part), asymptotes=True) for part in parts(found.counts.observed.shape[1], size)]
    gradients, informations = zip(*of_parts, strict=True)
    return np.concatenate(gradients), np.concatenate(informations)


def _item_step(found: _Grouped, specification: Specification) -> PredictorParameters:
    step = scoring_step(found.items, *_score(found), specification)
    return as_items(as_array(found.items) + step, like=found.items)


def _ability_step(
    theta: Float[np.ndarray, " J"],
    found: _Grouped,
    cells: Cells | Dealt,
    observed: Int[np.ndarray, " J"],
    model: ModelOfItems,
    mesh: jax.sharding.Mesh | None,
) -> Float[np.ndarray, " J"]:
    """Abilities after a step of each, under N(0, 1)."""
    items, by_ability = _float32(found.items), functools.partial(_by_ability, model)
    if isinstance(cells, Dealt):
        blocks = over_blocks(by_ability, theta, (items,), cells, mesh)
        gradient = sums_of_subjects([(fetch(found), subjects) for found, subjects in blocks], len(theta))
    else:
        gradient = np.asarray(by_ability(jnp.asarray(theta, jnp.float32), items, cells), float)
    step = (gradient - theta) / (_ability_information(theta, found, observed) + 1)
    return np.clip(theta + np.clip(step, -1.0, 1.0), -FURTHEST, FURTHEST)


def _float32(items: PredictorParameters) -> PredictorParameters:
    numbers = PredictorParameters(*(jnp.asarray(leaf, jnp.float32) for leaf in items))
    return numbers._replace(top=jnp.asarray(items.top))


@functools.partial(jax.jit, static_argnums=0, static_argnames="mesh")
def _by_ability(
    model: ModelOfItems,
    theta: jax.Array,
    items: PredictorParameters,
    cells: Cells | ScaledAnswers,
    *,
    mesh: jax.sharding.Mesh | None = None,
) -> jax.Array:
    return jax.grad(lambda at: log_likelihood(model.families, at, items, cells, mesh=mesh))(theta)


def _ability_information(
    theta: Float[np.ndarray, " J"], found: _Grouped, observed: Int[np.ndarray, " J"]
) -> Float[np.ndarray, " J"]:
    """Information about each ability: that of its group, as many responses as the subject has."""
    total = np.zeros(len(found.counts.nodes))
    size = found.counts.statistics.size // found.counts.observed.shape[1]
    for part in parts(found.counts.observed.shape[1], size):
        items, counts = _of_part(found, part)
        curves = moments(counts.model, items, counts.nodes, asymptotes=True)
        total += (curves.weights(counts.observed)[0][0] * items.slope[:, 0] ** 2).sum(axis=1)
    group = groups(theta)
    return observed * (total / np.bincount(group, observed))[group]


def _start(
    theta: Float[np.ndarray, " J"],
    found: _Grouped,
    specification: Specification,
    model: ModelOfItems,
    responses: OnScales,
    hierarchical: bool,
) -> Start:
    """Locations where the items are, scales 1/sqrt(information), that of weak priors included."""
    items, (_, information) = found.items, _score(found)
    _, observed = responses.counts(axis=1)
    precision = np.maximum(np.diagonal(information, axis1=1, axis2=2), LEAST_INFORMATION)
    a = np.maximum(items.slope[:, 0], LEAST_SLOPE)
    pivots = information[:, 0, 1] / precision[:, 1]
    of_slope = precision[:, 0] - pivots * information[:, 0, 1]
    b = np.clip(-items.intercept / a, -10, 10)
    located: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "ability": (theta, _ability_information(theta, found, observed))
    }
    if model.has_places:
        located["difficulty"] = b, a**2 * precision[:, 1]
    if model.own_slopes:
        located["discrimination"] = np.log(a), a**2 * np.maximum(of_slope, 0.0)
    begun = {
        site: (x, (information + 1 / (x.var() + LEAST_VARIANCE)) ** -0.5) for site, (x, information) in located.items()
    }
    if hierarchical:
        for site, (x, _) in located.items():
            if site != "ability" or (model.has_places and not model.own_slopes):
                begun |= _hyperparameters(site, x)
    free = np.asarray(specification.free)[:, 2:]
    begun |= of_others(np.asarray(items.others), precision[:, 2:], free, model, hierarchical)
    if model.own_slopes:
        _, sd = begun.pop("difficulty")
        begun["intercept"] = a * (pivots - b), a * sd
    sites = {site: Normal(*(jnp.asarray(np.asarray(x, np.float32)) for x in normal)) for site, normal in begun.items()}
    return Start(sites, jnp.asarray(pivots.astype(np.float32)) if model.own_slopes else None)


def _hyperparameters(site: str, x: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    variance = x.var() + LEAST_VARIANCE
    return {
        f"{site}_mean": (np.asarray(x.mean()), np.asarray(math.sqrt(variance / x.size))),
        f"{site}_precision": (np.asarray(-math.log(variance)), np.asarray(math.sqrt(2 / x.size))),
    }


def of_others(
    others: Float[np.ndarray, "I L"],
    precision: Float[np.ndarray, "I L"],
    free: Bool[np.ndarray, "I L"],
    model: ModelOfItems,
    hierarchical: bool,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Locations and scales of the others, N(0, 1) where they are held, and of the moments of each column and group."""
    if not model.num_others:
        return {}
    if model.common_steps:
        return {"steps": (others[0], (precision.sum(axis=0) + 1) ** -0.5)}
    number = np.maximum(free.sum(axis=0), 1)
    mean = np.where(free, others, 0.0).sum(axis=0) / number
    of_column = np.where(free, (others - mean) ** 2, 0.0).sum(axis=0)
    groups = np.array(model.groups)
    size = np.bincount(groups, number)
    variance = np.bincount(groups, of_column) / size + LEAST_VARIANCE
    begun: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "others": (np.where(free, others, 0.0), np.where(free, (precision + 1 / variance[groups]) ** -0.5, 1.0))
    }
    if hierarchical:
        begun["others_mean"] = mean, np.sqrt(variance[groups] / number)
        begun["others_precision"] = -np.log(variance), np.sqrt(2 / size)
    return begun
