"""What a fit on nodes comes to: abilities, errors of the items, and the log-likelihood by a finer rule."""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation.driver import Estimate
from irtjax.estimation.problem import Specification, layout, with_held
from irtjax.estimation.quadrature import checks as node_checks
from irtjax.estimation.quadrature import common_parameters, group_information, observed_information, sparse_moments
from irtjax.estimation.quadrature.complete_data import Part
from irtjax.estimation.quadrature.state import State
from irtjax.estimation.quadrature.step_length import at_bounds, narrowing
from irtjax.fits.joint_covariance import MOST_KEPT, JointCovariance
from irtjax.integration.e_step import condensed, e_step
from irtjax.integration.importance_nodes import part
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import SparseGrid, everywhere
from irtjax.types import Bool, Float, Int

MOST_PARAMETERS = 3000  # free ones whose standard errors come from a dense matrix of all
WEIGHTS = 2**21  # of subjects at nodes that are held at a time, and several times as many scores
MOST_WEIGHTS = 2**27  # of sparse responses at nodes that are kept: 1 GB
SCORES = 2**24  # of answers at own nodes, in all parameters, that are held at a time


def estimate_at(state: State, standard_errors: bool) -> Estimate:
    """The estimate that a state of the engine stands for."""
    point, specification, answers = state.point, state.specification, state.answers
    items, population = point.items, point.population
    dims = specification.dims
    num_subjects = int(processes.total(answers.num_subjects))
    placed = state.rule.lay_out(items, population, answers)
    found = e_step(items, population, answers, placed)
    of_subjects = found.log_likelihoods + answers.log_base()
    log_likelihoods, ability, ability_se = map(processes.gather, (of_subjects, found.mean, found.sd))
    difference = node_checks.refinement(state, items, num_subjects).change
    unbounded = at_bounds(point, specification, state.rule.steepest)
    errors = _Errors(_unknown(specification))
    if standard_errors:
        errors = _errors(state, placed, unbounded)
        if dims == 1:
            unbounded |= node_checks.slopes_without_maximum(state, np.sqrt(errors.covariances[:, 0, 0]))
        errors.covariances[unbounded] = np.nan
    change = float(difference.mean()) * num_subjects
    # errors of opposite sign cancel in the sum, but not in the estimates
    error = max(abs(change), num_subjects * float(np.sqrt((difference**2).mean() / len(difference))))
    if state.rule.moves_with_posterior:  # what the nodes of the fit were off by, as posteriors had moved since
        of_fit = e_step(items, population, answers, state.grid).log_likelihoods
        error = max(error, abs(float(of_fit.sum() - found.log_likelihoods.sum())))
    return Estimate(
        items=items,
        population=population,
        covariances=errors.covariances,
        of_groups=errors.of_groups,
        joint=errors.joint,
        ability=ability,
        ability_se=ability_se,
        log_likelihoods=log_likelihoods,
        log_likelihood=float(log_likelihoods.sum()) + change,
        log_likelihood_error=error,
        distance=errors.distance,
        integration=state.rule.way,
        unbounded=unbounded,
        identified=errors.identified,
        specification=specification,
        details={
            **state.rule.summary(population),
            "nodes_per_subject": round(int(processes.total(placed.num_weights(answers.num_subjects))) / num_subjects),
            **({} if errors.kind is None else {"standard_errors": errors.kind}),
        },
    )


class _Errors(NamedTuple):
    """Covariances (I, K, K), where they come from, the distance from the maximum, whether there is one; of more."""

    covariances: np.ndarray
    kind: str | None = None
    distance: float = np.nan
    identified: bool = True
    of_groups: np.ndarray | None = None
    joint: JointCovariance | None = None


def _unknown(specification: Specification) -> np.ndarray:
    """(I, K, K) of covariances that are not known."""
    num_items, size = np.asarray(specification.free).shape
    return np.full((num_items, size, size), np.nan)


