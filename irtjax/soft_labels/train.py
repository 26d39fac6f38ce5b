"""Training on hard and on soft labels, all seeds of a method as one program."""

import dataclasses

import jax
import numpy as np

from irtjax.arguments import checks_types, require_bounds
from irtjax.errors import InputError
from irtjax.soft_labels.choices import WITHOUT_HARD_DATA
from irtjax.soft_labels.labels import check_soft_labels
from irtjax.soft_labels.methods import LOSSES, loss_of, schedule
from irtjax.tasks import Task
from irtjax.tasks.task import Split, join
from irtjax.training.loop import OnEpoch
from irtjax.training.mixture import Mixture, Stream, TrainedSeeds, train_seeds
from irtjax.training.recipe import Recipe, make_trainer
from irtjax.types import AnyArray, Float, Int


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
        """Refuses other types, and what are no shares."""
        require_bounds(self)
        check_soft_labels(self.shares, self.split.ids)


@checks_types
def train_method(
    task: Task,
    items: SoftItems,
    method: str,
    *,
    recipe: Recipe,
    num_seeds: int = 20,
    first_seed: int = 0,
    epochs_in_a_row: int = 3,
    further: Split | None = None,
    held_out: Split | None = None,
    on_epoch: OnEpoch | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> TrainedSeeds:
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
        epochs_in_a_row: e of SLMG-S.
        further: the further data of B2.
        held_out: examples that are not learned from, whose probabilities are wanted.
        on_epoch: see `irtjax.training.loop.train`.
        mesh: devices; None for all of this process.

    Returns:
        What became of them; `answers["test"]` are the classes (S, N) that they predict for the test split, and
        `answers["held_out"]` the log-probabilities (S, I, C) of the classes of what is held out.

    Raises:
        InputError: an unknown method, B2 without further data, B3 where single answers are not known, a method that
            needs examples beside the items where there are none, or a recipe that the task does not allow.
    """
    if not len(task.train.labels) and method not in WITHOUT_HARD_DATA:
        raise InputError(f"{method} needs training examples beside the items with soft labels, and there are none")
    when = schedule(method, recipe.max_epochs, epochs_in_a_row)
    joined, hard, soft = _streams(task, items, method, recipe.batch_size, further)
    hard = hard._replace(steps=np.where(when.hard, hard.steps, 0))
    soft = soft._replace(steps=np.where(when.soft, soft.steps, 0))
    trainer = make_trainer(recipe, task)
    trainers = trainer, dataclasses.replace(trainer, loss=LOSSES[loss_of(method)])
    asked, of = {"test": task.test}, _most_probable
    if held_out is not None:
        asked, of = asked | {"held_out": held_out}, _log_probabilities
    trained = train_seeds(
        Mixture(trainers, trainer.network, of),
        (hard, soft),
        joined,
        asked,
        np.arange(first_seed, first_seed + num_seeds),
        recipe.learning_rate,
        on_epoch,
        mesh,
    )
    if held_out is None:
        return trained
    return trained._replace(answers=trained.answers | {"test": trained.answers["test"].argmax(-1)})


def _streams(
    task: Task, items: SoftItems, method: str, batch_size: int, further: Split | None = None
) -> tuple[Task, Stream, Stream]:
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
    hard = Stream(order.astype(np.int32), labels, np.maximum(order.size // batch_size, 1))
    if not order.size:  # all examples have soft labels: no pass reads the one that stands here
        hard = Stream(soft_order[:1], labels, np.zeros((), int))
    soft = Stream(soft_order, shares, np.maximum(num_items // batch_size, 1))
    return dataclasses.replace(task, train=train._replace(labels=labels)), hard, soft


def _log_probabilities(logits: jax.Array) -> jax.Array:
    return jax.nn.log_softmax(logits)


def _most_probable(logits: jax.Array) -> jax.Array:
    return logits.argmax(-1)
