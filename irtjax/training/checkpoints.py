"""Pools on disk: a run that is killed goes on from the end of a round, and ends with the same bits.

A checkpoint is one NPZ file, written whole. Plans are not stored, because they follow from the rows of the job. Neither
are tree structures: leaves are numbered and put back into the structure that follows from the job.

(Orbax, whose checkpoints are those of all processes together, cannot write what one process has for itself.)
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.archives import read_arrays
from irtjax.storage.files import whole_file
from irtjax.training.pool import EMPTY, Stored

SCALARS = ("slots", "waiting")
ARRAYS = ("numbers", "positions", "epochs", "best_epochs", "best_accuracies")


class Saved(NamedTuple):
    """A pool from a checkpoint; `order` (J,) says which networks its numbers 0 to J - 1 stand for."""

    order: np.ndarray
    pool: Stored


def save(path: Path, saved: Saved) -> None:
    """Writes a pool; a kill at any moment leaves this checkpoint or the one before whole.

    Raises:
        InputError: it cannot be written.
    """
    state = {name: np.asarray(getattr(saved.pool, name)) for name in SCALARS + ARRAYS} | {"order": saved.order}
    state |= {f"learner_{at:04d}": leaf for at, leaf in enumerate(saved.pool.learners)}
    state["done"] = np.array([number for number, _ in saved.pool.done], int)
    stopped = zip(*(leaves for _, leaves in saved.pool.done), strict=True)
    state |= {f"stopped_{at:04d}": np.stack(leaves) for at, leaves in enumerate(stopped)}
    with whole_file(path) as partial:
        np.savez(partial, allow_pickle=False, **state)


def read(path: Path) -> Saved | None:
    """The pool as it was last saved; None if none was.

    Raises:
        InputError: it is damaged.
    """
    if not path.exists():
        return None
    try:
        state = read_arrays(path)
        stopped = _leaves(state, "stopped_")
        done = [(int(number), [leaf[at] for leaf in stopped]) for at, number in enumerate(state["done"])]
        tables: dict[str, Any] = {name: int(state[name]) for name in SCALARS} | {name: state[name] for name in ARRAYS}
        return Saved(state["order"], Stored(learners=_leaves(state, "learner_"), done=done, **tables))
    except (InputError, KeyError, TypeError) as error:
        raise InputError(f"{path}: a damaged checkpoint ({error}): remove {path.parent}") from error


def adopt(earlier: list[Saved], order: np.ndarray, slots: int, size: int) -> Saved | None:
    """Networks that had begun in other pools go on in one of their own.

    Args:
        earlier: those pools; where several hold a network, the first of them is right.
        order: the networks that are to be trained.
        slots: on a device.
        size: slots on all devices together: no more networks can be in training at once; others begin anew.

    Returns:
        None if none of them had begun. Else what `resume` makes a pool of.
    """
    done: dict[int, tuple[Stored, int, list[np.ndarray]]] = {}
    live: dict[int, tuple[Stored, int, int]] = {}
    wanted: set[int] = set(order.tolist())
    known: set[int] = set()
    for names, pool in earlier:
        new = wanted - known
        for at, leaves in pool.done:
            if names[at] in new:
                done[int(names[at])] = pool, at, leaves
        for slot, at in enumerate(pool.numbers):
            if at != EMPTY and names[at] in new and len(live) < size:
                live[int(names[at])] = pool, int(at), slot
        known |= done.keys() | live.keys()
    if not known:
        return None
    begun = [*done, *live]
    sources = [(pool, at) for pool, at, _ in (*done.values(), *live.values())]
    waiting = [name for name in order.tolist() if name not in known]
    tables = {}
    for name in ("epochs", "best_epochs", "best_accuracies"):
        kind = getattr(earlier[0].pool, name).dtype
        fresh = np.full(len(waiting), np.nan if kind.kind == "f" else 0, kind)
        tables[name] = np.concatenate([np.array([getattr(pool, name)[at] for pool, at in sources], kind), fresh])
    # empty slots hold anything
    slots_of = [(pool, slot) for pool, _, slot in live.values()] or [(earlier[0].pool, 0)]
    filled = [slots_of[at % len(slots_of)] for at in range(size)]
    num_leaves = len(earlier[0].pool.learners)
    pool = Stored(
        slots=slots,
        numbers=np.where(np.arange(size) < len(live), len(done) + np.arange(size), EMPTY),
        positions=np.array([pool.positions[slot] for pool, slot in filled], np.int32),
        waiting=len(begun),
        learners=[np.stack([pool.learners[leaf][slot] for pool, slot in filled]) for leaf in range(num_leaves)],
        done=[(at, parameters) for at, (_, _, parameters) in enumerate(done.values())],
        **tables,
    )
    return Saved(np.array(begun + waiting), pool)


def _leaves(state: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    return [state[name] for name in sorted(state) if name.startswith(prefix)]
