"""Training on labels and difficulties at once, and what networks then say of any examples."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.item_models.tables import LEAST_SPREAD, MOST
from irtjax.joint.adversarial import attacked
from irtjax.joint.model import class_head, joint_loss, predicted_difficulty, two_heads
from irtjax.joint.outside import has_images
from irtjax.joint.own_answers import LearnsFromItself
from irtjax.networks import Network
from irtjax.tasks import Task
from irtjax.tasks.task import ImageFormat, Split
from irtjax.training.loop import OnEpoch
from irtjax.training.mixture import Mixture, Stream, TrainedSeeds, train_seeds
from irtjax.training.recipe import Recipe, make_trainer
from irtjax.types import AnyArray, Float, Int

ADVERSARIAL = "adversarial"  # the name of answers to images that were moved against the network


class Difficulties(NamedTuple):
    """What is known of the training items' difficulties.

    Attributes:
        mean, sd: (N,) of the posterior of each, in logits.
    """

    mean: Float[AnyArray, " N"]
    sd: Float[AnyArray, " N"]


class Predictions(NamedTuple):
    """What S networks predict of N examples.

    Attributes:
        classes: (S, N) most probable ones.
        confidence: (S, N) their probabilities (maximum softmax probability, Hendrycks and Gimpel 2017).
        difficulty, difficulty_sd: (S, N) f and τ, in logits.
    """

    classes: Int[np.ndarray, "S N"]
    confidence: Float[np.ndarray, "S N"]
    difficulty: Float[np.ndarray, "S N"]
    difficulty_sd: Float[np.ndarray, "S N"]


@checks_types
def train_jointly(
    task: Task,
    difficulties: Difficulties | None,
    weight: float,
    *,
    recipe: Recipe,
    asked: Mapping[str, Split],
    attack: float = 0.0,
    num_seeds: int = 10,
    first_seed: int = 0,
    on_epoch: OnEpoch | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> TrainedSeeds:
    """Trains networks with a head for classes and one for difficulty, by `model.joint_loss`.

    Networks of one seed begin with the same weights and read the same minibatches, whatever the weight.

    Args:
        task: what is learned.
        difficulties: of the training items, such as those of `irtjax.fit` on a crowd's answers; None for those by each
            network's own answers after each epoch, see `own_answers.own_difficulties`.
        weight: λ, of the difficulties' part of the loss; 0 for a network that learns the task alone.
        recipe: how; an epoch is a pass over the training data.
        asked: examples that the networks are asked about, by any name but `ADVERSARIAL`.
        attack: step of the fast gradient sign method against each network, as a share of the range of pixels: what it
            says of the test images so moved is then among the answers, as `ADVERSARIAL`. 0 for none.
        num_seeds: S.
        first_seed: of initial weights and minibatches; the others are the numbers after it.
        on_epoch: see `irtjax.training.loop.train`.
        mesh: devices; None for all of this process.

    Returns:
        What became of them; `answers` are the `Predictions` for each of the examples asked about. Without
        difficulties, `memory` has the `OwnDifficulties` of the training items by each network, from all its epochs;
        predictions are of the best epoch, by the spread of items in the end.

    Raises:
        InputError: not one finite difficulty per training item, no spread among them, a standard deviation, a weight or
            a step that is negative, a step against what is no image, another set of the name `ADVERSARIAL`, or a recipe
            that the task does not allow.
    """
    if not 0 <= weight < np.inf:
        raise InputError(f"`weight`={weight}: expected a finite number, 0 or more")
    targets, mean, sd = _targets(task, difficulties, weight)
    number = task.num_classes
    trainer = dataclasses.replace(
        make_trainer(recipe, task), network=two_heads(recipe.network, task, recipe.width), loss=joint_loss(number)
    )
    steps = np.full(recipe.max_epochs, max(len(targets) // recipe.batch_size, 1))
    stream = Stream(np.arange(len(targets), dtype=np.int32), targets, steps)
    kind = Mixture if difficulties is not None else LearnsFromItself
    networks_of: tuple[tuple[str, Network], ...] = ()
    if attack:
        if ADVERSARIAL in asked:
            raise InputError(f"`asked`: {ADVERSARIAL!r} is the name of the images that are attacked, choose another")
        asked = {**asked, ADVERSARIAL: task.test}
        networks_of = ((ADVERSARIAL, attacked(trainer.network, number, attack, *_range_of(task, attack))),)
    trained = train_seeds(
        kind((trainer,), class_head(trainer.network, number), _predicted(number), networks_of),
        (stream,),
        task,
        asked,
        np.arange(first_seed, first_seed + num_seeds),
        recipe.learning_rate,
        on_epoch,
        mesh,
    )
    if difficulties is None:  # f and τ are in standard deviations of each network's population of items
        sd = trained.memory.spread[:, None]
    answers = {
        name: Predictions(classes, confidence, mean + sd * f, sd * tau)
        for name, (classes, confidence, f, tau) in trained.answers.items()
    }
    return trained._replace(answers=answers)


def _targets(task: Task, difficulties: Difficulties | None, weight: float) -> tuple[np.ndarray, float, float]:
    """(N, 4) label, m, s and λ, with m of mean 0 and deviation 1; and the mean and deviation that it had.

    (N, 2) label and λ where difficulties are not known.
    """
    labels = task.train.labels
    if difficulties is None:
        return np.stack([labels, np.full(labels.shape, weight)], axis=1).astype(np.float32), 0.0, 1.0
    require_sound(task, difficulties)
    m, s = (np.asarray(column, float) for column in difficulties)
    mean, sd = float(m.mean()), float(m.std())
    columns = labels, (m - mean) / sd, s / sd, np.full(m.shape, weight)
    return np.stack(columns, axis=1).astype(np.float32), mean, sd


def _range_of(task: Task, attack: float) -> tuple[float, float]:
    """The range of stored pixels, for an attack of a sound step."""
    if not 0 < attack <= 1:
        raise InputError(f"`attack`={attack}: expected a share of the range of pixels, from 0 to 1")
    if not has_images(task):
        raise InputError(f"`attack`={attack}: {task.name} has no images whose pixels could be moved")
    assert isinstance(task.format, ImageFormat)
    images = np.asarray(task.test.inputs)
    return min(0.0, float(images.min())), max(task.format.scale, float(images.max()))


def require_sound(task: Task, difficulties: Difficulties) -> None:
    """Refuses difficulties of which nothing can be learned.

    Raises:
        InputError: see `train_jointly`.
    """
    m, s = (np.asarray(column, float) for column in difficulties)
    if m.shape != task.train.labels.shape or s.shape != m.shape:
        raise InputError(f"{m.size} difficulties for {len(task.train.labels)} training examples, expected one each")
    bad = ~((np.abs(m) < MOST) & (s >= 0) & (s < MOST))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"training example {str(task.train.ids[at])!r}: difficulty {m[at]:g} with standard deviation {s[at]:g}, "
            f"expected numbers of less than {MOST:,.0f} logits, and a deviation of 0 or more"
        )
    if np.ptp(m) == 0 or m.std() < LEAST_SPREAD:
        raise InputError("all training items are equally difficult: nothing is to be learned of that")


@functools.cache
def _predicted(num_classes: int) -> Callable[[jax.Array], tuple[jax.Array, ...]]:
    """Outputs (B, C + 2) -> the fields of `Predictions`, difficulties in standard deviations."""

    def predicted(outputs: jax.Array) -> tuple[jax.Array, ...]:
        logits = outputs[:, :num_classes]
        return logits.argmax(-1), jax.nn.softmax(logits).max(-1), *predicted_difficulty(outputs, num_classes)

    return predicted
