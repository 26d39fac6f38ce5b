"""Stochastic variational inference: the fit of a NumPyro model of responses, from responses to estimates."""

import functools
import math
import re
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.svi import SVIState

from irtjax.errors import InputError
from irtjax.estimation.result import Fit
from irtjax.estimation.svi.guide import Normal, Start, guide, item_moments, relative
from irtjax.estimation.svi.model import MODELS, PRIORS, PriorFunction, hyperparameters, response_model
from irtjax.estimation.svi.start import STARTS, starting_point
from irtjax.kernels.likelihood import log_likelihood_1pl, log_likelihood_2pl
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE, ITEMS, SUBJECTS, place
from irtjax.responses.matrix import ResponseMatrix, require_estimable

CHUNK = 25  # steps between looks at the movement
STEP_SIZES = (0.1, 0.02, 0.01)  # in posterior standard deviations
STILL_FALLING = 0.8  # a step size is left when the movement of a chunk is more than this part of the one before
AVERAGED_CHUNKS = 8  # at rest, that the result is the mean of
PLACES = {"ability": BY_SUBJECT, "difficulty": BY_ITEM, "intercept": BY_ITEM, "discrimination": BY_ITEM}


class AntitheticELBO(Trace_ELBO):
    """The ELBO of two draws that are mirror images: the guide's locations plus and minus the same noise.

    In the mean of the two all terms that are odd in the noise cancel, and with them the largest part of the noise of
    the gradients of locations.
    """

    def loss_with_mutable_state(self, rng_key, param_map, model, guide, *args, **kwargs):
        """Mean of the two losses; a loop, because a program with both would take twice as long to compile."""

        def loss(sign):
            mirrored = functools.partial(guide, sign=sign)
            return super(AntitheticELBO, self).loss_with_mutable_state(
                rng_key, param_map, model, mirrored, *args, **kwargs
            )["loss"]

        return {"loss": jax.lax.map(loss, jnp.array([1.0, -1.0])).mean(), "mutable_state": None}


class Settings(NamedTuple):
    """What the programs of a fit depend on."""

    model: str
    priors: PriorFunction
    batch_subjects: int | None
    batch_items: int | None
    mesh: jax.sharding.Mesh | None


