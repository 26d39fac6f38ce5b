"""What a network is sized for."""

import dataclasses
from typing import Generic, NamedTuple, TypeVar

from irtjax.pretrained.folder import BertConfig
from irtjax.tasks.task import ImageFormat


class Images(NamedTuple):
    """Images that a network reads.

    Attributes:
        shape: (height, width, channels).
        format: how stored values become inputs.
    """

    shape: tuple[int, ...]
    format: ImageFormat


class Sentences(NamedTuple):
    """Sentences that a network reads.

    Attributes:
        dimension: D, of word vectors.
        per_example: 1, or 2 for pairs.
    """

    dimension: int
    per_example: int


class Encoded(NamedTuple):
    """Word pieces that a pre-trained encoder reads.

    Attributes:
        config: of the encoder.
    """

    config: BertConfig


Inputs = TypeVar("Inputs", bound=Images | Sentences | Encoded)


@dataclasses.dataclass(frozen=True)
class Sizes(Generic[Inputs]):
    """All that determines the shapes of a network, and its dropout.

    Every network of this package is built from these, from `active`, the number of hidden units that are not masked
    (channels of the first convolution, for convolutional networks), and from `rngs`, which draw the initial weights.

    Attributes:
        inputs: what it reads.
        width: hidden units, or channels of the first convolution; each network says what it makes of it.
        num_classes: C, the number of logits.
        dropout: rate, in [0, 1).
    """

    inputs: Inputs
    width: int
    num_classes: int
    dropout: float
