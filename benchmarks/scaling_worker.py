"""One process of `benchmarks.scaling`: times what it is asked to, a line of JSON for each line of JSON."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

import irtjax
from benchmarks import collectives, flops
from benchmarks.crowd import Runner, useful_operations
from irtjax import processes
from irtjax.crowd.members import CrowdDesign, sample_members
from irtjax.crowd.train import crowd_job
from irtjax.estimation.driver import Problem
from irtjax.estimation.normal.engine import NormalPosteriors, State
from irtjax.estimation.normal.iteration import iterate
from irtjax.estimation.normal.passes import ScoredPasses
from irtjax.estimation.specify import specify, start_items
from irtjax.kernels.likelihood import log_likelihood_2pl
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, mesh_of, place
from irtjax.responses.matrix import counts
from irtjax.svi.guide import Normal, Start
from irtjax.svi.model import PRIORS, Size
from irtjax.svi.programs import PLACES, Settings, programs, steps_per_chunk
from irtjax.tasks import Task
from irtjax.training.data import to_device
from irtjax.training.recipe import Recipe

Mesh = jax.sharding.Mesh | None
PROBE = 1024, 4096  # subjects and items of what is compiled to look at its collectives
STEPS, COPIES = 32, 50  # in a measurement
RECIPE = Recipe("lenet", width=16, batch_size=64)


class Unit(NamedTuple):
    """What is timed.

    Attributes:
        run: does it, and waits for it.
        steps: that it consists of.
        bytes: of responses that a step must read at least, on all devices.
        products: operations of matrix products in a step, likewise.
    """

    run: Callable[[], Any]
    steps: int
    bytes: float
    products: float


def responses_of(num_subjects: int, num_items: int) -> np.ndarray:
    """Random answers; how they come out makes no difference to the time of a pass."""
    return np.random.default_rng(0).integers(0, 2, (num_subjects, num_items), np.int8)


def copy(mesh: Mesh, values: np.ndarray) -> Unit:
    """The matrix read and written: what the memory can do at best."""
    there = place(values, mesh, BY_RESPONSE) if mesh else jnp.asarray(values)
    program = jax.jit(lambda y: 1 - y, donate_argnums=0)  # new memory would cost more than the copy

    def run() -> None:
        nonlocal there
        for _ in range(COPIES):
            there = program(there)
        jax.block_until_ready(there)

    return Unit(run, COPIES, 2 * values.size, 0)


def _likelihood(mesh: Mesh, values: np.ndarray) -> tuple[jax.stages.Wrapped, list[jax.Array]]:
    num_subjects, num_items = values.shape
    rng = np.random.default_rng(1)
    theta, slope, b = (rng.random(size, np.float32) for size in (num_subjects, num_items, num_items))
    arguments = [
        place(leaf, mesh, axis) if mesh else jnp.asarray(leaf)
        for leaf, axis in ((theta, BY_SUBJECT), (slope, BY_ITEM), (b, BY_ITEM), (values, BY_RESPONSE))
    ]
    return jax.jit(jax.value_and_grad(lambda *x: log_likelihood_2pl(*x, mesh), (0, 1, 2))), arguments


def likelihood(mesh: Mesh, values: np.ndarray) -> Unit:
    """The 2PL kernel: value and gradients."""
    program, arguments = _likelihood(mesh, values)
    run = lambda: jax.block_until_ready(program(*arguments))  # noqa: E731
    return Unit(run, 1, values.size, _products(mesh, program, *arguments))


def _mml(mesh: Mesh, values: np.ndarray) -> tuple[NormalPosteriors, State]:
    right, observed = counts(values, axis=0)
    specification = specify(["2pl"] * values.shape[1])
    engine = NormalPosteriors(mesh=mesh)
    state = engine.init(Problem(values, start_items(specification, right, observed), specification))
    while (revised := engine.revise(state)) is not None:
        state = revised
    return engine, state


def mml(mesh: Mesh, values: np.ndarray) -> Unit:
    """An iteration over all items of marginal maximum likelihood on a long test, 2PL."""
    engine, state = _mml(mesh, values)

    def run() -> None:
        nonlocal state
        state, _ = engine.step(state)

    # items given abilities, then abilities given items
    return Unit(run, 1, 2 * values.size, _products(mesh, *_iteration(engine, state)))


def _iteration(engine: NormalPosteriors, state: State) -> tuple[jax.stages.Wrapped, Any, Any, Any]:
    """As a program that can be looked at; of responses that do not lie on the device it would hold a copy."""
    leaves, structure = jax.tree.flatten(state.specification)

    def one(scaled: Any, damping: Any, leaves: Any) -> Any:
        specification = jax.tree.unflatten(structure, leaves)
        passes = ScoredPasses(state.chunks, state.asymptotes, engine.mesh)
        return iterate(scaled, damping, passes, state.weight, specification, True, held=False)

    return jax.jit(one), state.scaled, state.damping, leaves


def _svi(mesh: Mesh, values: np.ndarray) -> tuple[jax.stages.Wrapped, Any, tuple]:
    shapes = dict(zip(("ability", "difficulty"), values.shape, strict=True))
    subjects, items = (Size(number, None, number) for number in values.shape)
    settings = Settings("1pl", PRIORS["vague"], subjects, items, mesh)
    init, advance = programs(settings)

    def spread(leaf: np.ndarray, axis: Any) -> jax.Array:
        return place(leaf, mesh, axis) if mesh else jnp.asarray(leaf)

    sites = {
        site: Normal(*(spread(np.full(size, value, np.float32), PLACES[site]) for value in (0.0, 0.1)))
        for site, size in shapes.items()
    }
    start, there = Start(sites, None), spread(values, BY_RESPONSE)
    return cast(jax.stages.Wrapped, advance), init(jax.random.key(0), start, there), (0.02, start, there, sites, sites)


def svi(mesh: Mesh, values: np.ndarray) -> Unit:
    """Steps of variational inference, 1PL."""
    advance, state, rest = _svi(mesh, values)

    def run() -> None:
        nonlocal state
        state, _ = jax.block_until_ready(advance(state, *rest))

    steps = steps_per_chunk(values.size) + 1
    # each takes two draws
    return Unit(run, steps, 2 * values.size, _products(mesh, advance, state, *rest) / steps)


def crowd(task: Task, devices: Sequence[jax.Device], members: int) -> Unit:
    """Gradient steps of LeNet (width 16, batches of 64) on digits; so many members on these devices."""
    mesh = jax.make_mesh((len(devices),), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)
    everyone = sample_members(members, len(task.train.labels), 0, RECIPE, CrowdDesign())
    job = crowd_job(task, everyone, RECIPE, to_device(task, mesh), mesh)
    runner = Runner(job, members // len(devices))
    return Unit(lambda: runner.seconds(STEPS), STEPS, 0, members * useful_operations(job.trainer, job))


FITS = {"copy": copy, "likelihood": likelihood, "mml": mml, "svi": svi}


def _products(mesh: Mesh, program: Callable, *arguments: Any) -> float:
    """Of all devices."""
    del mesh
    return flops.of_products(program, *arguments)


def exchanged(mesh: jax.sharding.Mesh) -> dict[str, dict[str, int]]:
    """What a device receives in one step of each program, in bytes, on a small matrix of `PROBE`."""
    values = responses_of(*PROBE)
    program, arguments = _likelihood(mesh, values)
    found = {"likelihood": collectives.of_program(program, *arguments)}
    found["mml"] = collectives.of_program(*_iteration(*_mml(mesh, values)))
    advance, state, rest = _svi(mesh, values)
    steps = steps_per_chunk(values.size) + 1
    of_chunk = collectives.of_program(advance, state, *rest)
    found["svi"] = Counter({kind: amount // steps for kind, amount in of_chunk.items()})
    return {name: dict(counted) for name, counted in found.items()}


class Worker:
    """Makes what it is asked to time, once, and times it."""

    def __init__(self) -> None:
        self._task = irtjax.tasks.load("digits")
        self._units: dict[tuple[str, int, int], Unit] = {}

    def time(
        self, name: str, size: int, scale: int, num_subjects: int, num_items: int, members: int
    ) -> dict[str, float]:
        """Seconds of a step of a program on `size` devices, with `scale` times as much work as is given.

        If there are several processes, it is on one device of each, or on one of this process alone.
        """
        several = jax.process_count() > 1 and size > 1
        with processes.together(mesh_of(1, size) if several else None):
            unit = self._units.get((name, size, scale))
            first = unit is None
            if unit is None:
                self._units = {key: unit for key, unit in self._units.items() if key[0] == name}
                mesh = mesh_of(1, size) if size > 1 else None
                if name == "crowd":
                    # processes have members of their own
                    share = size if several else 1
                    unit = crowd(self._task, jax.local_devices()[: size // share], members * scale // share)
                    unit = unit._replace(products=unit.products * share)
                else:
                    unit = FITS[name](mesh, responses_of(num_subjects, scale * num_items))
                self._units[name, size, scale] = unit
            for _ in range(2 if first else 1):  # the first compiles
                processes.barrier()
                began = time.perf_counter()
                unit.run()
                processes.barrier()
                seconds = time.perf_counter() - began
        return {"seconds": seconds / unit.steps, "bytes": unit.bytes, "products": unit.products}

    def describe(self) -> dict[str, Any]:
        """The machine, and what the devices of the process exchange."""
        device = jax.devices()[0]
        alone = jax.process_count() == 1 and jax.device_count() > 1
        return {
            "device": device.device_kind,
            "platform": device.platform,
            "jax": jax.__version__,
            "product_rate": flops.product_rate(),
            "exchanged": exchanged(mesh_of(1, jax.device_count())) if alone else {},
        }


def main() -> None:
    """Joins the others, and answers."""
    settings = json.loads(sys.argv[1])
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    if settings["coordinator"]:
        jax.distributed.initialize(settings["coordinator"], settings["processes"], settings["process"])
    jax.devices()  # all processes have to say what they have before one of them can begin
    answers = os.fdopen(os.dup(1), "w")  # what else is printed goes elsewhere
    os.dup2(2, 1)
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(worker.time(**request) if request else worker.describe()), file=answers, flush=True)


if __name__ == "__main__":
    main()
