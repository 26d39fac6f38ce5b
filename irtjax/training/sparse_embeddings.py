"""Word vectors that each network trains for itself, updated row by row.

A gradient step touches a few hundred words, those of its minibatch, out of a vocabulary of tens of thousands. Updating
the whole table would cost more than the rest of the step, so only those rows are read, differentiated and written.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from irtjax.tasks.task import PADDING

NO_WORD = jnp.iinfo(jnp.int32).max  # a number that no vocabulary has


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
    optimizer: optax.GradientTransformation,
    embeddings: jax.Array,
    state: Any,
    words: jax.Array,
    gradient: jax.Array,
    learning_rate: jax.Array,
    active: jax.Array | bool = True,
) -> tuple[jax.Array, Any]:
    """One step of an optimiser for the rows of a minibatch.

    Rows of other words stay as they are, and so do their running means; optimisers for sparse gradients call this lazy.
    What an optimiser keeps for the table as a whole, such as the number of steps, it keeps here too.

    Args:
        optimizer: an optax transformation at learning rate 1, each number of which depends on no other number.
        embeddings: (V, D).
        state: of the optimiser, for the table.
        words: (U,) distinct rows, in ascending order; numbers beyond the table are ignored.
        gradient: (U, D).
        learning_rate: scalar.
        active: whether the step is taken at all.
    """
    words = jnp.where(active, words, NO_WORD)  # without choosing between whole tables

    def is_table(leaf):
        return jnp.shape(leaf) == embeddings.shape

    def write(leaf, new):
        if not is_table(leaf):
            return jnp.where(active, new, leaf)
        return leaf.at[words].set(new, mode="drop", unique_indices=True, indices_are_sorted=True)

    own = jax.tree.map(lambda leaf: rows_of(leaf, words) if is_table(leaf) else leaf, state)
    rows = rows_of(embeddings, words)
    updates, new = optimizer.update(gradient, own, rows)
    changed = optax.apply_updates(rows, jax.tree.map(lambda step: learning_rate * step, updates))
    return write(embeddings, changed), jax.tree.map(write, state, new)
