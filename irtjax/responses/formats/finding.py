"""Files of answers, one or many: which of those in a folder are such, and what wrote them, by their beginning."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats import code_samples, every_eval_ever, helm, inspect_logs, lm_evaluation, py_irt
from irtjax.responses.formats.lines import Graded, Record, Wanted, listed, records
from irtjax.storage.sources import COMPRESSED, reading

LINES = (".jsonl", ".jsonlines")
DOCUMENT = ".json"
ENDINGS = (*LINES, DOCUMENT)
CLAIM = "samples_"  # a file whose name begins so is one of answers, or damaged
EXPECTED = (
    f"{py_irt.FORM} of py-irt, {lm_evaluation.FORM} of lm-evaluation-harness, "
    f"{every_eval_ever.FORM} of every_eval_ever, or {code_samples.FORM} of HumanEval"
)
BEGINNING = 2**16  # characters of a document in which it says what it is
# the first key below "eval" is a task with a list of samples, or an entry of a run
_OF_EVALPLUS = re.compile(r'"eval"\s*:\s*\{\s*"[^"]*"\s*:\s*(\[|\{\s*"(nfiles|base|plus)")')
_OF_INSPECT = re.compile(r'"eval"\s*:\s*\{\s*"[^"]*"\s*:\s*[^\[\{\s]')


class Format(NamedTuple):
    """What wrote a file.

    Attributes:
        graded: the reader of a file; None for py-irt, which grades no tasks.
        keys: that its lines have; none of a document.
    """

    graded: Callable[[Path, Wanted], list[Graded]] | None
    keys: frozenset[str] = frozenset()


LM_EVALUATION = Format(lm_evaluation.graded, frozenset({"doc_id"}))
EVERY_EVAL_EVER = Format(every_eval_ever.graded, frozenset({"model_id", "sample_id"}))
HUMAN_EVAL = Format(code_samples.of_human_eval, frozenset({"task_id", "passed"}))
PY_IRT = Format(None, frozenset({"subject_id", "responses"}))
OF_LINES = (LM_EVALUATION, EVERY_EVAL_EVER, HUMAN_EVAL, PY_IRT)
INSPECT, HELM, EVALPLUS = Format(inspect_logs.graded), Format(helm.graded), Format(code_samples.of_evalplus)


def files_in(path: Path) -> list[Path]:
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
            f"every_eval_ever, .json logs of Inspect, {helm.NAME} of HELM, …_{code_samples.ENDING} of EvalPlus, or "
            "what `write_shards` writes"
        )
    return found


def _below(folder: Path) -> list[Path]:
    """Files of JSON in a folder and those below it, compressed lines too, by name; hidden ones are left out."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and (path.suffix in ENDINGS or (path.suffix.lower() in COMPRESSED and Path(path.stem).suffix in LINES))
        and not path.is_dir()
    ]


def _is_of_answers(path: Path) -> bool:
    """Whether to read a file that nobody named: not if it holds other records, and does not claim to be one."""
    if path.suffix == DOCUMENT:
        return _of_document(path) is not None
    keys = _first(path).keys()
    logged = "doc_id" in keys and bool({"metrics", "resps", "filtered_resps"} & keys)
    return path.name.startswith(CLAIM) or logged or any(one.keys <= keys for one in OF_LINES if one != LM_EVALUATION)


def _first(path: Path) -> Record:
    """The first object of a file; nothing if it is empty."""
    with reading(path):
        return next((record for _, record in records(path, EXPECTED)), {})


def _of_document(path: Path) -> Format | None:
    """What wrote a document, by its name or its first keys."""
    if path.name == helm.NAME:
        return HELM
    with reading(path), path.open(encoding="utf-8-sig") as file:
        beginning = file.read(BEGINNING)
    if _OF_EVALPLUS.search(beginning):
        return EVALPLUS
    return INSPECT if _OF_INSPECT.search(beginning) and '"status"' in beginning else None


def format_of(path: Path) -> Format:
    """What wrote a file. Of lines the first has all keys of a format, or at least one.

    Raises:
        InputError: nothing that is known.
    """
    if path.suffix == DOCUMENT:
        if (found := _of_document(path)) is None:
            raise InputError(
                f"{path}: expected a log of Inspect AI, {helm.NAME} of HELM, or {code_samples.ENDING} of EvalPlus"
            )
        return found
    keys = _first(path).keys()
    fitting = [one for one in OF_LINES if one.keys <= keys] or [one for one in OF_LINES if one.keys & keys]
    if fitting:
        return fitting[0]
    if keys or path.name.startswith(CLAIM):
        there = f"it has the keys {listed(keys)}" if keys else "the file is empty"
        raise InputError(f"{path}: line 1: expected {EXPECTED} ({there})")
    return PY_IRT


def superseded(files: dict[Path, Format]) -> Iterator[Path]:
    """Files of runs that were made again.

    Raises:
        InputError: it cannot be told which run is the last.
    """
    runs = [path for path, format in files.items() if format == LM_EVALUATION]
    yield from set(runs) - set(lm_evaluation.newest(runs))
    last: dict[tuple[str, str], tuple[bool, str, Path]] = {}
    for path, format in files.items():
        if format != INSPECT:
            continue
        with reading(path):
            run = inspect_logs.run_of(path)
        this = run.ended_well, run.created, path
        before = last.setdefault((run.model, run.task), this)
        if before is not this:
            last[run.model, run.task] = max(before, this)
            yield min(before, this)[2]
