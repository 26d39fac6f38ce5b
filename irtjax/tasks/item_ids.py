"""Ids that a file of items gives to examples, which are recognised by their text."""

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks.task import SPLITS
from irtjax.tasks.text import Examples, normalise

ID_COLUMNS = ("item_id", "phrase_id", "pair_id")
LABEL_COLUMNS = ("label", "gold_label")
NO_LABEL = ("", "-", "-1")  # as SNLI and TFDS write it
TEXT_COLUMNS = {1: ("text",), 2: ("premise", "hypothesis")}

_SILENT = re.compile(r"[\W_]+")  # neither letters nor digits
Key = tuple[str | int, ...]  # letters and digits of each sentence, and the label where the file has labels
Ids = dict[str, np.ndarray]


def rename(path: str, splits: dict[str, Examples], classes: tuple[str, ...]) -> tuple[Ids, str]:
    """Gives examples the ids that a CSV file has for their text.

    The file has a column `item_id`, `phrase_id` or `pair_id`, and a column `text`, or `premise` and `hypothesis`. Rows
    without a text or a label are skipped. Only letters and digits of texts are compared, because case, spaces and
    punctuation differ between copies of a corpus. Where there is a column `label` or `gold_label`, the labels (names of
    classes, or their numbers) must be equal too.

    If several examples have the text of a row, the one in the test split is renamed, or else that in the validation
    split, or else that in the training split. No example is renamed if that split has several, or if several rows have
    the text.

    Args:
        path: the file.
        splits: the examples of each split.
        classes: names of the labels.

    Returns:
        The ids of each split, and a line that says how many were found.

    Raises:
        InputError: the file is of another kind, has an id twice, has no text of the task, or has an id that another
            example has already.
    """
    num_sentences = len(splits["train"].sentences)
    names, num_rows = _read(path, num_sentences, classes)
    unclear = sum(len(rows) for rows in names.values() if len(rows) > 1)
    single = {key: rows[0] for key, rows in names.items() if len(rows) == 1}
    with_label = any(len(key) > num_sentences for key in names)
    renamed = {split: splits[split].ids.astype(object) for split in SPLITS}
    found = 0
    for split in reversed(SPLITS):  # files of items are more likely about the test split than about a copy in training
        keys = _keys(splits[split], with_label)
        counts = Counter(key for key in keys if key in single)
        for at, key in enumerate(keys):
            if counts[key] == 1:
                renamed[split][at] = single[key]
        found += sum(count == 1 for count in counts.values())
        unclear += sum(count > 1 for count in counts.values())
        single = {key: name for key, name in single.items() if key not in counts}
    if found == 0:
        raise InputError(f"{path}: none of its {num_rows:,} texts is an example of the task; is it of another task?")
    _require_unique(path, renamed)
    note = f"{path}: {found:,} of {num_rows:,} rows with a text found"
    if unclear:
        note += f"; {unclear:,} left out, whose text stands for several examples or rows"
    return {split: renamed[split].astype(str) for split in SPLITS}, note


def _read(path: str, num_sentences: int, classes: tuple[str, ...]) -> tuple[dict[Key, list[str]], int]:
    """The ids of each key, and the number of rows with a text."""
    names: dict[Key, list[str]] = defaultdict(list)
    seen: dict[str, int] = {}
    num_rows = 0
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            header = reader.fieldnames or []
            id_column = next((name for name in ID_COLUMNS if name in header), None)
            label_column = next((name for name in LABEL_COLUMNS if name in header), None)
            text_columns = TEXT_COLUMNS[num_sentences]
            if id_column is None or not set(text_columns) <= set(header):
                raise InputError(
                    f"{path}: expected columns {' and '.join(text_columns)}, and one of {', '.join(ID_COLUMNS)}"
                )
            for at, row in enumerate(reader, start=2):
                key: Key = tuple(_letters(row[column] or "") for column in text_columns)
                label = None if label_column is None else (row[label_column] or "").strip().lower()
                if not all(key) or label in NO_LABEL:
                    continue
                if label is not None:
                    key += (_label(label, classes, f"{path}: row {at}"),)
                num_rows += 1
                name = (row[id_column] or "").strip()
                if not name or name in seen:
                    earlier = f"the id {name!r} of row {seen[name]} again" if name else "no id"
                    raise InputError(f"{path}: row {at} has {earlier}; every item needs its own")
                seen[name] = at
                names[key].append(name)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8 ({error})") from error
    return names, num_rows


def _keys(examples: Examples, with_label: bool) -> list[Key]:
    columns = [[_letters(text) for text in sentences] for sentences in examples.sentences]
    return list(zip(*columns, *([examples.labels.tolist()] if with_label else []), strict=True))


def _letters(text: str) -> str:
    return _SILENT.sub("", normalise(text))


def _label(label: str, classes: tuple[str, ...], place: str) -> int:
    numbers = {name: at for at, name in enumerate(classes)} | {str(at): at for at in range(len(classes))}
    if label not in numbers:
        raise InputError(f"{place} has label {label!r}, expected one of {', '.join(classes)}")
    return numbers[label]


def _require_unique(path: str, ids: Ids) -> None:
    counts = Counter(name for split in SPLITS for name in ids[split])
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise InputError(f"{path}: the id {name!r} is that of another example already; give the item another")
