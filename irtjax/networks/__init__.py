"""The networks, as pure functions of their parameters."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from flax import nnx

from irtjax.errors import InputError
from irtjax.networks.mlp import Mlp
from irtjax.tasks import Task

Parameters = Any
NETWORKS = ("mlp",)


class Network(NamedTuple):
    """A network without its parameters.

    Attributes:
        init: (key, number of hidden units that are not masked) -> parameters.
        logits: (parameters, embeddings, inputs, key) -> (B, C) class logits. `embeddings` (V, D) are the word vectors
            that numbers in `inputs` point to, None for images. `inputs` is what `Split.inputs` holds, for B examples;
            sentences may be cut to any length that holds them. `key` is of dropout; None means none, as in answering.
    """

    init: Callable[[jax.Array, jax.Array | int], Parameters]
    logits: Callable[[Parameters, jax.Array | None, Any, jax.Array | None], jax.Array]


def build(name: str, task: Task, width: int) -> Network:
    """The network called `name`, sized for the inputs and classes of `task`.

    Args:
        name: one of `NETWORKS`.
        task: gives the shape and format of inputs and the number of classes.
        width: hidden units a layer.

    Raises:
        InputError: unknown name, or a width that is not positive.
    """
    if name not in NETWORKS:
        raise InputError(f"unknown network {name!r}, expected one of {', '.join(NETWORKS)}")
    if width < 1:
        raise InputError(f"network width {width}, expected at least 1")
    return _network(Mlp, task.train.inputs[0].size, width, task.num_classes, task.format)


@functools.cache
def _network(module: type[nnx.Module], *arguments: Any) -> Network:
    """One network a size: its functions are static arguments of jit, and two of them would be compiled for twice."""

    def make(key: jax.Array, active: jax.Array | int) -> nnx.Module:
        return module(*arguments, active, rngs=nnx.Rngs(key))

    graph = nnx.split(nnx.eval_shape(lambda: make(jax.random.key(0), 1)))[0]

    def logits(parameters, embeddings, inputs, key=None):
        return nnx.merge(graph, parameters)(embeddings, inputs, key)

    return Network(init=lambda key, active: nnx.split(make(key, active), nnx.Param)[1], logits=logits)
