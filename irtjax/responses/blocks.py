"""The response matrix as kernels walk it: chunks of blocks of items, each block contiguous in memory."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

from irtjax.kernels.formulation import formulation
from irtjax.kernels.loops import MULTIPLE, items_per_block
from irtjax.kernels.sharding import ITEMS, SUBJECTS, local_part
from irtjax.responses.matrix import MISSING
from irtjax.responses.stored import LocalValues
from irtjax.responses.values import Values, keep
from irtjax.types import Int

BLOCK_RESPONSES = 2**19  # a float32 array of so many is 2 MB; a pass holds several
CHUNK_BYTES = 2**24  # on a CPU
DEVICE_SHARE = 4  # a chunk fills at most this part of an accelerator's memory
BY_BLOCK = P(ITEMS, SUBJECTS)  # of blocks (N, J, B)
RUN = 64  # consecutive items in a thinned matrix
ALIGNMENT = 64  # bytes; a CPU device uses a NumPy array with this alignment without copying it


class Chunks:
    """A response matrix (J, I), some of its items at a time, for passes that add up over items or over subjects.

    A single chunk, as on most accelerators, stays on the device. Several are laid out anew in each pass, which takes a
    tenth of its time: then the only whole matrix in memory is the caller's, or none where it is read from files.

    Over a mesh each device has a row of items of its own, and each chunk some of the items of every device. A process
    reads what its devices have.

    Attributes:
        num_subjects: J', rows with padding.
        num_items: I', items with padding: missing responses, at the end of either.
        number: of chunks.
        width: items in each.
    """

    def __init__(self, values: Values, mesh: jax.sharding.Mesh | None = None, chunk_bytes: int | None = None) -> None:
        """Lays out `values` (J, I) int8 over the devices of a mesh, in chunks of at most `chunk_bytes` if given."""
        subjects, items = values.shape
        rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
        self._columns: int = columns
        self.num_subjects = rows * -(-subjects // rows)
        most = _most_bytes() if chunk_bytes is None else chunk_bytes
        block = _block(self.num_subjects // rows, -(-items // columns), most)
        blocks = -(-items // (block * columns))  # of a device
        most_blocks = max(1, most // (block * (self.num_subjects // rows)))
        self.number = number = -(-blocks // most_blocks)
        self._shape = (columns * -(-blocks // number), self.num_subjects, block)
        self.width = self._shape[0] * block
        self.num_items = number * self.width
        self._values, self._mesh = values, mesh
        if mesh is not None:
            keep(values, *local_part(mesh, (self.num_subjects, self.num_items)))
        self._resident = self._lay_out(0) if number == 1 else None
        # fresh memory would cost more than what is written to it; a mesh may still be sending the last
        self._buffers = [_aligned(self._shape) for _ in range(2 if number > 1 and mesh is None else 0)]

    @property
    def mine(self) -> slice:
        """The items whose responses this process has; the last of several processes' may begin beyond the matrix."""
        if self._mesh is None:
            return slice(0, self._values.shape[1])
        return local_part(self._mesh, (self.num_subjects, self.num_items))[1]

    def thinned(self) -> tuple[Int[np.ndarray, " few"], Values]:
        """No more items than a chunk holds, spread evenly over those of each device, and the responses to them."""
        block, (num_subjects, num_items) = self._shape[2], self._values.shape
        each, here = self.num_items // self._columns, self.mine
        of_devices = [range(start, min(start + each, num_items)) for start in range(0, self.num_items, each)]
        number = max(0, min(self.width // self._columns, *map(len, of_devices))) // block * block
        run = min(RUN, block)
        starts = [np.linspace(items.start, items.stop - run, number // run).astype(int) for items in of_devices]
        mine = np.concatenate(starts[here.start // each : -(-here.stop // each)])
        values = np.empty((num_subjects, run * mine.size), np.int8)
        for to, start in enumerate(mine):
            values[:, run * to : run * (to + 1)] = self._values[:, start : start + run]
        chosen = (np.concatenate(starts)[:, None] + np.arange(run)[None, :]).ravel()
        held = range(here.start // each * number, -(-here.stop // each) * number)
        return chosen, LocalValues(values, range(num_subjects), held, (num_subjects, chosen.size))

    def by_item(self, function: Callable, items: Any, *arguments: Any) -> Any:
        """The results of `function(items, *arguments, blocks)` on each chunk's items, in the order of the items.

        Args:
            function: jitted; returns arrays whose first axis are the items of the chunk.
            items: tree of arrays (I', …).
            *arguments: the same for all.
        """
        parts = list(self.walk(function, items, *arguments))
        return parts[0] if len(parts) == 1 else _joined(parts, self._columns)

    def by_subject(self, function: Callable, items: Any, *arguments: Any) -> Any:
        """The sum of what `function(items, *arguments, blocks)` returns for each chunk."""
        first, *rest = self.walk(function, items, *arguments)
        return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), first, *rest)

    def walk(self, function: Callable, items: Any, *arguments: Any) -> Iterator[Any]:
        """What `function(items, *arguments, blocks)` returns for each chunk."""
        if self._resident is not None:
            yield function(items, *arguments, self._resident)
            return
        last = None
        for number in range(self.number):
            blocks = self._lay_out(number, self._buffers[number % 2] if self._buffers else None)
            part = function(_part(items, number, self.number, self._columns), *arguments, blocks)
            jax.block_until_ready(last)  # its buffer is the next to be written to
            last = part
            yield part
        jax.block_until_ready(last)

    def _lay_out(self, number: int, buffer: np.ndarray | None = None) -> jax.Array:
        """(N, J', B) int8 of a chunk: each device's blocks, of so many items one after the other."""
        blocks_of_each = self._shape[0] // self._columns

        def part(index: tuple[slice, ...] | None) -> np.ndarray:
            index = index or (slice(None),) * 3
            blocks, subjects, _ = (range(*at.indices(size)) for at, size in zip(index, self._shape, strict=True))
            out = _aligned((len(blocks), len(subjects), self._shape[2])) if buffer is None else buffer
            for first in range(0, len(blocks), blocks_of_each):
                device = (blocks.start + first) // blocks_of_each
                begin = (device * self.number + number) * blocks_of_each * self._shape[2]
                self._fill(out[first : first + blocks_of_each], subjects, begin)
            return out

        if self._mesh is None:
            return jax.device_put(part(None), may_alias=True)
        return jax.make_array_from_callback(self._shape, NamedSharding(self._mesh, BY_BLOCK), part)

    def _fill(self, out: np.ndarray, subjects: range, begin: int) -> None:
        """Writes the responses of some subjects to consecutive items into blocks, and pads."""
        block, size = out.shape[2], out.shape[0] * out.shape[2]
        # files are read once for all of the blocks
        rows = self._values[subjects.start : subjects.stop, begin : begin + size]
        for to in range(len(out)):
            columns = rows[:, to * block : (to + 1) * block]
            out[to, : columns.shape[0], : columns.shape[1]] = columns
            out[to, columns.shape[0] :] = MISSING
            out[to, :, columns.shape[1] :] = MISSING


@functools.partial(jax.jit, static_argnums=(2, 3))
def _part(items: Any, number: int | jax.Array, chunks: int, columns: int) -> Any:
    """The items of a chunk: of each device its part."""

    def of_leaf(leaf: jax.Array) -> jax.Array:
        by_device = leaf.reshape(columns, chunks, -1, *leaf.shape[1:])
        return jax.lax.dynamic_index_in_dim(by_device, number, 1, keepdims=False).reshape(-1, *leaf.shape[1:])

    return jax.tree.map(of_leaf, items)


@functools.partial(jax.jit, static_argnums=1)
def _joined(parts: list[Any], columns: int) -> Any:
    """Inverse of `_part`, of all chunks."""

    def of_leaves(*leaves: jax.Array) -> jax.Array:
        by_device = [leaf.reshape(columns, -1, *leaf.shape[1:]) for leaf in leaves]
        return jnp.concatenate(by_device, axis=1).reshape(-1, *leaves[0].shape[1:])

    return jax.tree.map(of_leaves, *parts)


def _block(num_subjects: int, num_items: int, most: int) -> int:
    """Items in a block of what a device has, of chunks with so many bytes."""
    block = items_per_block(num_subjects, num_items, BLOCK_RESPONSES)
    if formulation().in_caches or num_subjects * block <= most:
        return block
    # what is to be one block is several chunks, as equal as can be: the last is filled up
    number = -(-num_items // max(MULTIPLE, most // num_subjects // MULTIPLE * MULTIPLE))
    return -(-num_items // (number * MULTIPLE)) * MULTIPLE


def _most_bytes() -> int:
    device = jax.devices()[0]
    if device.platform == "cpu":
        return CHUNK_BYTES
    return ((device.memory_stats() or {}).get("bytes_limit", 2**34)) // DEVICE_SHARE


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNMENT, np.int8)
    offset = -memory.ctypes.data % ALIGNMENT
    return memory[offset : offset + size].reshape(shape)
