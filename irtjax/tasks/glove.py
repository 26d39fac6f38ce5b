"""Word vectors from files in GloVe's text format (Pennington, Socher and Manning 2014)."""

import codecs
from collections.abc import Callable, Container, Sequence
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import reading
from irtjax.tasks.task import PADDING

_REPORT_EVERY = 20_000  # rows
_LONGEST = 2**20  # bytes of a row


def read_glove(
    path: str | Path, words: Container[str], on_progress: Callable[[str, int, int], None] = lambda *_: None
) -> dict[str, np.ndarray]:
    """Reads the vectors of some words from a file, in one pass and in bounded memory.

    A row is a word and D numbers, separated by single spaces; D is that of the first row. Some words of the published
    840B file contain spaces; their rows, which have more than D spaces, are skipped. If a word has two rows, the first
    one counts. A first row of two whole numbers, which word2vec writes, is skipped.

    Args:
        path: the file, local and not compressed.
        words: the words wanted; none of them contains a space.
        on_progress: called with a description, the number of bytes read and that of the file.

    Returns:
        (D,) float32 vectors of the words found.

    Raises:
        InputError: a row is not a word and D finite numbers (the message names it), or no word was found.
    """
    found: dict[str, np.ndarray] = {}
    with reading(path) as path, path.open("rb") as file:
        size, dim, done = path.stat().st_size, 0, 0
        for at, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=1):
            done += len(line)
            if len(line) == _LONGEST:
                raise InputError(f"row {at} has more than {_LONGEST:,} bytes; expected a word and its numbers")
            if at == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if at % _REPORT_EVERY == 0:
                on_progress(path.name, done, size)
            spaces = line.rstrip().count(b" ")
            if at == 1 and spaces == 1 and line.replace(b" ", b"").strip().isdigit():
                continue
            dim = dim or spaces
            if spaces < dim or dim == 0:
                raise InputError(f"row {at} has {spaces} numbers after the word, expected {dim or 'some'}")
            word, _, numbers = line.partition(b" ")
            if spaces > dim:
                if _is_number(numbers.split(b" ", 1)[0]):
                    raise InputError(f"row {at} has {spaces} numbers after the word, expected {dim}")
                continue  # a word with spaces, which no tokeniser makes
            spelled = word.decode("utf-8", errors="replace")
            if spelled in words and spelled not in found:
                found[spelled] = _vector(numbers, dim, f"row {at}")
        on_progress(path.name, done, size)
        if not found:
            raise InputError("has none of the task's words; expected rows of a word and its numbers, as GloVe's")
    return found


def embed(vocabulary: Sequence[str], known: dict[str, np.ndarray], seed: int) -> np.ndarray:
    """Vectors of a vocabulary; words without a known one get normal draws of the same mean square.

    Args:
        vocabulary: V words, the first the padding, whose vector is zero.
        known: vectors of some of them.
        seed: of the draws.

    Returns:
        (V, D) float32.
    """
    dim = len(next(iter(known.values())))
    scale = np.sqrt(np.mean([np.mean(np.square(vector, dtype=np.float64)) for vector in known.values()]))
    vectors = np.random.default_rng(seed).standard_normal((len(vocabulary), dim), np.float32) * np.float32(scale)
    for number, word in enumerate(vocabulary):
        if word in known:
            vectors[number] = known[word]
    vectors[PADDING] = 0
    return vectors


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return not field  # two spaces one after the other: not a word either
    return True


def _vector(numbers: bytes, dim: int, place: str) -> np.ndarray:
    try:
        if b"_" in numbers:  # 1_000 is a number to Python only
            raise ValueError("_")
        with np.errstate(over="ignore"):  # such numbers are not finite, which is said below
            vector = np.array(numbers.split(), np.float32)
    except ValueError as error:
        raise InputError(f"{place} has something other than numbers after the word") from error
    if vector.size != dim:
        raise InputError(f"{place} has {vector.size} numbers after the word, expected {dim}")
    if not np.isfinite(vector).all():
        raise InputError(f"{place} has a number that is not finite")
    return vector
