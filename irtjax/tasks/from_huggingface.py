"""Tasks of data sets of Hugging Face's `datasets`, which need not be installed: what they offer is used as it is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.tasks.building import Choices, Given, Note, build
from irtjax.tasks.columns import Columns, Names, choose_columns, split_of
from irtjax.tasks.from_tfds import WITHHELD
from irtjax.tasks.image_files import Size, decode_all
from irtjax.tasks.labels import ClassNames
from irtjax.tasks.splitting import SHARE
from irtjax.tasks.task import SPLITS, Task


@checks_types
def from_huggingface(
    dataset: Any,
    *,
    text: Names = None,
    features: Names = None,
    image: str | None = None,
    label: str | None = None,
    split: Mapping[str, str] | None = None,
    id: str | None = None,
    class_names: ClassNames = None,
    name: str = "huggingface",
    seed: int = 0,
    validation_share: float = SHARE,
    test_share: float = SHARE,
    size: Size = None,
    flips: bool = False,
    on_note: Note | None = None,
    **options: Any,
) -> Task:
    """A task of a `Dataset`, or of a `DatasetDict` of its splits.

        task = irtjax.tasks.from_huggingface(datasets.load_dataset("ag_news"), name="ag_news")

    Only `features`, `column_names` and columns by their names are used. Names of classes come from a `ClassLabel`,
    images from an `Image`. Examples without a label (-1) are left out, and so is a split whose examples all lack one.

    Args:
        dataset: the data set, or a mapping of splits to data sets.
        text: see `from_table`, as the other columns.
        features: see there.
        image: see there.
        label: see there; by default the only `ClassLabel`.
        split: names in the data set of the splits train, validation and test; None for these names, or dev and val.
        id: see there.
        class_names: see `from_arrays`; None for those of the `ClassLabel`.
        name: of the task.
        seed: see `from_arrays`, as the arguments below.
        validation_share: see there.
        test_share: see there.
        size: see `from_table`.
        flips: see `from_arrays`.
        on_note: see there.
        options: of texts, see there.

    Raises:
        InputError: it is another kind of data set, a column is not there, or see `from_arrays`.
    """
    parts = _parts(dataset, split or {})
    choices = Choices(name, class_names, seed, validation_share, test_share, flips, on_note, options)
    given, known, kind = {}, class_names, ""
    for own, part in parts.items():
        kinds = {column: _kind(part.features[column]) for column in part.column_names}
        columns = choose_columns(kinds, text=text, features=features, image=image, label=label, id=id)
        kind = columns.kind
        found = _given(part, own, columns, choices)
        if found is None and own == "train":
            raise InputError(f"{name}: no training example has a label")
        if found is not None:
            given[own] = found
        if known is None:
            known = getattr(part.features[columns.label], "names", None)
    if kind == "image":
        given = decode_all(given, size, choices.note)
    return build(given, Choices(name, known, seed, validation_share, test_share, flips, on_note, options))


def _parts(dataset: Any, split: Mapping[str, str]) -> dict[str, Any]:
    """The data set of each split."""
    if not hasattr(dataset, "keys"):
        parts = {"train": dataset}
    else:
        parts = {own: dataset[stored] for stored in dataset if (own := split_of(stored))}
        for own, stored in split.items():
            if own not in SPLITS or stored not in dataset:
                raise InputError(f"`split`: {own} of {stored}; the data set has {', '.join(dataset)}")
            parts[own] = dataset[stored]
        if "train" not in parts:
            raise InputError(f"no split train, only {', '.join(dataset)}: name it by `split`")
    for part in parts.values():
        if not hasattr(part, "features") or not hasattr(part, "column_names"):
            raise InputError(f"expected a data set of Hugging Face's `datasets`, not a {type(part).__name__}")
    return {own: parts[own] for own in SPLITS if own in parts}


def _kind(feature: Any) -> str:
    """What a column has, by the name of its feature's class and its `dtype`."""
    name, dtype = type(feature).__name__, str(getattr(feature, "dtype", ""))
    if name in ("ClassLabel", "Image"):
        return {"ClassLabel": "class", "Image": "image"}[name]
    if name == "Value":
        if dtype in ("string", "large_string"):
            return "text"
        return "number" if dtype.startswith(("int", "uint", "float", "bool", "double")) else "other"
    return "image" if name in ("Array2D", "Array3D") else "other"


def _given(part: Any, split: str, columns: Columns, choices: Choices) -> Given | None:
    """The examples of a split that have a label; None if there are none."""
    labels = list(part[columns.label])
    rows = np.array([at for at, label in enumerate(labels) if label is not None and label != WITHHELD], int)
    if not hasattr(part.features[columns.label], "names"):
        rows = np.arange(len(labels))  # -1 may be a class
    if not rows.size:
        choices.note(f"no example of {split} has a label: another split is drawn in its place")
        return None
    if rows.size < len(labels):
        choices.note(f"{len(labels) - rows.size:,} examples of {split} have no label and are left out")
    cells = [list(part[name]) for name in columns.inputs]
    chosen = [[column[at] for at in rows] for column in cells]
    inputs: Any = chosen[0]
    if columns.kind == "number" or len(chosen) == 2:
        inputs = pd.DataFrame(dict(zip(columns.inputs, chosen, strict=True)))
    ids = None
    if columns.id is not None and columns.id not in columns.guessed:
        every = list(part[columns.id])
        ids = [every[at] for at in rows]
    return Given(inputs, [labels[at] for at in rows], ids, lambda at: f"row {rows[at]} (counted from 0)")
