"""Ids that a file of items gives to examples, which are recognised by their text."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import reading, shown
from irtjax.storage.tables import Rows, read_rows, require_ids
from irtjax.tasks.choices import ID_COLUMNS, LABEL_COLUMNS, TEXT_COLUMNS
from irtjax.tasks.task import SPLITS
from irtjax.tasks.text import Examples, normalise

LONGEST_ID = 1000  # characters; arrays keep every id of a task as long as the longest
NO_LABEL = ("", "-", "-1")  # as SNLI and TFDS write it

_SILENT = re.compile(r"[\W_]+")  # neither letters nor digits
Key = tuple[str | int, ...]  # letters and digits of each sentence, and the label where the file has labels
Ids = dict[str, np.ndarray]


def rename(path: str | Path, splits: dict[str, Examples], classes: tuple[str, ...]) -> tuple[Ids, str]:
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


def _read(path: str | Path, num_sentences: int, classes: tuple[str, ...]) -> tuple[dict[Key, list[str]], int]:
    """The ids of each key, and the number of rows with a text."""
    names: dict[Key, list[str]] = defaultdict(list)
    with reading(path) as file:
        rows = read_rows(file)
        id_column = next((name for name in ID_COLUMNS if name in rows.header), None)
        if id_column is None or not set(TEXT_COLUMNS[num_sentences]) <= set(rows.header):
            texts = " and ".join(TEXT_COLUMNS[num_sentences])
            raise InputError(f"expected columns {texts}, and one of {', '.join(ID_COLUMNS)}")
        every = zip(rows.lines, rows.column(id_column), _row_keys(rows, num_sentences, classes), strict=True)
        used = [(line, name, key) for line, name, key in every if key is not None]
        ids = [name for _, name, _ in used]
        require_ids([line for line, _, _ in used], ids, id_column)
        if (longest := max(map(len, ids), default=0)) > LONGEST_ID:
            raise InputError(f"an id has {longest:,} characters, expected at most {LONGEST_ID:,}")
    for _, name, key in used:
        names[key].append(name)
    return names, len(used)


def _row_keys(rows: Rows, num_sentences: int, classes: tuple[str, ...]) -> list[Key | None]:
    """The key of each row; None for those without a text or a label."""
    texts = zip(*(map(letters, rows.column(name)) for name in TEXT_COLUMNS[num_sentences]), strict=True)
    label_column = next((name for name in LABEL_COLUMNS if name in rows.header), None)
    if label_column is None:
        return [key if all(key) else None for key in texts]
    keys: list[Key | None] = []
    for line, key, cell in zip(rows.lines, texts, rows.column(label_column), strict=True):
        label = cell.strip().lower()
        known = all(key) and label not in NO_LABEL
        keys.append((*key, label_number(label, classes, line)) if known else None)
    return keys


def _keys(examples: Examples, with_label: bool) -> list[Key]:
    columns = [[letters(text) for text in sentences] for sentences in examples.sentences]
    return list(zip(*columns, *([examples.labels.tolist()] if with_label else []), strict=True))


def letters(text: str) -> str:
    """The letters and digits of a text, by which copies of a corpus are compared."""
    return _SILENT.sub("", normalise(text))


def label_number(label: str, classes: tuple[str, ...], line: int) -> int:
    """The number of a class that a cell names, in lower case, or has the number of.

    Raises:
        InputError: names the line.
    """
    numbers = {name: at for at, name in enumerate(classes)} | {str(at): at for at in range(len(classes))}
    if label not in numbers:
        raise InputError(f"line {line} has label {shown(label)}, expected one of {', '.join(classes)}")
    return numbers[label]


def _require_unique(path: str | Path, ids: Ids) -> None:
    counts = Counter(name for split in SPLITS for name in ids[split])
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise InputError(f"{path}: the id {name!r} is that of another example already; give the item another")
