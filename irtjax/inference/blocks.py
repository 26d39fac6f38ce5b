"""The response matrix as kernels walk it: blocks of items, each contiguous in memory, spread over a mesh of devices."""

from collections.abc import Callable

import jax
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

from irtjax.responses import MISSING

SUBJECTS, ITEMS = "subjects", "items"  # the axes of a mesh
RESPONSES = 2**19  # in a block: a float32 array of one is 2 MB and stays in cache
MULTIPLE, MOST = 64, 4096  # items a block
BY_BLOCK = P(ITEMS, SUBJECTS)  # of blocks (N, J, B)
BY_ITEM = P(ITEMS)
BY_SUBJECT = P(SUBJECTS)
ALIGNMENT = 64  # bytes; a CPU device uses a NumPy array that is so aligned without copying it


def mesh_of(subjects: int, items: int) -> jax.sharding.Mesh:
    """A mesh of subjects × items devices for likelihoods and fits."""
    return jax.make_mesh(
        (subjects, items),
        (SUBJECTS, ITEMS),
        axis_types=(jax.sharding.AxisType.Auto,) * 2,
        devices=jax.devices()[: subjects * items],
    )


def padded_shape(num_subjects: int, num_items: int, mesh: jax.sharding.Mesh | None) -> tuple[int, int, int]:
    """Blocks, subjects and items a block (N, J', B), with J' and N multiples of the mesh."""
    rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
    block = RESPONSES // -(-num_subjects // rows) // MULTIPLE * MULTIPLE
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


def place(tree, mesh: jax.sharding.Mesh | None, axis: P):
    """Puts arrays on the devices of a mesh, split along their first axis as `axis` says."""
    return tree if mesh is None else jax.device_put(tree, NamedSharding(mesh, axis))


def on_mesh(function: Callable, mesh: jax.sharding.Mesh | None, in_specs, out_specs) -> Callable:
    """The function on each device's own part of its arguments, or as it is without a mesh."""
    return function if mesh is None else jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def sum_over(axis: str, mesh: jax.sharding.Mesh | None, tree):
    """Sums what the devices along an axis hold."""
    return tree if mesh is None else jax.lax.psum(tree, axis)


def varying(axis: str, mesh: jax.sharding.Mesh | None, tree):
    """Marks a carry that starts equal everywhere as one that will differ along an axis."""
    return tree if mesh is None else jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axis, to="varying"), tree)
