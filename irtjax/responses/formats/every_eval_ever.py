"""Instance-level records of every_eval_ever, the common schema of evaluations: one answer of a model a line."""

from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats.lines import (
    Graded,
    Record,
    Wanted,
    choose_filter,
    choose_metric,
    code_of,
    id_of,
    kind_of,
    records,
    response_of,
)
from irtjax.storage.sources import shown

FORM = '{"model_id": ..., "sample_id": ..., "evaluation": {"is_correct": true or false}}'


class _Row(NamedTuple):
    line: int
    model: str
    item: str
    filter: str
    metric: str  # empty where the line does not name it
    response: int | float
    score: Any


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a file, by benchmark.

    Where `evaluation.is_correct` is true or false, it counts, else `evaluation.score`, which must be 0 or 1. Where
    numbers are wanted the score counts if it is one that is neither. One answer may be there several times: scored by
    several metrics (`evaluation_result_id`), or after several filters (`metadata.filter`, where the
    lm-evaluation-harness scored it). One of these is chosen for each benchmark.

    Raises:
        InputError: names the line and the key that is missing, or whose value is no response.
    """
    benchmarks: dict[str, list[_Row]] = {}
    for line, record in records(path, FORM):
        name, row = _row(line, record, wanted.scored)
        benchmarks.setdefault(name, []).append(row)
    return [_of_benchmark(name, rows, wanted) for name, rows in benchmarks.items()]


def _of_benchmark(name: str, rows: list[_Row], wanted: Wanted) -> Graded:
    filters = list(dict.fromkeys(row.filter for row in rows))
    chosen = choose_filter(filters, wanted)
    rows = [row for row in rows if row.filter == chosen]
    scores: dict[str, list[Any]] = {}
    for row in rows:
        scores.setdefault(row.metric, []).append(row.score)
    try:
        metric = choose_metric({each: kind_of(values) for each, values in scores.items()}, wanted)
    except InputError as error:
        raise type(error)(f"evaluation {shown(name)}: {error}") from error
    answers = [(row.line, row.model, row.item, row.response) for row in rows if row.metric == metric]
    named = metric if len(scores) > 1 else ""
    return Graded(name, named, chosen, frozenset(scores), frozenset(filters), answers)


def _row(line: int, record: Record, scored: bool) -> tuple[str, _Row]:
    """The benchmark of a line, without the filter that its name ends with, and the rest."""
    model, sample = id_of(record, "model_id", line), id_of(record, "sample_id", line)
    response, score = _response(line, record, scored)
    name = _benchmark(record)
    filtered, metric = _text(record.get("metadata"), "filter") or "none", _text(record, "evaluation_result_id")
    item = f"{name}/{sample}" if name else sample
    return name.removesuffix(f"/{filtered}"), _Row(line, model, item, filtered, metric, response, score)


def _benchmark(record: Record) -> str:
    """`evaluation_name`, else what `evaluation_id` (benchmark/model/time) begins with, else nothing."""
    return _text(record, "evaluation_name") or _text(record, "evaluation_id").rpartition("/")[0].partition("/")[0]


def _text(record: Any, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def _response(line: int, record: Record, scored: bool) -> tuple[int | float, Any]:
    """The response, and the score beside it."""
    if "evaluation" not in record:
        raise InputError(f"line {line}: no key evaluation")
    evaluation = record["evaluation"]
    if not isinstance(evaluation, dict):
        raise InputError(f"line {line}, key evaluation: {shown(evaluation)} is not an object")
    if not {"is_correct", "score"} & evaluation.keys():
        raise InputError(f"line {line}, key evaluation: neither is_correct nor score is there")
    score = evaluation.get("score")
    # a share or a grade says more than whether it is above some threshold
    graded = not scored and isinstance(score, int | float) and code_of(score) is None
    key = "score" if graded or evaluation.get("is_correct") is None else "is_correct"
    return response_of(evaluation.get(key), f"line {line}, key evaluation.{key}", scored), score
