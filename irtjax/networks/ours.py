"""The networks of this package by name."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from flax import nnx

from irtjax.choices import NETWORKS, of_each
from irtjax.networks.bert import BertClassifier
from irtjax.networks.cnn import CnnClassifier
from irtjax.networks.esim import EsimClassifier
from irtjax.networks.lenet import LeNet
from irtjax.networks.lstm import LstmClassifier
from irtjax.networks.mlp import Mlp
from irtjax.networks.nse import NseClassifier
from irtjax.networks.resnet import ResNet
from irtjax.networks.vgg16 import Vgg16


class Kind(NamedTuple):
    """A module of this package.

    Attributes:
        module: built from `Sizes`, `active` and `rngs`.
        sentences: how many per example it can read; () for images.
        dropout: rate unless another one is asked for.
        encoder: whether it is one that others have trained, with a new head.
        tables: whether it reads tables of features, images of one pixel, too.
    """

    module: Callable[..., nnx.Module]
    sentences: tuple[int, ...]
    dropout: float
    encoder: bool = False
    tables: bool = False


# dropout as published for vgg16, resnet, cnn, esim and bert; our own choice for the others; `…_study` are those of
# Lalor (2020), where ours differ: three tanh layers after one sentence too, pairs read as one, dropout in one place
KINDS = of_each(
    NETWORKS,
    {
        "mlp": Kind(Mlp, (), 0.0, tables=True),
        "lenet": Kind(LeNet, (), 0.5),
        "vgg16": Kind(Vgg16, (), 0.5),
        "resnet": Kind(ResNet, (), 0.0),
        "lstm": Kind(LstmClassifier, (1, 2), 0.2),
        "cnn": Kind(CnnClassifier, (1, 2), 0.5),
        "nse": Kind(NseClassifier, (1, 2), 0.3),
        "esim": Kind(EsimClassifier, (2,), 0.5),
        "bert": Kind(BertClassifier, (1, 2), 0.1, encoder=True),
        "lenet_study": Kind(functools.partial(LeNet, dropout_once=True), (), 0.5),
        "lstm_study": Kind(functools.partial(LstmClassifier, always_deep=True), (1, 2), 0.2),
        "cnn_study": Kind(functools.partial(CnnClassifier, joined=True), (1, 2), 0.5),
    },
)
