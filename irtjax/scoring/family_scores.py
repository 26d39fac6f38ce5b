"""Abilities of subjects on known items of families (`irtjax.item_models.families`), in one dimension."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.integration.sparse_answers import sparse_answers
from irtjax.integration.sparse_posteriors import joint_blocks
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.ability import Ability, scale_of
from irtjax.kernels.ability_nodes import LineNodes
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.roots import grid, interval, root_between
from irtjax.populations.normal import Population
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.scoring.family_curves import (
    LEAST_INFORMATION,
    Curves,
    Data,
    at_own_points,
    at_shared_points,
    curves,
    own_log_likelihoods,
    shared_log_likelihoods,
)
from irtjax.scoring.family_items import KnownItems, ready
from irtjax.scoring.family_nodes import family_nodes
from irtjax.types import AnyArray, Float

NEAREST_END = 7.0  # standard deviations of the population, at which nodes end where no posterior is beyond
FARTHEST_END = 2000.0
AT_ENDS = 1e-10  # of a posterior, in the outermost panels
MOST_ENTRIES = 2**22  # of covariances at a time
MOST_SUBJECTS = 1024


def family_abilities(responses: OnScales, known: KnownItems, method: str, population: Population) -> Ability:
    """Abilities (J,) and standard errors (J,) of all subjects, in float64.

    Args:
        responses: in the categories of the items, in their order.
        known: the items.
        method: "eap"; "map", "ml" or "wle", the latter by the slope l' + J/(2I) (`family_curves`). Standard errors of
            these three are 1/√I there, with 1/σ² added to I by "map".
        population: of one dimension.

    Returns:
        By "ml" ±inf where the likelihood is nowhere higher than in that limit, with the standard error inf; by "ml" and
        "wle" NaN where no item that was answered depends on ability.
    """
    responses, known = ready(responses, known)
    with jax.enable_x64(True):
        centre, unit, items = rescaled(known, population, in_population=method in ("eap", "map"))
        if method == "eap":
            z, error = _means(known.model, items, responses)
        else:
            at = _at_grid(known.model, items, method == "wle")
            found = [
                jax.device_get(_roots(known.model, method, items, at, part))
                for part in parts(responses, known.model, len(items.intercept) * known.model.per_item**2)
            ]
            z, error = (np.concatenate(each)[: responses.num_subjects] for each in zip(*found, strict=True))
    return Ability(*(np.asarray(x) for x in (centre + unit * z, unit * error)))  # type: ignore[arg-type]


def rescaled(
    known: KnownItems, population: Population, *, in_population: bool
) -> tuple[float, float, PredictorParameters]:
    """Origin and unit of a scale, of the population or of the items, and the parameters on it."""
    mean, sd = (np.asarray(np.squeeze(x), float) for x in population)
    items = PredictorParameters(*(jnp.asarray(leaf) for leaf in known.parameters))
    infinite = jnp.full_like(items.intercept, jnp.inf)
    plain = ItemParameters(items.slope, items.intercept, -infinite, infinite)
    centre, unit = scale_of(plain, Population(mean, sd) if in_population else None)
    moved = items._replace(slope=items.slope * unit[None, :], intercept=items.intercept + items.slope @ centre)
    return float(centre[0]), float(unit[0]), moved


def parts(responses: OnScales, model: Families, entries: int) -> Iterator[Data]:
    """Statistics and trials of some subjects at a time, whose responses are `ready`.

    They are always as many subjects: those that are too many in the last part answered nothing.

    Args:
        responses: of all.
        model: of the items.
        entries: numbers that each subject takes.
    """
    number = responses.num_subjects
    size = int(np.clip(MOST_ENTRIES // max(entries, 1), 1, min(MOST_SUBJECTS, max(number, 1))))
    for first in range(0, number, size):
        at = slice(first, min(first + size, number))
        values = responses.values[at, :]
        trials = (values >= 0).astype(float)
        if responses.trials is not None:
            trials = np.where(values >= 0, trials_of(responses)[at, :], 0.0)
        some = np.asarray(model.statistics(values)), trials
        yield Data(*(jnp.asarray(np.pad(leaf, ((0, size - len(values)), (0, 0)))) for leaf in some))


def trials_of(responses: OnScales) -> Any:
    """Trials like an array (J, I), of responses that have some."""
    if isinstance(responses, SparseResponses) and responses.trials is not None:
        return dataclasses.replace(responses, answers=responses.trials).values
    return responses.trials


def _most(responses: OnScales) -> tuple[Float[np.ndarray, " I"], int]:
    """The trials of each item, and the items of a subject, at most."""
    if isinstance(responses, SparseResponses):
        most = np.zeros(responses.num_items)
        np.maximum.at(most, responses.items, 1 if responses.trials is None else responses.trials)
        return most, int(np.diff(responses.starts).max(initial=1))
    observed = responses.observed
    trials = observed if responses.trials is None else np.where(observed, responses.trials, 0)
    return trials.max(axis=0).astype(float), int(observed.sum(axis=1).max(initial=1))


@functools.partial(jax.jit, static_argnums=(0, 2))
def _at_grid(model: Families, items: PredictorParameters, warm: bool) -> Curves:
    points = grid(items.slope.dtype)
    return jax.lax.map(lambda x: jax.tree.map(lambda leaf: leaf[0], curves(model, items, x[None], warm=warm)), points)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _roots(
    model: Families, method: str, items: PredictorParameters, at: Curves, data: Data
) -> tuple[jax.Array, jax.Array]:
    """Where the slope falls through zero, and 1/√I there: (J,) each, in units."""
    points, prior = grid(items.slope.dtype), float(method == "map")
    height, slope, information, warm = at_shared_points(at, data)
    most, best = information.max(axis=1), points[jnp.argmax(information, axis=1)]

    def corrected(z: jax.Array, slope: AnyArray, information: AnyArray, warm: AnyArray) -> AnyArray:
        """The slope at points (J, Q), of which the root is asked."""
        if method != "wle":
            return slope - prior * z
        enough = information > LEAST_INFORMATION * most[:, None]
        # so far out that rounding would decide, the correction leads back
        return slope + 0.5 * jnp.where(enough, warm / jnp.where(enough, information, 1), jnp.sign(best[:, None] - z))

    def slope_at(z: jax.Array) -> Any:
        _, *terms = at_own_points(curves(model, items, z, warm=method == "wle"), data)
        return corrected(z[:, None], *(term[:, None] for term in terms))[:, 0]

    if method == "wle":
        height = height + 0.5 * jnp.log(jnp.maximum(information, jnp.finfo(height.dtype).tiny))
    height = jnp.nan_to_num(height - prior * points[None, :] ** 2 / 2, nan=-jnp.inf)
    falling = corrected(points[None, :], slope, information, warm)
    place = interval(falling, height)
    values = tuple(jnp.take_along_axis(falling, (place + k)[:, None], axis=1)[:, 0] for k in (0, 1))
    z = root_between(slope_at, (points[place], points[place + 1]), (values[0], values[1]))
    error = (at_own_points(curves(model, items, z, warm=False), data)[2] + prior) ** -0.5
    if method == "ml":
        ends = (jnp.full_like(z, points[0]), jnp.full_like(z, points[-1]))
        here, below, above = (own_log_likelihoods(model, items, data, x) for x in (z, *ends))
        outside = jnp.maximum(below, above) >= here
        z = jnp.where(outside, jnp.where(above > below, jnp.inf, -jnp.inf), z)
        error = jnp.where(outside, jnp.inf, error)
    known = (most > 0) | (method == "map")
    return jnp.where(known, z, jnp.nan), jnp.where(known, error, jnp.nan)


def _means(
    model: Families, items: PredictorParameters, responses: OnScales
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Posterior means and standard deviations in a population N(0, 1), by nodes that all subjects share."""
    _, (mean, sd) = _on_line(model, items, responses, _moments_by, _moments_of)
    return mean, sd


