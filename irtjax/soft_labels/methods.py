"""Ways to learn from soft labels beside hard ones, by name: what each is trained on, in which epoch, by which loss."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
import optax

from irtjax.errors import InputError
from irtjax.soft_labels.choices import METHODS, SOFT


def soft_cross_entropy(logits: jax.Array, shares: jax.Array) -> jax.Array:
    """CCE = -Σ_y p(y) log p̂(y), the mean over the B examples of a minibatch; logits and shares are (B, C)."""
    return optax.softmax_cross_entropy(logits, shares).mean()


def squared_error(logits: jax.Array, shares: jax.Array) -> jax.Array:
    """MSE = Σ_y (p̂(y) - p(y))² on softmax outputs, the mean over the B examples of a minibatch."""
    return ((jax.nn.softmax(logits) - shares) ** 2).sum(-1).mean()


LOSSES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {"CCE": soft_cross_entropy, "MSE": squared_error}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """In which epochs there is a pass over the hard data, and in which one over the soft data.

    Attributes:
        hard, soft: (E,) bool.
    """

    hard: np.ndarray
    soft: np.ndarray


def schedule(method: str, num_epochs: int, epochs_in_a_row: int) -> Schedule:
    """The passes of a method (Lalor, Wu and Yu 2018; Lalor 2020, chapter 4).

        =======  =============================================================================================
        B0       the training data
        B1       the training data and the soft items with their gold labels, as one
        B2       as B1, and further data with hard labels
        B3       the training data and every answer to a soft item as an example with a hard label, as one
        I-…      SLMG-I: in every epoch the training data, then the soft items with their soft labels
        S-…      SLMG-S: e epochs on the training data, then e on the soft items, and so on (algorithm 2)
        =======  =============================================================================================

    So S-… has half as many passes over the training data as the others in as many epochs. What the study calls
    meta-epochs is how often S-… repeats both.

    Args:
        method: one of `METHODS`.
        num_epochs: E.
        epochs_in_a_row: e of SLMG-S.

    Raises:
        InputError: unknown method, or e below 1.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
    if epochs_in_a_row < 1:
        raise InputError(f"{epochs_in_a_row} epochs in a row on soft labels, expected at least 1")
    every = np.ones(num_epochs, bool)
    if method.startswith("I-"):
        return Schedule(every, every)
    if method.startswith("S-"):
        hard = np.arange(num_epochs) // epochs_in_a_row % 2 == 0
        return Schedule(hard, ~hard)
    return Schedule(every, ~every)


def epochs_of(method: str, hard_passes: int, epochs_in_a_row: int) -> int:
    """How many epochs a method needs for a number of passes over the training data: E, and of S-… also e ⌊E / e⌋.

    So S-… has as many passes over the training data as the others.

    Args:
        method: one of `METHODS`.
        hard_passes: E.
        epochs_in_a_row: e of SLMG-S.
    """
    if not method.startswith("S-"):
        return hard_passes
    return hard_passes + epochs_in_a_row * (hard_passes // epochs_in_a_row)


def loss_of(method: str) -> str:
    """The name of the loss on soft labels; of baselines, which have none, that of CCE."""
    return method.split("-")[1] if method in SOFT else "CCE"
