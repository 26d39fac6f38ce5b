"""Logs of Inspect AI in JSON: one run of a task by a model, with the scores of each sample."""

from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError
from irtjax.responses.formats.json_documents import document, object_at, text_at
from irtjax.responses.formats.lines import Graded, Record, Wanted, choose_metric, id_of, kind_of, response_of
from irtjax.storage.sources import shown

FORM = '{"eval": {"task": ..., "model": ...}, "samples": [{"id": ..., "scores": {SCORER: {"value": ...}}}]}'
# what its `value_to_float` makes of texts; "no" and "yes" in any case
_TEXTS = {"C": 1, "P": 0.5, "I": 0, "N": 0}
_WORDS = {"yes": 1, "true": 1, "no": 0, "false": 0}


class _Sample(NamedTuple):
    number: int
    item: str
    scores: dict[str, Any]


class Run(NamedTuple):
    """What of several logs of one model and task counts: the last that ended well, else the last.

    Attributes:
        model: that was run.
        task: on which.
        ended_well: whether its status is success.
        created: when, as the log has it.
    """

    model: str
    task: str
    ended_well: bool
    created: str


def run_of(path: Path) -> Run:
    """The run that a log is of.

    Raises:
        InputError: it is no log.
    """
    log = object_at(document(path), "the file")
    run = object_at(log.get("eval"), "key eval")
    created = run.get("created")
    return Run(
        text_at(run, "model", "key eval"),
        text_at(run, "task", "key eval"),
        log.get("status") == "success",
        created if isinstance(created, str) else "",
    )


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a log: the subject is the model, the item task and id of the sample, the metric a scorer.

    Grades C, P, I and N are 1, 1/2, 0 and 0, as Inspect's own `value_to_float` has them. A score of several values is
    several metrics, scorer/name. Samples of several epochs are several answers, and those without scores are missing.

    Raises:
        InputError: it is no log, or a score is no response; names the sample.
    """
    run = run_of(path)
    samples = object_at(document(path), "the file").get("samples")
    if not isinstance(samples, list) or not samples:
        raise InputError("no samples: the log was written without them (log_samples), or the run never began")
    rows = [_sample(at, sample, run.task) for at, sample in enumerate(samples, start=1)]
    scored = [row for row in rows if row.scores]
    names = dict.fromkeys(name for row in scored for name in row.scores)
    if not names:
        raise InputError("no sample has a score: score the log, or leave it out")
    metric = choose_metric({name: kind_of(row.scores.get(name) for row in scored) for name in names}, wanted)
    answers = [
        (
            row.number,
            run.model,
            row.item,
            response_of(row.scores.get(metric), f"sample {row.number}, score {shown(metric)}", wanted.scored),
        )
        for row in rows
    ]
    return [Graded(run.task, metric, "", frozenset(names), frozenset(), answers, "sample")]


def _sample(at: int, sample: Any, task: str) -> _Sample:
    record = object_at(sample, f"sample {at}")
    scores: dict[str, Any] = {}
    for scorer, score in object_at(record.get("scores") or {}, f"sample {at}, key scores").items():
        value = object_at(score, f"sample {at}, score {shown(scorer)}").get("value")
        if isinstance(value, dict):
            scores |= {f"{scorer}/{name}": _number(one) for name, one in value.items()}
        else:
            scores[scorer] = _number(value)
    return _Sample(at, f"{task}/{_id(record, at)}", scores)


def _id(record: Record, at: int) -> str:
    try:
        return id_of(record, "id", at)
    except InputError as error:
        raise InputError(str(error).replace("line", "sample", 1)) from error


def _number(value: Any) -> Any:
    """A score as Inspect's own metrics take it; what they would not know, as it is."""
    if not isinstance(value, str):
        return value
    known = _TEXTS.get(value, _WORDS.get(value.lower()))
    if known is not None:
        return known
    try:
        return float(value)
    except ValueError:
        return value