def posteriors_on_line(
    responses: ScaledResponses, known: KnownItems, population: Population
) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, "J Q"]]:
    """Abilities that resolve the posteriors of all subjects, and the weight of each subject there; they sum to 1.

    Arguments as of `family_abilities`.
    """
    given, known = ready(responses, known)
    with jax.enable_x64(True):
        centre, unit, items = rescaled(known, population, in_population=True)
        line, (weights,) = _on_line(known.model, items, given, _weights_by, _weights_of)
    return centre + unit * line.nodes, weights


def _on_line(
    model: Families,
    items: PredictorParameters,
    responses: OnScales,
    of_part: Callable[..., tuple[jax.Array, ...]],
    of_block: Callable[..., tuple[np.ndarray, ...]],
) -> tuple[LineNodes, list[np.ndarray]]:
    """Nodes that reach as far as any posterior, and what is asked of the subjects there.

    Both functions are asked the same, of some subjects by cells (`parts`), or by the logarithms (B, Q) of their
    posteriors; the last of what they return is the weight at the ends.
    """
    most, number = _most(responses)
    end = NEAREST_END
    while True:
        line = family_nodes(model, items, most, number, end)
        found: Iterable[Any]
        if isinstance(responses, SparseResponses):
            found = _by_answer(model, items, responses, line, of_block)
        else:
            of_parts = parts(responses, model, max(len(line.nodes), model.per_item * len(most)))
            found = (jax.device_get(of_part(model, items, _arrays(line), part)) for part in of_parts)
        *asked, at_ends = (np.concatenate(each)[: responses.num_subjects] for each in zip(*found, strict=True))
        if not (at_ends > AT_ENDS).any() or 2 * end > FARTHEST_END:
            return line, asked
        end *= 2  # answers say that someone is there


