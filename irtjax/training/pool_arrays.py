"""A pool as arrays, to be written to a file, and back.

Plans are not among the arrays, as they follow from the rows of the job; nor are tree structures: leaves are numbered,
and put back into the structure that follows from the job.
"""

import functools
from collections.abc import Mapping

import jax
import numpy as np

from irtjax.storage.archives import Arrays
from irtjax.training import slots as programs
from irtjax.training.pool import EMPTY, Begun, Job, Pool, Stopped, rows_of, shapes

TABLES = ("epochs", "best_epoch", "best_accuracy")  # of networks that have stopped


def stored(pool: Pool, names: np.ndarray) -> Arrays:
    """The pool as arrays; `names` (J,) are the networks of its job in a larger whole."""
    numbers = np.where(pool.numbers == EMPTY, EMPTY, names[np.maximum(pool.numbers, 0)])
    arrays = {"slots": np.array(pool.slots), "numbers": numbers, "positions": pool.positions}
    arrays |= {"waiting": names[list(pool.waiting)], "stopped": names[[network.number for network in pool.stopped]]}
    arrays |= {f"stopped_{name}": np.array([getattr(network, name) for network in pool.stopped]) for name in TABLES}
    leaves = zip(*(jax.tree.leaves(network.parameters) for network in pool.stopped), strict=True)
    arrays |= {f"parameters_{at:04d}": np.stack(leaf) for at, leaf in enumerate(leaves)}
    return arrays | {
        f"learner_{at:04d}": programs.storable(leaf) for at, leaf in enumerate(jax.tree.leaves(pool.learners))
    }


def restored(job: Job, names: np.ndarray, arrays: Arrays, begun: Mapping[int, Begun]) -> Pool:
    """The pool of `stored`, on the devices of its job; `begun` as in `begin`."""
    place = {int(name): at for at, name in enumerate(names)} | {EMPTY: EMPTY}
    numbers = np.array([place[int(name)] for name in arrays["numbers"]])
    _, learner = shapes(job)
    restore = functools.partial(programs.restored, programs.spread(job.mesh))
    learners = jax.tree.unflatten(jax.tree.structure(learner), _leaves(arrays, "learner_"))
    return Pool(
        slots=int(arrays["slots"]),
        numbers=numbers,
        positions=arrays["positions"],
        plans=programs.plan(job.plan, job.mesh, rows_of(job, numbers), job.shared),
        learners=jax.tree.map(restore, learner, learners),
        waiting=tuple(place[int(name)] for name in arrays["waiting"]),
        begun=begun,
        stopped=tuple(network._replace(number=place[network.number]) for network in stopped_in(job, arrays)),
    )


def stopped_in(job: Job, arrays: Arrays) -> list[Stopped]:
    """The networks of `stored` that had stopped, by name."""
    structure, leaves = jax.tree.structure(shapes(job)[1].parameters), _leaves(arrays, "parameters_")
    return [
        Stopped(
            int(name),
            jax.tree.unflatten(structure, [leaf[at] for leaf in leaves]),
            *(arrays[f"stopped_{table}"][at].item() for table in TABLES),
        )
        for at, name in enumerate(arrays["stopped"])
    ]


def begun_in(arrays: Arrays) -> dict[int, Begun]:
    """The networks of `stored` that were in training, by name."""
    learners, positions = _leaves(arrays, "learner_"), arrays["positions"]
    return {
        int(name): Begun(int(positions[slot]), [leaf[slot] for leaf in learners])
        for slot, name in enumerate(arrays["numbers"])
        if name != EMPTY
    }


def _leaves(arrays: Arrays, prefix: str) -> list[np.ndarray]:
    return [arrays[name] for name in sorted(arrays) if name.startswith(prefix)]
