"""The objective at some parameters of items and population, and what steps from there need, by one pass."""

from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.problem import Layout, Specification, as_array, as_items, layout
from irtjax.estimation.quadrature import item_score
from irtjax.estimation.quadrature.item_score import Counts
from irtjax.integration.e_step import Expected, e_step
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import Items
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.normal import Population


class Point(NamedTuple):
    """The objective at some parameters, with what a step from there needs.

    Attributes:
        items: of I items.
        population: mean and standard deviation (D,), or those of G groups.
        objective: marginal log-likelihood plus log-prior, in nats.
        gradient: (P,) of the objective, in the order of `Layout`.
        information: (I, K, K) of complete data, priors included; K is D + 1 without asymptotes.
        of_population: (2 D,), (2 G D,) or (C D + D,) information of means and log standard deviations.
        counts: expected answers at the nodes.
        abilities: (2 D,) means of ability and of its square over the posteriors of all subjects, or the first group's;
            of what covariates leave of it.
        boundary_mass: shares of all posteriors at the rim of their grid.
    """

    items: Items
    population: Populations
    objective: float
    gradient: np.ndarray
    information: np.ndarray
    of_population: np.ndarray
    counts: Counts
    abilities: np.ndarray
    boundary_mass: float


def evaluate(
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: SparseGrid,
    specification: Specification,
) -> Point:
    """The objective and what a step needs, from one pass over the responses."""
    found = e_step(items, population, answers, grid)
    return _point(found, items, population, answers, grid, specification)


@np.errstate(all="ignore")  # an item may run off to infinity
def _point(
    found: Expected,
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: SparseGrid,
    specification: Specification,
) -> Point:
    counts = Counts(
        answers.model,
        place_nodes(population, grid.nodes),
        found.statistics,
        np.broadcast_to(found.observed, (len(found.statistics), len(items.intercept))),
    )
    asymptotes = items.has_others()
    gradient, information = item_score.score(items, counts, asymptotes=asymptotes)
    size = gradient.shape[1]
    prior = priors_of(as_array(items)[:, :size], specification)
    information[:, range(size), range(size)] += prior.information
    places = layout(specification)
    vector = places.add_up(gradient + prior.gradient)
    at, of_population, of_scale = places.population, np.ones(places.population.size), found.moments
    if not isinstance(population, Population):
        known = answers.member if answers.predictors is None else answers.predictors
        of_subjects = np.asarray(known)[:, 0] if isinstance(population, Groups) else np.asarray(known)
        by, of_population = processes.total(population.score(found.moments, of_subjects))
        of_scale = population.of_scale(found.moments, of_subjects)
        vector[at[at >= 0]] = by[at >= 0]
    elif (at >= 0).any():
        by, of_population = item_score.population_score(
            items, counts, np.asarray(population.mean), asymptotes=asymptotes
        )
        vector[at[at >= 0]] = by[at >= 0]
    sums = found.log_likelihoods.sum(), of_scale.sum(axis=0), len(of_scale)
    log_likelihood, abilities, number = processes.total(sums)
    objective = float(log_likelihood) + float(prior.log_density.sum())
    of_all = counts, abilities / number, found.boundary_mass
    return Point(items, population, objective, vector, information, of_population, *of_all)


def moved_by(point: Point, step: np.ndarray, places: Layout) -> tuple[Items, Populations]:
    """Where a step (P,) from a point leads."""
    items = as_items(as_array(point.items) + places.gather(step), point.items)
    mean, sd = (np.asarray(leaf) for leaf in point.population)
    mean = mean + np.where(places.mean >= 0, step[places.mean], 0.0)
    sd = sd * np.exp(np.where(places.log_sd >= 0, step[places.log_sd], 0.0))
    return items, point.population._replace(mean=mean, sd=sd)
