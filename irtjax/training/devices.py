"""Devices in a row, each with networks of its own."""

from collections.abc import Callable

import jax


def default_mesh(num_networks: int) -> jax.sharding.Mesh:
    """Local devices in a row, no more of them than networks."""
    devices = jax.local_devices()[:num_networks]
    return jax.make_mesh((len(devices),), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)


def on_devices(function: Callable, mesh: jax.sharding.Mesh, arguments: str) -> Callable:
    """The function on each device's part of the arguments marked `s`; those marked `e` are everywhere.

    check_vma=False: with it, gradients of parameters that start equal on all devices would be summed over the devices.
    """
    slots, everywhere = jax.P(*mesh.axis_names), jax.P()
    specs = tuple({"s": slots, "e": everywhere}[letter] for letter in arguments)
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=slots, check_vma=False)
