"""What is kept of a curriculum between two runs of a training: a file of JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.selection.own_loop import as_difficulty
from irtjax.storage.files import whole_file
from irtjax.storage.json_files import read_json

FORMAT = "irtjax curriculum 1"
NOT_A_RECORD = (KeyError, TypeError, ValueError, AttributeError, OverflowError)  # what other JSON leads to


class Epoch(NamedTuple):
    """What was selected for an epoch.

    Attributes:
        epoch: its number.
        ability: of the network before it, in logits; NaN by a fixed schedule or a filter, which do not estimate it.
        ability_se: its standard error, from the information of the answers.
        items_asked: answers that it comes from.
        first: place of the easiest of the selected examples in ascending order of difficulty; of a filter, in its own.
        num_examples: selected.
    """

    epoch: int
    ability: float
    ability_se: float
    items_asked: int
    first: int
    num_examples: int


def write_record(path: str | Path, record: Mapping[str, Any]) -> None:
    """Writes a record whose values are numbers, texts, arrays, or epochs.

    Raises:
        InputError: the file cannot be written.
    """
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in record.items()}
    plain["epochs"] = [{name: _finite(value) for name, value in row._asdict().items()} for row in record["epochs"]]
    with whole_file(path) as file:
        file.write_text(json.dumps({"format": FORMAT, **plain}, allow_nan=False) + "\n", encoding="utf-8")


def read_record(path: str | Path) -> dict[str, Any]:
    """What `write_record` wrote.

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    record = read_json(path)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(f"{path}: not a curriculum that `Curriculum.save` wrote, expected `format` {FORMAT!r}")
    return record


def as_epochs(rows: Sequence[Mapping[str, Any]], number: int) -> list[Epoch]:
    """Epochs of a record, of a curriculum that orders so many examples; raises `NOT_A_RECORD` where they are not."""
    epochs: list[Epoch] = []
    for row in rows:
        whole = {name: whole_number(name, row[name]) for name in ("epoch", "items_asked", "first", "num_examples")}
        found = Epoch(**whole, ability=float(row["ability"]), ability_se=float(row["ability_se"]))
        if found.first + found.num_examples > number or (epochs and found.epoch <= epochs[-1].epoch):
            raise ValueError(f"epoch {found.epoch} is out of range")
        epochs.append(found)
    return epochs


def require_same(path: str | Path, saved: pd.Series, difficulty: Any) -> None:
    """Refuses a file of other examples than those at hand.

    Args:
        path: of the file.
        saved: difficulties in it, by item id.
        difficulty: those at hand, as `Curriculum` takes them.

    Raises:
        InputError: names the first example that differs.
    """
    known, item_ids = saved.to_numpy(), saved.index.to_numpy()
    as_difficulty(difficulty)  # or an error
    given = np.asarray(difficulty, float)
    if given.shape != known.shape:
        raise InputError(f"{path}: of {known.size:,} examples, `difficulty` has {given.size:,}")
    different = given != known
    if isinstance(difficulty, pd.Series):
        different |= difficulty.index.to_numpy() != item_ids
    if different.any():
        at = int(np.flatnonzero(different)[0])
        raise InputError(
            f"{path}: saved with other difficulties: example {at} is {item_ids[at]!s:.50}, of "
            f"{known[at]:.6g}; `difficulty` has {given[at]:.6g} there"
        )


def _finite(value: int | float) -> int | float | str:
    """A number as JSON has it: NaN and infinities as text, which `float` reads."""
    return value if math.isfinite(value) else str(value)
