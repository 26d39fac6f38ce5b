"""Stochastic variational inference: NumPyro models, hand-written mean-field guides, and the fit."""

import functools
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import SVI, Trace_ELBO

from irtjax.errors import InputError
from irtjax.inference.result import Fit
from irtjax.likelihood import log_likelihood_1pl
from irtjax.models import ItemParameters
from irtjax.responses import ResponseMatrix, counts, require_estimable

PRIORS = ("vague", "hierarchical")
SMALLEST_GAIN = 2e-5  # of the ELBO in a chunk: on millions of responses less is far below a standard error
AVERAGED_CHUNKS = 4  # after convergence, that the result is the mean of
CHUNK = 50  # steps between looks at the ELBO
# In posterior standard deviations; each is left when it improves the ELBO no more.
STEP_SIZES = (0.1, 0.02, 0.004)


class Normal(NamedTuple):
    """Locations and scales of independent normal distributions."""

    loc: jax.Array
    scale: jax.Array


Start = dict[str, Normal]


def model(start: Start, responses: jax.Array, priors: str) -> None:
    """The 1PL as a NumPyro model of responses (J, I): p_ji = σ(θ_j - b_i).

    vague:         θ_j ~ N(0, 1),         b_i ~ N(0, 10³)
    hierarchical:  θ_j ~ N(m_t, 1/u_t),   b_i ~ N(m_b, 1/u_b),   m ~ N(0, 10⁶),   u ~ Gamma(1, 1)

    Normal distributions are written with their variance (Lalor, Wu and Yu 2019, section 2).
    """
    del start
    if priors == "hierarchical":
        ability, difficulty = _population("ability"), _population("difficulty")
    else:
        ability, difficulty = dist.Normal(0.0, 1.0), dist.Normal(0.0, math.sqrt(1e3))
    num_subjects, num_items = responses.shape
    with numpyro.plate("subjects", num_subjects):
        theta = numpyro.sample("ability", ability)
    with numpyro.plate("items", num_items):
        b = numpyro.sample("difficulty", difficulty)
    numpyro.factor("responses", log_likelihood_1pl(theta, b, responses))


def _population(site: str) -> dist.Normal:
    mean = numpyro.sample(f"{site}_mean", dist.Normal(0.0, math.sqrt(1e6)))
    precision = numpyro.sample(f"{site}_precision", dist.Gamma(1.0, 1.0))
    return dist.Normal(mean, precision**-0.5)


def guide(start: Start, responses: jax.Array, priors: str) -> None:
    """Mean-field normal guide (precisions log-normal), its parameters relative to `start`.

    Each location is `start.loc + start.scale * shift`, each scale `start.scale * stretch`, and the parameters
    are shift and stretch: in units of the posterior's own width one step size suits an ability known to 0.05
    and an extreme item known to 2.
    """
    del responses
    if priors == "hierarchical":
        for site in ("ability", "difficulty"):
            numpyro.sample(f"{site}_mean", dist.Normal(*_posterior(f"{site}_mean", start)))
            numpyro.sample(f"{site}_precision", dist.LogNormal(*_posterior(f"{site}_precision", start)))
    for site, plate in (("ability", "subjects"), ("difficulty", "items")):
        with numpyro.plate(plate, start[site].loc.shape[0]):
            numpyro.sample(site, dist.Normal(*_posterior(site, start)))


def _posterior(site: str, start: Start) -> Normal:
    shift = numpyro.param(f"{site}_shift", jnp.zeros_like(start[site].loc))
    stretch = numpyro.param(f"{site}_stretch", jnp.ones_like(start[site].scale), constraint=dist.constraints.positive)
    return _relative(start[site], shift, stretch)


def _relative(start: Normal, shift: jax.Array, stretch: jax.Array) -> Normal:
    return Normal(start.loc + start.scale * shift, start.scale * stretch)


