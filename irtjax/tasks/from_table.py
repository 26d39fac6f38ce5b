"""Tasks of tables: CSV, TSV, JSON lines, Parquet, or in memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.storage.frames import as_frame
from irtjax.storage.sources import expanded, naming, shown
from irtjax.tasks.building import Choices, Given, Note, build
from irtjax.tasks.columns import Columns, Names, choose_columns, split_of
from irtjax.tasks.image_files import Size, decode_all
from irtjax.tasks.labels import ClassNames
from irtjax.tasks.splitting import SHARE
from irtjax.tasks.table_files import Table, files_of, of_frame, read_files
from irtjax.tasks.task import Task

Source: TypeAlias = str | Path | pd.DataFrame | Any  # or a table of Polars or Arrow


@checks_types
def from_table(
    source: Source,
    *,
    text: Names = None,
    features: Names = None,
    image: str | None = None,
    label: str | None = None,
    split: str | Mapping[str, Source] | None = None,
    id: str | None = None,
    class_names: ClassNames = None,
    name: str | None = None,
    seed: int = 0,
    validation_share: float = SHARE,
    test_share: float = SHARE,
    size: Size = None,
    flips: bool = False,
    on_note: Note | None = None,
    **options: Any,
) -> Task:
    """A task of the rows of a table.

        task = irtjax.tasks.from_table("reviews.csv")
        task = irtjax.tasks.from_table("pairs.parquet", text=("premise", "hypothesis"), label="gold")
        task = irtjax.tasks.from_table("train.csv", split={"validation": "dev.csv", "test": "test.csv"})

    Columns that are not named are found by their usual names (`irtjax.tasks.columns`): the label is `label`,
    `gold_label`, `target` or `class`, texts are `text`, `sentence`, or `premise` and `hypothesis`. Of a table of
    numbers all other columns are features. Parquet files may have images and names of classes, as Hugging Face
    exports them.

    Args:
        source: a file (.csv, .tsv, .jsonl, .json, .parquet), a folder of files whose names begin with train, validation
            (dev) and test, or a table of pandas, Polars or Arrow.
        text: the column of texts, or the two of pairs.
        features: the columns of numbers.
        image: the column of images.
        label: the column of classes: integers, names, or true and false.
        split: a column that says train, validation (dev, val) or test; or further tables, by split. Splits that there
            are not are drawn, each with its share of every class.
        id: the column of ids, each once.
        class_names: see `from_arrays`, as the arguments below.
        name: of the task; None for that of the file or its folder.
        seed: of the splits, and of word vectors that are drawn.
        validation_share: of the examples, where it is drawn.
        test_share: as `validation_share`.
        size: of images of several sizes: a side, or height and width.
        flips: images: whether training may mirror and shift them.
        on_note: called with one line of news; None to log it as a warning of `irtjax`.
        options: of texts, see `from_arrays`.

    Raises:
        InputError: names the file, and the column that is not there, with those that are, or the line that has no label
            or is otherwise wrong.
    """
    tables = _tables(source, split if isinstance(split, Mapping) else {})
    title = _title(source) if name is None else name
    own_split = split if isinstance(split, str) else None
    with naming(title):
        columns = {
            part: choose_columns(
                table.kinds, text=text, features=features, image=image, label=label, id=id, split=own_split
            )
            for part, table in tables.items()
        }
    given: dict[str, Given] = {}
    for part, table in tables.items():
        for of_split, rows in _by_split(part, table, columns[part], alone=len(tables) == 1).items():
            given[of_split] = _given(table, columns[part], rows)
    if any(column.id is not None and column.id in column.guessed for column in columns.values()):
        given = _without_unsound_ids(given)
    known = [table.classes.get(columns[part].label) for part, table in tables.items()]
    if class_names is None:
        class_names = known[0]
    choices = Choices(title, class_names, seed, validation_share, test_share, flips, on_note, options)
    if next(iter(columns.values())).kind == "image":
        given = decode_all(given, size, choices.note)
    return build(given, choices)


def _tables(source: Source, others: Mapping[str, Source]) -> dict[str, Table]:
    """The table of each split; of one table that may hold several, "" alone."""

    def read(one: Source) -> dict[str, Table]:
        frame = as_frame(one, "the rows")
        if isinstance(frame, pd.DataFrame):
            return {"": of_frame(frame.reset_index(drop=True))}
        if not isinstance(one, str | Path):
            raise InputError(f"the rows are {shown(one)}, expected a file, a folder or a table")
        return {part: read_files(paths) for part, paths in files_of(one).items()}

    tables = read(source)
    if unknown := [part for part in others if split_of(part) in (None, "train")]:
        raise InputError(f"`split` names {unknown[0]}, expected validation and test")
    if others and "" in tables:
        tables = {"train": tables[""]}
    for part, other in others.items():
        found = read(other)
        if list(found) != [""]:
            raise InputError(f"{other}: is a folder, expected a file")
        tables[str(split_of(part))] = found[""]
    return tables


def _title(source: Source) -> str:
    if not isinstance(source, str | Path):
        return "table"
    path = expanded(source).resolve()
    return path.parent.name if split_of(path.stem) and path.parent.name else path.stem


def _by_split(part: str, table: Table, columns: Columns, alone: bool) -> dict[str, np.ndarray]:
    """The rows of each split."""
    every = np.arange(len(table.cells))
    if columns.split is None or not alone:
        return {part or "train": every}
    names = table.cells[columns.split]
    splits = [split_of(name) if isinstance(name, str) else None for name in names]
    if None in splits:
        at = splits.index(None)
        if columns.split in columns.guessed:
            return {part or "train": every}
        raise InputError(
            f"{table.place(at)}: {columns.split} is {shown(names.iloc[at])}, expected train, validation or test"
        )
    found = np.array(splits)
    if "train" not in splits:
        raise InputError(f"{table.place(0)}: no row is of the split train, by the column {columns.split}")
    return {split: every[found == split] for split in dict.fromkeys(map(str, ("train", *splits)))}


def _given(table: Table, columns: Columns, rows: np.ndarray) -> Given:
    cells = table.cells.iloc[rows]
    inputs: Any
    if columns.kind == "number":
        inputs = pd.DataFrame({name: table.typed(name).iloc[rows] for name in columns.inputs})
    elif columns.kind == "text" and len(columns.inputs) == 2:
        inputs = pd.DataFrame({name: cells[name].to_numpy(object) for name in columns.inputs})
    else:
        inputs = cells[columns.inputs[0]].tolist()
    ids = None if columns.id is None else cells[columns.id].tolist()
    return Given(inputs, table.typed(columns.label).iloc[rows].tolist(), ids, lambda at: table.place(int(rows[at])))


def _without_unsound_ids(given: dict[str, Given]) -> dict[str, Given]:
    """Without ids that nobody asked for and that do not name examples: they are missing or repeat."""
    ids = [pd.Series(list(own.ids or [None]), dtype=object) for own in given.values()]
    every = pd.concat(ids, ignore_index=True)
    filled = every.notna() & (every.astype(str).str.strip() != "")
    if filled.all() and every.astype(str).is_unique:
        return given
    return {split: own._replace(ids=None) for split, own in given.items()}
