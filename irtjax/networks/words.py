"""From word numbers to vectors, without any effect of padding. Sequences are time first: (L, B, ...)."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.layers import Dense, only_active
from irtjax.tasks.task import PADDING


class Words(nnx.Module):
    """x_t = m · (P e_t + c): a member's own small projection of the frozen vector e of a word, which the crowd shares.

    Args:
        dimension: D, of word vectors.
        width: of the projection.
        rngs: of the initial weights.
    """

    def __init__(self, dimension: int, width: int, *, rngs: nnx.Rngs):
        self.projection = Dense(dimension, width, rngs=rngs)

    def __call__(self, embeddings: jax.Array, sentences: jax.Array, mask: nnx.Param) -> tuple[jax.Array, jax.Array]:
        """(V, D) vectors and (B, L) word numbers -> (L, B, width), 0 at padding, and (L, B) where words are."""
        words = sentences.T.astype(jnp.int32)
        present = words != PADDING
        vectors = jnp.asarray(embeddings).at[words].get(mode="clip")  # time first from here on: no transpose of vectors
        return where_present(present, only_active(mask, self.projection(vectors))), present


def where_present(present: jax.Array, x: jax.Array, otherwise: float = 0.0) -> jax.Array:
    """`x` (L, B, K) where there is a word, `otherwise` at padding."""
    return jnp.where(present[..., None], x, otherwise)


def max_over_time(x: jax.Array, present: jax.Array) -> jax.Array:
    """Largest value of each unit over the words of a sentence: (L, B, K) -> (B, K)."""
    return where_present(present, x, -jnp.inf).max(0)


def mean_over_time(x: jax.Array, present: jax.Array) -> jax.Array:
    """Mean of each unit over the words of a sentence: (L, B, K) -> (B, K)."""
    return where_present(present, x).sum(0) / present.sum(0).astype(x.dtype)[:, None]