def starting_point(values: np.ndarray, priors: str) -> Start:
    """Logits of percent correct, expanded by PROX (Wright and Stone 1979, chapter 2), as the guide's start.

    The logit of an item's percent correct understates its difficulty the more, the wider abilities spread, and
    the other way round. PROX expands item logits by sqrt((1 + V/2.89)/(1 - UV/8.35)) and subject logits by
    sqrt((1 + U/2.89)/(1 - UV/8.35)), where U and V are the variances of item and subject logits. Scales are
    1/sqrt(information) there, prior included.
    """
    right, observed = counts(values, axis=1)
    theta = np.log((right + 0.5) / (observed - right + 0.5))
    theta -= theta.mean()
    right, observed = counts(values, axis=0)
    b = np.log((observed - right + 0.5) / (right + 0.5))
    u, v = b.var() / 2.89, theta.var() / 2.89
    shrink = max(1 - u * v, 0.1)  # past this the approximation has broken down: expand no further
    theta, b = theta * np.sqrt((1 + u) / shrink), b * np.sqrt((1 + v) / shrink)

    ability_variance, difficulty_variance = theta.var() + 1e-2, b.var() + 1e-2
    by_subject, by_item = _information_sums(theta, b, values)
    prior_variances = (1.0, 1e3) if priors == "vague" else (ability_variance, difficulty_variance)
    start = {
        "ability": (theta, (by_subject + 1 / prior_variances[0]) ** -0.5),
        "difficulty": (b, (by_item + 1 / prior_variances[1]) ** -0.5),
    }
    for site, x, variance in (("ability", theta, ability_variance), ("difficulty", b, difficulty_variance)):
        start[f"{site}_mean"] = (x.mean(), math.sqrt(variance / x.size))
        start[f"{site}_precision"] = (-math.log(variance), math.sqrt(2 / x.size))
    return {site: Normal(*(jnp.asarray(x, jnp.float32) for x in normal)) for site, normal in start.items()}


def _information_sums(theta: np.ndarray, b: np.ndarray, values: np.ndarray, block: int = 4096):
    """Fisher information of observed responses, summed over items (J,) and over subjects (I,)."""
    by_subject, by_item = np.zeros(theta.size), np.empty(b.size)
    for at in range(0, b.size, block):
        p = 1 / (1 + np.exp(-(theta[:, None] - b[None, at : at + block])))
        information = p * (1 - p) * (values[:, at : at + block] >= 0)
        by_subject += information.sum(1)
        by_item[at : at + block] = information.sum(0)
    return by_subject, by_item


@functools.cache
def _programs(priors: str):
    """Jitted `init` and `advance`; made once per kind of priors, so that a second fit compiles nothing."""
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=STEP_SIZES[0])
    svi = SVI(
        functools.partial(model, priors=priors),
        functools.partial(guide, priors=priors),
        optimizer,
        Trace_ELBO(),
    )

    def advance(state, step_size, start, responses):
        """CHUNK steps at `step_size`: the new state, the loss of each step, the posteriors averaged over them."""
        count, (params, adam) = state.optim_state
        adam = adam._replace(hyperparams=adam.hyperparams | {"learning_rate": step_size})
        state = state._replace(optim_state=(count, (params, adam)))

        def step(carry, _):
            state, total = carry
            state, loss = svi.update(state, start, responses)
            return (state, jax.tree.map(jnp.add, total, svi.get_params(state))), loss

        nothing = jax.tree.map(jnp.zeros_like, svi.get_params(state))
        (state, total), losses = jax.lax.scan(step, (state, nothing), length=CHUNK)
        posteriors = {
            site: _relative(start[site], total[f"{site}_shift"] / CHUNK, total[f"{site}_stretch"] / CHUNK)
            for site in ("ability", "difficulty")
        }
        return state, losses, posteriors

    return jax.jit(svi.init), jax.jit(advance, donate_argnums=0)


