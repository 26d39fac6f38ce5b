"""The engine: chunks of steps of Adam, of a size that falls when only noise moves the parameters."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.svi import SVIState

from irtjax.estimation.driver import Info
from irtjax.kernels.sharding import EVERYWHERE, place
from irtjax.processes import fetch
from irtjax.svi.guide import Normal, Start
from irtjax.svi.programs import PLACES, Settings, programs

STEP_SIZES = (0.1, 0.02)  # in posterior standard deviations
DRIFTING = 0.7  # the step size falls once the drift is less, twice in a row
AVERAGED_CHUNKS = 8  # whose mean is the result


class Task(NamedTuple):
    """What is approximated, and where the guide begins.

    Attributes:
        values: responses (J, I) int8 on the devices, or `family_model.FamilyResponses`.
        start: where the guide begins, on the devices.
    """

    values: Any
    start: Start


class State(NamedTuple):
    """Where the approximation is.

    Attributes:
        task: what is approximated.
        svi: NumPyro's state; the next chunk takes its memory.
        phase: index of the step size; one beyond the last of them in the phase that only averages.
        at_rest: chunks in a row without a drift.
        means: of the guide's parameters over each of the last two chunks.
        averaged: the sum of those that the result is the mean of.
        number: of these.
        elbos: after each chunk, in nats.
    """

    task: Task
    svi: SVIState
    phase: int
    at_rest: int
    means: tuple[dict[str, Normal], dict[str, Normal]]
    averaged: dict[str, Normal]
    number: int
    elbos: tuple[float, ...]


class Approximation(NamedTuple):
    """The parameters of the guide, by site, and the ELBO after each chunk of the search, then the mean of the last."""

    mean: dict[str, Normal]
    elbos: list[float]


@dataclasses.dataclass(frozen=True)
class Variational:
    """Stochastic variational inference, see `svi.fit.fit_svi`.

    Attributes:
        settings: of the compiled programs.
        seed: of the random draws.
    """

    settings: Settings
    seed: int

    def init(self, task: Task) -> State:
        """The guide as it starts."""
        init, _ = programs(self.settings)
        mesh = self.settings.mesh
        nowhere = {  # NumPy arrays: each operation on those of JAX would be a program to compile
            site: place(
                Normal(np.full(x.loc.shape, np.nan, np.float32), np.ones(x.scale.shape, np.float32)),
                mesh,
                PLACES.get(site, EVERYWHERE),
            )
            for site, x in task.start.sites.items()
        }
        begun = init(jax.random.key(self.seed), task.start, task.values)
        return State(task, begun, 0, 0, (nowhere, nowhere), nowhere, 0, ())

    def step(self, state: State) -> tuple[State, Info]:
        """A chunk of steps; the phase is at rest when only noise is left, or enough chunks are averaged."""
        _, advance = programs(self.settings)
        step_size = STEP_SIZES[min(state.phase, len(STEP_SIZES) - 1)]
        before_last, last = state.means
        svi, chunk = advance(state.svi, step_size, state.task.start, state.task.values, last, before_last)
        elbo, movement = float(chunk.elbo), float(chunk.movement)
        averaging = state.phase == len(STEP_SIZES)
        at_rest = state.at_rest + 1 if averaging or float(chunk.drift) < DRIFTING else 0
        state = state._replace(svi=svi, elbos=(*state.elbos, elbo), means=(last, chunk.mean), at_rest=at_rest)
        if averaging:
            state = state._replace(averaged=_sum(state.averaged, chunk.mean), number=state.number + 1)
        over = state.number == AVERAGED_CHUNKS if averaging else at_rest == 2
        change = math.inf if math.isnan(movement) else movement  # the first chunk has none before it
        return state, Info(elbo, change, math.inf if over else 0.0)

    def revise(self, state: State) -> State | None:
        """The next step size, and after the last the phase that averages."""
        if state.phase == len(STEP_SIZES):
            return None
        state = state._replace(phase=state.phase + 1, at_rest=0)
        if state.phase < len(STEP_SIZES):
            return state
        return state._replace(averaged=_sum(*state.means), number=2)  # these are at rest already

    def finish(self, state: State) -> Approximation:
        """The mean over the averaged chunks, or the last chunk of a search that did not end."""
        if state.phase < len(STEP_SIZES):
            return Approximation(fetch(state.means[-1]), list(state.elbos))
        mean = jax.tree.map(lambda leaf: leaf / np.float32(state.number), fetch(state.averaged))
        averaged = state.elbos[-state.number :]
        return Approximation(mean, [*state.elbos[: -len(averaged)], sum(averaged) / len(averaged)])


@jax.jit
def _sum(one: dict[str, Normal], other: dict[str, Normal]) -> dict[str, Normal]:
    return jax.tree.map(jnp.add, one, other)
