"""What HELM writes of each instance of a run: `per_instance_stats.json` in a folder per run."""

import math
import os
import re
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.responses.formats.json_documents import document, object_at, text_at
from irtjax.responses.formats.lines import PREFERRED, Graded, Wanted, choose_metric, kind_of, response_of
from irtjax.storage.sources import shown

NAME = "per_instance_stats.json"
USUAL = (
    *PREFERRED, "quasi_exact_match", "chain_of_thought_correctness", "math_equiv_chain_of_thought", "math_equiv",
    "ifeval_strict_accuracy",
)  # fmt: skip
_OF_MODEL = re.compile(r"(?:^|[:,])(model(?:_deployment)?)=([^,]*)")


def graded(path: Path, wanted: Wanted) -> list[Graded]:
    """The answers in a file: the subject is the model, the item the run without the model and the instance.

    The model is that of `run_spec.json` beside it, else what the name of the folder says. A response is the mean of a
    statistic. Instances of several `train_trial_index` are answered several times; perturbed ones are other items.

    Raises:
        InputError: nothing names the model, an entry is no such record, or a mean is no response; names the entry.
    """
    entries = document(path)
    if not isinstance(entries, list) or not entries:
        raise InputError("expected a list of the statistics of each instance")
    model, run = _run(path)
    rows = [_row(at, entry, run) for at, entry in enumerate(entries, start=1)]
    names = dict.fromkeys(name for _, _, means in rows for name in means)
    if not names:
        raise InputError("no instance has statistics")
    kinds = {name: kind_of(means[name] for _, _, means in rows if name in means) for name in names}
    metric = choose_metric(kinds, wanted, USUAL)
    answers = [
        (at, model, item, response_of(means.get(metric), f"entry {at}, {shown(metric)}", wanted.scored))
        for at, item, means in rows
    ]
    return [Graded(run, metric, "", frozenset(names), frozenset(), answers, "entry")]


def _run(path: Path) -> tuple[str, str]:
    """The model of a run, and the name of the run without it."""
    folder = Path(os.path.abspath(path)).parent
    named = dict(_OF_MODEL.findall(folder.name)).get("model", "")
    run = _OF_MODEL.sub(lambda found: found[0][0] if found[0][0] in ":," else "", folder.name)
    run = re.sub(r",+", ",", run).replace(":,", ":").strip(":,")
    specification = folder / "run_spec.json"
    if specification.is_file():
        adapter = object_at(object_at(document(specification), "run_spec.json").get("adapter_spec"), "adapter_spec")
        return text_at(adapter, "model", "run_spec.json: adapter_spec"), run
    if not named:
        raise InputError("neither a run_spec.json beside it nor model=… in the name of its folder names the model")
    return named, run


def _row(at: int, entry: Any, run: str) -> tuple[int, str, dict[str, Any]]:
    """Number, item and means of an entry, by the names of the statistics."""
    record = object_at(entry, f"entry {at}")
    item = f"{run}/{text_at(record, 'instance_id', f'entry {at}')}"
    if record.get("perturbation") is not None:
        perturbation = object_at(record["perturbation"], f"entry {at}, key perturbation")
        item += f"/{text_at(perturbation, 'name', f'entry {at}, key perturbation')}"
    stats = record.get("stats")
    if not isinstance(stats, list):
        raise InputError(f"entry {at}: no list stats")
    means: dict[str, Any] = {}
    for stat in stats:
        one = object_at(stat, f"entry {at}, key stats")
        name = text_at(object_at(one.get("name"), f"entry {at}, key stats.name"), "name", f"entry {at}, stats.name")
        means[name] = one.get("mean", _mean(one))
    return at, item, means


def _mean(stat: dict[str, Any]) -> Any:
    """Of a file that has sums alone."""
    number, total = stat.get("count"), stat.get("sum")
    if isinstance(number, int | float) and isinstance(total, int | float) and number > 0:
        try:
            return total / number
        except OverflowError:  # whole numbers of hundreds of digits, which are no response
            return math.inf
    return None
