"""Examples from a CSV file: for networks to answer that were trained on a task, or to train on beside it."""

from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import reading
from irtjax.storage.tables import read_rows, require_ids
from irtjax.tasks.choices import ID_COLUMNS, LABEL_COLUMNS, TEXT_COLUMNS
from irtjax.tasks.item_ids import label_number
from irtjax.tasks.pairs import pack
from irtjax.tasks.task import Split, Task, TextFormat
from irtjax.tasks.text import Examples, lookup_table, number_pieces, number_words, pad


def read_split(path: str | Path, task: Task) -> Split:
    """The examples of a file in the words of a task; others are unknown, and longer sentences than its own are cut.

    Raises:
        InputError: the task has no texts, or see `read_examples`.
    """
    if not isinstance(task.format, TextFormat):
        raise InputError(f"{path}: {task.name} has no texts")
    examples = read_examples(path, task.format.sentences, task.classes)
    return Split(
        in_words_of(task.format, examples.sentences), examples.labels, examples.ids, joined(examples.sentences)
    )


def in_words_of(format: TextFormat, sentences: tuple[list[str], ...]) -> tuple[np.ndarray, ...]:
    """Texts as the word numbers of a task; others are unknown, and longer sentences than its own are cut."""
    lexicon: dict[str, int] = {}
    if format.encoder is None:
        words = tuple(number_words(sentence, lexicon) for sentence in sentences)
        table = lookup_table(lexicon, format.vocabulary)
    else:
        words = number_pieces(sentences, format.encoder)
        table = np.arange(len(format.vocabulary))
        if format.packed:
            rows = tuple(pad(part, table, int(part.lengths.max())) for part in words)
            return (pack(rows, format.encoder.config.words, format.buckets[-1][0]),)
    return tuple(
        pad(part, table, max(width, int(part.lengths.max())))[:, :width]
        for part, width in zip(words, format.buckets[-1], strict=True)
    )


def joined(sentences: tuple[list[str], ...]) -> np.ndarray:
    """The texts of examples, of one or two sentences each."""
    return np.array([" / ".join(map(str.strip, parts)) for parts in zip(*sentences, strict=True)], object)


def read_examples(path: str | Path, num_sentences: int, classes: tuple[str, ...]) -> Examples:
    """The examples of a file, in its order.

    It has a column `item_id`, `phrase_id` or `pair_id`, a column `text`, or `premise` and `hypothesis`, and a column
    `label` or `gold_label` with names of classes, or their numbers.

    Args:
        path: the file.
        num_sentences: of an example, 1 or 2.
        classes: names of the labels.

    Raises:
        InputError: names the file, and the line or column that is wrong: a column is missing, an id is there twice, a
            text is empty, a label is none of the task.
    """
    with reading(path) as file:
        rows = read_rows(file)
        columns = [
            next((name for name in names if name in rows.header), None)
            for names in (ID_COLUMNS, *((name,) for name in TEXT_COLUMNS[num_sentences]), LABEL_COLUMNS)
        ]
        if None in columns:
            texts = " and ".join(TEXT_COLUMNS[num_sentences])
            raise InputError(f"expected columns {texts}, label, and one of {', '.join(ID_COLUMNS)}")
        if not rows.cells:
            raise InputError("no examples")
        ids, *sentences, labels = (rows.column(str(name)) for name in columns)
        require_ids(rows.lines, ids, str(columns[0]))
        for line, *parts in zip(rows.lines, *sentences, strict=True):
            if not all(part.strip() for part in parts):
                raise InputError(f"line {line} has no text: leave it out")
        pairs = zip(rows.lines, labels, strict=True)
        numbers = [label_number(cell.strip().lower(), classes, line) for line, cell in pairs]
    return Examples(tuple(sentences), np.array(numbers, np.int32), np.array(ids))
