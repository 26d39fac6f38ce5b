"""What every reader of files is held to: what it reads equals its source, or one line says what is wrong with it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from irtjax import InputError, ResponseMatrix
from irtjax.errors import printable

# ids that must stay as they are, and apart from each other
IDS = [
    "plain", "PLAIN", "pl ain", " plain", "plain ", "pláin", "pla\u0301in", "007", "7", "7.0", "1e3", "0", "-1", "+1",
    "NA", "nan", "NaN", "null", "None", "TRUE", "=1+1", "@cmd", "a,b", 'say "no"', '"', '""', "'", "#", "\\", "\\n",
    "a;b", "a\tb", "\t", " ", "a\nb", "a\rb", "a\r\nb", "\n", "\x0b", "\x1c", "\u2028", "\x85", "\ufeff", "\ufeffplain",
    "\u200b", "日本", "🙂", "０", "a\0b", "ﬁ", "fi", "subject_id", "x" * 5000,
]  # fmt: skip


def refusal(read: Callable[[Path], Any], path: Path) -> str:
    """What a reader says about a file that it refuses, without the file's name, with which it must begin."""
    with pytest.raises(InputError) as error:
        read(path)
    message, name = str(error.value), printable(str(path))
    assert message.startswith(f"{name}: ")
    assert len(message.splitlines()) == 1
    assert len(message) < len(name) + 500
    assert message.count(name) == 1
    return message.removeprefix(f"{name}: ")


def read_or_refused(read: Callable[[Path], Any], path: Path) -> Any:
    """What a reader makes of a file; None if it refuses it as it should."""
    try:
        return read(path)
    except InputError:
        refusal(read, path)
    return None


def plain(read: ResponseMatrix | None) -> tuple[list[str], list[str], list[list[int]]] | None:
    """Subjects, items and values of a matrix."""
    return None if read is None else (read.subject_ids.tolist(), read.item_ids.tolist(), read.values.tolist())


_CELL = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n][^,\r\n]*)?)(,|\r\n|\r|\n|\Z)')


def parse_csv(text: str) -> list[list[str]] | None:
    """The rows of a CSV file that are not blank (RFC 4180, any line ends), by a parser of three lines; None if bad."""
    rows, row, at = [], [], 0
    text = text.removeprefix("\ufeff")
    while at < len(text) or row:
        if not (match := _CELL.match(text, at)):
            return None
        quoted, bare, end = match.groups()
        row.append(bare or "" if quoted is None else quoted.replace('""', '"'))
        if end != ",":
            rows += [row] if len(row) > 1 or match[0] != end else []
            row = []
            if not end:
                break
        at = match.end()
    return rows


def decoded(content: bytes) -> str | None:
    """Text of a file; None if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(IDS)
ids = st.lists(texts.filter(lambda text: not text.endswith("\0")), min_size=1, max_size=4, unique=True)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[list[list[int]], list[str], list[str]]:
    """What small matrices of ids of all kinds are made of: values, subjects, items."""
    subjects, items = draw(ids), draw(ids)
    row = st.lists(st.sampled_from([0, 1, -1]), min_size=len(items), max_size=len(items))
    return draw(st.lists(row, min_size=len(subjects), max_size=len(subjects))), subjects, items


SPLINTERS = [
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"1",
    b"0",
    b"2",
    b"-",
    b".",
    b"e",
]
SPLINTERS += [b"\xc3\xa9", b"{", b"}", b"[", b"]", b":", b"null", b"\\u0000", b"\\ud800", b"nan", b"\t"]


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file with some of its bits flipped, or of it cut out, put in, or repeated."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at, to = sorted(draw(st.integers(0, len(content))) for _ in range(2))
        how = draw(st.sampled_from(["flip", "cut", "drop", "insert", "repeat"]))
        if how == "flip" and at < len(content):
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del content[to:]
        elif how == "drop":
            del content[at:to]
        elif how == "insert":
            content[at:at] = draw(st.sampled_from(SPLINTERS) | st.binary(max_size=4))
        elif how == "repeat":
            content[to:to] = content[at:to]
    return bytes(content)
