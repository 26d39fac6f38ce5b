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
        init: key -> parameters.
        logits: (parameters, inputs (B, ...)) -> (B, C) class logits.
    """

    init: Callable[[jax.Array], Parameters]
    logits: Callable[[Parameters, jax.Array], jax.Array]


def build(name: str, task: Task, width: int) -> Network:
    """The network called `name`, sized for the inputs and classes of `task`.

    Args:
        name: one of `NETWORKS`.
        task: gives the input shape and scale and the number of classes.
        width: hidden units a layer.

    Raises:
        InputError: unknown name, or a width that is not positive.
    """
    if name not in NETWORKS:
        raise InputError(f"unknown network {name!r}, expected one of {', '.join(NETWORKS)}")
    if width < 1:
        raise InputError(f"network width {width}, expected at least 1")
    return _mlp(task.train.inputs[0].size, width, task.num_classes, task.input_scale)


@functools.cache
def _mlp(num_inputs: int, width: int, num_classes: int, input_scale: float) -> Network:
    """One network a size: its functions are static arguments of jit, and two of them would be compiled for twice."""

    def make(rngs: nnx.Rngs) -> nnx.Module:
        return Mlp(num_inputs, width, num_classes, input_scale, rngs=rngs)

    graph = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))[0]
    return Network(
        init=lambda key: nnx.split(make(nnx.Rngs(key)), nnx.Param)[1],
        logits=lambda parameters, inputs: nnx.merge(graph, parameters)(inputs),
    )
