"""The compiled programs of variational inference: the first state, and chunks of steps of Adam."""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from numpyro.handlers import replay, seed
from numpyro.infer import ELBO, SVI
from numpyro.infer.svi import SVIState
from numpyro.infer.util import log_density

from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, EVERYWHERE, place
from irtjax.svi import family_model
from irtjax.svi.guide import Normal, Start, guide
from irtjax.svi.model import Size, response_model

FEW_RESPONSES, MANY_RESPONSES = 2**12, 2**22
WORKED_ON, FEWEST_DRAWS = 2**22, 2  # responses in all draws of a look at the ELBO; each a pair of mirror images
MEMORY = 0.99  # of squared gradients; Adam's usual 0.999 remembers those of the start, and creeps from there
PARTS = "shift", "stretch"  # of the parameters of a site
PLACES = {
    "ability": BY_SUBJECT,
    "difficulty": BY_ITEM,
    "intercept": BY_ITEM,
    "discrimination": BY_ITEM,
    "others": BY_ITEM,
}


def steps_per_chunk(num_responses: int) -> int:
    """Steps after which the fit looks at the movement.

    Few responses leave more to the priors, in directions that are slow, and their steps cost next to nothing.
    """
    return 10 if num_responses >= MANY_RESPONSES else 25 if num_responses >= FEW_RESPONSES else 100


