"""Devices in a row, each with networks of its own."""

from collections.abc import Callable, Sequence

import jax


def default_mesh(num_networks: int, mesh: jax.sharding.Mesh | None = None) -> jax.sharding.Mesh:
    """Local devices in a row, at most as many as there are networks; of `mesh`, or all."""
    devices = jax.local_devices() if mesh is None else mesh.local_devices
    devices = list(devices)[: max(1, num_networks)]
    return jax.make_mesh((len(devices),), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)


def on_devices(function: Callable, mesh: jax.sharding.Mesh, spread: Sequence[bool]) -> Callable:
    """The function on each device, with its part of some arguments and the whole of the others.

    Args:
        function: of arguments with a leading axis of networks, and of others.
        mesh: devices in a row.
        spread: for each argument, whether its leading axis is spread over the devices.

    Results are spread. check_vma=False: with it, gradients of parameters that start equal on all devices would be
    summed over the devices.
    """
    by_network, everywhere = jax.P(*mesh.axis_names), jax.P()
    specs = tuple(by_network if one else everywhere for one in spread)
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=by_network, check_vma=False)
