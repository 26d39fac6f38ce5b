"""Ability of a subject given items of known difficulty: the jitted step that training loops call."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.models import information_1pl, probability_1pl

MAX_STEPS = 100
TOLERANCE = 1e-5


class Population(NamedTuple):
    """Normal distribution of ability that a MAP estimate is drawn towards: mean and standard deviation in logits."""

    mean: float | jax.Array = 0.0
    sd: float | jax.Array = 1.0


class Ability(NamedTuple):
    """An ability and its standard error, in logits."""

    ability: jax.Array
    standard_error: jax.Array


def ability_1pl(
    responses: jax.Array,
    difficulty: jax.Array,
    population: Population | None = None,
    start: float | jax.Array = 0.0,
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

    Returns:
        Scalars. ML has no finite maximum where all observed answers are right (+inf) or all wrong (-inf); the
        standard error is then inf. A subject without responses gets NaN by ML, the population's mean by MAP.
    """
    observed = responses >= 0
    right = (responses == 1).astype(difficulty.dtype)
    precision = 0.0 if population is None else population.sd**-2.0

    def slope_and_information(theta):
        residual = jnp.where(observed, right - probability_1pl(theta, difficulty), 0).sum()
        information = jnp.where(observed, information_1pl(theta, difficulty), 0).sum()
        if population is not None:
            residual -= (theta - population.mean) * precision
        return residual, information + precision

    def newton(carry):
        theta, _, count = carry
        slope, information = slope_and_information(theta)
        # far from every item the information underflows; the slope still says which way to go
        step = jnp.clip(slope / jnp.maximum(information, jnp.finfo(theta.dtype).tiny), -1, 1)
        return theta + step, step, count + 1

    def moving(carry):
        _, step, count = carry
        return (jnp.abs(step) > TOLERANCE) & (count < MAX_STEPS)

    num_right, num_observed = right.sum(), observed.sum()
    no_maximum = (num_right == 0) | (num_right == num_observed)
    start = jnp.asarray(start, difficulty.dtype)
    if population is None:
        # a step of 0 ends the loop at once where no number of steps would end it, or where it began at ±inf
        start = jnp.where(jnp.isfinite(start), start, 0.0)
        first_step = jnp.where(no_maximum, 0.0, 1.0)
    else:
        first_step = 1.0
    theta, _, _ = jax.lax.while_loop(
        moving, newton, (start, jnp.asarray(first_step, difficulty.dtype), jnp.zeros((), jnp.int32))
    )
    standard_error = slope_and_information(theta)[1] ** -0.5
    if population is None:
        limit = jnp.where(num_observed == 0, jnp.nan, jnp.where(num_right == 0, -jnp.inf, jnp.inf))
        theta = jnp.where(no_maximum, limit, theta)
        standard_error = jnp.where(no_maximum, jnp.where(num_observed == 0, jnp.nan, jnp.inf), standard_error)
    return Ability(theta, standard_error)
