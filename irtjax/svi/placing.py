"""Responses and starts on the devices, with padding where these divide neither subjects nor items evenly."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding
from jax.sharding import PartitionSpec as P

from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE, SUBJECTS, local_part, place
from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import Values, keep
from irtjax.svi.answers import Dealt, dealt
from irtjax.svi.guide import Normal, Start
from irtjax.svi.model import Directions, Size
from irtjax.svi.programs import PLACES, Settings


def size_of(number: int, batch: int | None, devices: int) -> Size:
    """The size of an axis: J or I, how many a step takes (None for all), and the devices that it is spread over."""
    return Size(number, batch, devices * -(-number // devices))


def responses_on_devices(values: Values, settings: Settings) -> jax.Array:
    """The responses on the devices, with padding."""
    mesh = settings.mesh
    if mesh is None:
        return jnp.asarray(values[:, :])
    shape, sharding = (settings.subjects.padded, settings.items.padded), NamedSharding(mesh, BY_RESPONSE)
    keep(values, *local_part(mesh, shape))

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        rows, columns = (range(*at.indices(size)) for at, size in zip(index, shape, strict=True))
        found = values[rows.start : rows.stop, columns.start : columns.stop]
        missing = [(0, len(rows) - found.shape[0]), (0, len(columns) - found.shape[1])]
        return np.pad(found, missing, constant_values=MISSING)

    return jax.make_array_from_callback(shape, sharding, part)


def answers_on_devices(
    responses: SparseResponses,
    batch_subjects: int | None,
    batch_answers: int | None,
    seed: int,
    mesh: jax.sharding.Mesh | None = None,
) -> Dealt:
    """Single answers on the devices, in blocks of at most so many subjects or answers; None for one block of all."""
    devices = 1 if mesh is None else mesh.size
    each, subject_blocks = -(-responses.num_subjects // devices), 1
    if batch_subjects is not None:
        subject_blocks = -(-each // (batch_subjects // devices))
    answer_blocks = 1 if batch_answers is None else -(-responses.num_answers // batch_answers)
    if mesh is None:
        return jax.tree.map(jnp.asarray, dealt(responses, subject_blocks, answer_blocks, seed))
    places = NamedSharding(mesh, BY_SUBJECT).addressable_devices_indices_map((devices,)).values()
    own = sorted(place[0].indices(devices)[0] for place in places if place is not None)
    blocks = NamedSharding(mesh, P(None, SUBJECTS))
    here = dealt(responses, subject_blocks, answer_blocks, seed, devices, own)
    return jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(blocks, leaf), here)


def start_on_devices(start: Start, settings: Settings) -> Start:
    """The start on the devices, with padding where they divide neither subjects nor items evenly."""

    def one(leaf: Any, site: str) -> jax.Array:
        places = PLACES.get(site, EVERYWHERE)
        size = {BY_SUBJECT: settings.subjects, BY_ITEM: settings.items}.get(places)
        padded = np.asarray(leaf)
        if size is not None:
            ends = [(0, size.padded - size.number), *[(0, 0)] * (padded.ndim - 1)]
            padded = np.pad(padded, ends, constant_values=1.0)
        return jnp.asarray(padded) if settings.mesh is None else place(padded, settings.mesh, places)

    sites = {site: Normal(*(one(leaf, site) for leaf in normal)) for site, normal in start.sites.items()}
    directions = start.directions
    if directions is not None:
        directions = Directions(one(directions.values, "intercept"), one(directions.spread, "weights"))
    return Start(sites, None if start.pivots is None else one(start.pivots, "intercept"), directions)


def without_padding(normal: Normal, shape: tuple[int, ...]) -> Normal:
    """In float64, without padding."""
    return Normal(*(np.asarray(leaf, np.float64)[tuple(map(slice, shape))] for leaf in normal))
