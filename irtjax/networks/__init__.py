"""The networks, as pure functions of their parameters."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.errors import InputError
from irtjax.networks.bert import BertClassifier
from irtjax.networks.cnn import CnnClassifier
from irtjax.networks.esim import EsimClassifier
from irtjax.networks.lenet import LeNet
from irtjax.networks.lstm import LstmClassifier
from irtjax.networks.mlp import Mlp
from irtjax.networks.nse import NseClassifier
from irtjax.networks.sizes import Encoded, Images, Sentences, Sizes
from irtjax.networks.vgg16 import Vgg16
from irtjax.tasks import Task
from irtjax.tasks.task import ImageFormat, TextFormat

Parameters = Any


class _Kind(NamedTuple):
    """A module of this package.

    Attributes:
        module: built from `Sizes`, `active` and `rngs`.
        sentences: how many per example it can read; () for images.
        dropout: rate unless another one is asked for.
        encoder: whether it is one that others have trained, with a new head.
    """

    module: Callable[..., nnx.Module]
    sentences: tuple[int, ...]
    dropout: float
    encoder: bool = False


# dropout as published for vgg16, cnn, esim and bert; our own choice for the others
_KINDS = {
    "mlp": _Kind(Mlp, (), 0.0),
    "lenet": _Kind(LeNet, (), 0.5),
    "vgg16": _Kind(Vgg16, (), 0.5),
    "lstm": _Kind(LstmClassifier, (1, 2), 0.2),
    "cnn": _Kind(CnnClassifier, (1, 2), 0.5),
    "nse": _Kind(NseClassifier, (1, 2), 0.3),
    "esim": _Kind(EsimClassifier, (2,), 0.5),
    "bert": _Kind(BertClassifier, (1, 2), 0.1, encoder=True),
}
NETWORKS = tuple(_KINDS)


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


def choices(task: Task) -> tuple[str, ...]:
    """Names of the networks that can read the inputs of `task`."""
    sentences = 0 if isinstance(task.format, ImageFormat) else len(task.train.inputs)
    encoder = isinstance(task.format, TextFormat) and task.format.encoder is not None
    packed = isinstance(task.format, TextFormat) and task.format.packed
    return tuple(
        name
        for name, kind in _KINDS.items()
        if sentences in (kind.sentences or (0,)) and packed <= kind.encoder <= encoder
    )


def usual_dropout(name: str) -> float:
    """The rate of a network unless another one is asked for."""
    return _KINDS[name].dropout


def build(name: str, task: Task, width: int, *, dropout: float | None = None) -> Network:
    """The network called `name`, sized for the inputs and classes of `task`.

    Args:
        name: one of `choices(task)`.
        task: gives the shape and format of inputs and the number of classes.
        width: hidden units of a layer; in an image network with convolutions, channels of the first.
        dropout: rate, in [0, 1); None for the default of the network.

    Raises:
        InputError: unknown name, a network that cannot read the inputs of `task`, a width that is not positive, or a
            rate out of range.
    """
    if name not in NETWORKS:
        raise InputError(f"unknown network {name!r}, expected one of {', '.join(NETWORKS)}")
    if _KINDS[name].encoder and isinstance(task.format, TextFormat) and task.format.encoder is None:
        raise InputError(
            f"network {name!r} begins from weights that others have trained: name their folder, `pretrained`"
        )
    if name not in choices(task):
        reads = (
            "pairs of sentences" if _KINDS[name].sentences == (2,) else "text" if _KINDS[name].sentences else "images"
        )
        raise InputError(f"network {name!r} reads {reads}; for task {task.name!r}, choose {', '.join(choices(task))}")
    if width < 1:
        raise InputError(f"network width {width}, expected at least 1")
    kind = _KINDS[name]
    rate = kind.dropout if dropout is None else dropout
    if not 0 <= rate < 1:
        raise InputError(f"dropout {rate}, expected at least 0 and less than 1")
    return _network(kind.module, Sizes(_inputs(kind, task), width, task.num_classes, rate))


def _inputs(kind: _Kind, task: Task) -> Images | Sentences | Encoded:
    """What a network for the task reads."""
    if isinstance(task.format, ImageFormat):
        return Images(np.shape(task.train.inputs)[1:], task.format)
    if kind.encoder and task.format.encoder is not None:
        return Encoded(task.format.encoder.config)
    return Sentences(task.format.embeddings.shape[1], len(task.train.inputs))


@functools.cache
def _network(module: Callable[..., nnx.Module], sizes: Sizes) -> Network:
    """The network of these sizes, always the same object: as a static argument of jit, another would compile anew."""

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
