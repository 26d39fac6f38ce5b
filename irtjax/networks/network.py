"""What training sees of a network: two functions, of its parameters and of its inputs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.sizes import Encoded, Sizes

Parameters = Any


class Network(NamedTuple):
    """A network without its parameters.

    Attributes:
        init: (key, number of hidden units that are not masked, weights of an encoder) -> parameters. All units where
            the number exceeds them; weights are None, or left out, for networks that begin from random ones alone.
        logits: (parameters, embeddings, inputs, key) -> (B, C) class logits. `embeddings` (V, D) are the word vectors
            that numbers in `inputs` point to, None for images. `inputs` is what `Split.inputs` holds, for B examples;
            sentences may be cut to any length that holds them. `key` draws the dropout; None for no dropout.
    """

    init: Callable[..., Parameters]
    logits: Callable[[Parameters, jax.Array | None, Any, jax.Array | None], jax.Array]


def of_module(module: Callable[..., nnx.Module], sizes: Sizes) -> Network:
    """The network of a Flax NNX module that is built from `sizes`, `active` and `rngs`."""

    def make(key: jax.Array, active: jax.Array | int) -> nnx.Module:
        return module(sizes, active, rngs=nnx.Rngs(key))

    graph = nnx.split(nnx.eval_shape(lambda: make(jax.random.key(0), 1)))[0]

    def init(key: jax.Array, active: jax.Array | int, weights: Any = None) -> Parameters:
        parameters = nnx.split(make(key, active), nnx.Param)[1]
        if isinstance(sizes.inputs, Encoded) and weights is not None:
            nnx.replace_by_pure_dict(parameters, {"encoder": jax.tree.map(jnp.asarray, weights)})
        return parameters

    def logits(
        parameters: Parameters, embeddings: jax.Array | None, inputs: Any, key: jax.Array | None = None
    ) -> jax.Array:
        return nnx.merge(graph, parameters)(embeddings, inputs, key)

    return Network(init, logits)
