"""Item parameters of a task's examples, from a file, and the cost of the crowd that they come from."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from experiments.common import response_files
from experiments.common.run_directory import RECORD
from irtjax import InputError, read_items
from irtjax.item_models.tables import MOST
from irtjax.populations.normal import Population
from irtjax.responses.matrix import proportion_correct
from irtjax.storage.json_files import read_json
from irtjax.storage.tables import read_table
from irtjax.tasks import Task

SHOWN = 3  # ids that an error names
RANGES = {  # of what is read, and in words
    "difficulty": (-MOST, MOST, f"at most {MOST:,.0f} logits in size"),
    "difficulty_se": (0.0, MOST, f"a standard error from 0 to {MOST:,.0f} logits"),
    "proportion_correct": (0.0, 1.0, "a share from 0 to 1"),
}


class CrowdCost(NamedTuple):
    """What a crowd cost.

    Attributes:
        networks: how many there are.
        examples: that they were trained on, all together.
        seconds: of training them and of fitting IRT.
    """

    networks: int
    examples: int
    seconds: float


def items_of(
    path: str,
    task: Task,
    responses: str | None = None,
    need: Sequence[str] = ("difficulty",),
    split: str = "train",
) -> pd.DataFrame:
    """The rows of an `items.csv` for the examples of a split, in their order.

    Args:
        path: file of items.
        task: whose examples they are.
        responses: file of responses, whose percent correct replaces that of the items.
        need: the columns needed, of `difficulty`, `difficulty_se` and `proportion_correct`.
        split: its name.

    Returns:
        These columns; the index is the item id.

    Raises:
        InputError: names the file, and what it lacks for which example.
    """
    table = read_items(path)
    if "difficulty" not in table:
        raise InputError(f"{path}: no column difficulty; experiments.fit_irt writes it for models of one dimension")
    items = _in_order(table.set_index("item_id"), task, path, split)
    _note_falling(items, path)
    if responses is not None:
        matrix = response_files.read(responses)
        shares = pd.DataFrame({"proportion_correct": proportion_correct(matrix.values, axis=0)}, index=matrix.item_ids)
        items = items.assign(proportion_correct=_in_order(shares, task, responses, split).proportion_correct)
    for name in need:
        if name not in items:
            remedy = ", which PCUB and PCLB need: give --responses" if name == "proportion_correct" else ""
            raise InputError(f"{path}: no column {name}{remedy}")
        values, where = pd.to_numeric(items[name], errors="coerce"), path
        what = "no number for"
        bad = items.index[~np.isfinite(values)]
        if name == "proportion_correct":
            where = responses or path
        if not len(bad):
            least, most, expected = RANGES[name]
            bad, what = items.index[(values < least) | (values > most)], f"expected {expected} as"
        if len(bad):
            raise InputError(f"{where}: item {bad[0]}: {what} {name}{_others(bad)}")
    return items[list(need)].astype(float)


def _note_falling(items: pd.DataFrame, path: str) -> None:
    """Prints a note on items that the able have wrong, whose difficulty is the lower the fewer have them right."""
    slopes = pd.to_numeric(items.get("discrimination", pd.Series(dtype=float)), errors="coerce")
    if falling := int((slopes < 0).sum()):
        tqdm.write(
            f"note: {falling:,} of {len(items):,} items of {path} have a discrimination below 0: what few have right "
            "counts as easy there; fit with --model=rasch"
        )


def _in_order(table: pd.DataFrame, task: Task, path: str, split: str) -> pd.DataFrame:
    """The rows of the examples of a split, by the index of the table."""
    ids, what = task.split(split).ids, "training" if split == "train" else split
    missing = pd.Index(ids).difference(table.index, sort=False)
    if len(missing):
        raise InputError(
            f"{path}: {len(missing):,} of {len(ids):,} {what} examples of {task.name} are not in it, such "
            f"as {', '.join(missing[:SHOWN])}; it must come from the same task, data and --{split}_examples"
        )
    return table.loc[ids]


def _others(ids: pd.Index) -> str:
    return f", nor for {len(ids) - 1:,} others" if len(ids) > 1 else ""


def crowd_population(path: str, needed_by: str = "--ability=map") -> Population:
    """Mean and standard deviation of the abilities in the `subjects.csv` beside an `items.csv`.

    Args:
        path: of the `items.csv`.
        needed_by: the flag that an error names.

    Raises:
        InputError: there is no such file, or its abilities do not vary or are not numbers.
    """
    subjects = Path(path).with_name("subjects.csv")
    try:
        abilities = pd.to_numeric(read_table(subjects).ability, errors="coerce").to_numpy(float)
    except (InputError, AttributeError) as error:
        raise InputError(f"{needed_by} needs abilities of the crowd, in {subjects}: not there ({error})") from error
    if not np.isfinite(abilities).all() or len(abilities) < 2 or np.ptp(abilities) == 0:
        raise InputError(f"{subjects}: {needed_by} needs two different abilities or more, all of them finite numbers")
    return Population(float(abilities.mean()), float(abilities.std(ddof=1)))


def crowd_cost(path: str) -> CrowdCost | None:
    """The cost of the crowd and the fit that made an `items.csv`; None if it is not in the run directory of a crowd."""
    for directory in Path(path).absolute().parents[:3]:
        try:
            settings = read_json(directory / "config.json")
            members = pd.read_csv(directory / "crowd" / "members.csv")
            records = directory / "crowd" / RECORD, Path(path).with_name("fit.json")
            seconds = sum(read_json(record)["seconds"] for record in records)
            batch, steps = settings["batch_size"], settings["steps_per_epoch"]
            if settings.get("epoch") == "pass":
                steps = np.maximum(members.subset_size // batch, 1)
            examples = int((members.epochs * steps).sum()) * batch
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        return CrowdCost(len(members), examples, seconds)
    return None