def _by_answer(
    model: Families,
    items: PredictorParameters,
    responses: SparseResponses,
    line: LineNodes,
    of_block: Callable[..., tuple[np.ndarray, ...]],
) -> Iterator[tuple[np.ndarray, ...]]:
    own = responses.starts, responses.items, responses.answers
    answers = sparse_answers(*own, responses.num_items, model, responses.trials)
    nodes, rows = np.asarray(line.nodes)[:, None], np.arange(responses.num_subjects)
    asked = functools.partial(of_block, line.nodes)
    yield from joint_blocks(items, answers, nodes, np.asarray(line.log_weights), rows, lambda _, joint: asked(joint))


def _moments_of(nodes: Float[np.ndarray, " Q"], joint: Float[np.ndarray, "B Q"]) -> tuple[np.ndarray, ...]:
    weights, at_ends = _weights_of(nodes, joint)
    mean = weights @ nodes
    return mean, np.sqrt((weights * (nodes[None, :] - mean[:, None]) ** 2).sum(axis=1)), at_ends


def _weights_of(nodes: Float[np.ndarray, " Q"], joint: Float[np.ndarray, "B Q"]) -> tuple[np.ndarray, np.ndarray]:
    del nodes
    weights = np.exp(joint - joint.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights, np.maximum(weights[:, 0], weights[:, -1])


def _arrays(line: LineNodes) -> tuple[jax.Array, jax.Array]:
    return jnp.asarray(line.nodes), jnp.asarray(line.log_weights)


@functools.partial(jax.jit, static_argnums=0)
def _moments_by(
    model: Families, items: PredictorParameters, line: tuple[jax.Array, jax.Array], data: Data
) -> tuple[jax.Array, jax.Array, jax.Array]:
    nodes, (weights, at_ends) = line[0], _weights_by(model, items, line, data)
    mean = weights @ nodes
    sd = jnp.sqrt((weights * (nodes[None, :] - mean[:, None]) ** 2).sum(axis=1))
    return mean, sd, at_ends


@functools.partial(jax.jit, static_argnums=0)
def _weights_by(
    model: Families, items: PredictorParameters, line: tuple[jax.Array, jax.Array], data: Data
) -> tuple[jax.Array, jax.Array]:
    nodes, log_weights = line
    weights = jax.nn.softmax(shared_log_likelihoods(model, items, data, nodes) + log_weights[None, :], axis=1)
    return weights, jnp.maximum(weights[:, 0], weights[:, -1])
