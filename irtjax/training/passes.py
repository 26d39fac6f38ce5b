"""Networks of several seeds, trained as one program by passes over data: one kind of labels after the other."""

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
from irtjax.training.data import Data, EvaluationSplit, accuracy, evaluation_split, outputs, place, to_device
from irtjax.training.devices import default_mesh, on_devices
from irtjax.training.trainer import Learner, Trainer, end_epoch, is_training, same_plan, start, train_epoch, tree_where
from irtjax.types import AnyArray, Float, Int


class Passes(NamedTuple):
    """What passes over one kind of data consist of, the same for every seed.

    Attributes:
        order: (M,) int32 examples, one of them several times where it has several labels.
        labels: (N,) or (N, ...) what the trainer's loss compares with.
        steps: (E,) minibatches in each epoch.
    """

    order: AnyArray
    labels: AnyArray
    steps: AnyArray


class Program(NamedTuple):
    """What is compiled; equal ones are compiled once.

    Attributes:
        trainers: one for each kind of data, with its loss; the first has the patience and the number of epochs. Their
            steps per epoch have no use here.
        network: whose accuracy on the validation split counts.
        of: logits (B, K) of a block of examples -> arrays (B, ...), what is kept of the answers in the end.
        on_epoch: called after each epoch, as in `irtjax.selection.curriculum.train_curriculum`.
    """

    trainers: tuple[Trainer, ...]
    network: Network
    of: Callable[[jax.Array], Any]
    on_epoch: Callable[[np.ndarray, np.ndarray], None] | None = None


class Trained(NamedTuple):
    """S networks.

    Attributes:
        best_epoch: (S,) from 1.
        validation_accuracy: (S,) of that epoch, and all that follows.
        answers: by the name of a split, what `Program.of` keeps, (S, N, ...) each.
    """

    best_epoch: Int[np.ndarray, " S"]
    validation_accuracy: Float[np.ndarray, " S"]
    answers: dict[str, Any]


class _Problem(NamedTuple):
    """Arrays that no epoch changes."""

    data: Data
    asked: dict[str, EvaluationSplit]
    passes: tuple[Passes, ...]
    learning_rate: jax.Array


def train_seeds(
    program: Program,
    passes: tuple[Passes, ...],
    task: Task,
    asked: Mapping[str, Split],
    seeds: Int[AnyArray, " S"],
    learning_rate: float,
    mesh: jax.sharding.Mesh | None = None,
) -> Trained:
    """Trains one network for each seed; those of one seed begin with the same weights, whatever the passes.

    An epoch is a pass over each kind of data in turn. After it the validation split is answered, and the parameters of
    the best epoch count.

    Args:
        program: how.
        passes: one for each trainer.
        task: with the training examples and the validation split.
        asked: examples that are answered in the end, by any name.
        seeds: (S,) of initial weights and minibatches.
        learning_rate: of all.
        mesh: devices; None for all of this process.
    """
    number = len(seeds)
    own_mesh = default_mesh(number, mesh)
    filled = np.resize(seeds, -(-number // own_mesh.size) * own_mesh.size)
    keys = jax.vmap(jax.random.key)(jnp.asarray(filled, jnp.uint32))
    text = task.format if isinstance(task.format, TextFormat) else None
    splits = place({name: evaluation_split(split, text) for name, split in asked.items()}, own_mesh)
    if program.trainers[0].warmup is not None:  # the learning rate falls over the steps of all passes
        total = sum(int(np.sum(one.steps)) for one in passes)
        per_epoch = -(-total // program.trainers[0].max_epochs)
        kinds = tuple(dataclasses.replace(kind, steps_per_epoch=per_epoch) for kind in program.trainers)
        program = program._replace(trainers=kinds)
    problem = _Problem(to_device(task, own_mesh), splits, passes, jnp.float32(learning_rate))
    trained = _train(program, own_mesh, keys, problem)
    jax.effects_barrier()  # reports of the last epochs
    return Trained(*jax.tree.map(lambda column: np.asarray(column)[:number], trained))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(program: Program, mesh: jax.sharding.Mesh, keys: jax.Array, problem: _Problem) -> tuple[Any, Any, Any]:
    return on_devices(functools.partial(_train_on_device, program), mesh, (True, False))(keys, problem)


def _train_on_device(program: Program, keys: jax.Array, problem: _Problem) -> tuple[Any, Any, Any]:
    """All epochs of the seeds of one device."""
    trainer, data = program.trainers[0], problem.data
    plans = [
        same_plan(keys, passes.order, jnp.int32(passes.order.shape[0]), passes.labels, problem.learning_rate)
        for passes in problem.passes
    ]
    answer = jax.vmap(functools.partial(accuracy, program.network), (0, None, None))

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
    say = jax.vmap(functools.partial(outputs, trainer.network, of=program.of), (0, None, None))
    answers = {name: say(learners.best_parameters, data.embeddings, split) for name, split in problem.asked.items()}
    return learners.best_epoch, learners.best_accuracy, answers
