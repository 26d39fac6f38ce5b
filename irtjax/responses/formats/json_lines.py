"""Files of JSON lines, one or many: what wrote them is told by the keys of the first line."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats import every_eval_ever, lm_evaluation, py_irt
from irtjax.responses.formats.answers import Answer, as_matrix, collect
from irtjax.responses.formats.lines import Graded, Record, Wanted, listed, records
from irtjax.responses.matrix import ResponseMatrix
from irtjax.storage.sources import COMPRESSED, naming, reading, shown

ENDINGS = (".jsonl", ".jsonlines")
CLAIM = "samples_"  # a file whose name begins so is one of answers, or damaged
EXPECTED = (
    f"{py_irt.FORM} of py-irt, {lm_evaluation.FORM} of lm-evaluation-harness, or "
    f"{every_eval_ever.FORM} of every_eval_ever"
)
Names = str | Sequence[str] | None


class Format(NamedTuple):
    """The keys that lines have, and the reader of a file; None for py-irt, which grades no tasks."""

    keys: frozenset[str]
    graded: Callable[[Path, Wanted], list[Graded]] | None


LM_EVALUATION = Format(frozenset({"doc_id"}), lm_evaluation.graded)
EVERY_EVAL_EVER = Format(frozenset({"model_id", "sample_id"}), every_eval_ever.graded)
PY_IRT = Format(frozenset({"subject_id", "responses"}), None)
FORMATS = (LM_EVALUATION, EVERY_EVAL_EVER, PY_IRT)


def read(paths: Sequence[str | Path], metric: Names = None, filter: Names = None) -> ResponseMatrix:
    """The matrix of all answers in some files of JSON lines and folders of them, see `read_responses`.

    Args:
        paths: of files and folders.
        metric: one that is preferred, or several, the most wanted first.
        filter: one that is preferred, or several.

    Raises:
        InputError: names the file, the line and the key; or no file has that `metric` or `filter`.
    """
    wanted = Wanted(_names(metric), _names(filter))
    files = {file: _format(file) for path in map(Path, paths) for file in _files(path)}
    runs = [path for path, format in files.items() if format is LM_EVALUATION]
    for path in set(runs) - set(lm_evaluation.newest(runs)):
        del files[path]
    found = collect(_answers(files, wanted))
    with naming(", ".join(map(str, paths))):
        return as_matrix(found)


def names_models(path: str | Path) -> bool:
    """Whether the subjects of a file are language models, whose names are the same in all files.

    Raises:
        InputError: it cannot be read, or its first line fits no format.
    """
    return Path(path).suffix in ENDINGS and _format(Path(path)) is not PY_IRT


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def _files(path: Path) -> list[Path]:
    """A file, or the files of answers in a folder and those below it.

    Raises:
        InputError: there are none.
    """
    if path.suffix in ENDINGS or not path.is_dir():
        return [path]
    found = [file for file in _below(path) if _is_of_answers(file)]
    if not found:
        raise InputError(
            f"{path}: no responses in this folder: expected samples_*.jsonl of lm-evaluation-harness, .jsonl of "
            "every_eval_ever, or what `write_shards` writes"
        )
    return found


def _below(folder: Path) -> list[Path]:
    """Files of JSON lines in a folder and those below it, compressed ones too, by name; hidden ones are left out."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (path.suffix in ENDINGS or (path.suffix.lower() in COMPRESSED and Path(path.stem).suffix in ENDINGS))
        and not path.is_dir()
    ]


def _is_of_answers(path: Path) -> bool:
    """Whether to read a file that nobody named: not if it holds other records, and does not claim to be one."""
    keys = _first(path).keys()
    logged = "doc_id" in keys and bool({"metrics", "resps", "filtered_resps"} & keys)
    return path.name.startswith(CLAIM) or logged or any(one.keys <= keys for one in (EVERY_EVAL_EVER, PY_IRT))


def _first(path: Path) -> Record:
    """The first object of a file; nothing if it is empty."""
    with reading(path):
        return next((record for _, record in records(path, EXPECTED)), {})


def _format(path: Path) -> Format:
    """What wrote a file: its first line has all keys of a format, or at least one."""
    keys = _first(path).keys()
    fitting = [one for one in FORMATS if one.keys <= keys] or [one for one in FORMATS if one.keys & keys]
    if fitting:
        return fitting[0]
    if keys or path.name.startswith(CLAIM):
        there = f"it has the keys {listed(keys)}" if keys else "the file is empty"
        raise InputError(f"{path}: line 1: expected {EXPECTED} ({there})")
    return PY_IRT


def _answers(files: dict[Path, Format], wanted: Wanted) -> Iterator[Answer]:
    """The answers in all files, once it is known that each task is scored in the same way in all of them."""
    first: dict[str, tuple[Path, Graded]] = {}
    metrics: set[str] = set()
    filters: set[str] = set()
    for path, format in files.items():
        with reading(path):
            if format.graded is None:
                for line, subject, item, code in py_irt.answers(path):
                    yield f"{path}: line {line}", subject, item, code
                continue
            tasks = format.graded(path, wanted)
            for task in tasks:
                metrics, filters = metrics | task.metrics, filters | task.filters
                _require_agreement(task, *first.setdefault(task.task, (path, task)))
        for task in tasks:
            for line, subject, item, code in task.answers:
                yield f"{path}: line {line}", subject, item, code
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
