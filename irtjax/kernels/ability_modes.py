"""The ability at which answers are likeliest (ML) or the posterior is highest (MAP): what training loops call."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.ability import Ability, log_posterior, on_scale, rescaled, scale_of
from irtjax.kernels.ability_limits import asymptotic, open_space, separation
from irtjax.kernels.elimination import inverse, solve
from irtjax.kernels.models import ItemParameters, information_1pl, log_probabilities, probability_1pl
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.quadrature import of_mode_search
from irtjax.populations.normal import Population
from irtjax.types import AnyArray, Float, Int, Scalar

MAX_STEPS = 100
BOUND = 25.0  # logits; a search goes no farther unless something holds the ability back there
LONGEST_STEP = 2.0  # of a search, in standard deviations of the population or logits


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
    responses: Int[AnyArray, " I"],
    items: ItemParameters,
    population: Population | None = None,
    scale: tuple[jax.Array, jax.Array] | None = None,
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
        scale: origin (D,) and unit (D,) in which ML looks for the ability; None for those of the items, by which starts
            differ where a subject has some of the items only.

    Returns:
        Ability (D,) and standard errors (D,), from the expected information at the ability [plus 1/σ²]; scalars where
        D = 1. An ML ability is ±inf, with the standard error inf, where the likelihood is nowhere higher than in that
        limit. With D > 1 it is so in the dimensions that a direction of ever higher likelihood leads along; in the
        others it is that of the answers which this direction does not change (`irtjax.kernels.ability_limits`). It is
        NaN, as is the standard error, in a dimension that the answers leave open: no item that was answered depends on
        it, or only together with others.
    """
    dims = items.slope.shape[1]
    centre, unit = scale or scale_of(items, population)
    own = rescaled(items, centre, unit)
    if population is None and dims > 1:
        return on_scale(*_likeliest(responses, own), centre, unit)
    z = _highest(responses, own, population is not None)
    error = jnp.sqrt(jnp.diagonal(inverse(log_posterior(responses, own, population is not None)[1](z)[1])))
    if population is None:
        limits, value = _at_infinity(responses, own), log_posterior(responses, own, False)[0](z[None, :])[0]
        outside = limits.max() >= value
        end = jnp.where(limits[1] > limits[0], jnp.inf, -jnp.inf)
        z, error = jnp.where(outside, end, z), jnp.where(outside, jnp.inf, error)
        known = ((responses >= 0)[:, None] & (items.slope != 0)).any(axis=0)
        z, error = jnp.where(known, z, jnp.nan), jnp.where(known, error, jnp.nan)
    return on_scale(z, error, centre, unit)


def _likeliest(responses: AnyArray, items: ItemParameters) -> tuple[jax.Array, jax.Array]:
    """ML ability and standard errors (D,), D > 1."""
    limit = separation(responses, items.slope)
    z = _highest(jnp.where(limit.held, responses, -1), items, False)
    limit = asymptotic(responses, items, limit, z)
    held = jnp.where(limit.held, responses, -1)
    left_open = open_space(limit.held, items.slope)
    z = _highest(held, items, False, z - left_open @ z)  # which may have gone far in one dimension, and so no farther
    information = log_posterior(held, items, False)[1](z)[1]
    # what is added has no part in the dimensions that are known
    information += jnp.maximum(jnp.trace(information), 1) * left_open
    error = jnp.sqrt(jnp.diagonal(inverse(information)))
    known = jnp.diagonal(left_open) < jnp.sqrt(jnp.finfo(z.dtype).eps)
    gone = limit.direction != 0
    end, never = jnp.where(gone, jnp.sign(limit.direction) * jnp.inf, jnp.nan), jnp.where(gone, jnp.inf, jnp.nan)
    return jnp.where(known, z, end), jnp.where(known, error, never)


def _highest(
    responses: AnyArray, items: ItemParameters, standard_normal: bool, first: jax.Array | None = None
) -> jax.Array:
    """Where the likelihood, or the posterior in a standard normal population, is highest: (D,).

    Args:
        responses: (I,) 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        standard_normal: whether the prior is multiplied in.
        first: (D,) where the search begins; None for the best of a grid.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    objective, slope_and_information = log_posterior(responses, items, standard_normal)
    limits = _at_infinity(responses, items) if not standard_normal and dims == 1 else None
    bounded = ((responses < 0) | (jnp.isinf(items.lower) & jnp.isinf(items.upper))).all()

    def step(search: _ModeSearch) -> _ModeSearch:
        z, radius, _, count = search
        slope, information = slope_and_information(z)
        ridge = 10 * jnp.finfo(dtype).eps * jnp.trace(information) + jnp.finfo(dtype).tiny
        change = solve(information + ridge * jnp.eye(dims, dtype=dtype), slope)
        # shorter, but in the same direction: along a narrow ridge no other one leads upwards
        change = change * jnp.minimum(1, radius / jnp.maximum(jnp.abs(change).max(), jnp.finfo(dtype).tiny))
        candidates = z[None, :] + jnp.asarray([1.0, 0.5, 0.25, 0.0625, 0.0], dtype)[:, None] * change[None, :]
        best = jnp.argmax(objective(candidates))
        moved = jnp.abs(candidates[best] - z).max()
        # where curves are steps, the information says nothing of how far to go
        shorter = jnp.minimum(radius, jnp.abs(change).max()) / 16
        radius = jnp.where(moved > 0, jnp.minimum(LONGEST_STEP, 4 * radius), shorter)
        return _ModeSearch(candidates[best], radius, jnp.where(moved > 0, moved, shorter), count + 1)

    def moving(search: _ModeSearch) -> jax.Array:
        z, _, change, count = search
        inside = jnp.asarray(True) if standard_normal else jnp.abs(z).max() < BOUND
        if limits is not None:  # a flat item may hold back what steep ones, whose unit is short, do not
            inside |= objective(z[None, :])[0] > limits.max()
        elif not standard_normal:
            inside = inside | bounded
        return (change > tolerance) & (count < MAX_STEPS) & inside

    tolerance = _tolerance(dtype)
    if first is None:
        grid = jnp.asarray(of_mode_search(dims).nodes, dtype)
        first = grid[jnp.argmax(objective(grid))]
    start = _ModeSearch(first, jnp.asarray(LONGEST_STEP, dtype), jnp.asarray(jnp.inf, dtype), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(moving, step, start).z


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
