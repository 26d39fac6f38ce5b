"""Files of JSON, one or many, whichever program wrote them: lines of answers, and logs of runs."""

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow

from irtjax.errors import InputError
from irtjax.responses.formats import py_irt
from irtjax.responses.formats.cells import coded
from irtjax.responses.formats.collecting import (
    AS_IT_COMES,
    AT_ONCE,
    How,
    InMemory,
    Part,
    as_held,
    collect,
    numbered_ids,
)
from irtjax.responses.formats.finding import ENDINGS, PY_IRT, files_in, format_of, superseded
from irtjax.responses.formats.given import Given
from irtjax.responses.formats.given_rows import Rows, of_rows
from irtjax.responses.formats.lines import Graded, Wanted, listed
from irtjax.storage.sources import naming, reading, shown

Names = str | Sequence[str] | None


class _Part(NamedTuple):
    """Answers that follow each other in a file.

    Attributes:
        unit: what messages call the file, and what numbers count.
        numbers: of each answer in the file, such as that of its line.
        subjects: who answered.
        items: what.
        responses: how.
    """

    unit: str
    numbers: Sequence[int]
    subjects: Sequence[str]
    items: Sequence[str]
    responses: Sequence[int | float]

    def place(self, at: int) -> str:
        """What messages call an answer."""
        return f"{self.unit} {self.numbers[at]}"

    def ids(self) -> tuple[pyarrow.DictionaryArray, pyarrow.DictionaryArray]:
        """Subjects and items."""
        return (
            numbered_ids(self.subjects, "subject", self.place),
            numbered_ids(self.items, "item", self.place),
        )


def read(paths: Sequence[str | Path], metric: Names = None, filter: Names = None, how: How = AS_IT_COMES) -> InMemory:
    """All answers in some files and folders of them, scored right or wrong, see `read_responses`.

    Args:
        paths: of files and folders.
        metric: one that is preferred, or several, the most wanted first.
        filter: one that is preferred, or several.
        how: they are held.

    Raises:
        InputError: names the file, the line and the key; or no file has that `metric` or `filter`.
    """
    wanted = Wanted(_names(metric), _names(filter))
    parts = (Part(*part.ids(), np.array(part.responses, np.int8)) for part in _parts(paths, wanted))
    found = collect(parts, functools.partial(_place, paths, wanted), how.repeats)
    with naming(", ".join(map(str, paths))):
        return as_held(found, how.sparse)


def read_given(paths: Sequence[str | Path], metric: Names = None, filter: Names = None) -> Given:
    """All answers in some files and folders as numbers, such as grades and shares; arguments as of `read`.

    Raises:
        InputError: as `read`.
    """
    wanted = Wanted(_names(metric), _names(filter), scored=False)
    with naming(", ".join(map(str, paths))):
        parts = (Rows(*part.ids(), coded(part.responses)) for part in _parts(paths, wanted))
        return of_rows(parts, functools.partial(_place, paths, wanted))


def names_models(path: str | Path) -> bool:
    """Whether the subjects of a file are language models, whose names are the same in all files.

    Raises:
        InputError: it cannot be read, or its beginning fits no format.
    """
    return Path(path).suffix in ENDINGS and format_of(Path(path)) != PY_IRT


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else () if given is None else tuple(given)


def _place(paths: Sequence[str | Path], wanted: Wanted, at: int) -> str:
    """What messages call an answer, by its number: the files are gone through once more."""
    for part in _parts(paths, wanted):
        if at < len(part.items):
            return part.place(at)
        at -= len(part.items)
    raise IndexError(at)


def _parts(paths: Sequence[str | Path], wanted: Wanted) -> Iterator[_Part]:
    """The answers in all files, some thousand at a time.

    Those of a file come once it is known that its tasks are scored in the same way as in the files before.
    """
    files = {file: format_of(file) for path in map(Path, paths) for file in files_in(path)}
    for path in list(superseded(files)):
        del files[path]
    first: dict[str, tuple[Path, Graded]] = {}
    metrics: set[str] = set()
    filters: set[str] = set()
    for path, format in files.items():
        with reading(path):
            if format.graded is None:
                yield from _of_lines(path, wanted.scored)
                continue
            tasks = format.graded(path, wanted)
            for task in tasks:
                metrics, filters = metrics | task.metrics, filters | task.filters
                _require_agreement(task, *first.setdefault(task.task, (path, task)))
        for task in tasks:
            answers = iter(task.answers)
            while some := list(itertools.islice(answers, AT_ONCE)):
                yield _Part(f"{path}: {task.unit}", *zip(*some, strict=True))
    _require_known("metric", wanted.metrics, metrics)
    _require_known("filter", wanted.filters, filters)


def _of_lines(path: Path, scored: bool) -> Iterator[_Part]:
    """Of py-irt: lists of texts and numbers, without an object for each answer."""
    columns: tuple[list[int], list[str], list[str], list[int | float]] = [], [], [], []
    for number, subject, items, responses in py_irt.lines(path, scored):
        columns[0].extend([number] * len(items))
        columns[1].extend([subject] * len(items))
        columns[2].extend(items)
        columns[3].extend(responses)
        if len(columns[0]) >= AT_ONCE:
            yield _Part(f"{path}: line", *columns)
            columns = [], [], [], []
    if columns[0]:
        yield _Part(f"{path}: line", *columns)


def _require_agreement(task: Graded, path: Path, first: Graded) -> None:
    for what, one, other in (("metric", task.metric, first.metric), ("filter", task.filter, first.filter)):
        if one and other and one != other:
            raise InputError(
                f"task {shown(task.task)} would be scored by {what} {shown(one)} here, and by {shown(other)} in "
                f"{path}: choose one by `{what}`, or leave one of the files out"
            )


def _require_known(what: str, names: tuple[str, ...], found: set[str]) -> None:
    there = sorted(name for name in found if name)
    for name in names:
        if name not in found:
            others = f": they have {listed(there)}" if there else ", nor any other"
            raise InputError(f"`{what}`: no file has {shown(name)}{others}")
