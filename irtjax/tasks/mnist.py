"""MNIST (LeCun, Cortes and Burges): 70,000 handwritten digits of 28 × 28, through TensorFlow Datasets."""

from irtjax.tasks.building import Choices, build
from irtjax.tasks.choices import DATASETS
from irtjax.tasks.image_splits import image_splits
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import Task

CLASSES = tuple("0123456789")
VALIDATION_SHARE = 6  # one in six training records: 10,000 of 60,000


def load(options: TaskOptions) -> Task:
    """The test split, the last sixth of the training records to validate on, and the others to train on.

    Records keep the order of the TFDS files, which were shuffled when they were written. `mnist_train_00017` is record
    17 of the training split in TFDS, `mnist_test_00017` that of the test split.

    Raises:
        InputError: TFDS has no prepared MNIST in `options.data_dir`, or `options.dataset` is of another kind.
    """
    given = image_splits("mnist", DATASETS["mnist"], (28, 28, 1), len(CLASSES), VALIDATION_SHARE, options)
    return build(given, Choices.of_named("mnist", CLASSES, options, scale=255.0))
