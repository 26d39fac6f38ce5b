"""How networks are trained, in terms that a user chooses: optimizers, recipes, defaults, and what they make."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax

from irtjax import networks
from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.storage.digests import digest
from irtjax.tasks import Task
from irtjax.tasks.task import TextFormat
from irtjax.training.augmentation import flip_and_shift
from irtjax.training.choices import NETWORK_RECIPES, OF_TEXT, OPTIMIZERS, RECIPES, Recipe, sgd_rate
from irtjax.training.step import Trainer
from irtjax.types import AnyArray

SMALL_IMAGES = 28 * 28  # values of an image that an MLP reads; larger ones, and those in colour, are for convolutions


def for_convolutions(task: Task) -> bool:
    """Whether the examples are images in colour, or larger ones, which networks with convolutions read best."""
    if isinstance(task.format, TextFormat):
        return False
    height, width, channels = np.shape(task.train.inputs)[1:]
    return height * width > 1 and (channels > 1 or height * width > SMALL_IMAGES)


def _by_size(task: Task) -> Recipe:
    """A recipe for a task that none has been tried on, by the kind and the number of its examples.

    An epoch is one pass over the training examples, as long as that is fewer steps than usual, and at least 10 steps;
    there are then more epochs, and more patience. More classes have wider networks.
    """
    if isinstance(task.format, TextFormat):
        usual, wider = OF_TEXT, 1
    else:
        if np.shape(task.train.inputs)[1:3] == (1, 1):
            usual = dataclasses.replace(RECIPES["digits"], steps_per_epoch=200)
        else:
            usual = RECIPES["cifar10" if for_convolutions(task) else "mnist"]
        wider = 1 if task.num_classes <= 20 else 2 if task.num_classes <= 100 else 4
    assert usual.steps_per_epoch is not None
    steps = min(usual.steps_per_epoch, max(10, len(task.train.labels) // usual.batch_size))
    if steps < usual.steps_per_epoch / 2:
        usual = dataclasses.replace(usual, max_epochs=40, patience=5)
    return dataclasses.replace(usual, width=usual.width * wider, steps_per_epoch=steps)


@checks_types
def default_recipe(task: Task, network: str | None = None, optimizer: str = "adam", momentum: float = 0.0) -> Recipe:
    """The recipe for a task, which has been tried on it; for other tasks, one by the kind and number of its examples.

    Where the usual network cannot read the task, such as a table of features, it is the first one that can.

    Args:
        task: what is trained on.
        network: the architecture; None for the task's usual one.
        optimizer: its name; the learning rate goes by it.
        momentum: of gradient descent.
    """
    usual, possible = RECIPES.get(task.name), networks.choices(task)
    if usual is None or usual.network not in possible:  # another task may have the name of one of these
        usual = _by_size(task)
    if network is None:
        network = usual.network if usual.network in possible else possible[0]
    own = NETWORK_RECIPES.get(network, {}) | ({"learning_rate": sgd_rate(momentum)} if optimizer == "sgd" else {})
    return dataclasses.replace(usual, **{"network": network, "optimizer": optimizer, "momentum": momentum, **own})


def make_trainer(recipe: Recipe, task: Task) -> Trainer:
    """What trains networks by the recipe on the task; images that may be flipped are augmented.

    Raises:
        InputError: a network that cannot read the task, a width that is not positive, or word vectors to be trained
            where there are no words.
    """
    text = task.format if isinstance(task.format, TextFormat) else None
    if recipe.train_embeddings and text is None:
        raise InputError(f"word vectors cannot be trained: {task.name} has no words")
    if recipe.train_embeddings and text is not None and text.packed:
        raise InputError(f"word vectors cannot be trained where pairs are packed: load {task.name} without that")
    augmented = not isinstance(task.format, TextFormat) and task.format.flips
    return Trainer(
        network=networks.build(recipe.network, task, recipe.width),
        optimizer=optimizer_of(recipe.optimizer, recipe.momentum, recipe.weight_decay, recipe.clip),
        batch_size=recipe.batch_size,
        patience=recipe.patience,
        max_epochs=recipe.max_epochs,
        buckets=() if text is None else text.buckets,
        own_embeddings=recipe.train_embeddings,
        warmup=recipe.warmup,
        augment=flip_and_shift if augmented else None,
    )


def epoch_lengths(recipe: Recipe, sizes: AnyArray) -> np.ndarray:
    """Gradient steps in an epoch of networks whose training sets are of some sizes (J,)."""
    if recipe.steps_per_epoch is not None:
        return np.full(np.shape(sizes), recipe.steps_per_epoch, np.int32)
    return np.maximum(np.asarray(sizes) // recipe.batch_size, 1).astype(np.int32)


def longest_first(steps: np.ndarray) -> np.ndarray:
    """Networks in the order in which they should begin, so that those in a pool have epochs of similar length."""
    return np.argsort(-steps, kind="stable")


def fingerprint(recipe: Recipe, task: Task) -> str:
    """A text that tells one recipe and one task's examples, their lengths in minibatches, and labels from others."""
    fields = {field.name: getattr(recipe, field.name) for field in dataclasses.fields(recipe)}
    if isinstance(task.format, TextFormat):
        fields["buckets"] = task.format.buckets
    return digest(fields, [task.split(name)[:2] for name in task.splits])


