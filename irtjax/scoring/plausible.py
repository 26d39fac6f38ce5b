"""Plausible values: draws from the posterior of each ability, given the parameters of the items."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.arguments import LARGEST_SEED, checks_types, whole_number
from irtjax.errors import InputError
from irtjax.kernels.ability import Ability
from irtjax.kernels.loops import mapped
from irtjax.kernels.models import ItemParameters, log_answers
from irtjax.populations.normal import Population
from irtjax.responses.padded_rows import padded_rows
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.scoring.abilities import Matched, abilities, matching
from irtjax.scoring.family_curves import Data, own_log_likelihoods
from irtjax.scoring.family_items import KnownItems, ready
from irtjax.scoring.family_scores import family_abilities, parts
from irtjax.scoring.sparse_scores import abilities_by_answer
from irtjax.types import Float, Int

NUM_NODES = 481
REACH = 12.0  # posterior standard deviations to either side of the mean
ROWS = 256  # subjects at a time


@checks_types
def plausible_values(
    items: Any,
    responses: Any,
    num_draws: int = 10,
    seed: int = 0,
    population: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> Float[np.ndarray, "draws J"]:
    """Draws of the abilities of J subjects from their posteriors (Mislevy 1991), D = 1.

    Each is independent, by the inverse of the distribution function on nodes around the posterior. Over many draws
    their mean is the EAP of the subject, and their standard deviation its standard error. A statistic of the
    population, such as its variance, is unbiased in each set of J draws and is not in the EAPs. The parameters of the
    items are taken as known.

    Args:
        items: as `irtjax.score` takes them; a fit by MML or SVI, of items of any kind.
        responses: the same.
        num_draws: for each subject.
        seed: of the draws.
        population: the same.
        columns: the same.

    Returns:
        (draws, J), subjects in the order of the responses.

    Raises:
        InputError: as of `irtjax.score`; numbers out of range; or items of several dimensions.
    """
    whole_number("num_draws", num_draws, 1)
    whole_number("seed", seed, 0, LARGEST_SEED)
    given = matching(items, responses, population, columns)
    if given.parameters.slope.shape[1] > 1:
        raise InputError(
            f"the items have {given.parameters.slope.shape[1]} dimensions: plausible values are of one dimension"
        )
    mean, sd = (float(np.squeeze(x)) for x in given.population)
    number = given.responses.num_subjects
    shares, drawn = np.random.default_rng(seed).uniform(size=(num_draws, number)), np.empty((num_draws, number))
    for rows, nodes, log_density in _densities(given):
        log_density = log_density - 0.5 * ((nodes - mean) / sd) ** 2
        drawn[:, rows] = np.stack(list(map(_inverse, nodes, log_density, shares[:, rows].T)), axis=1)
    return drawn


def _densities(given: Matched) -> Iterator[tuple[Any, Float[np.ndarray, "B Q"], Float[np.ndarray, "B Q"]]]:
    """Some subjects, nodes around their posteriors, and log L there."""
    if given.known is None and isinstance(given.responses, SparseResponses):
        yield from _by_answer(given.responses, given.parameters, given.population)
        return
    if given.known is None:
        values = given.responses.values[:, :]
        found = abilities(values, given.parameters, "eap", given.population)
        with jax.enable_x64(True):
            nodes, log_density = _of_right_wrong(values, given.parameters, found)
    else:
        found = family_abilities(given.responses, given.known, "eap", given.population)
        with jax.enable_x64(True):
            nodes, log_density = _of_families(*ready(given.responses, given.known), found)
    yield slice(None), nodes, log_density


def _by_answer(
    responses: SparseResponses, items: ItemParameters, population: Population
) -> Iterator[tuple[Int[np.ndarray, " B"], Float[np.ndarray, "B Q"], Float[np.ndarray, "B Q"]]]:
    """Subjects who answered about as many items, by these items alone."""
    found = abilities_by_answer(responses, items, "eap", population)
    for rows, places, answers in padded_rows(responses):
        own = _nodes(Ability(found.ability[rows], found.standard_error[rows]))
        padded = np.pad(own, ((0, len(places) - len(rows)), (0, 0)), mode="edge")
        with jax.enable_x64(True):
            parameters = jax.tree.map(jnp.asarray, items)
            log_density = np.asarray(_answers_at(parameters, places, answers, jnp.asarray(padded)))
        yield rows, own, log_density[: len(rows)]


@jax.jit
def _answers_at(
    items: ItemParameters, places: Int[jax.Array, "J L"], answers: Int[jax.Array, "J L"], nodes: Float[jax.Array, "J Q"]
) -> Float[jax.Array, "J Q"]:
    def of_subject(one: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        at, row, points = one
        own = jax.tree.map(lambda leaf: leaf[at], items)
        right, wrong = log_answers(own, points[:, None] * own.slope.T + own.intercept[None, :])
        return jnp.where(row == 1, right, jnp.where(row == 0, wrong, 0)).sum(axis=1)

    return mapped(of_subject, (places, answers, nodes), places.shape[1] * nodes.shape[1])


def _nodes(found: Ability) -> Float[np.ndarray, "J Q"]:
    """Around each posterior."""
    line = np.linspace(-REACH, REACH, NUM_NODES)
    return np.asarray(found.ability)[:, None] + np.asarray(found.standard_error)[:, None] * line


def _of_right_wrong(
    values: Int[np.ndarray, "J I"], items: ItemParameters, found: Ability
) -> tuple[Float[np.ndarray, "J Q"], Float[np.ndarray, "J Q"]]:
    """Nodes, and log L of each subject at its own."""
    nodes, parameters = _nodes(found), jax.tree.map(jnp.asarray, items)
    short = -len(nodes) % min(ROWS, len(nodes))
    rows, places = (np.pad(each, ((0, short), (0, 0)), mode="edge") for each in (values, nodes))
    size = min(ROWS, len(nodes))
    done = [
        np.asarray(_right_wrong_at(parameters, jnp.asarray(rows[k : k + size]), jnp.asarray(places[k : k + size])))
        for k in range(0, len(rows), size)
    ]
    return nodes, np.concatenate(done)[: len(nodes)]


@jax.jit
def _right_wrong_at(
    items: ItemParameters, rows: Int[jax.Array, "J I"], nodes: Float[jax.Array, "J Q"]
) -> Float[jax.Array, "J Q"]:
    def at(points: jax.Array) -> jax.Array:
        right, wrong = log_answers(items, points[:, None] * items.slope.T + items.intercept[None, :])
        return jnp.where(rows == 1, right, jnp.where(rows == 0, wrong, 0)).sum(axis=1)

    return jax.lax.map(at, nodes.T).T


def _of_families(
    responses: OnScales, known: KnownItems, found: Ability
) -> tuple[Float[np.ndarray, "J Q"], Float[np.ndarray, "J Q"]]:
    """The same of items that are not right/wrong."""
    nodes, parameters = _nodes(found), jax.tree.map(jnp.asarray, known.parameters)
    done, first = [], 0
    for part in parts(responses, known.model, len(parameters.intercept) * known.model.per_item):
        places = nodes[first : first + len(part.observed)]
        padded = np.pad(places, ((0, len(part.observed) - len(places)), (0, 0)), mode="edge")
        done.append(np.asarray(_families_at(known.model, parameters, part, jnp.asarray(padded))))
        first += len(part.observed)
    return nodes, np.concatenate(done)[: len(nodes)]


@functools.partial(jax.jit, static_argnums=0)
def _families_at(model: Any, items: Any, data: Data, nodes: Float[jax.Array, "J Q"]) -> Float[jax.Array, "J Q"]:
    return jax.lax.map(lambda points: own_log_likelihoods(model, items, data, points), nodes.T).T


def _inverse(
    nodes: Float[np.ndarray, " Q"], log_density: Float[np.ndarray, " Q"], shares: Float[np.ndarray, " draws"]
) -> Float[np.ndarray, " draws"]:
    """Where the distribution function of a density, linear between nodes, takes values in [0, 1)."""
    density, step = np.exp(log_density - log_density.max()), nodes[1] - nodes[0]
    below = np.append(0, np.cumsum((density[1:] + density[:-1]) / 2))
    wanted = shares * below[-1]
    at = np.clip(np.searchsorted(below, wanted, side="right") - 1, 0, len(nodes) - 2)
    left, rise, rest = density[at], density[at + 1] - density[at], wanted - below[at]
    # left t + rise t² / 2 = rest, in a form that does not cancel
    root = np.sqrt(np.maximum(left**2 + 2 * rise * rest, 0))
    return nodes[at] + step * np.clip(2 * rest / np.maximum(left + root, np.finfo(float).tiny), 0, 1)
