"""What a fit on nodes comes to: abilities, errors of the items, and the log-likelihood by a finer rule."""

import dataclasses
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation.estimate import Estimate
from irtjax.estimation.problem import Specification, layout
from irtjax.estimation.quadrature import checks as node_checks
from irtjax.estimation.quadrature import observed_information, slope_bounds
from irtjax.estimation.quadrature.state import State
from irtjax.integration.importance_nodes import part
from irtjax.integration.node_posteriors import NodePosteriors, condensed, moments, node_posteriors
from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.types import Bool, Float

MOST_PARAMETERS = 3000  # free ones whose standard errors come from a dense matrix of all
SCORES = 2**24  # of answers at own nodes, in all parameters, that are held at a time


def estimate_at(state: State, standard_errors: bool) -> Estimate:
    """The estimate that a state of the engine stands for."""
    point, specification, answers = state.point, state.specification, state.answers
    items, population = point.items, point.population
    dims, (num_here, num_items) = specification.dims, answers.right.shape
    num_subjects = int(processes.total(num_here))
    placed = state.rule.lay_out(items, population, answers)
    found = node_posteriors(items, population, answers, placed)
    log_likelihoods, ability, ability_se = map(
        processes.gather, (np.asarray(found.log_likelihoods), *moments(found, population, placed))
    )
    difference = node_checks.compare(state, items, num_subjects).change
    unbounded = slope_bounds.at_bounds(items, specification, population.sd, state.rule.steepest)
    errors = _Errors(np.full((num_items, dims + 3, dims + 3), np.nan))
    if standard_errors:
        errors = _errors(state, found, placed, unbounded)
        if dims == 1:
            unbounded |= node_checks.slopes_without_maximum(state, np.sqrt(errors.covariances[:, 0, 0]))
        errors.covariances[unbounded] = np.nan
    change = float(difference.mean()) * num_subjects
    # errors of opposite sign cancel in the sum, but not in the estimates
    error = max(abs(change), num_subjects * float(np.sqrt((difference**2).mean() / len(difference))))
    if state.rule.moves_with_posterior:  # what the nodes of the fit were off by, as posteriors had moved since
        of_fit = node_posteriors(items, population, answers, state.grid).log_likelihoods
        error = max(error, abs(float(np.asarray(of_fit).sum() - log_likelihoods.sum())))
    return Estimate(
        items=items,
        population=population,
        covariances=errors.covariances,
        ability=ability,
        ability_se=ability_se,
        log_likelihoods=log_likelihoods,
        log_likelihood=float(log_likelihoods.sum()) + change,
        log_likelihood_error=error,
        distance=errors.distance,
        unbounded=unbounded,
        identified=errors.identified,
        specification=specification,
        details={
            **state.rule.summary(population),
            "nodes_per_subject": round(int(processes.total(found.weights.size)) / num_subjects),
            **({} if errors.kind is None else {"standard_errors": errors.kind}),
        },
    )


class _Errors(NamedTuple):
    """Covariances (I, K, K), where they come from, the distance from the maximum, and whether there is one."""

    covariances: np.ndarray
    kind: str | None = None
    distance: float = np.nan
    identified: bool = True


def _errors(state: State, found: NodePosteriors, placed: SparseGrid, unbounded: Bool[np.ndarray, " I"]) -> _Errors:
    """Errors of the items that have a finite estimate, the others being as they are."""
    (items, population, _, gradient, *_), specification = state.point, state.specification
    places, none = layout(specification), np.full((len(unbounded), *2 * (specification.dims + 3,)), np.nan)
    off = np.isin(np.arange(places.size), places.items[unbounded])
    finite = slope_bounds.without(specification, places, off)
    if off.all():
        return _Errors(none)
    if places.size <= MOST_PARAMETERS:
        covariance = observed_information.covariance(_information(state, found, placed, finite))
        if np.isnan(covariance).any():
            return _Errors(none, identified=False)
        distance = np.sqrt(max(gradient[~off] @ covariance @ gradient[~off], 0.0))
        return _Errors(observed_information.of_items(covariance, finite), "all parameters", float(distance))
    if state.rule.moves_with_posterior:
        return _Errors(none)
    arguments = items, population, state.answers, *condensed(found, placed), finite
    return _Errors(observed_information.each_item_covariances(*arguments), "each item")


def _information(
    state: State, found: NodePosteriors, placed: SparseGrid, specification: Specification
) -> Float[np.ndarray, "P P"]:
    """Observed information of all parameters; on nodes of their own, some subjects at a time."""
    (items, population, *_), answers = state.point, state.answers
    if not state.rule.moves_with_posterior:
        return observed_information.of_all_parameters(
            items, population, answers, *condensed(found, placed), specification
        )
    (num_subjects, num_items), dims = answers.right.shape, specification.dims
    step = max(1, SCORES // (placed.shape[1] * num_items * (3 * dims + 3)))
    total: np.ndarray = np.zeros(())
    for at in range(0, num_subjects, step):
        rows = slice(at, at + step)
        some = Answers(answers.right[rows], None if answers.observed is None else answers.observed[rows])
        grid = part(placed, rows)
        expected = node_posteriors(items, population, some, grid)
        total = total + observed_information.of_all_parameters(items, population, some, expected, grid, specification)
        specification = dataclasses.replace(specification, prior_precision=np.zeros_like(specification.prior_precision))
    return total