def draws_per_look(num_responses: int) -> int:
    """Draws that `advance` with a step size of 0 estimates the ELBO from."""
    return min(max(WORKED_ON // num_responses, FEWEST_DRAWS), steps_per_chunk(num_responses) + 1)


class AntitheticELBO(ELBO):
    """The ELBO of two draws that are mirror images: the guide's locations plus and minus the same noise.

    In the mean of the two all terms that are odd in the noise cancel, and with them the largest part of the noise of
    the gradients of locations.

    Terms are added in the order of the sites. NumPyro's `Trace_ELBO` goes through a set of their names, whose order is
    another in each process: programs differed, so that none was found in a cache of compiled programs, results differed
    by rounding, and processes that work on one fit had programs of their own.
    """

    def __init__(self, in_turn: bool) -> None:
        """One draw after the other, `in_turn`, or both at once."""
        super().__init__()
        self.in_turn = in_turn

    def loss_with_mutable_state(
        self,
        rng_key: jax.Array,
        param_map: dict,
        model: Callable,
        guide: Callable,
        start: Start,
        responses: Any,
        *args: Any,
    ) -> dict:
        """Mean of the two losses.

        A loop over them compiles in half the time. With many responses both are written out all the same: XLA then
        works on the two at once.
        """

        def loss(sign: jax.Array | float) -> jax.Array:
            of_model, of_guide = jax.random.split(rng_key)
            mirrored = seed(functools.partial(guide, sign=sign), of_guide)
            log_q, drawn = log_density(mirrored, (start, responses, *args), {}, param_map)
            log_p, _ = log_density(replay(seed(model, of_model), drawn), (start, responses, *args), {}, param_map)
            return log_q - log_p

        if self.in_turn:
            return {"loss": jax.lax.map(loss, jnp.array([1.0, -1.0])).mean(), "mutable_state": None}
        return {"loss": 0.5 * (loss(1.0) + loss(-1.0)), "mutable_state": None}


class Settings(NamedTuple):
    """What the programs of a fit depend on.

    Attributes:
        model: by name, or `family_model.ModelOfItems` of other responses.
        priors: of the model.
        subjects, items: how many there are, and how many a step takes of a matrix.
        mesh: of devices.
        num_answers: where the responses are single answers.
    """

    model: Any
    priors: Callable[[Any], Any]
    subjects: Size
    items: Size
    mesh: jax.sharding.Mesh | None = None
    num_answers: int | None = None

    @property
    def num_responses(self) -> int:
        """J I of a matrix, whose missing responses are work too, or N single answers."""
        return self.subjects.number * self.items.number if self.num_answers is None else self.num_answers


class Chunk(NamedTuple):
    """What a chunk of steps comes to.

    Attributes:
        mean: of the guide's shift and stretch over the chunk, by site.
        movement: how far that is from the mean of the chunk before: the largest root mean square of a site.
        drift: the cosine of the angle between this movement and the one before, see `_drift`.
        elbo: in nats: of the state after the chunk; on very few responses the mean of the states in it.
        look: with a step size of 0, estimates of the ELBO; each of two draws that are mirror images.
    """

    mean: dict[str, Normal]
    movement: jax.Array
    drift: jax.Array
    elbo: jax.Array
    look: jax.Array


@functools.lru_cache(maxsize=16)
def programs(settings: Settings) -> tuple[Callable, Callable]:
    """Jitted `init` and `advance`; made once for each settings, so that a second fit compiles nothing."""
    bound = settings._asdict()
    del bound["num_answers"]
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=0.0, b2=MEMORY)  # set by `advance`
    scored = isinstance(settings.model, str)
    of_responses, of_guide = (response_model, guide) if scored else (family_model.response_model, family_model.guide)
    svi = SVI(
        lambda start, responses, with_value: of_responses(
            responses, directions=start.directions, with_value=with_value, **bound
        ),
        lambda start, responses, with_value, sign=1.0: of_guide(start, responses, sign=sign, **bound),
        optimizer,
        AntitheticELBO(settings.num_responses < MANY_RESPONSES),
    )

    def means(state: SVIState, start: Start) -> dict[str, Normal]:
        params = svi.get_params(state)
        return {site: Normal(*(params[f"{site}_{part}"] for part in PARTS)) for site in start.sites}

    def advance(
        state: SVIState,
        step_size: float | jax.Array,
        start: Start,
        responses: Any,
        last: dict[str, Normal],
        before_last: dict[str, Normal],
    ) -> tuple[SVIState, Chunk]:
        """A chunk of steps, after chunks of given means.

        One step more is made and dropped again: its loss, of the random draws that the next step would take, is the
        ELBO of the state after the chunk. A program for the ELBO alone would take half as long again to compile. On
        very few responses, where that is nothing, the ELBO is the mean over all steps of the chunk.

        With a step size of 0 nothing moves, and it is a look at the ELBO: a few steps, each with its value.
        """
        every = settings.num_responses < FEW_RESPONSES
        steps, draws = steps_per_chunk(settings.num_responses), draws_per_look(settings.num_responses)
        look = jnp.asarray(step_size) == 0
        count, (params, adam) = state.optim_state
        adam.hyperparams["learning_rate"] = jnp.asarray(step_size, jnp.float32)
        state = state._replace(optim_state=(count, (params, adam)))

        def step(number: jax.Array, carry: tuple) -> tuple:
            (state, total), _, losses = carry
            new, loss = svi.update(state, start, responses, every | look | (number == steps))
            return (new, jax.tree.map(jnp.add, total, means(new, start))), carry[0], losses.at[number].set(loss)

        begun = state, jax.tree.map(jnp.zeros_like, means(state, start))
        number = jnp.where(look, draws, steps + 1)
        _, (state, total), losses = jax.lax.fori_loop(0, number, step, (begun, begun, jnp.zeros(steps + 1)))
        mean = jax.tree.map(lambda x: x / steps, total)
        movement, before = _movement(mean, last), _movement(last, before_last)
        size = jnp.stack([jnp.sqrt(jnp.mean(part**2)) for part in jax.tree.leaves(movement)]).max()
        elbo = -losses.mean() if every else -losses[-1]
        return state, Chunk(mean, size, _drift(movement, before), elbo, -losses[:draws])

    def init(key: jax.Array, start: Start, responses: Any) -> SVIState:
        return svi.init(key, start, responses, False)

    mesh = settings.mesh
    if mesh is None:
        return jax.jit(init), jax.jit(advance, donate_argnums=0)

    def init_spread(key: jax.Array, start: Start, responses: Any) -> SVIState:
        def placement(path: tuple, _: Any) -> NamedSharding:
            # the moments of Adam carry the names of their parameters too
            found = re.search(r"\['(\w+)_(?:shift|stretch)'\]", jax.tree_util.keystr(path))
            axes = EVERYWHERE if found is None else PLACES.get(found[1], EVERYWHERE)
            return NamedSharding(mesh, axes)

        where = jax.tree_util.tree_map_with_path(placement, jax.eval_shape(init, key, start, responses))
        return jax.jit(init, out_shardings=where)(key, start, responses)

    return init_spread, jax.jit(advance, donate_argnums=0)


def moved(state: SVIState, changes: dict[str, Normal], mesh: jax.sharding.Mesh | None) -> SVIState:
    """A state whose guide has other parameters, shift and stretch of each site."""
    count, (params, adam) = state.optim_state
    changed = {}
    for site, change in changes.items():
        parts = np.asarray(change.loc, np.float32), np.log(np.asarray(change.scale, np.float32))
        for part, values in zip(PARTS, parts, strict=True):  # Adam moves the logarithm of a stretch
            changed[f"{site}_{part}"] = place(jnp.asarray(values), mesh, PLACES.get(site, EVERYWHERE))
    return state._replace(optim_state=(count, ({**params, **changed}, adam)))


def _movement(mean: dict[str, Normal], last: dict[str, Normal]) -> dict[str, Normal]:
    """From one mean to another, in shift and in the logarithm of stretch."""
    return {site: Normal(one.loc - last[site].loc, jnp.log(one.scale / last[site].scale)) for site, one in mean.items()}


def _drift(movement: dict[str, Normal], before: dict[str, Normal]) -> jax.Array:
    """The largest cosine of the angle between two movements in a row: of each site of items or subjects, and the rest.

    Towards 1 where parameters drift. In noise it is below 0: means of chunks of a process that is at rest turn back,
    as each movement begins where chance had led the last one (Pflug 1983 tells rest from drift by this sign).
    """
    cosines = []
    for sites in [[site] for site in movement if site in PLACES] + [[site for site in movement if site not in PLACES]]:
        one, other = ([part[site] for site in sites] for part in (movement, before))
        both, own, others = (_product(*pair) for pair in ((one, other), (one, one), (other, other)))
        cosines.append(jnp.where(both == 0, 0.0, both / jnp.sqrt(own * others)))
    return jnp.stack(cosines).max()


def _product(one: list[Normal], other: list[Normal]) -> jax.Array:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return sum(((x * y).sum() for x, y in pairs), jnp.zeros(()))
