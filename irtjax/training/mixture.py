"""Epochs of a mixture of data: a pass over one kind of labels after the other, by networks of several seeds."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.networks import Network
from irtjax.tasks import Task
from irtjax.tasks.task import Split, TextFormat
from irtjax.training.data import (
    Data,
    EvaluationSplit,
    accuracy,
    default_mesh,
    evaluation_split,
    outputs,
    place,
    to_device,
)
from irtjax.training.loop import Learner, OnEpoch, Plan, same_plan, start, train, train_epoch
from irtjax.training.step import Place, Trainer
from irtjax.types import AnyArray, Float, Int


class Stream(NamedTuple):
    """One kind of data, of which each epoch has a pass; the same for every seed.

    Attributes:
        order: (M,) int32 examples, one of them several times where it has several labels.
        labels: (N,) or (N, ...) what the trainer's loss compares with.
        steps: (E,) minibatches in each epoch.
    """

    order: AnyArray
    labels: AnyArray
    steps: AnyArray


class Problem(NamedTuple):
    """Arrays that no epoch changes."""

    data: Data
    asked: dict[str, EvaluationSplit]
    streams: tuple[Stream, ...]
    learning_rate: jax.Array


@dataclasses.dataclass(frozen=True)
class Mixture:
    """An epoch is a pass over each kind of data in turn; in the end, some examples are answered.

    Attributes:
        trainers: one for each kind of data, with its loss; the first has the patience and the number of epochs.
        network: whose accuracy on the validation split counts.
        of: logits (B, K) of a block of examples -> arrays (B, ...), what is kept of the answers in the end.
        networks_of: for some of the splits that are asked, by name, another network, which answers them with the
            parameters of the trained one.
    """

    trainers: tuple[Trainer, ...]
    network: Network
    of: Callable[[jax.Array], Any]
    networks_of: tuple[tuple[str, Network], ...] = ()

    @property
    def trainer(self) -> Trainer:
        """The first."""
        return self.trainers[0]

    def begin(self, problem: Problem, keys: jax.Array) -> tuple[Learner, Any]:
        """Networks of some keys, and what their epochs leave to each other: nothing."""
        plans = _plan(problem, problem.streams[0], keys)
        return jax.vmap(functools.partial(start, self.trainer), (0, None))(plans, problem.data.initial), None

    def plans(self, problem: Problem, learners: Learner, memory: Any) -> tuple[Plan, ...]:
        """What the next epoch passes over, one for each kind of data."""
        return tuple(_plan(problem, stream, learners.key) for stream in problem.streams)

    def epoch(
        self, problem: Problem, learners: Learner, memory: Any, active: jax.Array
    ) -> tuple[Learner, jax.Array, Any]:
        """A pass over each kind of data in turn."""
        trained, all_plans = learners, self.plans(problem, learners, memory)
        steps = [jnp.where(active, jnp.asarray(stream.steps)[learners.epoch], 0) for stream in problem.streams]
        for kind, (trainer, plans) in enumerate(zip(self.trainers, all_plans, strict=True)):
            keyed = trained._replace(key=jax.vmap(jax.random.fold_in, (0, None))(learners.key, kind))
            where, live = Place(sum(steps[:kind]), sum(steps)), active & (steps[kind] > 0)
            trained = train_epoch(trainer, keyed, plans, problem.data, steps[kind], live, place=where)
        answer = jax.vmap(functools.partial(accuracy, self.network), (0, None, None))
        validation_accuracy = answer(trained.parameters, problem.data.embeddings, problem.data.validation)
        return trained._replace(key=learners.key), validation_accuracy, memory

    def end(self, problem: Problem, learners: Learner, memory: Any) -> tuple[jax.Array, jax.Array, dict[str, Any], Any]:
        """Best epochs, their validation accuracies, answers by their parameters, and what the epochs left."""
        networks, answers = dict(self.networks_of), {}
        for name, split in problem.asked.items():
            network = networks.get(name, self.trainer.network)
            say = jax.vmap(functools.partial(outputs, network, of=self.of), (0, None, None))
            answers[name] = say(learners.best_parameters, problem.data.embeddings, split)
        return learners.best_epoch, learners.best_accuracy, answers, memory


class TrainedSeeds(NamedTuple):
    """S networks.

    Attributes:
        best_epoch: (S,) from 1.
        validation_accuracy: (S,) of that epoch, and all that follows.
        answers: by the name of a split, what `Mixture.of` keeps, (S, N, ...) each.
        memory: what the program makes of what its epochs left to each other; None for a `Mixture`.
    """

    best_epoch: Int[np.ndarray, " S"]
    validation_accuracy: Float[np.ndarray, " S"]
    answers: dict[str, Any]
    memory: Any = None


def train_seeds(
    program: Mixture,
    streams: tuple[Stream, ...],
    task: Task,
    asked: Mapping[str, Split],
    seeds: Int[AnyArray, " S"],
    learning_rate: float,
    on_epoch: OnEpoch | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> TrainedSeeds:
    """Trains one network for each seed; those of one seed begin with the same weights, whatever the streams.

    After each epoch the validation split is answered, and the parameters of the best epoch count.

    Args:
        program: how.
        streams: one for each trainer.
        task: with the training examples and the validation split.
        asked: examples that are answered in the end, by any name.
        seeds: (S,) of initial weights and minibatches.
        learning_rate: of all.
        on_epoch: see `irtjax.training.loop.train`.
        mesh: devices; None for all of this process.
    """
    own_mesh = default_mesh(len(seeds), mesh)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    text = task.format if isinstance(task.format, TextFormat) else None
    splits = place({name: evaluation_split(split, text) for name, split in asked.items()}, own_mesh)
    problem = Problem(to_device(task, own_mesh), splits, streams, jnp.float32(learning_rate))
    trained = train(program, keys, problem, own_mesh, on_epoch)
    return TrainedSeeds(*jax.tree.map(np.asarray, trained))


def _plan(problem: Problem, stream: Stream, keys: jax.Array) -> Plan:
    size = jnp.int32(stream.order.shape[0])
    return same_plan(keys, stream.order, size, stream.labels, problem.learning_rate)
