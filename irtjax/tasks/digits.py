"""scikit-learn's handwritten digits: 1,797 images of 8 × 8, embedded in that package (Alpaydin and Kaynak 1998)."""

import numpy as np

from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import ImageFormat, Split, Task

NUM_VALIDATION = NUM_TEST = 300


def load(options: TaskOptions) -> Task:
    """1,197 training, 300 validation and 300 test images, shuffled once with a fixed seed.

    The file is in order of writers, so a split by position would test on unseen writers. `digits_0017` is the
    image at position 17 of scikit-learn's array.
    """
    from sklearn.datasets import load_digits  # takes a second to import

    del options  # the images come with scikit-learn
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    inputs = data.images.astype(np.uint8)[order, :, :, None]
    labels = data.target.astype(np.int32)[order]
    ids = np.array([f"digits_{position:04d}" for position in order])
    held_out = NUM_VALIDATION + NUM_TEST
    test, validation, train = slice(NUM_TEST), slice(NUM_TEST, held_out), slice(held_out, None)
    return Task(
        name="digits",
        train=Split(inputs[train], labels[train], ids[train]),
        validation=Split(inputs[validation], labels[validation], ids[validation]),
        test=Split(inputs[test], labels[test], ids[test]),
        classes=tuple("0123456789"),
        format=ImageFormat(scale=16.0),
    )