MASKS = frozenset({"mask"})  # parameters by name that say which units there are, and never change
BIASES_AND_NORMS = frozenset({"bias", "scale", "gain"})  # scale in encoders, gain in `group_norm`


@functools.cache  # one object for equal arguments: another would be a different static argument of jit
def optimizer_of(
    name: str, momentum: float = 0.0, weight_decay: float = 0.0, clip: float = 0.0
) -> optax.GradientTransformation:
    """An optax transformation at learning rate 1.

        ====  ==========================================================================================
        adam  Adam (Kingma and Ba 2015); with decay, λ w is added to its step, but not of biases and of norms
              (Loshchilov and Hutter 2019; Devlin et al. 2019)
        sgd   v ← μ v + g + λ w, and v is the step, of all weights (as in PyTorch)
        ====  ==========================================================================================

    Of word vectors that a network trains for itself, only the rows of a minibatch take part in a step.

    Args:
        name: one of `OPTIMIZERS`.
        momentum: μ of gradient descent, 0 to below 1.
        weight_decay: λ, at least 0.
        clip: greatest norm of a gradient, beyond which it is scaled down to it; 0 for none.

    Raises:
        InputError: an unknown name, a number out of range, or momentum for Adam.
    """
    if name not in OPTIMIZERS:
        raise InputError(f"unknown optimizer {name!r}, expected one of {', '.join(OPTIMIZERS)}")
    if not 0 <= momentum < 1:
        raise InputError(f"momentum {momentum}, expected 0 to below 1")
    if not 0 <= weight_decay < math.inf:
        raise InputError(f"weight decay {weight_decay}, expected 0 or more")
    if not 0 <= clip < math.inf:
        raise InputError(f"gradients clipped at {clip}, expected 0 or more")
    if clip:
        return optax.chain(optax.clip_by_global_norm(clip), optimizer_of(name, momentum, weight_decay))
    if name == "adam":
        if momentum:
            raise InputError(f"momentum {momentum} has no effect on adam: choose sgd, or leave it out")
        decayed = _without(MASKS | BIASES_AND_NORMS)
        return optax.adamw(1.0, weight_decay=weight_decay, mask=decayed) if weight_decay else optax.adam(1.0)
    descent = optax.sgd(1.0, momentum=momentum or None)
    decay = optax.add_decayed_weights(weight_decay, mask=_without(MASKS))
    return optax.chain(decay, descent) if weight_decay else descent


def _without(names: frozenset[str]) -> Callable[[Any], Any]:
    """A function of parameters that is true of those that have none of these names."""

    def of(path: tuple[Any, ...], _: jax.Array) -> bool:
        return names.isdisjoint(getattr(key, "key", None) for key in path)

    return functools.partial(jax.tree_util.tree_map_with_path, of)
