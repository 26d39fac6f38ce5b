"""Word vectors that each network trains for itself, updated row by row.

A gradient step touches a few hundred words, those of its minibatch, out of a vocabulary of tens of thousands. Updating
the whole table would cost more than the rest of the step, so only those rows are read, differentiated and written.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.tasks.task import PADDING
from irtjax.types import AnyArray

NO_WORD = jnp.iinfo(jnp.int32).max  # a number that no vocabulary has
DECAY, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as optax has them


class Owned(NamedTuple):
    """Parameters of a network with word vectors of its own: `embeddings` (V, D)."""

    network: Any
    embeddings: jax.Array


class Moments(NamedTuple):
    """Adam's state of the vectors: running means (V, D) of gradients and of their squares, and the steps so far."""

    mean: jax.Array
    square: jax.Array
    steps: jax.Array


def start_moments(embeddings: jax.Array) -> Moments:
    """No gradient seen."""
    return Moments(jnp.zeros_like(embeddings), jnp.zeros_like(embeddings), jnp.int32(0))


def split(parameters: Any, shared: AnyArray | None) -> tuple[Any, Any]:
    """A network's parameters without vectors, and its vectors: its own, or else the shared ones."""
    return tuple(parameters) if isinstance(parameters, Owned) else (parameters, shared)


def renumber(inputs: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """The distinct words (U,) of a minibatch, and its sentences as indices into them; `PADDING` stays what it is.

    U is one more than the number of words and paddings in the sentences. Past the distinct words, the array is filled
    with a number that no vocabulary has.
    """
    places = jnp.concatenate([jnp.full(1, PADDING), *(sentence.ravel() for sentence in inputs)]).astype(jnp.int32)
    words = jnp.unique(places, size=places.size, fill_value=NO_WORD)
    return words, tuple(jnp.searchsorted(words, sentence.astype(jnp.int32)) for sentence in inputs)


def pad_rows(words: jax.Array, rows: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Words (U,) and their rows (U, D), filled up to `size` with `NO_WORD` and zeros."""
    missing = size - words.size
    return jnp.pad(words, (0, missing), constant_values=NO_WORD), jnp.pad(rows, ((0, missing), (0, 0)))


def rows_of(embeddings: jax.Array, words: jax.Array) -> jax.Array:
    """Vectors (U, D) of some words; zeros for numbers that the vocabulary lacks."""
    return embeddings.at[words].get(mode="fill", fill_value=0)


def update(
    embeddings: jax.Array, moments: Moments, words: jax.Array, gradient: jax.Array, learning_rate: jax.Array
) -> tuple[jax.Array, Moments]:
    """Adam (Kingma and Ba 2015) for the rows of a minibatch.

    Rows of other words stay as they are, and so do their running means; optimisers for sparse gradients call this lazy
    Adam. The bias correction counts all steps.

    Args:
        embeddings: (V, D).
        moments: of them.
        words: (U,) distinct rows, in ascending order; numbers beyond the table are ignored.
        gradient: (U, D).
        learning_rate: scalar.
    """
    steps = moments.steps + 1
    mean = DECAY * rows_of(moments.mean, words) + (1 - DECAY) * gradient
    square = DECAY_SQUARE * rows_of(moments.square, words) + (1 - DECAY_SQUARE) * gradient**2
    corrected = mean / (1 - DECAY**steps), square / (1 - DECAY_SQUARE**steps)
    step = -learning_rate * corrected[0] / (jnp.sqrt(corrected[1]) + EPSILON)
    options: Any = {"mode": "drop", "unique_indices": True, "indices_are_sorted": True}
    new = Moments(moments.mean.at[words].set(mean, **options), moments.square.at[words].set(square, **options), steps)
    return embeddings.at[words].add(step, **options), new
