"""Ability of a subject given items of known parameters: the jitted step that training loops call."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from irtjax.kernels.models import ItemParameters, derivatives, information_1pl, probabilities, probability_1pl
from irtjax.kernels.quadrature import STANDARD_NODES, of_mode_search, of_posterior_mean, spacing
from irtjax.types import AnyArray, Float, Int, Scalar

Search = tuple[jax.Array, jax.Array, jax.Array, jax.Array]  # point, objective, last change, number of steps

MAX_STEPS = 100
BOUND = 25.0  # logits; beyond it no answer holds an ML ability back


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


def ability_mode(
    responses: Int[AnyArray, " I"], items: ItemParameters, population: Population | None = None
) -> Ability:
    """ML or MAP ability of one subject in any model of one or more dimensions; `jax.vmap` it over many.

    Maximises log L(θ) = Σ_i [y_i log P_i(θ) + (1 - y_i) log(1 - P_i(θ))] over the observed items, plus the log-density
    of independent normal populations for MAP, by Fisher scoring: steps information⁻¹ slope, halved until the objective
    rises. With lower asymptotes it can have several maxima (Samejima 1973): in one dimension the search starts from the
    best of 61 points (in more, of 7 in each).

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        population: the same for each dimension; None for ML.

    Returns:
        Ability (D,) and standard errors (D,), from the expected information at the ability [plus 1/σ²]; scalars where
        D = 1. An ML ability that no answer holds back runs to beyond ±`BOUND` logits and is returned as ±inf, with the
        standard error inf.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    tolerance = _tolerance(dtype)
    right = (responses == 1).astype(dtype)[None, :]
    wrong = (responses == 0).astype(dtype)[None, :]

    def objective(theta: jax.Array) -> jax.Array:
        p, q = probabilities(items, theta[None, :])
        value = (_times_log(right, p) + _times_log(wrong, q)).sum()
        if population is not None:
            value -= 0.5 * (((theta - population.mean) / population.sd) ** 2).sum()
        return value

    def slope_and_information(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
        p, q = probabilities(items, theta[None, :])
        by_intercept = derivatives(items, theta[None, :])[..., dims]  # ∂P/∂θ_k is slope_k times this
        by_theta = by_intercept[0, :, None] * items.slope
        residual = ((right / p - wrong / q)[0, :, None] * by_theta).sum(axis=0)
        weight = ((right + wrong) / (p * q))[0]
        information = jnp.einsum("i,ik,il->kl", weight, by_theta, by_theta)
        if population is not None:
            residual = residual - (theta - population.mean) * population.sd**-2.0
            information = information + jnp.eye(dims, dtype=dtype) * population.sd**-2.0
        return residual, information

    def step(carry: Search) -> Search:
        theta, _, _, count = carry
        slope, information = slope_and_information(theta)
        ridge = 10 * jnp.finfo(dtype).eps * jnp.trace(information) + jnp.finfo(dtype).tiny
        change = jnp.linalg.solve(information + ridge * jnp.eye(dims, dtype=dtype), slope)
        change = jnp.clip(change, -2, 2)
        candidates = theta[None, :] + jnp.asarray([1.0, 0.5, 0.25, 0.0625, 0.0], dtype)[:, None] * change[None, :]
        values = jax.vmap(objective)(candidates)
        best = jnp.argmax(values)
        return candidates[best], values[best], jnp.abs(candidates[best] - theta).max(), count + 1

    def moving(carry: Search) -> jax.Array:
        theta, _, change, count = carry
        inside = jnp.abs(theta).max() < BOUND
        return (change > tolerance) & (count < MAX_STEPS) & inside

    grid = jnp.asarray(of_mode_search(dims).nodes, dtype)
    values = jax.vmap(objective)(grid)
    first = grid[jnp.argmax(values)]
    theta, _, _, _ = jax.lax.while_loop(
        moving, step, (first, values.max(), jnp.asarray(jnp.inf, dtype), jnp.zeros((), jnp.int32))
    )
    error = jnp.sqrt(jnp.diagonal(jnp.linalg.inv(slope_and_information(theta)[1])))
    outside = jnp.abs(theta) >= BOUND
    if population is None:
        theta = jnp.where(outside, jnp.sign(theta) * jnp.inf, theta)
        error = jnp.where(outside, jnp.inf, error)
        theta = jnp.where((responses >= 0).any(), theta, jnp.nan)
        error = jnp.where((responses >= 0).any(), error, jnp.nan)
    return Ability(theta[0], error[0]) if dims == 1 else Ability(theta, error)


def ability_eap(responses: Int[AnyArray, " I"], items: ItemParameters, population: Population = STANDARD) -> Ability:
    """Expected a posteriori ability of one subject (Bock and Mislevy 1982), and its posterior standard deviation.

    Integrates over 61 equally spaced nodes within six standard deviations of the population (31 and 15 per dimension in
    two and three). Where the posterior is narrower than their spacing, as on tests of thousands of
    items, the nodes are laid around the posterior mode instead, within six of its standard errors (D = 1 only).

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        population: the same for each dimension.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    nodes = jnp.asarray(of_posterior_mean(dims).nodes, dtype)
    centre, width = jnp.asarray(population.mean, dtype), jnp.asarray(population.sd, dtype)
    if dims == 1:
        mode = ability_mode(responses, items, population)
        narrow = mode.standard_error < spacing(STANDARD_NODES) * population.sd
        centre = jnp.where(narrow, mode.ability, centre)
        width = jnp.where(narrow, mode.standard_error, width)
    theta = centre + width * nodes
    p, q = probabilities(items, theta)
    right = (responses == 1).astype(dtype)[None, :]
    wrong = (responses == 0).astype(dtype)[None, :]
    joint = (_times_log(right, p) + _times_log(wrong, q)).sum(axis=1)
    joint = joint - 0.5 * (((theta - population.mean) / population.sd) ** 2).sum(axis=1)
    weights = jax.nn.softmax(joint)
    mean = weights @ theta
    error = jnp.sqrt(weights @ (theta - mean[None, :]) ** 2)
    return Ability(mean[0], error[0]) if dims == 1 else Ability(mean, error)


def percentile(ability: Float[AnyArray, "..."], population: Population = STANDARD) -> Float[AnyArray, "..."]:
    """Percentage of the population below an ability: 100 Φ((θ - μ)/σ)."""
    return 100 * ndtr((ability - population.mean) / population.sd)


def _times_log(indicator: AnyArray, probability: AnyArray) -> jax.Array:
    """The product indicator · log(probability), 0 where the indicator is 0 even if the probability is."""
    return jnp.where(indicator > 0, jnp.log(jnp.where(indicator > 0, probability, 1.0)), 0.0)
