"""Networks such as users bring, of every form; and some that cannot be trained."""

import jax
import jax.numpy as jnp
from flax import linen, nnx

from irtjax.networks.layers import dropout, image_values
from irtjax.networks.mlp import Mlp


class Copy(Mlp):
    """Ours under another name."""


class Perceptron(nnx.Module):
    """Of Flax's own layers, without a mask of hidden units."""

    def __init__(self, sizes, active, *, rngs):
        height, width, channels = sizes.inputs.shape
        self.hidden = nnx.Linear(height * width * channels, sizes.width, rngs=rngs)
        self.out = nnx.Linear(sizes.width, sizes.num_classes, rngs=rngs)

    def __call__(self, embeddings, inputs, key=None):
        hidden = jnp.tanh(self.hidden(inputs.reshape(inputs.shape[0], -1) / 16))
        return self.out(dropout(hidden, 0.25, key))


class OfLinen(linen.Module):
    num_classes: int
    width: int = 3

    @linen.compact
    def __call__(self, x, train: bool):
        hidden = linen.relu(linen.Dense(self.width)(x.reshape(x.shape[0], -1)))
        return linen.Dense(self.num_classes)(linen.Dropout(0.5, deterministic=not train)(hidden))


ONE_OF_LINEN = OfLinen(10, 5)


class Functions:
    """Logistic regression."""

    @staticmethod
    def init(key, sizes):
        height, width, channels = sizes.inputs.shape
        kernel = 0.01 * jax.random.normal(key, (height * width * channels, sizes.num_classes))
        return {"kernel": kernel, "bias": jnp.zeros(sizes.num_classes)}

    @staticmethod
    def logits(parameters, embeddings, inputs, key, sizes):
        x = image_values(sizes.inputs.format, inputs).reshape(inputs.shape[0], -1)
        return x @ parameters["kernel"] + parameters["bias"][None]


class MeanOfWords(nnx.Module):
    """Text, of any length."""

    def __init__(self, sizes, active, *, rngs):
        self.out = nnx.Linear(sizes.inputs.dimension, sizes.num_classes, rngs=rngs)

    def __call__(self, embeddings, inputs, key=None):
        return self.out(sum(embeddings[sentence].mean(1) for sentence in inputs))


class FirstWords(MeanOfWords):
    """Text of one length."""

    def __init__(self, sizes, active, *, rngs):
        self.out = nnx.Linear(7 * sizes.inputs.dimension, sizes.num_classes, rngs=rngs)

    def __call__(self, embeddings, inputs, key=None):
        return self.out(embeddings[inputs[0]].reshape(inputs[0].shape[0], -1))


class WordsOfLinen(linen.Module):
    num_classes: int

    @linen.compact
    def __call__(self, sentences, embeddings):
        return linen.Dense(self.num_classes)(embeddings[sentences[0]].mean(1))


# Of no use


class Transposed(Perceptron):
    def __call__(self, embeddings, inputs, key=None):
        return super().__call__(embeddings, inputs, key).T


class FixedClasses(Perceptron):
    def __call__(self, embeddings, inputs, key=None):
        return super().__call__(embeddings, inputs, key)[:, :2]


class OfBatches(Perceptron):
    def __init__(self, sizes, active, *, rngs):
        super().__init__(sizes, active, rngs=rngs)
        self.norm = nnx.BatchNorm(5, rngs=rngs)


class OwnDropout(Perceptron):
    def __init__(self, sizes, active, *, rngs):
        super().__init__(sizes, active, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)


class Keyless(Perceptron):
    def __call__(self, embeddings, inputs):
        return super().__call__(embeddings, inputs)


class Raising(Perceptron):
    def __call__(self, embeddings, inputs, key=None):
        return self.out(inputs)


class Branching(Perceptron):
    def __call__(self, embeddings, inputs, key=None):
        return super().__call__(embeddings, inputs, key) if inputs.sum() > 0 else inputs


class KeepsActive(Perceptron):
    def __init__(self, sizes, active, *, rngs):
        super().__init__(sizes, active, rngs=rngs)
        self.active = active


class TakesNothing(nnx.Module):
    def __init__(self):
        pass


class Integers(Perceptron):
    def __init__(self, sizes, active, *, rngs):
        super().__init__(sizes, active, rngs=rngs)
        self.table = nnx.Param(jnp.arange(4))


class LinenOfBatches(linen.Module):
    num_classes: int

    @linen.compact
    def __call__(self, x, train):
        x = linen.BatchNorm(use_running_average=not train)(x.reshape(x.shape[0], -1))
        return linen.Dense(self.num_classes)(x)


class AlwaysDrops(linen.Module):
    num_classes: int

    @linen.compact
    def __call__(self, x):
        x = linen.Dropout(0.5, deterministic=False)(x.reshape(x.shape[0], -1))
        return linen.Dense(self.num_classes)(x)


class KeylessFunctions(Functions):
    @staticmethod
    def logits(parameters, embeddings, inputs):
        return inputs


def function(x):
    return x


NUMBER = 3
