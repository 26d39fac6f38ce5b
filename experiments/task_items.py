"""Item parameters of a task's training examples, from a file; and what the crowd cost that they come from."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.run_directory import RECORD
from irtjax import InputError, read_items, read_responses
from irtjax.responses import percent_correct
from irtjax.scoring import Population
from irtjax.tasks import Task

SHOWN = 3  # ids that an error names


class CrowdCost(NamedTuple):
    """What a crowd took: networks, examples they were trained on, and seconds of training and of fitting IRT."""

    networks: int
    examples: int
    seconds: float


def training_items(path: str, task: Task, responses: str | None = None) -> pd.DataFrame:
    """The rows of an `items.csv` for the training examples, in their order.

    Args:
        path: of the items.
        task: whose training examples they are.
        responses: a response matrix, whose percent correct replaces that of the table.

    Returns:
        Columns `difficulty` and, where there is one, `percent_correct`; the index is the item id.

    Raises:
        InputError: names the file and what an example lacks in it.
    """
    table = read_items(path)
    if "difficulty" not in table:
        raise InputError(f"{path}: no column difficulty; experiments.fit_irt writes it for models of one dimension")
    items = _in_order(table.set_index("item_id"), task, path)
    if responses is not None:
        matrix = read_responses(responses)
        shares = pd.DataFrame({"percent_correct": percent_correct(matrix.values, axis=0)}, index=matrix.item_ids)
        items = items.assign(percent_correct=_in_order(shares, task, responses).percent_correct)
    for name in ("difficulty", "percent_correct"):
        bad = items.index[~np.isfinite(pd.to_numeric(items[name], errors="coerce"))] if name in items else []
        if len(bad):
            where = responses if responses and name == "percent_correct" else path
            raise InputError(f"{where}: item {bad[0]}: no number for {name}{_others(bad)}")
    return items[[name for name in ("difficulty", "percent_correct") if name in items]].astype(float)


def _in_order(table: pd.DataFrame, task: Task, path: str) -> pd.DataFrame:
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise InputError(f"{path}: item {twice[0]} is there more than once{_others(twice)}")
    missing = pd.Index(task.train.ids).difference(table.index, sort=False)
    if len(missing):
        raise InputError(
            f"{path}: {len(missing):,} of {len(task.train.ids):,} training examples of {task.name} are not in it, such "
            f"as {', '.join(missing[:SHOWN])}; it must come from the same task, data and --train_examples"
        )
    return table.loc[task.train.ids]


def _others(ids) -> str:
    return f", nor for {len(ids) - 1:,} others" if len(ids) > 1 else ""


def crowd_population(path: str) -> Population:
    """Mean and standard deviation of the abilities in the `subjects.csv` beside an `items.csv`.

    Raises:
        InputError: there is none.
    """
    subjects = Path(path).with_name("subjects.csv")
    try:
        abilities = pd.read_csv(subjects).ability
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"--ability=map needs abilities of the crowd, in {subjects}: not there") from error
    return Population(float(abilities.mean()), float(abilities.std()))


def crowd_cost(path: str) -> CrowdCost | None:
    """What the crowd of a run directory took in which the `items.csv` lies, with the fit.

    None where the file is not in such a directory.
    """
    for directory in Path(path).absolute().parents[:3]:
        try:
            settings = json.loads((directory / "config.json").read_text())
            members = pd.read_csv(directory / "crowd" / "members.csv")
            records = directory / "crowd" / RECORD, Path(path).with_name("fit.json")
            seconds = sum(json.loads(record.read_text())["seconds"] for record in records)
            examples = int(members.epochs.sum()) * settings["steps_per_epoch"] * settings["batch_size"]
        except (OSError, ValueError, KeyError, AttributeError):
            continue
        return CrowdCost(len(members), examples, seconds)
    return None
