"""Instance-level records of every_eval_ever, the common schema of evaluations: one answer of a model a line."""

import array
import collections
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats.lines import (
    NUMBERS,
    OTHER,
    RIGHT_WRONG,
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


class _Benchmark:
    """The lines of a benchmark so far: numbers of a few bytes each, and texts once."""

    def __init__(self) -> None:
        self.lines, self.responses = array.array("i"), array.array("d")
        self.models, self.items, self.scored_by = _Texts(), _Texts(), _Texts()
        self.kinds: dict[tuple[str, str], set[str]] = {}  # of the scores, by filter and metric

    def add(self, row: _Row) -> None:
        self.lines.append(row.line)
        self.responses.append(row.response)
        by = row.filter, row.metric
        for column, value in ((self.models, row.model), (self.items, row.item), (self.scored_by, by)):
            column.add(value)
        self.kinds.setdefault(by, set()).add(kind_of([row.score]))

    def answers(self, by: tuple[str, str], scored: bool) -> Iterator[tuple[int, str, str, int | float]]:
        """Line, subject, item and response of those by a filter and a metric."""
        models, items = list(self.models.known), list(self.items.known)
        wanted = self.scored_by.known[by]
        columns = (self.lines, self.models.column, self.items.column, self.scored_by.column, self.responses)
        for line, model, item, own, response in zip(*columns, strict=True):
            if own == wanted:
                yield line, models[model], items[item], int(response) if scored else response


class _Texts:
    """Different ones in the order of their first appearance, and which each line has."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.column = array.array("i")

    def add(self, text: Any) -> None:
        self.column.append(self.known.setdefault(text, len(self.known)))


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a file, by benchmark.

    Where `evaluation.is_correct` is true or false, it counts, else `evaluation.score`, which must be 0 or 1. Where
    numbers are wanted the score counts if it is one that is neither. One answer may be there several times: scored by
    several metrics (`evaluation_result_id`), or after several filters (`metadata.filter`, where the
    lm-evaluation-harness scored it). One of these is chosen for each benchmark.

    Raises:
        InputError: names the line and the key that is missing, or whose value is no response.
    """
    benchmarks: dict[str, _Benchmark] = collections.defaultdict(_Benchmark)
    for line, record in records(path, FORM):
        name, row = _row(line, record, wanted.scored)
        benchmarks[name].add(row)
    return [_of_benchmark(name, found, wanted) for name, found in benchmarks.items()]


def _of_benchmark(name: str, found: _Benchmark, wanted: Wanted) -> Graded:
    filters = list(dict.fromkeys(filter for filter, _ in found.kinds))
    chosen = choose_filter(filters, wanted)
    metrics = {metric: _together(kinds) for (filter, metric), kinds in found.kinds.items() if filter == chosen}
    try:
        metric = choose_metric(metrics, wanted)
    except InputError as error:
        raise type(error)(f"evaluation {shown(name)}: {error}") from error
    answers = found.answers((chosen, metric), wanted.scored)
    named = metric if len(metrics) > 1 else ""
    return Graded(name, named, chosen, frozenset(metrics), frozenset(filters), answers)


def _together(kinds: set[str]) -> str:
    """The kind of a metric that has these in some lines each (`kind_of`)."""
    return next(kind for kind in (OTHER, NUMBERS, RIGHT_WRONG) if kind in kinds)


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
