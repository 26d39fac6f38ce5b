"""Results of programs that models wrote: EvalPlus's `…_eval_results.json`, HumanEval's `…_results.jsonl`.

Each task has several samples, which pass its tests or not.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.responses.formats.json_documents import document, object_at
from irtjax.responses.formats.lines import (
    Graded,
    Number,
    Wanted,
    choose_metric,
    id_of,
    kind_of,
    records,
    response_of,
)
from irtjax.storage.sources import shown

FORM = '{"task_id": ..., "passed": true or false}'
ENDING = "eval_results.json"
BASE, PLUS = "base", "plus"  # the tests of the benchmark, and these with those that EvalPlus adds
PASS = "pass"
_ENDINGS = (".jsonl_results", "_eval_results", "eval_results", "_results", "-sanitized")
_WITHOUT_MODEL = {"", "samples"}


def model_of(path: Path) -> str:
    """The model that a file is of: its name without what these programs add, else the folder."""
    name = path.stem
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return Path(os.path.abspath(path)).parent.name if name in _WITHOUT_MODEL else name


def of_evalplus(path: Path, wanted: Wanted) -> list[Graded]:
    """The samples in a file of EvalPlus, where one is right if it passes.

    The metric "plus", the usual one, asks for the tests of the benchmark and those that EvalPlus adds; "base" for the
    first alone.

    Raises:
        InputError: names the task that is no such record.
    """
    tasks = object_at(object_at(document(path), "the file").get("eval"), "key eval")
    samples = [(task, sample) for task, found in tasks.items() for sample in _samples(task, found)]
    if not samples:
        raise InputError("no samples")
    names = [name for name in (PLUS, BASE) if all(name in sample for _, sample in samples)]
    metric = choose_metric(
        {name: kind_of(sample[name] for _, sample in samples) for name in names}, wanted, (PLUS, BASE)
    )
    model = model_of(path)
    answers: list[tuple[int, str, str, Number]] = [
        (at, model, task, int(sample[metric])) for at, (task, sample) in enumerate(samples, start=1)
    ]
    return [Graded("EvalPlus", metric, "", frozenset(names), frozenset(), answers, "sample")]


def of_human_eval(path: Path, wanted: Wanted) -> list[Graded]:
    """The samples in a file of HumanEval's own program.

    Raises:
        InputError: names the line that is no such record.
    """
    model = model_of(path)
    answers = []
    for line, record in records(path, FORM):
        if "passed" not in record:
            raise InputError(f"line {line}: no key passed")
        response = response_of(record["passed"], f"line {line}, key passed", wanted.scored)
        answers.append((line, model, id_of(record, "task_id", line), response))
    return [Graded("HumanEval", "passed", "", frozenset({"passed"}), frozenset(), answers)]


def _samples(task: str, found: Any) -> Iterator[dict[str, bool]]:
    """Whether each sample of a task passes, by metric."""
    if isinstance(found, dict):  # as older versions have it: statuses and details by kind of test
        base, plus = (_statuses(task, found.get(kind)) for kind in (BASE, PLUS))
        found = [{"base_status": status} for status in base]
        for sample, status in zip(found, plus, strict=False):
            sample["plus_status"] = status
    if not isinstance(found, list):
        raise InputError(f"task {shown(task)}: {shown(found)}, expected a list of samples")
    for sample in found:
        record = object_at(sample, f"task {shown(task)}")
        status, extra = record.get("base_status"), record.get("plus_status")
        if not isinstance(status, str):
            raise InputError(f"task {shown(task)}: a sample has no text base_status")
        yield {BASE: status == PASS} | ({PLUS: status == extra == PASS} if isinstance(extra, str) else {})


def _statuses(task: str, found: Any) -> list[Any]:
    if not isinstance(found, list) or not all(isinstance(one, list) and one for one in found):
        raise InputError(f"task {shown(task)}: {shown(found)}, expected a list of statuses")
    return [one[0] for one in found]
