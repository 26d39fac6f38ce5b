"""The compiled programs of variational inference: the first state, and chunks of steps of Adam."""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.svi import SVIState

from irtjax.estimation.svi.guide import Normal, Start, guide
from irtjax.estimation.svi.model import PriorFunction, response_model
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, EVERYWHERE

STEPS = 25  # in a chunk, after which the fit looks at the movement
MANY_RESPONSES = 2**22
PLACES = {"ability": BY_SUBJECT, "difficulty": BY_ITEM, "intercept": BY_ITEM, "discrimination": BY_ITEM}


class AntitheticELBO(Trace_ELBO):
    """The ELBO of two draws that are mirror images: the guide's locations plus and minus the same noise.

    In the mean of the two all terms that are odd in the noise cancel, and with them the largest part of the noise of
    the gradients of locations.
    """

    def loss_with_mutable_state(
        self,
        rng_key: jax.Array,
        param_map: dict,
        model: Callable,
        guide: Callable,
        start: Start,
        responses: jax.Array,
        *args: Any,
    ) -> dict:
        """Mean of the two losses.

        A loop over them compiles in half the time. With many responses both are written out all the same: XLA then
        works on the two at once.
        """

        def loss(sign: jax.Array | float) -> jax.Array:
            mirrored = functools.partial(guide, sign=sign)
            inner = super(AntitheticELBO, self).loss_with_mutable_state
            return inner(rng_key, param_map, model, mirrored, start, responses, *args)["loss"]

        if responses.size < MANY_RESPONSES:
            mean = jax.lax.map(loss, jnp.array([1.0, -1.0])).mean()
        else:
            mean = 0.5 * (loss(1.0) + loss(-1.0))
        return {"loss": mean, "mutable_state": None}


class Settings(NamedTuple):
    """What the programs of a fit depend on."""

    model: str
    priors: PriorFunction
    batch_subjects: int | None
    batch_items: int | None
    mesh: jax.sharding.Mesh | None


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
def programs(settings: Settings) -> tuple[Callable, Callable]:
    """Jitted `init` and `advance`; made once for each settings, so that a second fit compiles nothing."""
    bound = settings._asdict()
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=0.0)  # set by `advance`
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
        state: SVIState, step_size: float | jax.Array, start: Start, responses: jax.Array, last: dict[str, Normal]
    ) -> tuple[SVIState, Chunk]:
        """A chunk of steps.

        One step more is made and dropped again: its loss, of the random draws that the next step would take, is the
        ELBO of the state after the chunk. A program for the ELBO alone would take half as long again to compile.
        """
        count, (params, adam) = state.optim_state
        adam.hyperparams["learning_rate"] = jnp.asarray(step_size, jnp.float32)
        state = state._replace(optim_state=(count, (params, adam)))

        def step(carry: tuple, number: jax.Array) -> tuple[tuple, None]:
            state, total = carry[0]
            new, loss = svi.update(state, start, responses, number == STEPS)
            return ((new, jax.tree.map(jnp.add, total, means(new, start))), carry[0], loss), None

        begun = state, jax.tree.map(jnp.zeros_like, means(state, start))
        (_, (state, total), loss), _ = jax.lax.scan(step, (begun, begun, 0.0), jnp.arange(STEPS + 1))
        mean = jax.tree.map(lambda x: x / STEPS, total)
        return state, Chunk(mean, _movement(mean, last), jnp.negative(loss))

    def init(key: jax.Array, start: Start, responses: jax.Array) -> SVIState:
        return svi.init(key, start, responses, False)

    mesh = settings.mesh
    if mesh is None:
        return jax.jit(init), jax.jit(advance, donate_argnums=0)

    def init_spread(key: jax.Array, start: Start, responses: jax.Array) -> SVIState:
        def placement(path: tuple, _: Any) -> NamedSharding:
            # the moments of Adam carry the names of their parameters too
            found = re.search(r"\['(\w+)_(?:shift|stretch)'\]", jax.tree_util.keystr(path))
            axes = EVERYWHERE if found is None else PLACES.get(found[1], EVERYWHERE)
            return NamedSharding(mesh, axes)

        where = jax.tree_util.tree_map_with_path(placement, jax.eval_shape(init, key, start, responses))
        return jax.jit(init, out_shardings=where)(key, start, responses)

    return init_spread, jax.jit(advance, donate_argnums=0)


def _movement(mean: dict[str, Normal], last: dict[str, Normal]) -> jax.Array:
    """Largest root mean square change of a site's locations, or of the logarithms of its scales."""
    changes = [
        jnp.sqrt(jnp.mean(difference**2))
        for site in mean
        for difference in (mean[site][0] - last[site][0], jnp.log(mean[site][1] / last[site][1]))
    ]
    return jnp.stack(changes).max()
