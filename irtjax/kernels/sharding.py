"""Devices as a mesh of subjects × items, and the same code with and without one."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

SUBJECTS, ITEMS = "subjects", "items"
BY_SUBJECT, BY_ITEM, BY_RESPONSE, EVERYWHERE = P(SUBJECTS), P(ITEMS), P(SUBJECTS, ITEMS), P()


def mesh_of(subjects: int, items: int) -> jax.sharding.Mesh:
    """A mesh of subjects × items devices for likelihoods and fits."""
    return jax.make_mesh(
        (subjects, items),
        (SUBJECTS, ITEMS),
        axis_types=(jax.sharding.AxisType.Auto,) * 2,
        devices=jax.devices()[: subjects * items],
    )


def along_subjects(mesh: jax.sharding.Mesh | None) -> jax.sharding.Mesh | None:
    """The devices of a mesh, all of them in a column of subjects."""
    if mesh is None:
        return None
    return jax.sharding.Mesh(mesh.devices.reshape(-1, 1), (SUBJECTS, ITEMS), axis_types=mesh.axis_types)


def place(tree: Any, mesh: jax.sharding.Mesh | None, axis: P) -> Any:
    """Puts arrays on the devices of a mesh, split along their first axis as `axis` says.

    Where the mesh spans several processes, each of them has the whole arrays, and puts its own devices' parts there.
    """
    if mesh is None:
        return tree
    sharding = NamedSharding(mesh, axis)
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def parts(leaf: Any) -> jax.Array:
        array = np.asarray(leaf)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    return jax.tree.map(parts, tree)


def local_part(mesh: jax.sharding.Mesh, shape: tuple[int, int]) -> tuple[slice, slice]:
    """Rows and columns of a matrix, spread by subjects and items, that the devices of this process have."""
    parts = list(NamedSharding(mesh, BY_RESPONSE).addressable_devices_indices_map(shape).values())
    rows, columns = (
        [part[axis].indices(size)[:2] for part in parts if part is not None] for axis, size in enumerate(shape)
    )
    return slice(min(rows)[0], max(rows)[1]), slice(min(columns)[0], max(columns)[1])


def on_mesh(function: Callable, mesh: jax.sharding.Mesh | None, in_specs: Any, out_specs: Any) -> Callable:
    """The function on each device's own part of its arguments, or as it is without a mesh."""
    return function if mesh is None else jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs)


def sum_over(axis: str, mesh: jax.sharding.Mesh | None, tree: Any) -> Any:
    """Sums what the devices along an axis hold."""
    return tree if mesh is None else jax.lax.psum(tree, axis)


def varying(axis: str, mesh: jax.sharding.Mesh | None, tree: Any) -> Any:
    """Marks a carry that starts equal everywhere as one that will differ along an axis."""
    return tree if mesh is None else jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axis, to="varying"), tree)
