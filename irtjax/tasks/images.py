"""What networks need to know of images and of tables of features: means and deviations of the training examples."""

import math
from collections.abc import Callable

import numpy as np

_BLOCK = 256  # images


def channel_statistics(images: np.ndarray, scale: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of `images / scale`, from exact sums of integers.

    Args:
        images: (N, H, W, channels) uint8.
        scale: the value that counts as one.
    """
    rows = images.reshape(len(images), -1)  # sums down long rows are fast, over the last few channels they are not
    sums, squares = np.zeros((2, rows.shape[1]), np.int64)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK].astype(np.int32)
        sums += block.sum(axis=0)
        squares += (block * block).sum(axis=0)
    count = images[..., 0].size
    means, deviations = [], []
    for channel in range(images.shape[-1]):
        total, square = (int(values.reshape(-1, images.shape[-1])[:, channel].sum()) for values in (sums, squares))
        means.append(total / count / scale)
        deviations.append(math.sqrt(count * square - total**2) / count / scale)
    return tuple(means), tuple(deviations)


def statistics(images: np.ndarray, scale: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of `images / scale`; a deviation of 1 where all values are alike.

    Args:
        images: (N, H, W, channels), uint8 or of decimal numbers.
        scale: the value that counts as one.
    """
    if images.dtype == np.uint8:
        means, deviations = channel_statistics(images, int(scale))
    else:
        channels = images.reshape(-1, images.shape[-1])
        means = tuple((channels.mean(0, dtype=np.float64) / scale).tolist())
        deviations = tuple((channels.std(0, dtype=np.float64) / scale).tolist())
    return means, tuple(deviation if deviation > 0 else 1.0 for deviation in deviations)


def standardiser(train: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that makes of features (N, F) images of one pixel whose channels are the features.

    Each has mean 0 and standard deviation 1 over the training examples; one that is the same for all of them is 0
    there. This is done in double precision: of large numbers that differ little, such as dates, single precision would
    leave nothing.

    Args:
        train: (N, F) float64, the training examples.
    """
    size = np.abs(train).max(0)
    size = np.where(size > 0, size, 1)  # squares of very large or small numbers would not be numbers
    mean, deviation = (train / size).mean(0), (train / size).std(0)
    constant = (train == train[:1]).all(0)
    deviation = np.where(constant, 1, deviation)

    def standardise(values: np.ndarray) -> np.ndarray:
        return ((values / size - mean) / deviation).astype(np.float32)[:, None, None]

    return standardise
