"""What several processes of one job tell each other; alone, a process hears what it says.

The processes run the same program on parts of one response matrix (`jax.distributed.initialize` has joined them).
Arrays that are spread over the devices of a mesh need none of this: XLA adds them up. It is for what a process computes
for itself, in NumPy: within `together` each function below is called by all processes, in the same order.
"""

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
import pandas as pd
from jax.experimental import multihost_utils

from irtjax.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

_TOGETHER: ContextVar[bool] = ContextVar("together", default=False)
_BARRIERS = itertools.count()  # all processes are at the same one
MOST_MILLISECONDS = 30 * 24 * 3600 * 1000
MOST_BYTES = 2**26  # of what is gathered at a time
LEAST_BYTES = 256  # of a message; sizes are powers of two, so that few programs are compiled


def spans(mesh: jax.sharding.Mesh | None) -> bool:
    """Whether a mesh has devices of several processes.

    Raises:
        InputError: it has some of several, but not of all.
    """
    if mesh is None:
        return False
    processes = {device.process_index for device in mesh.devices.flat}
    if len(processes) > 1 and len(processes) < jax.process_count():
        raise InputError(f"a mesh over {len(processes)} of {jax.process_count()} processes: expected one, or all")
    return len(processes) > 1


@contextlib.contextmanager
def together(mesh: jax.sharding.Mesh | None) -> Iterator[None]:
    """Within the block the processes that a mesh spans work on one problem; all of them must enter it.

    Raises:
        InputError: they would compile different programs, as the hashes of Python differ between them.
    """
    token = _TOGETHER.set(spans(mesh))
    try:
        # the order of sets, and so that of the operations of a program, follows from it: other processes would exchange
        # other numbers, silently
        seed = os.environ.get("PYTHONHASHSEED", "random")
        if number() > 1 and any(other in ("random", None) or other != seed for other in everyone(seed)):
            raise InputError("several processes must compile the same programs: start all with PYTHONHASHSEED=0")
        yield
    finally:
        _TOGETHER.reset(token)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Within the block each process works on what is the same problem for all."""
    token = _TOGETHER.set(False)
    try:
        yield
    finally:
        _TOGETHER.reset(token)


def collective(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose argument `mesh` says which processes work `together` on it."""

    @functools.wraps(function)
    def joined(*args: P.args, **kwargs: P.kwargs) -> T:
        with together(kwargs.get("mesh")):  # type: ignore[arg-type]
            return function(*args, **kwargs)

    return joined


def number() -> int:
    """Processes that work together."""
    return jax.process_count() if _TOGETHER.get() else 1


def index() -> int:
    """Which of them this is."""
    return jax.process_index() if _TOGETHER.get() else 0


def share(size: int) -> slice:
    """This process's part of `size` things in a row: as many as the others have, or one fewer."""
    return slice(index() * size // number(), (index() + 1) * size // number())


def total(tree: Any) -> Any:
    """The sum over the processes of a tree of NumPy arrays and numbers of the same shapes; the same bits on all."""
    if number() == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    parts = _exchange(b"".join(array.tobytes() for array in arrays))
    sums, at = [], 0
    for array in arrays:
        each = [np.frombuffer(part, array.dtype, array.size, at) for part in parts]
        sums.append(np.sum(each, axis=0, dtype=array.dtype).reshape(array.shape))
        at += array.nbytes
    return jax.tree.unflatten(structure, sums)


def gather(array: np.ndarray, start: int | None = None) -> np.ndarray:
    """The arrays of all processes, one after the other along their first axis.

    Args:
        array: with the same other axes on all.
        start: where this process's part begins in the whole; None for the order of the processes.
    """
    if number() == 1:
        return array
    starts, lengths = zip(*everyone([index() if start is None else start, len(array)]), strict=True)
    whole = [np.empty((length, *array.shape[1:]), array.dtype) for length in lengths]
    step = max(1, MOST_BYTES // max(1, whole[0].strides[0]))
    for at in range(0, max(lengths), step):
        padded = np.zeros((min(step, max(lengths) - at), *array.shape[1:]), array.dtype)
        own = array[at : at + step]
        padded[: len(own)] = own
        for part, into in zip(_exchange(padded.tobytes()), whole, strict=True):
            rows = into[at : at + step]
            rows[...] = np.frombuffer(part, array.dtype, rows.size).reshape(rows.shape)
    return np.concatenate([whole[process] for process in sorted(range(number()), key=starts.__getitem__)])


def rows(table: pd.DataFrame | None) -> pd.DataFrame:
    """The rows of small tables of all processes, one after the other; None for no rows."""
    if number() == 1 and table is not None:
        return table
    said = None if table is None else (table.dtypes.astype(str).to_dict(), table.to_dict("list"))
    parts = [pd.DataFrame(columns).astype(kinds) for kinds, columns in filter(None, everyone(said))]
    return pd.concat(parts, ignore_index=True)


def everyone(value: Any) -> list[Any]:
    """What each process says; anything that JSON can hold. They wait for each other, however long that takes."""
    if number() == 1:
        return [value]
    barrier()
    said = json.dumps(value).encode()
    longest = max(int.from_bytes(part[:8], "little") for part in _exchange(len(said).to_bytes(8, "little")))
    return [json.loads(part[: part.find(b"\0")]) for part in _exchange(said.ljust(longest + 1, b"\0"))]


def barrier() -> None:
    """Waits for all processes, however long they take; in messages to each other they wait for minutes only."""
    if number() == 1:
        return
    store().wait_at_barrier(f"irtjax/barrier/{next(_BARRIERS)}", timeout_in_ms=MOST_MILLISECONDS)


def store() -> Any:
    """The runtime's keys and barriers, when it has joined processes: those that they meet at."""
    from jax._src import distributed  # they have no public name yet

    return distributed.global_state.client


def place() -> tuple[int, int]:
    """Which of the joined processes this is, and how many it was told there are; asks no device."""
    from jax._src import distributed

    return distributed.global_state.process_id, distributed.global_state.num_processes


def agreed(action: Callable[[], T]) -> T:
    """What an action returns on this process, if it goes well on all; it may take long.

    Raises:
        InputError: it failed on one of them, on all of them then.
    """
    result, failure = None, None
    try:
        result = action()
    except (InputError, OSError) as error:
        if number() == 1:
            raise
        failure = str(error)
    for process, reason in enumerate(everyone(failure)):
        if reason is not None:
            raise InputError(reason if failure is not None else f"{reason} (process {process} of {number()})")
    return result  # type: ignore[return-value]


def same(what: str, value: Any) -> None:
    """Compares what should be the same on all processes; otherwise they would wait for each other without end.

    Raises:
        InputError: it is not.
    """
    first, *others = everyone(value)
    for process, other in enumerate(others, start=1):
        if other != first:
            raise InputError(f"{what}: {first} on process 0, {other} on process {process}; expected the same")


def fetch(tree: Any) -> Any:
    """NumPy arrays of all of what is spread over the devices of a mesh; on every process."""

    def one(leaf: Any) -> np.ndarray:
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable and not leaf.is_fully_replicated:
            leaf = multihost_utils.process_allgather(leaf, tiled=True)
        return np.asarray(leaf)

    return jax.tree.map(one, tree)


def _exchange(message: bytes) -> list[bytes]:
    """The messages of all processes, of equal length, with padding at the end."""
    size = max(LEAST_BYTES, 1 << (len(message) - 1).bit_length())
    padded = np.frombuffer(message.ljust(size, b"\0"), np.uint8)
    return [part.tobytes() for part in np.asarray(multihost_utils.process_allgather(padded))]