def _errors(state: State, placed: SparseGrid, unbounded: Bool[np.ndarray, " I"]) -> _Errors:
    """Errors of the items that have a finite estimate, the others being as they are."""
    (items, population, _, gradient, *_), specification = state.point, state.specification
    places, none = layout(specification), _unknown(specification)
    off = np.isin(np.arange(places.size), places.items[unbounded])
    finite = with_held(specification, places, off)
    if off.all():
        return _Errors(none)
    if places.size <= MOST_PARAMETERS:
        information = observed_information.of_all_parameters(items, population, _parts(state, placed), finite)
        narrow = narrowing(state.point, layout(finite), state.rule.narrowest) <= 0  # standard deviations held there
        covariance = np.zeros(information.shape)
        covariance[np.ix_(~narrow, ~narrow)] = observed_information.covariance(information[~narrow][:, ~narrow])
        if np.isnan(covariance).any():
            return _Errors(none, identified=False)
        distance = np.sqrt(max(gradient[~off] @ covariance @ gradient[~off], 0.0))
        covariance[narrow, narrow] = np.nan
        covariances = observed_information.of_items(covariance, finite)
        several = finite.num_groups > 1 or finite.num_predictors > 0
        between = functools.partial(_between, covariance)
        of_groups = group_information.covariances(between, items, finite) if several else None
        joint = None
        if len(covariance) <= MOST_KEPT and not unbounded.any():
            joint = JointCovariance(covariance, layout(finite).items)
        return _Errors(covariances, "all parameters", float(distance), of_groups=of_groups, joint=joint)
    if state.rule.moves_with_posterior:
        return _Errors(none)
    covariances = observed_information.each_item_covariances(items, population, _parts(state, placed), finite)
    several, of_groups = finite.num_groups > 1 or finite.num_predictors > 0, None
    most = max(processes.everyone(state.answers.num_subjects))  # all processes decide alike
    few = most * len(placed.nodes.nodes) <= MOST_WEIGHTS
    if several and few and isinstance(state.answers, SparseAnswers):
        parts = list(_parts(state, placed))
        of_common = common_parameters.covariances(items, population, parts, finite)
        if not np.isnan(of_common).any():
            between = functools.partial(_between, of_common, first=layout(finite).num_own)
            of_groups = group_information.covariances(between, items, finite)
    return _Errors(covariances, "each item", of_groups=of_groups)


def _between(
    covariance: Float[np.ndarray, "P P"], places: Int[np.ndarray, " n"], first: int = 0
) -> Float[np.ndarray, "n n"]:
    return covariance[np.ix_(places - first, places - first)]


def _parts(state: State, placed: SparseGrid) -> Iterator[Part]:
    """The subjects, some at a time where they can be parted, so that their posteriors take little memory."""
    (items, population, *_), answers = state.point, state.answers
    own = state.rule.moves_with_posterior
    most = answers.num_subjects
    if own:
        most = max(1, SCORES // (placed.shape[1] * answers.num_items * (3 * state.specification.dims + 3)))
    elif placed.rows is None:
        most = max(1, WEIGHTS // len(placed.nodes.nodes))
    sparse = isinstance(answers, SparseAnswers)
    if isinstance(answers, SparseAnswers):
        placed, most = everywhere(placed.nodes), sparse_moments.most_subjects(answers, len(placed.nodes.nodes))
    # as many parts on every process, which add up what they find
    number = max(-(-number // most) for number in processes.everyone(answers.num_subjects))
    for rows in np.array_split(np.arange(answers.num_subjects), number):
        chosen = slice(int(rows[0]), int(rows[-1]) + 1)
        some, grid = answers.rows(chosen), part(placed, chosen) if own else placed
        expected = e_step(items, population, some, grid, weights=True)
        yield Part(some, expected, grid) if own or sparse else Part(some, *condensed(expected, grid))
