"""The loop that every engine runs in, and what it asks of them."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulation import simulate

from irtjax.estimation.driver import Engine, Info, Problem, run
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.normal.engine import NormalPosteriors
from irtjax.estimation.normal.family_engine import FamilyPosteriors
from irtjax.estimation.priors import NormalPrior, Priors
from irtjax.estimation.quadrature.engine import PATIENCE, QuadratureEngine
from irtjax.estimation.specify import specify, start_items
from irtjax.estimation.specify_families import plan_families
from irtjax.fits.status import Status
from irtjax.integration.rules import SharedNodes
from irtjax.responses.from_arrays import of_counts
from irtjax.responses.matrix import counts
from irtjax.svi.engine import Task, Variational
from irtjax.svi.model import PRIORS, Size, hyperparameters
from irtjax.svi.programs import Settings
from irtjax.svi.start import starting_point

SHAPE = 150, 80  # of the tests of variational inference: fits of one shape share compiled programs

SIZES = [Size(number, None, number) for number in SHAPE]


def of_mml(model="2pl"):
    responses, _, _ = simulate(*SHAPE, missing=0.1)
    specification = specify((model,) * SHAPE[1], priors=Priors(slope=NormalPrior(1.0, 1.0)))
    return Problem(responses.values, start_items(specification, *counts(responses.values, axis=0)), specification)


def of_counts_of_successes():
    responses, _, _ = simulate(*SHAPE, missing=0.1)
    trials = np.ones(SHAPE, int)
    given = of_counts(np.where(responses.values < 0, np.nan, responses.values), trials, *ids(SHAPE))
    plan = plan_families(given, ("binomial",) * SHAPE[1], 1, "auto")
    return Problem(plan.responses.values, plan.items, plan.specification, plan.model, plan.responses.trials)


def ids(shape):
    return [f"s{j}" for j in range(shape[0])], [f"i{i}" for i in range(shape[1])]


def of_svi():
    responses, _, _ = simulate(*SHAPE, missing=0.1)
    start = starting_point(responses, "1pl", "proportions", hyperparameters(PRIORS["hierarchical"], "1pl"))
    return Task(jnp.asarray(responses.values), start)


ENGINES = {
    "fixed nodes": (QuadratureEngine(SharedNodes(61, 1)), of_mml),
    "normal posteriors": (NormalPosteriors(), of_mml),
    "normal posteriors of families": (FamilyPosteriors(), of_counts_of_successes),
    "variational": (Variational(Settings("1pl", PRIORS["hierarchical"], *SIZES), 0), of_svi),
}


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_keeps_the_protocol(name):
    engine, problem = ENGINES[name][0], ENGINES[name][1]()
    assert isinstance(engine, Engine)
    assert dataclasses.is_dataclass(engine)
    infos = []
    first, outcome = run(engine, problem, max_iterations=2, on_iteration=lambda _, info: infos.append(info))
    assert (outcome.status, outcome.iterations, len(infos)) == (Status.OUT_OF_ITERATIONS, 2, 2)
    assert all(info.change >= 0 for info in infos)
    stopped, outcome = run(engine, problem, max_iterations=99, on_iteration=lambda steps, _: steps == 2)
    assert (outcome.status, outcome.iterations) == (Status.STOPPED, 2)
    # the same problem and the same steps, the same result; and a state is left as it was by what follows it
    for one, other in zip(*(jax.tree.leaves(result._asdict()) for result in (first, stopped)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_step_lowers_the_objective_within_a_phase():
    engine, problem = (
        QuadratureEngine(SharedNodes(61, 1), adapt=False, search=False, standard_errors=False),
        of_mml("4pl"),
    )
    reached = []
    estimate, outcome = run(
        engine,
        problem,
        max_iterations=999,
        patience=PATIENCE,
        on_iteration=lambda _, info: reached.append((info.tolerance, info.objective)),
    )
    assert outcome.status is Status.CONVERGED
    objectives = np.array([objective for _, objective in reached])
    released = np.array([tolerance for tolerance, _ in reached])
    # where asymptotes are let go, their priors come in: that is another objective
    falls = np.flatnonzero((np.diff(objectives) < 0) & (np.diff(released) == 0))
    assert len(falls) <= 1
    assert estimate.log_likelihood < 0


class Toy:
    """Halves its change at each step, down to a floor, in two phases."""

    def __init__(self, floor):
        self.floor = floor

    def init(self, problem):
        return problem, 1.0

    def step(self, state):
        phases, change = state
        return (phases, max(change / 2, self.floor)), Info(math.nan, change, 0.1)

    def revise(self, state):
        phases, _ = state
        return (phases - 1, 1.0) if phases > 1 else None

    def finish(self, state):
        return state


def test_phases_and_patience():
    left, outcome = run(Toy(0.0), 2, max_iterations=99)
    assert (left[0], outcome.status, outcome.iterations) == (1, Status.CONVERGED, 10)
    _, outcome = run(Toy(0.2), 2, max_iterations=99, patience=7)
    assert (outcome.status, outcome.iterations) == (Status.STALLED, 4 + 7)
    _, outcome = run(Toy(0.2), 2, max_iterations=5, patience=7)
    assert (outcome.status, outcome.iterations) == (Status.OUT_OF_ITERATIONS, 5)


@pytest.mark.parametrize("way", ["nodes", "normal"])
def test_programs_are_compiled_once_for_a_shape(way):
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **tags: compiled.append(str(tags.get("fun_name"))) if "backend_compile" in name else None
    )
    jax.clear_caches()
    counts_of_fits = []
    for seed in (7, 8):
        compiled.clear()
        fit_mml(simulate(*SHAPE, seed=seed)[0], integration=way)
        counts_of_fits.append(len(compiled))
    first, again = counts_of_fits
    # on nodes: the E-step for the fit and for a block of a finer rule, scores; else a program for each pass and step
    assert 0 < first <= {"nodes": 8, "normal": 60}[way]
    assert again == 0, compiled