def fit_1pl(
    responses: ResponseMatrix,
    *,
    priors: str = "hierarchical",
    seed: int = 0,
    max_steps: int = 4000,
    on_chunk: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits the 1PL by stochastic variational inference (see `model` and `guide`).

    Adam runs in chunks of 50 steps. When a chunk's mean ELBO is no better than that of the chunk before by
    more than the standard error of the difference (or a share of 2e-5), the step size falls to the next of (0.1,
    0.02, 0.004); when that happens at the last one, the fit has converged, and the mean of 200 more steps is the
    result. The likelihood knows only θ - b, so the origin is fixed afterwards: the mean ability of the subjects is 0.

    Args:
        responses: at least one observed response of each subject and item.
        priors: "vague" or "hierarchical".
        seed: of the random draws.
        max_steps: where a fit that has not converged is ended (`converged` is then False).
        on_chunk: called with the number of steps made and the mean ELBO after each chunk.

    Returns:
        Posterior means and standard deviations in logits. A mean-field guide understates the latter where
        abilities and difficulties are correlated in the posterior: most on short tests.

    Raises:
        InputError: unknown priors, no steps, or a subject or an item without responses.
    """
    if priors not in PRIORS:
        raise InputError(f"unknown priors {priors!r}, expected one of {', '.join(PRIORS)}")
    if max_steps < 1:
        raise InputError(f"max_steps {max_steps}, expected at least one step")
    require_estimable(responses)
    began = time.perf_counter()
    start = starting_point(responses.values, priors)
    values = jnp.asarray(responses.values)
    init, advance = _programs(priors)
    state = init(jax.random.key(seed), start, values)

    step_sizes = iter(STEP_SIZES)
    step_size, converged, steps = next(step_sizes), False, 0
    trace, last = [], None
    while steps < max_steps and not converged:
        state, losses, posteriors = advance(state, step_size, start, values)
        steps += CHUNK
        elbo = -np.asarray(losses, np.float64)
        chunk = elbo.mean(), elbo.var() / CHUNK
        trace.append(float(chunk[0]))
        if on_chunk is not None:
            on_chunk(steps, trace[-1])
        if last is not None and chunk[0] - last[0] < max(math.sqrt(chunk[1] + last[1]), SMALLEST_GAIN * abs(chunk[0])):
            next_size = next(step_sizes, None)
            converged = next_size is None
            step_size = step_size if converged else next_size
            last = None
        else:
            last = chunk
    if converged:
        # each step leaves the optimum by its own noise: the mean over many is far nearer
        averaged = []
        for _ in range(AVERAGED_CHUNKS):
            state, losses, posteriors = advance(state, step_size, start, values)
            averaged.append(posteriors)
        posteriors = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *averaged)
        steps += CHUNK * AVERAGED_CHUNKS
        trace.append(float(-np.mean(losses)))

    ability, difficulty = (
        Normal(*(np.asarray(x, np.float64) for x in posteriors[site])) for site in ("ability", "difficulty")
    )
    log_likelihood = float(log_likelihood_1pl(posteriors["ability"].loc, posteriors["difficulty"].loc, values))
    origin = ability.loc.mean()
    num_items = responses.num_items
    b = difficulty.loc - origin
    return Fit(
        responses=responses,
        model="1pl",
        estimator="svi",
        parameters=ItemParameters(
            slope=np.ones((num_items, 1)),
            intercept=-b,
            lower=np.full(num_items, -np.inf),
            upper=np.full(num_items, np.inf),
        ),
        item_columns={"difficulty": b, "difficulty_se": difficulty.scale},
        ability=ability.loc - origin,
        ability_se=ability.scale,
        log_likelihood=log_likelihood,
        num_parameters=responses.num_subjects + num_items - 1,  # the origin is not one
        iterations=steps,
        converged=converged,
        seconds=time.perf_counter() - began,
        details={"priors": priors, "elbo": trace[-1], "elbo_trace": trace, "seed": seed},
    )
