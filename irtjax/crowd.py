"""Artificial crowds: networks of widely spread ability, whose graded answers stand in for those of people."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses import ResponseMatrix, grade, percent_correct
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS
from irtjax.training import Learner, Plan, Trainer, predict_all, to_device, train_networks


class Members(NamedTuple):
    """The crowd's specification; everything random about a member follows from its row.

    Attributes:
        seed: (J,) of subset membership, corrupted labels, initial weights and minibatches.
        subset_size: (J,) training examples.
        corruption_rate: (J,) share of those whose label is replaced by a wrong one.
    """

    seed: np.ndarray
    subset_size: np.ndarray
    corruption_rate: np.ndarray


class Crowd(NamedTuple):
    """A trained crowd: its members as a table, and their graded answers to every item of each split."""

    members: pd.DataFrame
    responses: dict[str, ResponseMatrix]


def sample_members(num_models: int, num_examples: int, seed: int, *, min_subset: int, max_corruption: float) -> Members:
    """Draws a crowd: subset sizes log-uniform in min_subset..num_examples, corruption uniform in 0..max_corruption.

    Raises:
        InputError: fewer than two models, or a range that is empty.
    """
    if num_models < 2:
        raise InputError(f"a crowd of {num_models}, expected at least 2 models")
    if not 1 <= min_subset <= num_examples:
        raise InputError(f"smallest subset {min_subset}, expected 1 to {num_examples} (the training examples)")
    if not 0 <= max_corruption <= 1:
        raise InputError(f"largest corruption rate {max_corruption}, expected 0 to 1")
    rng = np.random.default_rng(seed)
    log_size = rng.uniform(np.log(min_subset), np.log(num_examples), num_models)
    return Members(
        seed=rng.choice(2**31, size=num_models, replace=False),
        subset_size=np.round(np.exp(log_size)).astype(np.int32),
        corruption_rate=rng.uniform(0, max_corruption, num_models).astype(np.float32),
    )


def plan_members(members: Members, labels: np.ndarray, num_classes: int) -> Plan:
    """What each member is trained on: J random subsets of the N training examples, their labels corrupted.

    Args:
        members: the crowd.
        labels: (N,) gold labels.
        num_classes: C; a corrupted label is uniform over the C - 1 wrong ones.
    """
    labels = jnp.asarray(labels, jnp.uint8 if num_classes <= 256 else jnp.int32)
    num_examples = labels.shape[0]

    def plan(seed, size, rate):
        order_key, wrong_key, key = jax.random.split(jax.random.key(seed), 3)
        order = jax.random.permutation(order_key, num_examples)
        shift = jax.random.randint(wrong_key, (num_examples,), 1, num_classes).astype(labels.dtype)
        corrupted = jnp.arange(num_examples) < jnp.round(rate * size)
        gold = labels[order].astype(jnp.int32)
        shown = jnp.where(corrupted, (gold + shift) % num_classes, gold).astype(labels.dtype)
        return Plan(key, order, size, jnp.zeros_like(labels).at[order].set(shown))

    return jax.jit(jax.vmap(plan))(
        jnp.asarray(members.seed, jnp.uint32),
        jnp.asarray(members.subset_size),
        jnp.asarray(members.corruption_rate),
    )


def train_crowd(
    task: Task,
    members: Members,
    trainer: Trainer,
    steps_per_epoch: int,
    *,
    on_epoch: Callable[[int, int, np.ndarray], None] | None = None,
) -> Crowd:
    """Trains the crowd as one program (see `training.train_networks`) and lets it answer every item.

    Each member answers with the parameters of its best epoch by validation accuracy.
    """
    data = to_device(task)
    plans = plan_members(members, task.train.labels, task.num_classes)
    learners = train_networks(trainer, plans, data, steps_per_epoch, on_epoch=on_epoch)
    subject_ids = np.array([f"model_{index:04d}" for index in range(len(members.seed))])
    responses = {}
    for name in SPLITS:
        split = task.split(name)
        predictions = predict_all(trainer.network, learners.best_parameters, jnp.asarray(split.inputs))
        responses[name] = ResponseMatrix(grade(predictions, split.labels), subject_ids, split.ids)
    return Crowd(_member_table(members, learners, responses), responses)


def _member_table(members: Members, learners: Learner, responses: dict[str, ResponseMatrix]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject_id": responses["train"].subject_ids,
            "seed": members.seed,
            "subset_size": members.subset_size,
            "corruption_rate": members.corruption_rate,
            "epochs": np.asarray(learners.epoch),
            "best_epoch": np.asarray(learners.best_epoch),
            **{f"accuracy_{name}": percent_correct(matrix.values, axis=1) for name, matrix in responses.items()},
        }
    )
