"""The response matrix as kernels walk it: chunks of blocks of items, each block contiguous in memory."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

from irtjax.kernels.block_size import items_per_block
from irtjax.kernels.sharding import ITEMS, SUBJECTS
from irtjax.responses.matrix import MISSING
from irtjax.types import Int

BLOCK_RESPONSES = 2**19  # a float32 array of so many is 2 MB; a pass holds several
CHUNK_BYTES = 2**24  # on a CPU
DEVICE_SHARE = 4  # a chunk fills at most this part of an accelerator's memory
BY_BLOCK = P(ITEMS, SUBJECTS)  # of blocks (N, J, B)
ALIGNMENT = 64  # bytes; a CPU device uses a NumPy array with this alignment without copying it


class Chunks:
    """A response matrix (J, I), some of its items at a time, for passes that add up over items or over subjects.

    A single chunk, as on most accelerators and over every mesh, stays on the device. Several are laid out anew in each
    pass, which takes a tenth of its time: then the only whole matrix in memory is the caller's.

    Attributes:
        num_subjects: J', rows with padding.
        num_items: I', items with padding: missing responses, at the end of either.
        number: of chunks.
        width: items in each.
    """

    def __init__(
        self, values: Int[np.ndarray, "J I"], mesh: jax.sharding.Mesh | None = None, chunk_bytes: int | None = None
    ) -> None:
        """Lays out `values` (J, I) int8 over the devices of a mesh, in chunks of at most `chunk_bytes` if given."""
        subjects, items = values.shape
        rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
        block = items_per_block(-(-subjects // rows), -(-items // columns), BLOCK_RESPONSES)
        blocks = columns * -(-items // (block * columns))
        self.num_subjects = rows * -(-subjects // rows)
        most = _most_bytes() if chunk_bytes is None else chunk_bytes
        most_blocks = blocks if mesh is not None else max(1, most // (block * self.num_subjects))
        self.number = number = -(-blocks // most_blocks)
        self._shape = (-(-blocks // number), self.num_subjects, block)
        self.width = self._shape[0] * block
        self.num_items = number * self.width
        self._values, self._mesh = values, mesh
        self._resident = self._lay_out(0) if number == 1 else None
        # fresh memory would cost more than what is written to it
        self._buffers = [_aligned(self._shape) for _ in range(2 if number > 1 else 0)]

    def by_item(self, function: Callable, items: Any, *arguments: Any) -> Any:
        """The results of `function(items, *arguments, blocks)` on each chunk's items, one after the other.

        Args:
            function: jitted; returns arrays whose first axis are the items of the chunk.
            items: tree of arrays (I', …).
            *arguments: the same for all.
        """
        parts = list(self.walk(function, items, *arguments))
        return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def by_subject(self, function: Callable, items: Any, *arguments: Any) -> Any:
        """The sum of what `function(items, *arguments, blocks)` returns for each chunk, likewise."""
        first, *rest = self.walk(function, items, *arguments)
        return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), first, *rest)

    def walk(self, function: Callable, items: Any, *arguments: Any) -> Iterator[Any]:
        """What `function(items, *arguments, blocks)` returns for each chunk."""
        if self._resident is not None:
            yield function(items, *arguments, self._resident)
            return
        last = None
        for number, start in enumerate(range(0, self.num_items, self.width)):
            blocks = self._lay_out(start, self._buffers[number % 2])
            part = function(_part(items, start, self.width), *arguments, blocks)
            jax.block_until_ready(last)  # its buffer is the next to be written to
            last = part
            yield part
        jax.block_until_ready(last)

    def _lay_out(self, start: int, buffer: np.ndarray | None = None) -> jax.Array:
        """(N, J', B) int8: block n holds items start + n B … start + (n + 1) B - 1."""

        def part(index: tuple[slice, ...] | None) -> np.ndarray:
            index = index or (slice(None),) * 3
            blocks, subjects, _ = (range(*at.indices(size)) for at, size in zip(index, self._shape, strict=True))
            out = _aligned((len(blocks), len(subjects), self._shape[2])) if buffer is None else buffer
            rows = self._values[subjects.start : subjects.stop]
            for to, block in enumerate(blocks):
                at = start + block * self._shape[2]
                columns = rows[:, at : at + self._shape[2]]
                out[to, : columns.shape[0], : columns.shape[1]] = columns
                out[to, columns.shape[0] :] = MISSING
                out[to, :, columns.shape[1] :] = MISSING
            return out

        if self._mesh is None:
            return jax.device_put(part(None), may_alias=True)
        return jax.make_array_from_callback(self._shape, NamedSharding(self._mesh, BY_BLOCK), part)


@functools.partial(jax.jit, static_argnums=2)
def _part(items: Any, start: int | jax.Array, width: int) -> Any:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, width), items)


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
