"""One process of `benchmarks.scaling`: times every program on one device and on all, in turns.

Its settings come as JSON, its results go to the file that they name.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

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
from irtjax.estimation.mml.normal_iteration import iterate
from irtjax.estimation.mml.normal_posteriors import NormalPosteriors, State
from irtjax.estimation.parameterization import specify, start_items
from irtjax.estimation.svi.guide import Normal, Start
from irtjax.estimation.svi.model import PRIORS, Size
from irtjax.estimation.svi.programs import PLACES, Settings, programs, steps_per_chunk
from irtjax.kernels.likelihood import log_likelihood_2pl
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, mesh_of, place
from irtjax.responses.matrix import counts
from irtjax.tasks import Task
from irtjax.training.data import to_device
from irtjax.training.devices import default_mesh
from irtjax.training.recipe import Recipe

Mesh = jax.sharding.Mesh | None
PROBE = 1024, 4096  # subjects and items of what is compiled to look at its collectives
SLOTS = 4  # on a device
RECIPE = Recipe("lenet", width=16, batch_size=64)


class Unit(NamedTuple):
    """What is timed.

    Attributes:
        run: does it, and waits for it.
        bytes: that it must read from memory at least, on all devices.
        products: operations of matrix products, likewise.
    """

    run: Callable[[], Any]
    bytes: float
    products: float


def responses_of(num_subjects: int, num_items: int) -> np.ndarray:
    """Random answers; how they come out makes no difference to the time of a pass."""
    return np.random.default_rng(0).integers(0, 2, (num_subjects, num_items), np.int8)


def copy(mesh: Mesh, values: np.ndarray) -> Unit:
    """The matrix read and written: what the memory can do at best."""
    there = place(values, mesh, BY_RESPONSE) if mesh else jnp.asarray(values)
    program = jax.jit(lambda y: 1 - y)
    return Unit(lambda: jax.block_until_ready(program(there)), 2 * values.size, 0)


def _likelihood(mesh: Mesh, values: np.ndarray) -> tuple[Callable, tuple]:
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
    return Unit(run, values.size, flops.of_products(program, *arguments))


def _mml(mesh: Mesh, values: np.ndarray) -> tuple[NormalPosteriors, State]:
    right, observed = counts(values, axis=0)
    specification = specify(["2pl"] * values.shape[1])
    engine = NormalPosteriors(mesh=mesh)
    state = engine.init(Problem(values, start_items(specification, right, observed), specification))
    while len(state.stages) > 1:
        state = engine.revise(state)
    return engine, state


def mml(mesh: Mesh, values: np.ndarray) -> Unit:
    """An iteration over all items of marginal maximum likelihood on a long test, 2PL."""
    engine, state = _mml(mesh, values)

    def run() -> None:
        nonlocal state
        state, _ = engine.step(state)

    return Unit(run, values.size, flops.of_products(*_iteration(engine, state)))


def _iteration(engine: NormalPosteriors, state: State) -> tuple[Callable, Any, Any, Any]:
    """As a program that can be looked at; of responses that do not lie on the device it would hold a copy."""
    leaves, structure = jax.tree.flatten(state.specification)

    def one(scaled: Any, damping: Any, leaves: Any) -> Any:
        specification = jax.tree.unflatten(structure, leaves)
        options = {"held": False, "asymptotes": state.asymptotes, "mesh": engine.mesh}
        return iterate(scaled, damping, state.chunks, state.weight, specification, True, **options)

    return jax.jit(one), state.scaled, state.damping, leaves


def _svi(mesh: Mesh, values: np.ndarray) -> tuple[Callable, Any, tuple]:
    shapes = dict(zip(("ability", "difficulty"), values.shape, strict=True))
    settings = Settings("1pl", PRIORS["vague"], *(Size(number, None, number) for number in values.shape), mesh)
    init, advance = programs(settings)

    def spread(leaf: np.ndarray, axis: Any) -> jax.Array:
        return place(leaf, mesh, axis) if mesh else jnp.asarray(leaf)

    sites = {
        site: Normal(*(spread(np.full(size, value, np.float32), PLACES[site]) for value in (0.0, 0.1)))
        for site, size in shapes.items()
    }
    start, there = Start(sites, None), spread(values, BY_RESPONSE)
    return advance, init(jax.random.key(0), start, there), (0.02, start, there, sites, sites)


def svi(mesh: Mesh, values: np.ndarray) -> Unit:
    """A chunk of steps of variational inference, 1PL; the numbers are those of a step."""
    advance, state, rest = _svi(mesh, values)

    def run() -> None:
        nonlocal state
        state, _ = jax.block_until_ready(advance(state, *rest))

    # two draws in a step
    return Unit(run, 2 * (steps_per_chunk(values.size) + 1) * values.size, 0)


def crowd(task: Task, mesh: Mesh, members: int) -> Unit:
    """Gradient steps of LeNet (width 16, batches of 64) on digits; slots on all devices together as members."""
    own = default_mesh(members, mesh)
    everyone = sample_members(members, len(task.train.labels), 0, RECIPE, CrowdDesign())
    job = crowd_job(task, everyone, RECIPE, to_device(task, own), own)
    runner, steps = Runner(job, -(-members // own.size)), 32
    products = useful_operations(job.trainer, job) * members * steps
    return Unit(lambda: runner.seconds(steps), 0, products)


FITS = {"copy": copy, "likelihood": likelihood, "mml": mml, "svi": svi}


def exchanged(mesh: jax.sharding.Mesh) -> dict[str, dict[str, int]]:
    """Collectives of an iteration of each program, on a small matrix of `PROBE`: they do not depend on the items."""
    values = responses_of(*PROBE)
    program, arguments = _likelihood(mesh, values)
    found = {"likelihood": collectives.of_program(program, *arguments)}
    found["mml"] = collectives.of_program(*_iteration(*_mml(mesh, values)))
    advance, state, rest = _svi(mesh, values)
    steps = steps_per_chunk(values.size) + 1
    of_chunk = collectives.of_program(advance, state, *rest)
    found["svi"] = {kind: amount // steps for kind, amount in of_chunk.items()}
    return {name: dict(counted) for name, counted in found.items()}


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of every program: `{program: {"1": …, "strong 2": …, "weak 2": …}}`, a list of repeats each."""
    several, me = jax.process_count() > 1, jax.process_index()
    sizes = [1, jax.process_count()] if several else settings["sizes"]
    whole = mesh_of(1, jax.device_count()) if jax.device_count() > 1 else None
    task = irtjax.tasks.load("digits")
    seconds: dict[str, Any] = {}
    work: dict[str, Any] = {}
    with processes.together(whole if several else None):
        for name in (*FITS, "crowd"):
            units = {}
            for size in sizes:
                for kind in ("strong", "weak") if size > 1 else ("",):
                    scale = size if kind == "weak" else 1
                    label = f"{kind} {size}".strip()
                    mesh = mesh_of(1, size) if size > 1 else None
                    if name == "crowd":
                        # processes have members of their own
                        members = SLOTS * max(sizes) * scale // (size if several else 1)
                        own = jax.make_mesh((size if not several else 1,), ("network",), devices=jax.local_devices()[: size if not several else 1])
                        unit = crowd(task, own, members)
                        unit = unit._replace(products=unit.products * (size if several else 1))
                    else:
                        if size == 1 and me > 0:
                            continue
                        with processes.alone() if size == 1 else processes.together(mesh if several else None):
                            unit = FITS[name](mesh, responses_of(settings["num_subjects"], scale * settings["num_items"]))
                    units[label] = unit
                    work[f"{name} {label}"] = {"bytes": unit.bytes, "products": unit.products}
            times: dict[str, list[float]] = {}
            for repeat in range(settings["repeats"] + 1):
                for label in [f"{kind} {size}".strip() for size in sizes for kind in (("strong", "weak") if size > 1 else ("",))]:
                    processes.meet()
                    began = time.perf_counter()
                    if label != "1" or me == 0:
                        units[label].run()
                    processes.meet()
                    if repeat:  # the first compiles
                        times.setdefault(label, []).append(time.perf_counter() - began)
            seconds[name] = times
            print(name, "done", file=sys.stderr, flush=True)
    return {
        "seconds": seconds,
        "work": work,
        "peak": {"products": flops.product_rate()},
        "exchanged": exchanged(whole) if whole is not None else {},
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
    }


def main() -> None:
    """Joins the others, measures and writes."""
    settings = json.loads(sys.argv[1])
    if settings["process"] is not None:
        jax.distributed.initialize(settings["coordinator"], settings["number"], settings["process"])
    found = measure(settings)
    if jax.process_index() == 0:
        with open(settings["output"], "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
