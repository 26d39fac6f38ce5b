"""Convolutions over the words of a sentence."""

import functools

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.convolution import shift
from irtjax.networks.layers import Dense, dropout, matmul, only_active, split_key, width_mask
from irtjax.networks.sizes import Sentences, Sizes
from irtjax.networks.words import Words, max_over_time
from irtjax.tasks.task import PADDING

WINDOWS = (3, 4, 5)


class CnnClassifier(nnx.Module):
    """Kim (2014): filters of 3, 4 and 5 words, the largest value of each over the sentence.

    Filter k of n words, at the window that starts with word i, and its feature:
        c_i = relu(w_k · [x_i; ...; x_{i+n-1}] + b_k),  ĉ_k = max_i c_i.
    A window starts at every word; beyond the sentence there are zeros, so sentences of fewer than n words have
    features too. One sentence: logits = V dropout(ĉ) + c. A pair: the features of premise and hypothesis, by the same
    filters, are concatenated. A linear layer would add up what each sentence says without comparing them, so one tanh
    layer follows (after Bowman et al. 2015): logits = V dropout(tanh(T [ĉ; ĉ'] + d)) + c.
    `width` is the number of units of the word projection, and of filters of each size.

    Args:
        sizes: of the inputs and layers.
        active: hidden units that are not masked.
        joined: a pair is read as one sentence, the hypothesis after the premise, as by Lalor (2020, 3.2.2.2).
        rngs: of the initial weights.
    """

    def __init__(self, sizes: Sizes[Sentences], active: jax.Array | int, *, joined: bool = False, rngs: nnx.Rngs):
        width, (dimension, num_sentences) = sizes.width, sizes.inputs
        num_sentences = 1 if joined else num_sentences
        self.dropout, self.joined = sizes.dropout, joined
        self.words = Words(dimension, width, rngs=rngs)
        self.filters = nnx.List([Dense(n * width, width, rngs=rngs) for n in WINDOWS])
        features = num_sentences * len(WINDOWS) * width
        self.layers = nnx.List([Dense(features, 2 * width, rngs=rngs)] if num_sentences > 1 else [])
        self.out = Dense(2 * width if num_sentences > 1 else features, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: jax.Array, inputs: tuple[jax.Array, ...], key: jax.Array | None = None) -> jax.Array:
        """(V, D) vectors and (B, L) word numbers of each sentence -> (B, C) logits."""
        feature_key, layer_key = split_key(key, 2)
        if self.joined:
            inputs = (one_after_the_other(inputs),)
        u = jnp.concatenate([self.features(embeddings, sentence) for sentence in inputs], axis=-1)
        u = dropout(u, self.dropout, feature_key)
        for layer in self.layers:
            u = dropout(only_active(self.mask, jnp.tanh(layer(u))), self.dropout, layer_key)
        return self.out(u)

    def features(self, embeddings: jax.Array, sentence: jax.Array) -> jax.Array:
        """ĉ of one sentence, (B, 3 · width): filters of 3 words, of 4, of 5."""
        x, present = self.words(embeddings, sentence, self.mask)
        width = x.shape[-1]
        # one product multiplies every word by its part of every filter, at every place it can have in a window, without
        # copies of windows; the value of a window is then a sum of products of successive words
        kernels = [layer.kernel[...].reshape(n, width, width) for n, layer in zip(WINDOWS, self.filters, strict=True)]
        products = matmul(x, jnp.concatenate([part for kernel in kernels for part in kernel], axis=1))
        # split, not sliced: the gradient of twelve slices would be twelve arrays as large as the whole
        parts = iter(jnp.split(products, sum(WINDOWS), axis=-1))
        features = []
        for n, layer in zip(WINDOWS, self.filters, strict=True):
            window = functools.reduce(jnp.add, [shift(next(parts), place, axis=0) for place in range(n)])
            # the largest of relu(w · x + b) is relu(the largest w · x, + b)
            largest = max_over_time(window, present) + layer.bias[...][None]
            features.append(only_active(self.mask, nnx.relu(largest)))
        return jnp.concatenate(features, axis=-1)


def one_after_the_other(sentences: tuple[jax.Array, ...]) -> jax.Array:
    """Word numbers (B, L) of each sentence -> (B, ΣL), the words of all without padding between them."""
    words = jnp.concatenate([sentence.astype(jnp.int32) for sentence in sentences], axis=1)
    return jnp.take_along_axis(words, jnp.argsort(words == PADDING, axis=1, stable=True), axis=1)
