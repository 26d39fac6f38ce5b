"""Which start is taken: that of the highest ELBO."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.estimation.driver import Outcome
from irtjax.fits.status import Status
from irtjax.kernels.sharding import EVERYWHERE, place
from irtjax.processes import fetch
from irtjax.svi.engine import Approximation, Task, Variational
from irtjax.svi.guide import Normal, relative
from irtjax.svi.programs import PLACES, WORKED_ON, draws_per_look, moved, programs

FEW = 2**16  # responses, up to which a run takes a fraction of its compilation
MOST_DRAWS = 1000  # of an ELBO, each a pair of mirror images
ERRORS = 3  # standard errors of a difference that are not noise
EQUAL = 0.1  # nats that two runs to one optimum may end apart
APART = 1.0  # nats between two optima

Search = Callable[[Task, int], tuple[Approximation, Outcome]]


class Run(NamedTuple):
    """A search, and what it came to.

    Attributes:
        task: where it began.
        found: the approximation.
        outcome: how it ended, with all iterations since the first start.
        elbos: estimates of the ELBO of `found`; none where there was nothing to compare.
    """

    task: Task
    found: Approximation
    outcome: Outcome
    elbos: np.ndarray


def best_run(engine: Variational, tasks: dict[str, Task], search: Search) -> tuple[str, Run, dict[str, Any]]:
    """Searches from the best of several starts.

    On few responses there is a search from each, run on until that no longer helps, and the ELBOs at the ends decide.
    On more it is the ELBOs of the starts themselves. All are estimated from the same random draws. The first start
    stands unless another is better by more than the noise of the difference.

    Args:
        engine: with the settings and the seed of all of them.
        tasks: by the name of their start; all of the same responses.
        search: from a task, after so many iterations, to the approximation, and how it ended.

    Returns:
        The name of the start, the run, and entries of `fit.json`.
    """
    if engine.settings.num_responses > FEW:
        name = next(iter(tasks))
        if len(tasks) > 1:
            elbos = {start: _elbos(engine, task, _unmoved(task)) for start, task in tasks.items()}
            for start in tasks:
                name = start if _higher(elbos[start], elbos[name], EQUAL) else name
        return name, Run(tasks[name], *search(tasks[name], 0), np.zeros(0)), {}
    runs = {name: _run_on(engine, task, search) for name, task in tasks.items()}
    best = next(iter(runs))
    for name, one in runs.items():
        best = name if _better(one, runs[best]) else best
    if len(runs) == 1:
        return best, runs[best], {}
    details = {
        "elbo_by_start": {name: float(one.elbos.mean()) for name, one in runs.items()},
        "starts_agree": not any(_higher(runs[best].elbos, one.elbos, APART) for one in runs.values()),
    }
    return best, runs[best], details


def _run_on(engine: Variational, task: Task, search: Search) -> Run:
    """A search, and further ones from where it ended, until the ELBO rises no more or no steps are left.

    Steps are in posterior standard deviations at the start. Where those were far from what they are at the end, a
    search may come to rest short of the optimum; the next one takes steps in those of the end.
    """
    run = _ended(engine, task, search, 0)
    while run.outcome.status is Status.CONVERGED:
        further = _ended(engine, _at_end(run, engine.settings.mesh), search, run.outcome.iterations)
        if not _better(further, run):
            break
        run = further._replace(found=Approximation(further.found.mean, [*run.found.elbos, *further.found.elbos]))
    return run


def _ended(engine: Variational, task: Task, search: Search, made: int) -> Run:
    found, outcome = search(task, made)
    return Run(task, found, outcome._replace(iterations=made + outcome.iterations), _elbos(engine, task, found.mean))


def _at_end(run: Run, mesh: jax.sharding.Mesh | None) -> Task:
    """The task that begins with what a run has found."""
    start = run.task.start
    sites = {
        site: place(
            jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), relative(fetch(begun), run.found.mean[site])),
            mesh,
            PLACES.get(site, EVERYWHERE),
        )
        for site, begun in start.sites.items()
    }
    return run.task._replace(start=start._replace(sites=sites))


def _better(one: Run, other: Run) -> bool:
    """Whether the ELBO of a run is higher. A run that has not converged needs more of it to outdo one that has."""
    mine, theirs = (run.outcome.status is Status.CONVERGED for run in (one, other))
    if mine == theirs:
        return _higher(one.elbos, other.elbos, EQUAL)
    return not _higher(other.elbos, one.elbos, APART) if mine else _higher(one.elbos, other.elbos, APART)


def _higher(one: np.ndarray, other: np.ndarray, least: float) -> bool:
    """Whether an ELBO is higher than another by at least so many nats, and by more than noise."""
    if not np.isfinite(one).all():
        return False
    if not np.isfinite(other).all():
        return True
    difference = one - other
    return bool(difference.mean() > max(least, ERRORS * difference.std(ddof=1) / np.sqrt(len(difference))))


def _elbos(engine: Variational, task: Task, changes: dict[str, Normal]) -> np.ndarray:
    """Estimates of the ELBO of a guide with the parameters `changes`, in nats: the same draws for all guides."""
    settings, start = engine.settings, task.start
    init, advance = programs(settings)
    state = moved(init(jax.random.key(engine.seed), start, task.values), changes, settings.mesh)
    number, found = min(WORKED_ON // settings.num_responses, MOST_DRAWS), []
    for _ in range(max(1, -(-number // draws_per_look(settings.num_responses)))):
        state, chunk = advance(state, 0.0, start, task.values, start.sites, start.sites)
        found.append(fetch(chunk.look))
    return np.concatenate(found).astype(float)


def _unmoved(task: Task) -> dict[str, Normal]:
    """The parameters of the guide as it starts."""
    return {
        site: Normal(np.zeros(begun.loc.shape, np.float32), np.ones(begun.scale.shape, np.float32))
        for site, begun in task.start.sites.items()
    }
