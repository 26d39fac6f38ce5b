"""CIFAR-10 (Krizhevsky 2009): 60,000 photographs of 32 × 32 in ten classes, through TensorFlow Datasets."""

from irtjax.tasks.building import Choices, build
from irtjax.tasks.choices import DATASETS
from irtjax.tasks.image_splits import image_splits
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import Task

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VALIDATION_SHARE = 5  # one in five training records: 10,000 of 50,000


def load(options: TaskOptions) -> Task:
    """The test split, the last fifth of the training images to validate on, and the others to train on.

    Images are in order of the records' `id`, which is that of the original batches. `cifar10_train_00017` is the image
    whose id is `train_00017`.

    Raises:
        InputError: TFDS has no prepared CIFAR-10 in `options.data_dir`, or `options.dataset` is of another kind.
    """
    given = image_splits(
        "cifar10", DATASETS["cifar10"], (32, 32, 3), len(CLASSES), VALIDATION_SHARE, options, order="id"
    )
    return build(given, Choices.of_named("cifar10", CLASSES, options, flips=True))
