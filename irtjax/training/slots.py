"""The compiled programs of a pool: each works on the slots of every device, apart from the other devices.

Whatever belongs to networks has a leading axis of slots, spread over the devices of a mesh.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.networks import Network, Parameters
from irtjax.training.data import Data, EvaluationSplit, classify, on_devices
from irtjax.training.loop import WINDOW, Learner, Plan, is_training, start, train_epoch, validate
from irtjax.training.step import Place, Trainer, tree_where
from irtjax.types import AnyArray

Initial = tuple[AnyArray | None, Any]  # `Data.initial`
MakePlan = Callable[[Any, Any], Plan]  # (row, shared) -> plan of one network


def shapes(trainer: Trainer, make_plan: MakePlan, rows: Any, shared: Any, initial: Initial) -> tuple[Plan, Learner]:
    """The plan and the learner of one network of some rows, as shapes and types."""
    row = jax.tree.map(lambda column: column[0], rows)
    return jax.eval_shape(functools.partial(_begin_one, trainer, make_plan), row, shared, initial)


def empty(mesh: jax.sharding.Mesh, size: int, plan: Plan, learner: Learner) -> tuple[Plan, Learner]:
    """Empty slots, `size` on all devices together, for networks of the given shapes."""
    plans, learners = jax.tree.map(functools.partial(_zeros, mesh, size), (plan, learner))
    # no network is trained on nothing, not even one that does not matter
    return plans._replace(size=plans.size + 1), learners


def _zeros(mesh: jax.sharding.Mesh, size: int, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    if _is_key(leaf):
        words = jax.eval_shape(jax.random.key_data, leaf)
        return jax.random.wrap_key_data(jnp.zeros((size, *words.shape), words.dtype, device=spread(mesh)))
    return jnp.zeros((size, *leaf.shape), leaf.dtype, device=spread(mesh))


def spread(mesh: jax.sharding.Mesh) -> jax.sharding.Sharding:
    """The leading axis over the devices."""
    return jax.NamedSharding(mesh, jax.P(*mesh.axis_names))


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def fill(
    trainer: Trainer,
    make_plan: MakePlan,
    mesh: jax.sharding.Mesh,
    slots: tuple[Plan, Learner],
    fresh: jax.Array,
    rows: Any,
    shared: Any,
    initial: Initial,
) -> tuple[Plan, Learner]:
    """Puts new networks into the slots marked `fresh`, one after the other: making a plan sorts all examples."""

    def fill_all(slots, fresh, rows, shared, initial):
        def fill_one(slot):
            old, fresh, row = slot
            return jax.lax.cond(fresh, lambda: _begin_one(trainer, make_plan, row, shared, initial), lambda: old)

        return jax.lax.map(fill_one, (slots, fresh, rows))

    return on_devices(fill_all, mesh, (True, True, True, False, False))(slots, fresh, rows, shared, initial)


def _begin_one(trainer: Trainer, make_plan: MakePlan, row: Any, shared: Any, initial: Initial) -> tuple[Plan, Learner]:
    plan = make_plan(row, shared)
    return plan, start(trainer, plan, initial)


@functools.partial(jax.jit, static_argnums=(0, 1))
def plan(make_plan: MakePlan, mesh: jax.sharding.Mesh, rows: Any, shared: Any) -> Plan:
    """The plans of some networks, one after the other."""

    def plan_all(rows, shared):
        return jax.lax.map(lambda row: make_plan(row, shared), rows)

    return on_devices(plan_all, mesh, (True, False))(rows, shared)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def train(
    trainer: Trainer,
    mesh: jax.sharding.Mesh,
    learners: Learner,
    plans: Plan,
    live: jax.Array,
    place: Place,
    num_steps: int | jax.Array,
    data: Data,
) -> Learner:
    """Trains the slots marked `live` for so many minibatches, as `train_epoch` does; the others stay as they are."""

    def train_all(learners, plans, live, place, num_steps, data):
        steps = jnp.where(live if each else live.any(), num_steps, 0)
        new = train_epoch(trainer, learners, plans, data, steps, live, place.behind // WINDOW, place)
        return jax.vmap(tree_where)(live, new, learners)

    each = jnp.ndim(num_steps) > 0
    program = on_devices(train_all, mesh, (True, True, True, True, each, False))
    return program(learners, plans, live, place, num_steps, data)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def validate_all(
    trainer: Trainer, mesh: jax.sharding.Mesh, learners: Learner, live: jax.Array, data: Data
) -> tuple[Learner, jax.Array]:
    """Ends the epoch of the slots marked `live`, and tells which of them go on training."""

    def end(learners, live, data):
        learners = jax.vmap(tree_where)(live, validate(trainer, learners, data, live), learners)
        return learners, live & is_training(trainer, learners)

    return on_devices(end, mesh, (True, True, False))(learners, live, data)


@functools.partial(jax.jit, static_argnums=(0, 1))
def classify_all(
    network: Network,
    mesh: jax.sharding.Mesh,
    parameters: Parameters,
    embeddings: AnyArray | None,
    split: EvaluationSplit,
) -> jax.Array:
    """The classes (slots, N) that networks predict for the N examples of a split."""

    def answer(parameters, embeddings, split):
        return jax.vmap(functools.partial(classify, network), (0, None, None))(parameters, embeddings, split)

    return on_devices(answer, mesh, (True, False, False))(parameters, embeddings, split)


@jax.jit
def _row(tree: Any, at: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[at], tree)


def read_slot(tree: Any, at: int) -> Any:
    """What a slot holds, read from its own device: a slice of the whole arrays would make all devices meet."""
    first = jax.tree.leaves(tree)[0]
    on_device = first.shape[0] // len(first.addressable_shards)
    start = at // on_device * on_device

    def part(leaf):
        return next(shard.data for shard in leaf.addressable_shards if (shard.index[0].start or 0) == start)

    return jax.device_get(_row(jax.tree.map(part, tree), at - start))


def _is_key(leaf: jax.Array | jax.ShapeDtypeStruct) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def storable(leaf: jax.Array) -> np.ndarray:
    """A NumPy array; of random keys, the integers that they are made of."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def restored(sharding: jax.sharding.Sharding, like: jax.Array | jax.ShapeDtypeStruct, stored: np.ndarray) -> jax.Array:
    """The inverse of `storable`, on the devices again; `like` says whether it is of random keys."""
    return jax.device_put(jax.random.wrap_key_data(jnp.asarray(stored)) if _is_key(like) else stored, sharding)


def choose_slots(leaf: jax.Array, at: np.ndarray) -> jax.Array:
    """Some slots of a leaf; by way of the host, which is simplest, and happens a few times in a run."""
    return restored(leaf.sharding, leaf, storable(leaf)[at])


def put(learners: Learner, networks: Mapping[int, list[np.ndarray]]) -> Learner:
    """The learners with others in some slots, given as leaves of `storable`; by way of the host as well."""
    slots, leaves = list(networks), zip(*networks.values(), strict=True)

    def replace(leaf: jax.Array, new: tuple[np.ndarray, ...]) -> jax.Array:
        values = np.array(storable(leaf))
        values[slots] = np.stack(new)
        return restored(leaf.sharding, leaf, values)

    new = [replace(leaf, rows) for leaf, rows in zip(jax.tree.leaves(learners), leaves, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(learners), new)
