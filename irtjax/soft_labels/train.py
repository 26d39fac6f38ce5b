"""Training on hard and on soft labels, all seeds of a method as one program."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.soft_labels.labels import check_soft_labels
from irtjax.soft_labels.methods import LOSSES, WITHOUT_HARD_DATA, loss_of, schedule
from irtjax.tasks import Task
from irtjax.tasks.task import Split, join
from irtjax.training.data import Data, accuracy, classify, to_device
from irtjax.training.devices import default_mesh, on_devices
from irtjax.training.recipe import Recipe, make_trainer
from irtjax.training.trainer import Learner, Plan, Trainer, end_epoch, is_training, start, train_epoch, tree_where
from irtjax.types import AnyArray, Float, Int

ALL_UNITS = np.iinfo(np.int32).max  # hidden units that are not masked


@dataclasses.dataclass(frozen=True, eq=False)
class SoftItems:
    """Items with soft labels.

    Attributes:
        split: the I items, with gold labels; in no split of the task.
        shares: (I, C) soft labels, which sum to 1.
        counts: (I, C) the answers that they are shares of; None where these are not known.
    """

    split: Split
    shares: Float[AnyArray, "I C"]
    counts: Int[AnyArray, "I C"] | None = None

    def __post_init__(self) -> None:
        """Refuses what are no shares."""
        check_soft_labels(self.shares, self.split.ids)


class Trained(NamedTuple):
    """S networks that were trained by one method.

    Attributes:
        best_epoch: (S,) from 1.
        validation_accuracy: (S,) of that epoch, and all that follows.
        classes: (S, N) that they predict for the examples of the test split.
    """

    best_epoch: Int[np.ndarray, " S"]
    validation_accuracy: Float[np.ndarray, " S"]
    classes: Int[np.ndarray, "S N"]


class _Passes(NamedTuple):
    """What passes over one kind of data consist of.

    Attributes:
        order: (M,) int32 examples, one of them several times where it has several labels.
        labels: (N,) integers, or (N, C) shares.
        steps: (E,) minibatches in each epoch.
    """

    order: AnyArray
    labels: AnyArray
    steps: AnyArray


class _Problem(NamedTuple):
    """Arrays that no epoch changes; the passes are those over hard labels and over soft ones."""

    data: Data
    passes: tuple[_Passes, _Passes]
    learning_rate: jax.Array


class _Program(NamedTuple):
    """What is compiled into the program: a trainer for either kind of labels, and the callback."""

    trainers: tuple[Trainer, Trainer]
    on_epoch: Callable[[np.ndarray, np.ndarray], None] | None


def train_method(
    task: Task,
    items: SoftItems,
    method: str,
    *,
    recipe: Recipe,
    num_seeds: int = 20,
    first_seed: int = 0,
    meta_epochs: int = 3,
    further: Split | None = None,
    on_epoch: Callable[[np.ndarray, np.ndarray], None] | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> Trained:
    """Trains networks by one method; those of one seed begin with the same weights under every method.

    An epoch is what `irtjax.soft_labels.methods.schedule` says; after each the validation split is answered, and the
    parameters of the best epoch count. Training ends by the recipe's patience and largest number of epochs.

    Args:
        task: with the training, validation and test split, of which `items` are none: see `without`.
        items: with soft labels.
        method: one of `METHODS`.
        recipe: how networks are trained; its steps per epoch have no use here, as an epoch is made of passes.
        num_seeds: S.
        first_seed: of initial weights and minibatches; the others are the numbers after it.
        meta_epochs: e of SLMG-S.
        further: the further data of B2.
        on_epoch: called after each epoch, as in `irtjax.selection.curriculum.train_curriculum`.
        mesh: devices; None for all of this process.

    Raises:
        InputError: an unknown method, B2 without further data, B3 where single answers are not known, a method that
            needs examples beside the items where there are none, or a recipe that the task does not allow.
    """
    if not len(task.train.labels) and method not in WITHOUT_HARD_DATA:
        raise InputError(f"{method} needs training examples beside the items with soft labels, and there are none")
    when = schedule(method, recipe.max_epochs, meta_epochs)
    joined, hard, soft = _passes(task, items, method, recipe.batch_size, further)
    hard = hard._replace(steps=np.where(when.hard, hard.steps, 0))
    soft = soft._replace(steps=np.where(when.soft, soft.steps, 0))
    trainer = make_trainer(recipe, task)
    trainers = trainer, dataclasses.replace(trainer, loss=LOSSES[loss_of(method)])
    own_mesh = default_mesh(num_seeds, mesh)
    seeds = first_seed + np.arange(-(-num_seeds // own_mesh.size) * own_mesh.size) % num_seeds
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    data = to_device(joined, own_mesh)
    problem = _Problem(data, (hard, soft), jnp.float32(recipe.learning_rate))
    trained = _train(_Program(trainers, on_epoch), own_mesh, keys, problem)
    jax.effects_barrier()
    return Trained(*(np.asarray(column)[:num_seeds] for column in trained))


def _passes(
    task: Task, items: SoftItems, method: str, batch_size: int, further: Split | None = None
) -> tuple[Task, _Passes, _Passes]:
    """The task with the items and further data among its training examples, and what is passed over.

    For B3, items are there once per class: an example has one hard label, and an item is shown with several.
    """
    num_items, num_classes = np.shape(items.shares)
    count = len(task.train.labels)
    of_items = np.repeat(np.arange(num_classes), num_items) if method == "B3" else items.split.labels
    copies = count + np.arange(of_items.size).reshape(-1, num_items)
    order = np.arange(count)
    more = [] if method != "B2" or further is None else [further]
    if method == "B2" and not more:
        raise InputError("B2 trains on further data, and there are none: leave it out")
    if method in ("B1", "B2"):
        order = np.concatenate([order, copies[0]])
    elif method == "B3":
        if items.counts is None:
            raise InputError("B3 trains on every answer, and only their shares are known: leave it out")
        order = np.concatenate([order, np.repeat(copies.ravel(), np.asarray(items.counts).T.ravel())])
    labels = np.concatenate([task.train.labels, of_items, *(part.labels for part in more)]).astype(np.int32)
    order = np.concatenate([order, np.arange(count + of_items.size, labels.size)])
    soft_order = copies[0].astype(np.int32)
    shares = np.zeros((labels.size, num_classes), np.float32)
    shares[copies[0]] = items.shares
    train = join(task.train, *[items.split] * len(copies), *more)
    hard = _Passes(order.astype(np.int32), labels, np.maximum(order.size // batch_size, 1))
    if not order.size:  # all examples have soft labels: no pass reads the one that stands here
        hard = _Passes(soft_order[:1], labels, np.zeros((), int))
    soft = _Passes(soft_order, shares, np.maximum(num_items // batch_size, 1))
    return dataclasses.replace(task, train=train._replace(labels=labels)), hard, soft


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(
    program: _Program, mesh: jax.sharding.Mesh, keys: jax.Array, problem: _Problem
) -> tuple[jax.Array, jax.Array, jax.Array]:
    return on_devices(functools.partial(_train_seeds, program), mesh, (True, False))(keys, problem)


def _train_seeds(program: _Program, keys: jax.Array, problem: _Problem) -> tuple[jax.Array, jax.Array, jax.Array]:
    """All epochs of the seeds of one device."""
    (trainer, _), data, network = program.trainers, problem.data, program.trainers[0].network
    plans = [_plans(passes, keys, problem.learning_rate) for passes in problem.passes]
    answer = jax.vmap(functools.partial(accuracy, network), (0, None, None))

    def epoch(learners: Learner) -> Learner:
        active = is_training(trainer, learners)
        trained = learners
        for stream, (kind, plan, passes) in enumerate(zip(program.trainers, plans, problem.passes, strict=True)):
            steps = jnp.where(active, jnp.asarray(passes.steps)[learners.epoch], 0)
            keyed = jax.vmap(jax.random.fold_in, (0, None))(learners.key, stream)
            trained = train_epoch(kind, trained._replace(key=keyed), plan, data, steps, active & (steps > 0))
        validation_accuracy = answer(trained.parameters, data.embeddings, data.validation)
        ended = end_epoch(trained._replace(key=learners.key), validation_accuracy)
        if program.on_epoch is not None:
            jax.debug.callback(program.on_epoch, ended.epoch, ended.best_accuracy)
        return jax.vmap(tree_where)(active, ended, learners)

    learners = jax.vmap(functools.partial(start, trainer), (0, None))(plans[0], data.given)
    learners = jax.lax.while_loop(lambda learners: is_training(trainer, learners).any(), epoch, learners)
    classes = jax.vmap(functools.partial(classify, network), (0, None, None))
    return learners.best_epoch, learners.best_accuracy, classes(learners.best_parameters, data.embeddings, data.test)


def _plans(passes: _Passes, keys: jax.Array, learning_rate: jax.Array) -> Plan:
    """The same examples for every seed."""
    size = jnp.int32(passes.order.shape[0])
    shared = passes.order, size, passes.labels, learning_rate, jnp.int32(ALL_UNITS)
    return Plan(keys, *(jnp.broadcast_to(leaf, (keys.shape[0], *jnp.shape(leaf))) for leaf in shared))