def fit_svi(
    responses: ResponseMatrix,
    model: str = "1pl",
    *,
    priors: str | PriorFunction = "hierarchical",
    start: str | None = None,
    batch_subjects: int | None = None,
    batch_items: int | None = None,
    seed: int = 0,
    max_steps: int = 4000,
    mesh: jax.sharding.Mesh | None = None,
    on_chunk: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits the 1PL or 2PL by stochastic variational inference (see `response_model` and `guide`).

    Adam runs in chunks of 25 steps, in units of the posterior standard deviations at the start. When the mean of the
    guide's parameters over a chunk is no nearer to that of the chunk before than that was to the one before it, twice
    in a row, only noise is left, and the step size falls to the next of (0.1, 0.02, 0.01); when that happens at the
    last, the fit has converged, and the mean of these two chunks and six more is the result.

    The likelihood knows only θ - b (1PL) or a (θ - b) (2PL), so the scale is fixed afterwards: the mean ability of the
    subjects is 0 and, in the 2PL, their standard deviation 1.

    Args:
        responses: at least one observed response of each subject and item.
        model: "1pl" or "2pl".
        priors: "vague", "hierarchical", or a function of the model's name that returns `model.Priors`; it may draw
            hyperparameters of its own as NumPyro sites.
        start: of the guide's locations: "mml", from a fit by marginal maximum likelihood, or "proportions", from logits
            of percent correct. None for proportions in the 1PL, where that takes as few steps, and for MML in the 2PL.
        batch_subjects: subjects in a step, drawn at random; None for all.
        batch_items: items in a step; None for all.
        seed: of the random draws.
        max_steps: where a fit that has not converged is ended (`converged` is then False).
        mesh: devices to spread the fit over, with axes "subjects" and "items" whose sizes divide J and I.
        on_chunk: called with the number of steps made and the ELBO after each chunk.

    Returns:
        Posterior means and standard deviations; difficulties of the 2PL by `guide.item_moments`. A mean-field guide
        understates the latter where abilities and items are correlated in the posterior: most on short tests.

    Raises:
        InputError: an unknown model, priors or start, no steps, or a subject or an item without responses.
    """
    if model not in MODELS:
        raise InputError(f"estimator svi fits the {' or the '.join(MODELS)}, not {model!r}: use estimator mml")
    if isinstance(priors, str) and priors not in PRIORS:
        raise InputError(f"unknown priors {priors!r}, expected one of {', '.join(PRIORS)}")
    start = start or ("proportions" if model == "1pl" else "mml")
    if start not in STARTS:
        raise InputError(f"unknown start {start!r}, expected one of {', '.join(STARTS)}")
    if max_steps < 1:
        raise InputError(f"max_steps {max_steps}, expected at least one step")
    for name, batch, size in (
        ("batch_subjects", batch_subjects, responses.num_subjects),
        ("batch_items", batch_items, responses.num_items),
    ):
        if batch is not None and not 1 <= batch <= size:
            raise InputError(f"{name} {batch}, expected 1 to {size}")
    if mesh is not None and (
        batch_subjects
        or batch_items
        or responses.num_subjects % mesh.shape[SUBJECTS]
        or responses.num_items % mesh.shape[ITEMS]
    ):
        raise InputError(f"a mesh of {dict(mesh.shape)} needs multiples of subjects and items, and no batches")
    require_estimable(responses)
    began = time.perf_counter()
    settings = Settings(model, PRIORS.get(priors, priors), batch_subjects, batch_items, mesh)
    began_at = starting_point(responses, model, start, hyperparameters(settings.priors, model), mesh)
    values = place(jnp.asarray(responses.values), mesh, BY_RESPONSE)
    began_at = Start(
        {site: place(normal, mesh, PLACES.get(site, EVERYWHERE)) for site, normal in began_at.sites.items()},
        None if began_at.pivots is None else place(began_at.pivots, mesh, BY_ITEM),
    )

    init, advance = _programs(settings)
    state = init(jax.random.key(seed), began_at, values)
    step_sizes = iter(STEP_SIZES)
    step_size, converged, steps = next(step_sizes), False, 0
    trace, resting, moved, at_rest = [], [], math.inf, 0
    last = {  # NumPy arrays here and below: each operation on those of JAX would be a program to compile
        site: place(
            Normal(np.full(x.loc.shape, np.nan, np.float32), np.ones(x.scale.shape, np.float32)),
            mesh,
            PLACES.get(site, EVERYWHERE),
        )
        for site, x in began_at.sites.items()
    }
    while steps < max_steps and not converged:
        state, chunk = advance(state, step_size, began_at, values, last)
        steps += CHUNK
        trace.append(float(chunk.elbo))
        if on_chunk is not None:
            on_chunk(steps, trace[-1])
        movement = np.asarray(chunk.movement)
        at_rest = at_rest + 1 if movement > STILL_FALLING * moved else 0
        last, moved, resting = chunk.mean, movement, [*resting, chunk.mean][-2:]
        if at_rest == 2:
            step_size, at_rest, moved = next(step_sizes, None), 0, math.inf
            converged = step_size is None
    if converged:
        while len(resting) < AVERAGED_CHUNKS and steps < max_steps:
            state, chunk = advance(state, STEP_SIZES[-1], began_at, values, last)
            resting.append(chunk.mean)
            steps += CHUNK
            if on_chunk is not None:
                on_chunk(steps, trace[-1])
        last = jax.tree.map(lambda *leaves: sum(map(np.asarray, leaves)) / np.float32(len(leaves)), *resting)
        trace.append(float(chunk.elbo))
    posterior = {
        site: jax.tree.map(np.float64, relative(*jax.tree.map(np.asarray, (begun, last[site]))))
        for site, begun in began_at.sites.items()
        if site in PLACES
    }
    pivots = None if began_at.pivots is None else np.asarray(began_at.pivots, np.float64)
    return _result(responses, settings, posterior, pivots, priors, start, seed, steps, converged, trace, values, began)


class Chunk(NamedTuple):
    """What a chunk of steps comes to.

    Attributes:
        mean: of the guide's shift and stretch over the chunk, by site.
        movement: how far that mean is from the mean of the chunk before, see `_movement`.
        elbo: of the state after the chunk, in nats.
    """

    mean: dict[str, Normal]
    movement: jax.Array
    elbo: jax.Array


@functools.cache
def _programs(settings: Settings) -> tuple[Callable, Callable]:
    """Jitted `init` and `advance`; made once for each settings, so that a second fit compiles nothing."""
    bound = settings._asdict()
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=STEP_SIZES[0])
    svi = SVI(
        lambda start, responses, with_value: response_model(responses, with_value=with_value, **bound),
        lambda start, responses, with_value, sign=1.0: guide(start, responses, sign=sign, **bound),
        optimizer,
        AntitheticELBO(),
    )

    def means(state: SVIState, start: Start) -> dict[str, Normal]:
        params = svi.get_params(state)
        return {site: Normal(params[f"{site}_shift"], params[f"{site}_stretch"]) for site in start.sites}

    def advance(
        state: SVIState, step_size: float, start: Start, responses: jax.Array, last: dict[str, Normal]
    ) -> tuple[SVIState, Chunk]:
        """A chunk of steps.

        One step more is made and dropped again: its loss, of the random draws that the next step would take, is the
        ELBO of the state after the chunk. A program for the ELBO alone would take half as long again to compile.
        """
        count, (params, adam) = state.optim_state
        adam.hyperparams["learning_rate"] = jnp.asarray(step_size, jnp.float32)
        state = state._replace(optim_state=(count, (params, adam)))

        def step(carry, number):
            state, total = carry[0]
            new, loss = svi.update(state, start, responses, number == CHUNK)
            return ((new, jax.tree.map(jnp.add, total, means(new, start))), carry[0], loss), None

        begun = state, jax.tree.map(jnp.zeros_like, means(state, start))
        (_, (state, total), loss), _ = jax.lax.scan(step, (begun, begun, 0.0), jnp.arange(CHUNK + 1))
        mean = jax.tree.map(lambda x: x / CHUNK, total)
        return state, Chunk(mean, _movement(mean, last), -loss)

    def init(key: jax.Array, start: Start, responses: jax.Array) -> SVIState:
        return svi.init(key, start, responses, False)

    if settings.mesh is None:
        return jax.jit(init), jax.jit(advance, donate_argnums=0)

    def init_spread(key: jax.Array, start: Start, responses: jax.Array) -> SVIState:
        def placement(path, _):
            # the moments of Adam carry the names of their parameters too
            found = re.search(r"\['(\w+)_(?:shift|stretch)'\]", jax.tree_util.keystr(path))
            axes = EVERYWHERE if found is None else PLACES.get(found[1], EVERYWHERE)
            return NamedSharding(settings.mesh, axes)

        where = jax.tree_util.tree_map_with_path(placement, jax.eval_shape(init, key, start, responses))
        return jax.jit(init, out_shardings=where)(key, start, responses)

    return init_spread, jax.jit(advance, donate_argnums=0)


def _movement(mean, last) -> jax.Array:
    """Largest root mean square change of a site's locations, or of the logarithms of its scales."""
    changes = [
        jnp.sqrt(jnp.mean(difference**2))
        for site in mean
        for difference in (mean[site][0] - last[site][0], jnp.log(mean[site][1] / last[site][1]))
    ]
    return jnp.stack(changes).max()


_log_likelihood_1pl = jax.jit(log_likelihood_1pl, static_argnums=3)
_log_likelihood_2pl = jax.jit(log_likelihood_2pl, static_argnums=4)


def _result(responses, settings, posterior, pivots, priors, start, seed, steps, converged, trace, values, began) -> Fit:
    ability = posterior["ability"]
    num_items, origin = responses.num_items, ability.loc.mean()
    if settings.model == "1pl":
        difficulty = posterior["difficulty"]
        point = [np.asarray(x, np.float32) for x in (ability.loc, difficulty.loc)]
        log_likelihood = _log_likelihood_1pl(*point, values, settings.mesh)
        unit, slope, columns = 1.0, np.ones(num_items), {}
        num_parameters = responses.num_subjects + num_items - 1  # the origin is not one
    else:
        slopes, difficulty = item_moments(posterior["intercept"], posterior["discrimination"], pivots)
        point = [np.asarray(x, np.float32) for x in (ability.loc, slopes.loc, difficulty.loc)]
        log_likelihood = _log_likelihood_2pl(*point, values, settings.mesh)
        unit = math.sqrt((ability.loc - origin).var() + (ability.scale**2).mean())
        slope = unit * slopes.loc
        columns = {"discrimination": slope, "discrimination_se": unit * slopes.scale}
        num_parameters = responses.num_subjects + 2 * num_items - 2
    b = (difficulty.loc - origin) / unit
    return Fit(
        responses=responses,
        model=settings.model,
        estimator="svi",
        parameters=ItemParameters(
            slope=slope[:, None],
            intercept=-slope * b,
            lower=np.full(num_items, -np.inf),
            upper=np.full(num_items, np.inf),
        ),
        item_columns={"difficulty": b, "difficulty_se": difficulty.scale / unit, **columns},
        ability=(ability.loc - origin) / unit,
        ability_se=ability.scale / unit,
        log_likelihood=float(log_likelihood),
        num_parameters=num_parameters,
        iterations=steps,
        converged=converged,
        seconds=time.perf_counter() - began,
        details={
            "priors": priors if isinstance(priors, str) else getattr(priors, "__name__", "of the caller"),
            "start": start,
            "elbo": trace[-1],
            "elbo_trace": trace,
            "seed": seed,
        },
    )
