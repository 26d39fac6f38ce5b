"""Sentences read by LSTMs."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.layers import Dense, dropout, only_active, split_key, width_mask
from irtjax.networks.recurrent import Lstm
from irtjax.networks.sizes import Sentences, Sizes
from irtjax.networks.words import Words


class LstmClassifier(nnx.Module):
    """One sentence by its last state; a pair by the last states of two encoders, through three tanh layers.

    One sentence (Hochreiter and Schmidhuber 1997), h_L the state of `recurrent.Lstm` after its last word:
        logits = V h_L + c.
    A pair (Bowman et al. 2015), with one encoder per sentence:
        u_0 = [h_L; h'_L'],  u_k = tanh(T_k u_{k-1} + d_k) for k = 1, 2, 3, of 2 · width units,  logits = V u_3 + c.
    The word projection and each encoder have `width` units. Dropout is applied to the encoders' inputs and last states.

    Args:
        sizes: of the inputs and layers.
        active: hidden units that are not masked.
        always_deep: three tanh layers for one sentence too, of `width` units, as Lalor (2020, 3.2.2.1) has them.
        rngs: of the initial weights.
    """

    def __init__(self, sizes: Sizes[Sentences], active: jax.Array | int, *, always_deep: bool = False, rngs: nnx.Rngs):
        width, (dimension, num_sentences) = sizes.width, sizes.inputs
        self.dropout = sizes.dropout
        self.words = Words(dimension, width, rngs=rngs)
        self.encoders = nnx.List([Lstm(width, width, rngs=rngs) for _ in range(num_sentences)])
        joined, deep = num_sentences * width, always_deep or num_sentences > 1
        self.layers = nnx.List([Dense(joined, joined, rngs=rngs) for _ in range(3 * deep)])
        self.out = Dense(joined, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: jax.Array, inputs: tuple[jax.Array, ...], key: jax.Array | None = None) -> jax.Array:
        """(V, D) vectors and (B, L) word numbers of each sentence -> (B, C) logits."""
        last_key, *keys = split_key(key, 1 + len(inputs))
        last = []
        for encoder, sentence, word_key in zip(self.encoders, inputs, keys, strict=True):
            x, present = self.words(embeddings, sentence, self.mask)
            last.append(encoder(dropout(x, self.dropout, word_key), present, self.mask)[-1])
        u = dropout(jnp.concatenate(last, axis=-1), self.dropout, last_key)
        for layer in self.layers:
            u = only_active(self.mask, jnp.tanh(layer(u)))
        return self.out(u)
