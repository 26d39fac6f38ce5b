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
    records,
)
from irtjax.storage.sources import shown

FORM = '{"model_id": ..., "sample_id": ..., "evaluation": {"is_correct": true or false}}'


class _Row(NamedTuple):
    line: int
    model: str
    item: str
    filter: str
    metric: str  # empty where the line does not name it
    code: int
    plain: bool  # whether its score is 0 or 1


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a file, by benchmark.

    Where `evaluation.is_correct` is true or false, it counts, else `evaluation.score`, which must be 0 or 1. One answer
    may be there several times: scored by several metrics (`evaluation_result_id`), or after several filters
    (`metadata.filter`, where the lm-evaluation-harness scored it). One of these is chosen for each benchmark.

    Raises:
        InputError: names the line and the key that is missing, or whose value is neither 0 nor 1.
    """
    benchmarks: dict[str, list[_Row]] = {}
    for line, record in records(path, FORM):
        name, row = _row(line, record)
        benchmarks.setdefault(name, []).append(row)
    return [_of_benchmark(name, rows, wanted) for name, rows in benchmarks.items()]


def _of_benchmark(name: str, rows: list[_Row], wanted: Wanted) -> Graded:
    filters = list(dict.fromkeys(row.filter for row in rows))
    chosen = choose_filter(filters, wanted)
    rows = [row for row in rows if row.filter == chosen]
    whole: dict[str, bool] = {}
    for row in rows:
        whole[row.metric] = whole.get(row.metric, True) and row.plain
    try:
        metric = choose_metric(whole, wanted)
    except InputError as error:
        raise InputError(f"evaluation {shown(name)}: {error}") from error
    answers = [(row.line, row.model, row.item, row.code) for row in rows if row.metric == metric]
    named = metric if len(whole) > 1 else ""
    return Graded(name, named, chosen, frozenset(whole), frozenset(filters), answers)


def _row(line: int, record: Record) -> tuple[str, _Row]:
    """The benchmark of a line, without the filter that its name ends with, and the rest."""
    model, sample = id_of(record, "model_id", line), id_of(record, "sample_id", line)
    code, plain = _code(line, record)
    name = _benchmark(record)
    filtered, metric = _text(record.get("metadata"), "filter") or "none", _text(record, "evaluation_result_id")
    item = f"{name}/{sample}" if name else sample
    return name.removesuffix(f"/{filtered}"), _Row(line, model, item, filtered, metric, code, plain)


def _benchmark(record: Record) -> str:
    """`evaluation_name`, else what `evaluation_id` (benchmark/model/time) begins with, else nothing."""
    return _text(record, "evaluation_name") or _text(record, "evaluation_id").rpartition("/")[0].partition("/")[0]


def _text(record: Any, key: str) -> str:
    """The text under a key; empty where there is none."""
    value = record.get(key) if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def _code(line: int, record: Record) -> tuple[int, bool]:
    if "evaluation" not in record:
        raise InputError(f"line {line}: no key evaluation")
    evaluation = record["evaluation"]
    if not isinstance(evaluation, dict):
        raise InputError(f"line {line}, key evaluation: {shown(evaluation)} is not an object")
    if not {"is_correct", "score"} & evaluation.keys():
        raise InputError(f"line {line}, key evaluation: neither is_correct nor score is there")
    key = "score" if evaluation.get("is_correct") is None else "is_correct"
    code = code_of(evaluation.get(key))
    if code is None:
        raise InputError(
            f"line {line}, key evaluation.{key}: {shown(evaluation[key])} is neither 0 nor 1: score the answers as "
            "right or wrong, or leave the file out"
        )
    return code, code_of(evaluation.get("score")) is not None
