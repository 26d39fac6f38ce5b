"""SNLI (Bowman et al. 2015): does a premise entail a hypothesis, contradict it, or neither?"""

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks import prepared, records
from irtjax.tasks.building import Choices, Given, build
from irtjax.tasks.choices import DATASETS
from irtjax.tasks.inputs import Texts
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import SPLITS, Task

CLASSES = ("entailment", "neutral", "contradiction")


def load(options: TaskOptions) -> Task:
    """The published splits, without the pairs whose annotators found no majority (label -1).

    `snli_train_000017` is record 17 of the training split in TFDS, where dropped pairs count.

    Raises:
        InputError: TFDS has no prepared SNLI in `options.data_dir`, or a file is bad.
    """
    source = prepared.find("snli", DATASETS["snli"], options.data_dir, options.dataset)
    given = {split: _read(source, split, options) for split in SPLITS}
    return build(given, Choices.of_named("snli", CLASSES, options))


def _read(source: prepared.Prepared, split: str, options: TaskOptions) -> Given:
    wanted = {"premise": True, "hypothesis": True, "label": True}
    columns = records.read("snli", source, split, wanted, options.on_progress)
    labels = records.labels_of(columns, len(CLASSES), f"{source.folder}: {split}")
    kept = np.flatnonzero(labels >= 0)
    if not kept.size:
        raise InputError(f"snli: {source.folder}: no pair of {split} has a label")
    texts = [records.texts_of(columns, name, f"{source.folder}: {split}") for name in ("premise", "hypothesis")]
    pairs = Texts(tuple([column[at] for at in kept] for column in texts))
    return Given(pairs, labels[kept], records.ids_of(kept, "snli", split, digits=6))
