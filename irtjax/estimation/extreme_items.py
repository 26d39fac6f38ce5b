"""Items that everyone or no one answered right.

Their likelihood rises without end as the difficulty runs off, and tells nothing of abilities there. So they have no
part in the fit of the others (`special_items.set_aside`). They are placed afterwards, as if 0.3 of an answer had been
of the other kind (`place_extremes`; Linacre's adjustment of extreme scores, as in Winsteps).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse
from scipy.special import expit, log_expit, logsumexp

from irtjax import processes
from irtjax.estimation.driver import Estimate
from irtjax.estimation.problem import Specification
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.posteriors import LEAST_PROBABILITY
from irtjax.integration.rules import SharedNodes
from irtjax.integration.sparse_posteriors import posteriors_of
from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.latent_regression import LatentRegression
from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.values import Values, mine
from irtjax.types import Bool, Float, Int, Shaped

ADJUSTMENT = 0.3  # of an answer (Linacre, Winsteps: EXTRSCORE)
BEYOND = 0.1  # logits of an intercept, from the most extreme one of the others with this slope
POSTERIOR = gauss_hermite(15)
NODES, NODE_WEIGHTS = POSTERIOR.nodes[:, 0], np.exp(POSTERIOR.log_weights)
PLACES = 241  # on the scale of ability, to which the posteriors of all subjects are assigned
MOST_STEPS, LONGEST_STEP, SETTLED = 100, 3.0, 1e-10  # of Newton's method
RESPONSES = 2**22  # held at a time
AT_ONCE = 2**17  # subjects with few answers each
FINE = SharedNodes(1921, 1, 24.0)  # where the means of subjects differ


class Placed(NamedTuple):
    """An estimate of all items, and the marginal log-likelihood of the responses to those that are not extreme."""

    estimate: Estimate
    without: float


def place_extremes(
    estimate: Estimate,
    specification: Specification,
    values: Values,
    extreme: Bool[np.ndarray, " I"],
    right: Int[np.ndarray, " I"],
    by_subject: bool,
    of_subjects: Shaped[np.ndarray, "J ..."] | None = None,
) -> Placed:
    """Adds extreme items to the estimate of the others.

    Their slope is that of the others: the common one in the Rasch model and the 1PL, otherwise the median of the
    absolute slopes (0 with D > 1). Given the abilities, each intercept c solves

        Σ_j E P(wrong | c, θ_j) = 0.3    (all answers right),        Σ_j E P(right | c, θ_j) = 0.3    (none right),

    sums over the subjects who answered, expectations over a normal posterior of each ability. An item of equal slope
    that is not extreme has a sum of 1 or more: where the same subjects answered, extreme items are beyond the most
    extreme others, whatever the data. Where other subjects answered, they are moved there if need be. Standard errors
    are from the information of the answers there.

    Args:
        estimate: of the items that are not extreme, the others set aside (`special_items.set_aside`).
        specification: before these were set aside.
        values: (J, I) of all items; on short tests of this process's subjects.
        extreme: (I,) which were answered right by everyone or by no one; at least one.
        right: (I,) right answers.
        by_subject: whether processes have subjects of their own, as on short tests, and not items.
        of_subjects: the group of each of these, where there are several, or predictors (J, C) of its ability.

    Returns:
        The estimate, with the marginal log-likelihood of all responses.
    """
    dims = specification.dims
    if dims == 1:
        slope, abilities = _slopes(estimate, specification, extreme), _dealt(estimate.ability, estimate.ability_se)
    else:  # without slopes they add the same at all abilities
        slope, abilities = np.zeros(int(extreme.sum())), _anywhere(len(estimate.ability))
    sign = np.where(right[extreme] > 0, 1.0, -1.0)
    found, added = [np.zeros((0, 3))], np.zeros((len(estimate.ability), abilities.places.size))
    for chosen, observed in _columns(values, extreme, by_subject):
        numbers = observed.T @ abilities.shares
        outside = _outside(estimate, specification, extreme, sign[chosen])
        intercept = _intercepts(numbers, abilities.places, slope[chosen], sign[chosen], outside)
        added += observed @ log_expit(
            sign[chosen, None] * (intercept[:, None] + slope[chosen, None] * abilities.places)
        )
        found.append(np.stack([intercept, *_errors(numbers, abilities.places, slope[chosen], intercept)], axis=1))
    results = np.concatenate(found)
    if not by_subject:
        results, added = processes.gather(results, mine(values)[1].start or 0), processes.total(added)
    intercept, variance, by_slope = results.T
    items = ItemParameters(*(np.array(leaf, float) for leaf in estimate.items))
    items.intercept[extreme], items.slope[extreme, 0] = intercept, slope
    of_slope = np.where(specification.shared[extreme], _variance_of_shared(estimate, specification, extreme), 0.0)
    covariances = np.array(estimate.covariances)
    covariances[extreme] = 0.0
    covariances[extreme, dims, dims] = variance
    if dims == 1:
        covariances[extreme, 0, 0] = of_slope
        covariances[extreme, 0, 1] = covariances[extreme, 1, 0] = by_slope * of_slope
        covariances[extreme, 1, 1] += by_slope**2 * of_slope
    if dims == 1 and by_subject:
        log_likelihoods = marginal(items, values, estimate.population, of_subjects)
        total = float(log_likelihoods.sum())
    else:
        change = abilities.log_mean(added)
        log_likelihoods, total = estimate.log_likelihoods + change, estimate.log_likelihood + float(change.sum())
    complete = estimate._replace(
        items=items, covariances=covariances, log_likelihoods=log_likelihoods, log_likelihood=total
    )
    return Placed(complete, estimate.log_likelihood)


def log_likelihood_without(
    estimate: Estimate,
    values: Values,
    extreme: Bool[np.ndarray, " I"],
    right: Int[np.ndarray, " I"],
    by_subject: bool,
    of_subjects: Shaped[np.ndarray, "J ..."] | None = None,
) -> float:
    """Marginal log-likelihood of the responses to the others, where extreme items had a part in the fit (D = 1).

    Arguments as for `place_extremes`. On long tests it is log p(y) + log E 1/p(extreme answers | θ), with the posterior
    given all answers.
    """
    if by_subject:
        items = estimate.items.take(~extreme)
        if isinstance(values, SparseValues):
            others: Values = values.responses.choose_items(~extreme).values
        else:
            others = np.asarray(values)[:, ~extreme]
        return float(marginal(items, others, estimate.population, of_subjects).sum())
    abilities, added = _dealt(estimate.ability, estimate.ability_se), np.zeros((len(estimate.ability), PLACES))
    of_extremes = estimate.items.take(extreme)
    sign = np.where(right[extreme] > 0, 1, -1)
    for chosen, observed in _columns(values, extreme, by_subject):
        some = of_extremes.take(chosen)
        p, q = probabilities(some, abilities.places[:, None])
        added += observed @ np.log(np.maximum(np.where(sign[chosen] > 0, p, q), LEAST_PROBABILITY)).T
    return estimate.log_likelihood + float(abilities.log_mean(-processes.total(added)).sum())


def marginal(
    items: ItemParameters,
    values: Values,
    population: Populations,
    of_subjects: Shaped[np.ndarray, "J ..."] | None = None,
) -> Float[np.ndarray, " J"]:
    """Marginal log-likelihoods (J,) of all subjects, of which each process has some; arguments as above."""
    if isinstance(population, LatentRegression):
        return processes.gather(_by_covariates(items, values, population, of_subjects))
    log_likelihoods = np.empty(values.shape[0])
    cells = values if isinstance(values, SparseValues) else np.asarray(values)
    if isinstance(population, Groups):
        some = [(population.of(group), np.flatnonzero(of_subjects == group)) for group in range(len(population.mean))]
    else:
        some = [(population, np.arange(values.shape[0]))]
    for one, rows in some:
        own = cells.responses.choose_subjects(rows).values if isinstance(cells, SparseValues) else cells[rows]
        for part in posteriors_of(items, own, *one):
            log_likelihoods[rows[part.rows]] = part.log_likelihood
    return processes.gather(log_likelihoods)


def _by_covariates(
    items: ItemParameters, values: Values, population: LatentRegression, predictors: Shaped[np.ndarray, "J C"] | None
) -> Float[np.ndarray, " J"]:
    """The same of this process's subjects where each has a mean of its own, on nodes that all of them share."""
    answers, number = to_answers(values, predictors=predictors), -(-values.shape[0] // AT_ONCE)
    found = []
    with jax.enable_x64(True), processes.alone():
        for part in np.array_split(np.arange(values.shape[0]), number if isinstance(values, SparseValues) else 1):
            some = answers.rows(part) if isinstance(values, SparseValues) else answers
            found.append(e_step(items, population, some, FINE.lay_out(items, population, some)).log_likelihoods)
    return np.concatenate(found)


class _Abilities(NamedTuple):
    """Posteriors of abilities, assigned to places on the scale.

    Attributes:
        places: (G,) evenly spaced.
        shares: (J, G) of each subject's posterior, which sum to 1.
        left: (J, Q) the place to the left of each node of a posterior.
        beyond: (J, Q) how far the node is from there to the next place, 0 to 1.
    """

    places: np.ndarray
    shares: np.ndarray
    left: np.ndarray
    beyond: np.ndarray

    def log_mean(self, values: Float[np.ndarray, "J G"]) -> Float[np.ndarray, " J"]:
        """Logarithm of the posterior mean of exp of what is given at the places."""
        rows, right = np.arange(len(values))[:, None], np.minimum(self.left + 1, self.places.size - 1)
        at_nodes = values[rows, self.left] * (1 - self.beyond) + values[rows, right] * self.beyond
        return logsumexp(at_nodes, axis=1, b=NODE_WEIGHTS)


def _dealt(mean: Float[np.ndarray, "J 1"], sd: Float[np.ndarray, "J 1"]) -> _Abilities:
    nodes = mean[:, :1] + sd[:, :1] * NODES
    places = np.linspace(nodes.min(), max(nodes.max(), nodes.min() + 1e-6), PLACES)
    at = (nodes - places[0]) / (places[1] - places[0])
    left = np.clip(at.astype(int), 0, PLACES - 2)
    beyond, rows = at - left, np.broadcast_to(np.arange(len(nodes))[:, None], nodes.shape)
    shares, weights = np.zeros((len(nodes), PLACES)), NODE_WEIGHTS
    np.add.at(shares, (rows, left), weights * (1 - beyond))
    np.add.at(shares, (rows, left + 1), weights * beyond)
    return _Abilities(places, shares, left, beyond)


def _anywhere(number: int) -> _Abilities:
    none = np.zeros((number, NODES.size))
    return _Abilities(np.zeros(1), np.ones((number, 1)), none.astype(int), none)


def _columns(
    values: Values, extreme: Bool[np.ndarray, " I"], by_subject: bool
) -> Iterator[tuple[Int[np.ndarray, " E"], Any]]:
    """Positions among the extreme items, and who answered these (J, E); the part of this process, some at a time."""
    position = np.cumsum(extreme) - 1
    if isinstance(values, SparseValues):
        observed = values.observed(extreme)
        if processes.number() > 1:
            lengths, columns = processes.gather(np.diff(observed.indptr)), processes.gather(observed.indices)
            ends = np.concatenate([[0], np.cumsum(lengths)])
            shape = len(lengths), observed.shape[1]
            observed = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape)
        yield np.arange(extreme.sum()), observed
        return
    if by_subject:
        yield np.arange(extreme.sum()), (processes.gather(np.asarray(values)[:, extreme]) != MISSING).astype(float)
        return
    items = range(*mine(values)[1].indices(extreme.size))
    step = max(1, RESPONSES // values.shape[0])
    for at in items[::step]:
        here = slice(at, min(at + step, items.stop))
        if extreme[here].any():
            block = np.asarray(values[:, here])[:, extreme[here]]
            yield position[here][extreme[here]], (block != MISSING).astype(float)


def _slopes(
    estimate: Estimate, specification: Specification, extreme: Bool[np.ndarray, " I"]
) -> Float[np.ndarray, " E"]:
    fitted, shared = np.asarray(estimate.items.slope)[:, 0], np.asarray(specification.shared)
    common = shared & ~extreme
    typical = float(np.median(np.abs(fitted[~extreme])))
    of_shared = fitted[common][0] if common.any() else typical
    return np.where(shared, of_shared, np.where(np.asarray(specification.free)[:, 0], typical, 1.0))[extreme]


def _variance_of_shared(estimate: Estimate, specification: Specification, extreme: Bool[np.ndarray, " I"]) -> float:
    common = np.asarray(specification.shared) & ~extreme
    return float(estimate.covariances[common, 0, 0][0]) if common.any() else 0.0


def _outside(
    estimate: Estimate, specification: Specification, extreme: Bool[np.ndarray, " I"], sign: Float[np.ndarray, " E"]
) -> Float[np.ndarray, " E"]:
    """The least intercepts, on the side of these signs, beyond those of the others with the slope that all share."""
    free, dims = np.asarray(specification.free), specification.dims
    same = (np.asarray(specification.shared) | ~free[:, 0]) & free[:, dims] & ~extreme & ~estimate.unbounded
    if dims > 1 or not same.any():
        return np.full(sign.size, -np.inf)
    others = np.asarray(estimate.items.intercept)[same]
    return np.where(sign > 0, others.max(), -others.min()) + BEYOND


def _intercepts(
    numbers: Float[np.ndarray, "E G"],
    places: Float[np.ndarray, " G"],
    slope: Float[np.ndarray, " E"],
    sign: Float[np.ndarray, " E"],
    outside: Float[np.ndarray, " E"],
) -> Float[np.ndarray, " E"]:
    """Where the expected number of answers of the other kind is that of the adjustment, by Newton's method in its log.

    Args:
        numbers: of subjects who answered, at places on the scale of ability.
        places: there.
        slope: of the items.
        sign: 1 where all answers are right, -1 where none is.
        outside: the least intercept times sign.
    """
    logit, total = (sign * slope)[:, None] * places, numbers.sum(axis=1)
    at = np.log(total / ADJUSTMENT - 1)
    for _ in range(MOST_STEPS):
        other = expit(-at[:, None] - logit)
        expected, falls = (numbers * other).sum(axis=1), (numbers * other * (1 - other)).sum(axis=1)
        step = np.clip(np.log(expected / ADJUSTMENT) * expected / falls, -LONGEST_STEP, LONGEST_STEP)
        at = at + step
        if np.abs(step).max() < SETTLED:
            break
    return sign * np.maximum(at, outside)


def _errors(
    numbers: Float[np.ndarray, "E G"],
    places: Float[np.ndarray, " G"],
    slope: Float[np.ndarray, " E"],
    intercept: Float[np.ndarray, " E"],
) -> tuple[Float[np.ndarray, " E"], Float[np.ndarray, " E"]]:
    """Variances of the intercepts given the slopes, and how the intercepts follow these."""
    p = expit(intercept[:, None] + slope[:, None] * places)
    weight = numbers * p * (1 - p)
    information = np.maximum(weight.sum(axis=1), 1e-300)
    return 1 / information, -(weight @ places) / information
