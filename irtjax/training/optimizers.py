"""Optimisers by name, at learning rate 1: each network scales its updates by a rate of its own."""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import optax

from irtjax.errors import InputError

OPTIMIZERS = ("adam", "sgd")
SGD_RATE = 0.1  # of gradient descent without momentum, where nothing else is known
MASKS = frozenset({"mask"})  # parameters by name that say which units there are, and never change
BIASES_AND_NORMS = frozenset({"bias", "scale"})


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


def sgd_rate(momentum: float) -> float:
    """The usual learning rate of gradient descent: with momentum μ, steps add up to 1/(1 - μ) times their size."""
    return SGD_RATE * (1 - momentum)
