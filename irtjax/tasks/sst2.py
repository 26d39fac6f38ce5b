"""SST-2 (Socher et al. 2013, as GLUE has it): phrases of film reviews, positive or negative."""

import re
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import reading, shown
from irtjax.storage.tables import read_rows
from irtjax.tasks import prepared, records
from irtjax.tasks.building import Choices, Given, build, divide
from irtjax.tasks.choices import DATASETS
from irtjax.tasks.inputs import Texts
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import SPLITS, Task

CLASSES = ("negative", "positive")
TEST_LABELS = "sst2_test_labels.csv"

_NUMBER = re.compile(r"[0-9]{1,9}")


def load(options: TaskOptions) -> Task:
    """The splits of GLUE in order of `idx`; `sst2_train_00017` is the training phrase of idx 17.

    GLUE withholds the labels of the test split. They come from `options.test_labels` or, without it, from the file
    `sst2_test_labels.csv` beside the folder of the data set (`data_dir/glue/`). Where there is neither, the last
    training phrases by `idx` are the test split, as many as GLUE has there; they keep their ids and are not trained on.
    Accuracy on them is optimistic, because other phrases of the same sentences stay in the training split.

    Raises:
        InputError: TFDS has no prepared SST-2 in `options.data_dir`, or a file is bad.
    """
    source = prepared.find("sst2", DATASETS["sst2"], options.data_dir, options.dataset)
    splits = {split: _read(source, split, options) for split in SPLITS}
    for split in ("train", "validation"):
        if splits[split].labels.min() < 0:
            raise InputError(f"sst2: {source.folder}: {split} has records without a label")
    if splits["test"].labels.min() < 0:
        path = _test_labels(source, options)
        if path is None:
            count = len(splits["test"].labels)
            if count >= len(splits["train"].labels):
                raise InputError(
                    f"sst2: {source.folder}: too few training phrases to take a test split of {count} from; "
                    "`test_labels` can name its labels"
                )
            splits["train"], splits["test"] = divide(splits["train"], len(splits["train"].labels) - count)
            options.on_note(
                f"sst2: no labels of the test split (`test_labels` names a file of them): the last {count:,} training "
                "phrases are the test split"
            )
        else:
            positions = [int(name.rsplit("_", 1)[1]) for name in splits["test"].ids]
            splits["test"] = splits["test"]._replace(labels=read_test_labels(path, positions))
    return build(splits, Choices.of_named("sst2", CLASSES, options))


def read_test_labels(path: str | Path, positions: list[int]) -> np.ndarray:
    """Labels from a CSV file with columns idx and label.

    Args:
        path: the file.
        positions: the idx of each example.

    Returns:
        (N,) int32.

    Raises:
        InputError: names the line that is not two such numbers or repeats an idx, or an example that has no label.
    """
    labels: dict[int, int] = {}
    with reading(path) as path:
        rows = read_rows(path)
        if not {"idx", "label"} <= set(rows.header):
            raise InputError("expected columns idx and label")
        for line, idx, label in zip(rows.lines, rows.column("idx"), rows.column("label"), strict=True):
            if not _NUMBER.fullmatch(idx.strip()) or label.strip() not in ("0", "1"):
                raise InputError(f"line {line}: expected a number and a label 0 or 1, not {shown(idx)}, {shown(label)}")
            if int(idx) in labels:
                raise InputError(f"line {line} has idx {int(idx)} again")
            labels[int(idx)] = int(label)
        missing = next((idx for idx in positions if idx not in labels), None)
        if missing is not None:
            raise InputError(f"no row for idx {missing}; every example of the test split needs a label")
    return np.array([labels[idx] for idx in positions], np.int32)


def _test_labels(source: prepared.Prepared, options: TaskOptions) -> Path | None:
    if options.test_labels is not None:
        return Path(options.test_labels)
    beside = source.folder.parents[1] / TEST_LABELS
    return beside if beside.is_file() else None


def _read(source: prepared.Prepared, split: str, options: TaskOptions) -> Given:
    wanted = {"sentence": True, "label": True, "idx": False}
    place = f"{source.folder}: {split}"
    columns = records.order_by(records.read("sst2", source, split, wanted, options.on_progress), "idx", place)
    labels = records.labels_of(columns, len(CLASSES), place)
    positions = records.numbers_of(columns, "idx", place) if "idx" in columns else np.arange(len(labels))
    sentences = records.texts_of(columns, "sentence", place)
    return Given(Texts((sentences,)), labels, records.ids_of(positions, "sst2", split))
