"""The response matrix as kernels walk it: blocks of items, each contiguous in memory, spread over a mesh of devices."""

import jax
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

from irtjax.mesh import ITEMS, SUBJECTS
from irtjax.responses import MISSING

BLOCK_RESPONSES = 2**19  # in a block: a float32 array of one is 2 MB and stays in cache
MULTIPLE, MOST = 64, 4096  # items a block
BY_BLOCK = P(ITEMS, SUBJECTS)  # of blocks (N, J, B)
ALIGNMENT = 64  # bytes; a CPU device uses a NumPy array that is so aligned without copying it


def padded_shape(num_subjects: int, num_items: int, mesh: jax.sharding.Mesh | None) -> tuple[int, int, int]:
    """Blocks, subjects and items a block (N, J', B), with J' and N multiples of the mesh."""
    rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
    block = BLOCK_RESPONSES // -(-num_subjects // rows) // MULTIPLE * MULTIPLE
    block = min(max(block, MULTIPLE), MOST, -(-num_items // columns))
    return columns * -(-num_items // (block * columns)), rows * -(-num_subjects // rows), block


def to_blocks(values: np.ndarray, mesh: jax.sharding.Mesh | None = None) -> jax.Array:
    """Lays a response matrix out in blocks.

    Args:
        values: (J, I) int8; 1 right, 0 wrong, -1 missing.
        mesh: axes "subjects" and "items"; None for one device.

    Returns:
        (N, J', B) int8, padded with missing responses: block n holds items n B … (n + 1) B - 1.
    """
    num_subjects, num_items = values.shape
    shape = padded_shape(num_subjects, num_items, mesh)

    def part(index: tuple[slice, ...]) -> np.ndarray:
        blocks, subjects, _ = (range(*at.indices(size)) for at, size in zip(index, shape, strict=True))
        out = _aligned((len(blocks), len(subjects), shape[2]))
        rows = values[subjects.start : subjects.stop]
        for to, block in enumerate(blocks):
            columns = rows[:, block * shape[2] : (block + 1) * shape[2]]
            out[to, : columns.shape[0], : columns.shape[1]] = columns
        return out

    if mesh is None:
        return jax.device_put(part((slice(None),) * 3), may_alias=True)
    return jax.make_array_from_callback(shape, NamedSharding(mesh, BY_BLOCK), part)


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNMENT, np.int8)
    offset = -memory.ctypes.data % ALIGNMENT
    array = memory[offset : offset + size].reshape(shape)
    array[...] = MISSING
    return array
