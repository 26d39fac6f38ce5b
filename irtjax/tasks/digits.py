"""scikit-learn's handwritten digits: 1,797 images of 8 × 8, embedded in that package (Alpaydin and Kaynak 1998)."""

import numpy as np

from irtjax.tasks.building import Choices, Given, build
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import Task

CLASSES = tuple("0123456789")
NUM_VALIDATION = NUM_TEST = 300


def load(options: TaskOptions) -> Task:
    """1,197 training, 300 validation and 300 test images, shuffled once with a fixed seed.

    The file is in order of writers, so a split by position would test on unseen writers. `digits_0017` is the
    image at position 17 of scikit-learn's array.
    """
    from sklearn.datasets import load_digits  # takes a second to import

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    held_out = NUM_TEST + NUM_VALIDATION
    splits = {"train": order[held_out:], "validation": order[NUM_TEST:held_out], "test": order[:NUM_TEST]}
    images = data.images.astype(np.uint8)
    ids = np.array([f"digits_{position:04d}" for position in range(len(order))])
    given = {split: Given(images[rows], data.target[rows], ids[rows]) for split, rows in splits.items()}
    return build(given, Choices.of_named("digits", CLASSES, options, scale=16.0))
