"""Files of JSON, one or many, whichever program wrote them: lines of answers, and logs of runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats import py_irt
from irtjax.responses.formats.answers import Answer
from irtjax.responses.formats.collecting import AS_IT_COMES, How, InMemory, as_held, collect, parts_of, place_in
from irtjax.responses.formats.finding import ENDINGS, PY_IRT, files_in, format_of, superseded
from irtjax.responses.formats.given import Given
from irtjax.responses.formats.given_rows import of_answers
from irtjax.responses.formats.lines import Graded, Wanted, listed
from irtjax.storage.sources import naming, reading, shown

Names = str | Sequence[str] | None


class _Answer(NamedTuple):
    place: str
    subject: str
    item: str
    response: int | float


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

    def again() -> Iterator[Answer]:
        answers = _answers(paths, Wanted(_names(metric), _names(filter)))
        return ((place, subject, item, int(code)) for place, subject, item, code in answers)

    found = collect(parts_of(again()), place_in(again), how.repeats)
    with naming(", ".join(map(str, paths))):
        return as_held(found, how.sparse)


def read_given(paths: Sequence[str | Path], metric: Names = None, filter: Names = None) -> Given:
    """All answers in some files and folders as numbers, such as grades and shares; arguments as of `read`.

    Raises:
        InputError: as `read`.
    """
    wanted = Wanted(_names(metric), _names(filter), scored=False)
    with naming(", ".join(map(str, paths))):
        return of_answers(lambda: _answers(paths, wanted))


def names_models(path: str | Path) -> bool:
    """Whether the subjects of a file are language models, whose names are the same in all files.

    Raises:
        InputError: it cannot be read, or its beginning fits no format.
    """
    return Path(path).suffix in ENDINGS and format_of(Path(path)) != PY_IRT


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _answers(paths: Sequence[str | Path], wanted: Wanted) -> Iterator[_Answer]:
    """The answers in all files, once it is known that each task is scored in the same way in all of them."""
    files = {file: format_of(file) for path in map(Path, paths) for file in files_in(path)}
    for path in list(superseded(files)):
        del files[path]
    first: dict[str, tuple[Path, Graded]] = {}
    metrics: set[str] = set()
    filters: set[str] = set()
    for path, format in files.items():
        with reading(path):
            if format.graded is None:
                for line, subject, item, response in py_irt.answers(path, wanted.scored):
                    yield _Answer(f"{path}: line {line}", subject, item, response)
                continue
            tasks = format.graded(path, wanted)
            for task in tasks:
                metrics, filters = metrics | task.metrics, filters | task.filters
                _require_agreement(task, *first.setdefault(task.task, (path, task)))
        for task in tasks:
            for at, subject, item, response in task.answers:
                yield _Answer(f"{path}: {task.unit} {at}", subject, item, response)
    _require_known("metric", wanted.metrics, metrics)
    _require_known("filter", wanted.filters, filters)


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
