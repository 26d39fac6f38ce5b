"""What each member of a crowd is trained on: a random subset of the examples, with some labels corrupted."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.crowd.members import Members
from irtjax.tasks import Task
from irtjax.training.loop import Plan
from irtjax.types import AnyArray, Bool


class Row(NamedTuple):
    """What one member's plan is made of: its row of `Members` without names."""

    seed: AnyArray
    subset_size: AnyArray
    corruption_rate: AnyArray
    learning_rate: AnyArray
    width: AnyArray


class Gold(NamedTuple):
    """What all plans have in common: (N,) gold labels, as small integers, and the number of classes."""

    labels: AnyArray
    num_classes: AnyArray


def rows_of(members: Members) -> Row:
    """The columns that plans are made of."""
    columns = {name: getattr(members, name) for name in Row._fields}
    return Row(**columns | {"seed": members.seed.astype(np.uint32)})


def gold_of(task: Task) -> Gold:
    """The gold labels of the training split."""
    small = np.uint8 if task.num_classes <= 256 else np.int32
    return Gold(task.train.labels.astype(small), np.asarray(task.num_classes, np.int32))


def plan_member(row: Row, gold: Gold) -> Plan:
    """What one member is trained on: a random subset of the N training examples, some of its labels corrupted.

    A corrupted label is uniform over the C - 1 wrong ones.
    """
    num_examples = gold.labels.shape[0]
    key, order = _order(row, num_examples)
    wrong_key, key = jax.random.split(key)
    shift = jax.random.randint(wrong_key, (num_examples,), 1, gold.num_classes)
    right = jnp.asarray(gold.labels)[order].astype(jnp.int32)
    corrupted = jnp.arange(num_examples) < jnp.round(row.corruption_rate * row.subset_size)
    shown = jnp.where(corrupted, (right + shift) % gold.num_classes, right).astype(gold.labels.dtype)
    labels = jnp.zeros_like(gold.labels).at[order].set(shown)
    return Plan(key, order, row.subset_size, labels, row.learning_rate, row.width)


def _order(row: Row, num_examples: int) -> tuple[jax.Array, jax.Array]:
    """The member's order of all training examples, whose first `subset_size` are its own, and a key for the rest."""
    order_key, key = jax.random.split(jax.random.key(row.seed))
    return key, jax.random.permutation(order_key, num_examples)


def in_subset(members: Members, num_examples: int) -> Bool[np.ndarray, "J N"]:
    """Which of the training examples each member is trained on."""
    rows = rows_of(members)
    return np.stack([np.asarray(_in_subset(row, num_examples)) for row in map(Row, *rows)])


@functools.partial(jax.jit, static_argnums=1)
def _in_subset(row: Row, num_examples: int) -> jax.Array:
    _, order = _order(row, num_examples)
    return jnp.zeros(num_examples, bool).at[order].set(jnp.arange(num_examples) < row.subset_size)


def in_every_subset(members: Members, num_examples: int) -> Bool[np.ndarray, " N"]:
    """The training examples that all members are trained on: out of bag, nobody answers them."""
    everyone = np.ones(num_examples, bool)
    for at in range(len(members)):
        everyone &= in_subset(members.choose(slice(at, at + 1)), num_examples)[0]
        if not everyone.any():
            break
    return everyone
