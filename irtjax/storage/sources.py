"""Files from outside: which are read at all, and how what is wrong with them becomes one line."""

import contextlib
import csv
import functools
import io
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from irtjax.errors import InputError
from irtjax.storage.memory import require_memory

COMPRESSED = (".gz", ".tgz", ".bz2", ".xz", ".lzma", ".zst", ".zip", ".7z", ".rar", ".tar")
TABS = ".tsv"  # the ending of files with tabs between cells
LONGEST = 100  # characters of a value that a message shows
LONGEST_LINE = 2**28  # characters; a file of another kind, or with a hole, may have no end of line at all

_ADDRESS = re.compile(r"[a-z][a-z\d+.-]+:/|.*://", re.IGNORECASE | re.DOTALL)  # a Path has one slash for two
_QUOTED = re.compile(r'"(?:[^"]|"")*"')  # a cell that CSV quotes


@contextlib.contextmanager
def reading(path: str | Path) -> Iterator[Path]:
    """Yields the path of a file to read; what is wrong with it or goes wrong in the block names the file.

    Nothing but an ordinary local file is opened: no address, which libraries would fetch, no compressed file, which
    they would take for what its ending says, and no pipe or device, which may never end.

    Raises:
        InputError: it is no such file, cannot be read, or is not text in UTF-8 where text is expected.
    """
    path = local_file(path)
    try:
        with naming(path):
            yield path
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: line {_line_of_other_text(path)} is not UTF-8: save the file as UTF-8") from error


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Has the errors of the block begin with the name of the file that they are about."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{path}: {error}") from error


def local_file(path: str | Path) -> Path:
    """The path of an ordinary local file.

    Raises:
        InputError: it is something else, or not there.
    """
    refuse_address(path)
    path = Path(path)
    if path.suffix.lower() in COMPRESSED:
        raise InputError(f"{path}: is compressed; unpack it and name the file that was in it")
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: NUL in the name
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise InputError(f"{path}: cannot be read (it is {what}, expected a file)")
    return path


def expanded(path: str | os.PathLike) -> Path:
    """A path in which `~` stands for the home folder.

    Raises:
        InputError: there is no such user, or no home folder is known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: no home folder is known for {Path(path).parts[0]}: write it out") from error


def refuse_address(path: str | Path) -> None:
    """Refuses what is on the network: this library fetches nothing.

    Raises:
        InputError: the path is a URL.
    """
    if _ADDRESS.match(os.fspath(path)):
        raise InputError(f"{path}: is an address, expected a local file: download it first")


def text_of(path: Path, newline: str | None = None) -> str:
    """The whole text of a file in UTF-8, its ends of lines as `open` has it. To be called within `reading`.

    Raises:
        InputError: it takes more memory than is free.
    """
    require_memory(path.stat().st_size)
    with path.open(encoding="utf-8-sig", newline=newline) as file:
        return file.read()


def lines_of(file: TextIO) -> Iterator[str]:
    """The lines of a text, with their ends, one at a time in memory.

    Raises:
        InputError: one is longer than `LONGEST_LINE`.
    """
    for number, line in enumerate(iter(functools.partial(file.readline, LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE:
            raise InputError(f"line {number} has {LONGEST_LINE:,} characters or more: is it a table?")
        yield line


def csv_rows(file: TextIO, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file that are not blank, with the lines that they end in.

    Args:
        file: opened with `newline=""`.
        separator: the character between cells.

    Raises:
        InputError: text around quotes, a quote that is not closed, or an endless cell or line.
    """
    reader = csv.reader(lines_of(file), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} is not CSV ({error})") from error


def tab_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows of a table with tabs between its cells, with the lines that they end in.

    Such files come in two kinds. In some, as those of GLUE, a quote is a character like any other, and a row is a line.
    Others, as those of spreadsheets and pandas, quote as CSV does. A file is of the first kind if all its lines have as
    many tabs, and a quote is somewhere where CSV has none.

    Raises:
        InputError: it is of the second kind, and wrong as CSV is.
    """
    lines = [line.split("\t") for line in re.split(r"\r\n|\r|\n", text)]
    rows = [(number, cells) for number, cells in enumerate(lines, start=1) if cells != [""]]
    alike = len({len(cells) for _, cells in rows}) == 1
    if alike and not all(_QUOTED.fullmatch(cell) for _, cells in rows for cell in cells if '"' in cell):
        yield from rows
    else:
        yield from csv_rows(io.StringIO(text, newline=""), "\t")


def shown(value: object) -> str:
    """A value as messages show it: on one line, and cut where it is long."""
    return _cut(repr(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}")


def one_line(error: Exception) -> str:
    """What an error of another library says, on one line."""
    return _cut(" ".join(str(error).split()) or type(error).__name__)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 4 :]}"


def _line_of_other_text(path: Path) -> int:
    """The first line that is not UTF-8. A decoder only knows the place in its buffer."""
    lines = enumerate(path.read_bytes().splitlines(), start=1)
    return next((number for number, line in lines if line.decode(errors="ignore").encode() != line), 1)
