"""Ability of a subject given items of known parameters: the jitted step that training loops call."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from irtjax.kernels.models import ItemParameters, information_1pl, log_probabilities, probability_1pl
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.quadrature import STANDARD_NODES, of_mode_search, of_posterior_mean
from irtjax.types import AnyArray, Float, Int, Scalar

MAX_STEPS = 100
BOUND = 25.0  # logits; beyond it no answer holds an ML ability back
LONGEST_STEP = 2.0  # of a search, in standard deviations of the population or logits
WIDE = 8.0  # standard deviations of the population in which a posterior is looked for at first
NOTHING = 30.0  # nats below the highest at which a density does not count
EDGE = 2.0  # slope times the distance of nodes
PASSES = 3  # of nodes around a posterior
LEAST_VARIANCE = 1e-12  # of a posterior, in variances of the population


class Population(NamedTuple):
    """Normal distribution of ability that MAP and EAP estimates are drawn towards: mean and sd in logits."""

    mean: float | jax.Array = 0.0
    sd: float | jax.Array = 1.0


STANDARD = Population()


class Ability(NamedTuple):
    """An ability and its standard error, in logits; scalars, or (D,) with D > 1 dimensions."""

    ability: jax.Array
    standard_error: jax.Array


def ability_1pl(
    responses: Int[AnyArray, " I"],
    difficulty: Float[AnyArray, " I"],
    population: Population | None = None,
    start: Scalar = 0.0,
    weights: Float[AnyArray, " I"] | None = None,
) -> Ability:
    """Ability of one subject in the 1PL with known difficulties; `jax.vmap` it over many.

    Maximum likelihood (ML) solves Σ_i (y_i - p_i(θ)) = 0 over the observed items (Lord 1980, eq. 4-20). With a
    population N(μ, σ²) the posterior mode (MAP) solves Σ_i (y_i - p_i(θ)) - (θ - μ)/σ² = 0. The standard error
    is 1/sqrt(Σ_i p_i (1 - p_i) [+ 1/σ²]).

    Newton's method with steps of at most one logit converges from anywhere: the information changes by at
    most a factor e^d over a distance d, so a step from within d ≤ 1 of the root overshoots it by less than
    (e - 2) d, and from farther away one logit is progress.

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        difficulty: (I,) difficulties in logits; its dtype is that of the result.
        population: None for ML.
        start: where Newton's method begins, such as the ability of the epoch before.
        weights: (I,) how many items each stands for where these are a sample: terms of the sums over items are
            multiplied by it. 0 counts as missing. None for all 1.

    Returns:
        Scalars. With weights, the standard error is that of the sum over the items that they stand for, not the
        sample's. ML has no finite maximum where all observed answers are right (+inf) or all wrong (-inf); the
        standard error is then inf. A subject without responses gets NaN by ML, the population's mean by MAP.
    """
    observed = responses >= 0 if weights is None else (responses >= 0) & (weights > 0)
    right = ((responses == 1) & observed).astype(difficulty.dtype)

    def weighted(terms: jax.Array) -> jax.Array:
        return jnp.where(observed, terms if weights is None else weights * terms, 0).sum()

    def slope_and_information(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
        residual = weighted(right - probability_1pl(theta, difficulty))
        information = weighted(information_1pl(theta, difficulty))
        if population is not None:
            residual -= (theta - population.mean) * population.sd**-2.0
            information += population.sd**-2.0
        return residual, information

    num_right, num_observed = right.sum(), observed.sum()
    start = jnp.asarray(start, difficulty.dtype)
    if population is None:
        no_maximum = (num_right == 0) | (num_right == num_observed)
        start = jnp.where(jnp.isfinite(start), start, 0.0)
    else:
        no_maximum = jnp.asarray(False)
    theta = _newton(slope_and_information, start, finished=no_maximum)
    standard_error = slope_and_information(theta)[1] ** -0.5
    if population is None:
        limit = jnp.where(num_right == 0, -jnp.inf, jnp.inf).astype(theta.dtype)
        nothing = num_observed == 0
        theta = jnp.where(nothing, jnp.nan, jnp.where(no_maximum, limit, theta))
        standard_error = jnp.where(nothing, jnp.nan, jnp.where(no_maximum, jnp.inf, standard_error))
    return Ability(theta, standard_error)


def _newton(
    slope_and_information: Callable[[jax.Array], tuple[jax.Array, jax.Array]], start: jax.Array, finished: jax.Array
) -> jax.Array:
    """Root of a decreasing slope by Newton's method in steps of at most one logit; `finished` makes none."""
    tolerance = _tolerance(start.dtype)

    def step(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        theta, _, count = carry
        slope, information = slope_and_information(theta)
        # far from every item the information underflows; the slope still says which way to go
        change = jnp.clip(slope / jnp.maximum(information, jnp.finfo(theta.dtype).tiny), -1, 1)
        return theta + change, change, count + 1

    def moving(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, change, count = carry
        return (jnp.abs(change) > tolerance) & (count < MAX_STEPS)

    first = jnp.where(finished, 0.0, 1.0).astype(start.dtype)
    return jax.lax.while_loop(moving, step, (start, first, jnp.zeros((), jnp.int32)))[0]


def _tolerance(dtype: jnp.dtype) -> float:
    return 1e-5 if dtype == jnp.float32 else 1e-9


class _ModeSearch(NamedTuple):
    """A point (D,), the longest step to try next, the size of the last one, and the number of steps."""

    z: jax.Array
    radius: jax.Array
    change: jax.Array
    steps: jax.Array


@in_full_precision
def ability_mode(
    responses: Int[AnyArray, " I"], items: ItemParameters, population: Population | None = None
) -> Ability:
    """ML or MAP ability of one subject in any model of one or more dimensions; `jax.vmap` it over many.

    Maximises log L(θ) = Σ_i [y_i log P_i(θ) + (1 - y_i) log(1 - P_i(θ))] over the observed items, plus the log-density
    of independent normal populations for MAP, by Fisher scoring: steps information⁻¹ slope, shortened until the
    objective rises. With lower asymptotes it can have several maxima (Samejima 1973): in one dimension the search
    starts from the best of 61 points (in more, of 7 in each). The result does not depend on origin and unit of the
    scale.

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        population: the same for each dimension; None for ML.

    Returns:
        Ability (D,) and standard errors (D,), from the expected information at the ability [plus 1/σ²]; scalars where
        D = 1. An ML ability is ±inf, with the standard error inf, where D = 1 and the likelihood is nowhere higher than
        in that limit; where D > 1 and no answer holds it back within `BOUND` logits (of an item of median slope). It is
        NaN where no item that was answered depends on it.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    centre, unit = _scale(items, population)
    rescaled = _rescaled(items, centre, unit)
    objective, slope_and_information = _posterior(responses, rescaled, population is not None)
    limits = _at_infinity(responses, rescaled) if population is None and dims == 1 else None

    def step(search: _ModeSearch) -> _ModeSearch:
        z, radius, _, count = search
        slope, information = slope_and_information(z)
        ridge = 10 * jnp.finfo(dtype).eps * jnp.trace(information) + jnp.finfo(dtype).tiny
        change = jnp.linalg.solve(information + ridge * jnp.eye(dims, dtype=dtype), slope)
        change = jnp.clip(change, -radius, radius)
        candidates = z[None, :] + jnp.asarray([1.0, 0.5, 0.25, 0.0625, 0.0], dtype)[:, None] * change[None, :]
        best = jnp.argmax(objective(candidates))
        moved = jnp.abs(candidates[best] - z).max()
        # where curves are steps, the information says nothing of how far to go
        shorter = jnp.minimum(radius, jnp.abs(change).max()) / 16
        radius = jnp.where(moved > 0, jnp.minimum(LONGEST_STEP, 4 * radius), shorter)
        return _ModeSearch(candidates[best], radius, jnp.where(moved > 0, moved, shorter), count + 1)

    def moving(search: _ModeSearch) -> jax.Array:
        z, _, change, count = search
        inside = True if population is not None else jnp.abs(z).max() < BOUND
        if limits is not None:  # a flat item may hold back what steep ones, whose unit is short, do not
            inside |= objective(z[None, :])[0] > limits.max()
        return (change > tolerance) & (count < MAX_STEPS) & inside

    tolerance = _tolerance(dtype)
    grid = jnp.asarray(of_mode_search(dims).nodes, dtype)
    first = grid[jnp.argmax(objective(grid))]
    start = _ModeSearch(first, jnp.asarray(LONGEST_STEP, dtype), jnp.asarray(jnp.inf, dtype), jnp.zeros((), jnp.int32))
    z = jax.lax.while_loop(moving, step, start).z
    error = jnp.sqrt(jnp.diagonal(jnp.linalg.inv(slope_and_information(z)[1])))
    if population is None:
        if limits is None:
            outside, end = jnp.abs(z) >= BOUND, jnp.sign(z) * jnp.inf
        else:
            outside = limits.max() >= objective(z[None, :])[0]
            end = jnp.where(limits[1] > limits[0], jnp.inf, -jnp.inf)
        z, error = jnp.where(outside, end, z), jnp.where(outside, jnp.inf, error)
        known = ((responses >= 0)[:, None] & (items.slope != 0)).any(axis=0)
        z, error = jnp.where(known, z, jnp.nan), jnp.where(known, error, jnp.nan)
    return _on_scale(z, error, centre, unit)


def _at_infinity(responses: AnyArray, items: ItemParameters) -> jax.Array:
    """The log-likelihood in the limits of ability -inf and inf, (2,), D = 1: where each item has an asymptote."""
    flat_right, flat_wrong = (x[0] for x in log_probabilities(items, jnp.zeros((1, 1), items.slope.dtype))[:2])
    ends = []
    for sign in (-1, 1):
        rising = sign * items.slope[:, 0]
        p, q = (
            jnp.where(
                rising == 0,
                at_once,
                jnp.where(rising > 0, jax.nn.log_sigmoid(turn * items.upper), jax.nn.log_sigmoid(turn * items.lower)),
            )
            for turn, at_once in ((1, flat_right), (-1, flat_wrong))
        )
        ends.append(jnp.where(responses == 1, p, jnp.where(responses == 0, q, 0)).sum())
    return jnp.stack(ends)


@in_full_precision
def ability_eap(
    responses: Int[AnyArray, " I"],
    items: ItemParameters,
    population: Population = STANDARD,
    num_nodes: int = STANDARD_NODES,
) -> Ability:
    """Expected a posteriori ability of one subject (Bock and Mislevy 1982), and its posterior standard deviation.

    In one dimension the posterior is integrated over equally spaced nodes, laid anew until they hold all of it and at
    least a third of them fall within it. In more, over nodes around its mode, which are laid anew by the mean and
    the covariance that they find (Naylor and Smith 1982).

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        population: the same for each dimension.
        num_nodes: for D = 1; `nodes_for` says how many steep curves need.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    centre, unit = _scale(items, population)
    objective, slope_and_information = _posterior(responses, _rescaled(items, centre, unit), True)
    if dims == 1:
        z, error = _mean_on_a_line(lambda nodes: objective(nodes[:, None]), num_nodes, dtype)
        return _on_scale(z[None], error[None], centre, unit)
    nodes = jnp.asarray(of_posterior_mean(dims).nodes, dtype)
    z = (ability_mode(responses, items, population).ability - centre) / unit
    covariance = jnp.linalg.inv(slope_and_information(z)[1])
    for _ in range(PASSES):
        around = z[None, :] + nodes @ jnp.linalg.cholesky(covariance + LEAST_VARIANCE * jnp.eye(dims, dtype=dtype)).T
        weights = jax.nn.softmax(objective(around))
        z = weights @ around
        away = around - z[None, :]
        covariance = (weights[:, None] * away).T @ away
    return _on_scale(z, jnp.sqrt(jnp.diagonal(covariance)), centre, unit)


class _LineSearch(NamedTuple):
    """An interval, the moments of the density by nodes in it, whether it will do, and the number of steps."""

    centre: jax.Array
    half: jax.Array
    mean: jax.Array
    sd: jax.Array
    done: jax.Array
    steps: jax.Array


def nodes_for(steepest: float) -> int:
    """Nodes for `ability_eap` where curves have slopes up to `steepest`, in standard deviations of the population.

    Where the answers leave the ability open between steep curves, the posterior has edges as steep as they are. The
    trapezoidal rule integrates a logistic curve of slope a with a relative error of about exp(-2π²/(a h)) (Trefethen
    and Weideman 2014): here 1e-4, up to slopes of 120.
    """
    needed = 2 * WIDE * steepest / EDGE
    return next((n for n in (STANDARD_NODES, 241) if needed < n), 961)


def _mean_on_a_line(
    objective: Callable[[jax.Array], jax.Array], num_nodes: int, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of a density exp(objective) that falls at least as fast as a normal one of sd 1."""
    line, places = jnp.linspace(-1, 1, num_nodes, dtype=dtype), jnp.arange(num_nodes)

    def step(search: _LineSearch) -> _LineSearch:
        centre, half, *_, count = search
        nodes = centre + half * line
        value = objective(nodes)
        inside = value > value.max() - NOTHING
        weights = jax.nn.softmax(value)
        mean = weights @ nodes
        sd = jnp.sqrt(weights @ (nodes - mean) ** 2)
        first, last = jnp.where(inside, places, num_nodes).min(), jnp.where(inside, places, -1).max()
        cut = (first == 0) | (last == num_nodes - 1)
        low, high = nodes[jnp.maximum(first - 1, 0)], nodes[jnp.minimum(last + 1, num_nodes - 1)]
        centre = jnp.where(cut, nodes[jnp.argmax(value)], (low + high) / 2)
        half = jnp.where(cut, 2 * half, (high - low) / 2)
        done = ~cut & (last - first >= num_nodes // 3)
        return _LineSearch(centre, half, mean, sd, done, count + 1)

    zero = jnp.zeros((), dtype)
    start = _LineSearch(zero, jnp.asarray(WIDE, dtype), zero, zero, jnp.asarray(False), jnp.zeros((), jnp.int32))
    end = jax.lax.while_loop(lambda search: ~search.done & (search.steps < MAX_STEPS), step, start)
    return end.mean, end.sd


def _posterior(
    responses: AnyArray, items: ItemParameters, standard_normal: bool
) -> tuple[Callable[[jax.Array], jax.Array], Callable[[jax.Array], tuple[jax.Array, jax.Array]]]:
    """The log-likelihood at points (Q, D), and its gradient and expected information at one; or the log-posterior."""
    dims, dtype = items.slope.shape[1], items.slope.dtype
    right, wrong = responses == 1, responses == 0

    def objective(points: jax.Array) -> jax.Array:
        p, q, _ = log_probabilities(items, points)
        value = jnp.where(right, p, jnp.where(wrong, q, 0)).sum(axis=1)
        return value - 0.5 * (points**2).sum(axis=1) if standard_normal else value

    def slope_and_information(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        p, q, by_logit = (x[0] for x in log_probabilities(items, point[None, :]))
        residual = jnp.where(right, jnp.exp(by_logit - p), jnp.where(wrong, -jnp.exp(by_logit - q), 0))
        weight = jnp.where(right | wrong, jnp.exp(2 * by_logit - p - q), 0)
        slope = residual @ items.slope
        information = jnp.einsum("i,ik,il->kl", weight, items.slope, items.slope)
        if standard_normal:
            slope, information = slope - point, information + jnp.eye(dims, dtype=dtype)
        return slope, information

    return objective, slope_and_information


def _scale(items: ItemParameters, population: Population | None) -> tuple[jax.Array, jax.Array]:
    """Origin and unit (D,) in which to look for an ability: those of the population, or of the median item."""
    dims, dtype = items.slope.shape[1], items.slope.dtype
    if population is not None:
        return tuple(jnp.broadcast_to(jnp.asarray(x, dtype), (dims,)) for x in population)  # type: ignore[return-value]
    slope = jnp.where(items.slope == 0, jnp.nan, items.slope)
    unit = 1 / jnp.nanmedian(jnp.abs(slope), axis=0)
    centre = jnp.nanmedian(-items.intercept[:, None] / slope, axis=0) if dims == 1 else jnp.zeros(dims, dtype)
    return jnp.nan_to_num(centre), jnp.nan_to_num(unit, nan=1.0)


def _rescaled(items: ItemParameters, centre: jax.Array, unit: jax.Array) -> ItemParameters:
    """The parameters for abilities in units from an origin."""
    return items._replace(slope=items.slope * unit[None, :], intercept=items.intercept + items.slope @ centre)


def _on_scale(z: jax.Array, error: jax.Array, centre: jax.Array, unit: jax.Array) -> Ability:
    theta, error = centre + unit * z, unit * error
    return Ability(theta[0], error[0]) if z.size == 1 else Ability(theta, error)


def percentile(ability: Float[AnyArray, "..."], population: Population = STANDARD) -> Float[AnyArray, "..."]:
    """Percentage of the population below an ability: 100 Φ((θ - μ)/σ)."""
    return 100 * ndtr((ability - population.mean) / population.sd)
