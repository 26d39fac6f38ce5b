"""The networks of this package by name."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from flax import nnx

from irtjax.choices import NETWORKS
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
KINDS = dict(
    zip(
        NETWORKS,
        (
            Kind(Mlp, (), 0.0, tables=True),
            Kind(LeNet, (), 0.5),
            Kind(Vgg16, (), 0.5),
            Kind(ResNet, (), 0.0),
            Kind(LstmClassifier, (1, 2), 0.2),
            Kind(CnnClassifier, (1, 2), 0.5),
            Kind(NseClassifier, (1, 2), 0.3),
            Kind(EsimClassifier, (2,), 0.5),
            Kind(BertClassifier, (1, 2), 0.1, encoder=True),
            Kind(functools.partial(LeNet, dropout_once=True), (), 0.5),
            Kind(functools.partial(LstmClassifier, always_deep=True), (1, 2), 0.2),
            Kind(functools.partial(CnnClassifier, joined=True), (1, 2), 0.5),
        ),
        strict=True,
    )
)
