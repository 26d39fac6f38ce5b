"""What EleutherAI's lm-evaluation-harness logs of each answer: samples_<task>_<time>.jsonl in a folder per model."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats.lines import (
    Graded,
    Record,
    Wanted,
    choose_filter,
    choose_metric,
    id_of,
    kind_of,
    records,
    response_of,
)
from irtjax.storage.sources import shown

FORM = '{"doc_id": ..., METRIC: 0 or 1}'
# keys of a line that are no metrics
_OTHERS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip
_NAME = re.compile(r"(?:samples_)?(.+?)(?:_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?))?", re.DOTALL)
# its writer makes a text of what JSON does not know, such as truth values of NumPy
_TRUTHS = {"True": 1, "False": 0}


class _Row(NamedTuple):
    line: int
    doc: str
    filter: str
    scores: dict[str, Any]


class Run(NamedTuple):
    """What the place and the name of a file say: the model, the task, and the time of the run; empty if unknown."""

    model: str
    task: str
    time: str


def run_of(path: Path) -> Run:
    """The run that a file is of."""
    name = _NAME.fullmatch(path.stem)
    task, time = name.groups() if name else (path.stem, None)
    return Run(Path(os.path.abspath(path)).parent.name, task, time or "")


def newest(paths: Sequence[Path]) -> list[Path]:
    """The files that count where a model did a task more than once: in each folder the last by the time in its name.

    Raises:
        InputError: the names do not tell which is the last, or the runs are in two folders of the same name.
    """
    runs: dict[tuple[str, str], list[Path]] = {}
    for path in paths:
        runs.setdefault(run_of(path)[:2], []).append(path)
    return [_last(files) if len(files) > 1 else files[0] for files in runs.values()]


def _last(files: list[Path]) -> Path:
    first, (model, task, _) = files[0], run_of(files[0])
    for other in files[1:]:
        if os.path.dirname(os.path.abspath(other)) != os.path.dirname(os.path.abspath(first)):
            raise InputError(
                f"{other}: {first.parent} has task {shown(task)} of a model {shown(model)} too: rename one of the "
                "folders if these are two models, else remove one of the files"
            )
    times = {run_of(file).time: file for file in files}
    if len(times) < len(files) or "" in times:
        raise InputError(
            f"{files[-1]}: one of {len(files)} files of task {shown(task)} in this folder, whose names do not tell "
            "which run is the last: keep one"
        )
    return times[max(times)]


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a file, of which the folder names the subject, and the task and `doc_id` the item.

    Raises:
        InputError: names the line and the key that is missing, or whose value is no response.
    """
    model, task, _ = run_of(path)
    rows = [_row(line, record) for line, record in records(path, FORM)]
    filters = list(dict.fromkeys(row.filter for row in rows))
    chosen = choose_filter(filters, wanted)
    rows = [row for row in rows if row.filter == chosen]
    names = dict.fromkeys(name for row in rows for name in row.scores)
    if not names:
        raise InputError(f"line {rows[0].line}: no key of a metric, such as acc or exact_match")
    metric = choose_metric({name: kind_of(row.scores.get(name, "") for row in rows) for name in names}, wanted)
    answers = [(row.line, model, f"{task}/{row.doc}", _response(row, metric, wanted.scored)) for row in rows]
    return [Graded(task, metric, chosen, frozenset(names), frozenset(filters), answers)]


def _row(line: int, record: Record) -> _Row:
    doc, chosen, names = id_of(record, "doc_id", line), record.get("filter", "none"), record.get("metrics")
    if not isinstance(chosen, str):
        raise InputError(f"line {line}, key filter: {shown(chosen)} is not a text")
    if not isinstance(names, list):
        names = [name for name in record if name not in _OTHERS]
    scores = {name: _score(record[name]) for name in names if isinstance(name, str) and name in record}
    return _Row(line, doc, chosen, scores)


def _score(value: object) -> object:
    return _TRUTHS.get(value, value) if isinstance(value, str) else value


def _response(row: _Row, metric: str, scored: bool) -> int | float:
    if metric not in row.scores:
        raise InputError(f"line {row.line} (doc_id {shown(row.doc)}): no key {shown(metric)}")
    return response_of(row.scores[metric], f"line {row.line} (doc_id {shown(row.doc)}), key {shown(metric)}", scored)
