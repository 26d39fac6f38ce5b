"""Tables of examples from files: CSV, TSV, JSON lines and Parquet, as other programs write them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.json_files import parsed
from irtjax.storage.memory import parquet_bytes, require_memory
from irtjax.storage.sources import expanded, naming, one_line, reading, refuse_address, text_of
from irtjax.storage.tables import read_rows, typed
from irtjax.tasks.choices import CSV, ENDINGS, JSON
from irtjax.tasks.columns import split_of

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a pair that stands for one character, perhaps without the other half


class Table(NamedTuple):
    """A table of examples.

    Attributes:
        cells: the table; text stays as it stands, "NA" and "None" too.
        typed: column -> the same as numbers where all its cells are, missing where they are empty.
        kinds: what each column has, see `irtjax.tasks.columns.choose_columns`.
        classes: names of the labels of columns of the kind class.
        place: where a row stands, for errors.
    """

    cells: pd.DataFrame
    typed: Callable[[str], pd.Series]
    kinds: dict[str, str]
    classes: dict[str, tuple[str, ...]]
    place: Callable[[int], str]


def files_of(path: str | Path) -> dict[str, list[Path]]:
    """The files of each split in a folder, by the beginnings of their names; those of a file's are "" alone.

    Raises:
        InputError: a folder without a file whose name begins with train.
    """
    refuse_address(path)
    path = expanded(path)
    if not path.is_dir():
        return {"": [path]}
    found: dict[str, list[Path]] = {}
    for file in sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file()):
        split = split_of(file.stem.replace("_", "-").split("-")[0])
        if split is not None:
            found.setdefault(split, []).append(file)
    if "train" not in found:
        raise InputError(f"{path}: no file whose name begins with train and ends in {', '.join(ENDINGS)}")
    return found


def read_files(paths: list[Path]) -> Table:
    """The rows of one file, or of several with the same columns.

    Raises:
        InputError: names the file, and the line or column that is wrong.
    """
    parts = [read_file(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    for path, part in zip(paths[1:], parts[1:], strict=True):
        if list(part.kinds) != list(parts[0].kinds):
            raise InputError(f"{path}: has other columns than {paths[0]}")
    starts = np.cumsum([0, *(len(part.cells) for part in parts)])

    def place(at: int) -> str:
        part = int(np.searchsorted(starts, at, side="right")) - 1
        return parts[part].place(at - int(starts[part]))

    return parts[0]._replace(
        cells=pd.concat([part.cells for part in parts], ignore_index=True),
        typed=lambda name: pd.concat([part.typed(name) for part in parts], ignore_index=True),
        place=place,
    )


def read_file(path: Path) -> Table:
    """The rows of a file, by its ending.

    Raises:
        InputError: names the file, and the line that is wrong; or it is of another kind.
    """
    with reading(path) as file:
        ending = file.suffix.lower()
        if ending in CSV:
            return _read_csv(file)
        if ending in JSON:
            return _read_json(file)
        if ending == ".parquet":
            return _read_parquet(file)
        raise InputError(f"expected a table that ends in {', '.join(ENDINGS)}")


def of_frame(frame: pd.DataFrame, name: str = "") -> Table:
    """A table in memory; rows are counted from 1 in errors."""
    if frame.columns.has_duplicates:
        raise InputError(f"two columns are called {frame.columns[frame.columns.duplicated()][0]}")
    frame = frame.rename(columns=str)
    kinds = {column: _kind(frame[column]) for column in frame}
    start = f"{name}, " if name else ""
    return Table(frame, lambda column: frame[column], kinds, {}, lambda at: f"{start}row {at + 1}")


def _read_csv(path: Path) -> Table:
    rows = read_rows(path)
    if not rows.cells:
        raise InputError("no examples")
    cells = pd.DataFrame(rows.cells, columns=rows.header, dtype=object)
    columns = {name: typed(cells[name].tolist()) for name in rows.header}
    kinds = {name: "number" if columns[name].dtype.kind in "iuf" else "text" for name in rows.header}
    return Table(cells, columns.__getitem__, kinds, {}, lambda at: f"{path}, line {rows.lines[at]}")


def _is_text(record: Any) -> bool:
    """Whether all names and texts of a record can be written in UTF-8."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_json(path: Path) -> Table:
    text = text_of(path)
    records, lines = [], []
    if text.lstrip().startswith("["):
        records = parsed(text)
        lines = [f"{path}, record {at + 1}" for at in range(len(records))]
    else:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                with naming(f"line {number}"):
                    records.append(parsed(line))
                lines.append(f"{path}, line {number}")
    halves = _HALF.search(text) is not None
    for record, line in zip(records, lines, strict=True):
        if not isinstance(record, dict):
            raise InputError(
                f"{line.removeprefix(f'{path}, ')} is not an object with names, but {type(record).__name__}"
            )
        if halves and not _is_text(record):
            raise InputError(f"{line.removeprefix(f'{path}, ')} has half of a surrogate pair, which is no text")
    if not records:
        raise InputError("no examples")
    names = list(dict.fromkeys(name for record in records for name in record))
    # one column at a time, as pandas would make numbers with a point of whole ones where some are missing
    frame = pd.DataFrame({name: pd.Series([record.get(name) for record in records], dtype=object) for name in names})
    return of_frame(frame.infer_objects())._replace(place=lines.__getitem__)


def _read_parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        require_memory(parquet_bytes(path, file))
        table = file.read()
        frame = table.to_pandas()
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError) as error:
        raise InputError(f"cannot be read as Parquet ({one_line(error)})") from error
    if not len(frame):
        raise InputError("no examples")
    found = of_frame(frame.reset_index(drop=True), str(path))
    classes = _class_names(table.schema.metadata or {})
    return found._replace(
        kinds=found.kinds | {name: "class" for name in classes if name in found.kinds}, classes=classes
    )


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, tuple[str, ...]]:
    """Names of the classes of each column, where Hugging Face's `datasets` has written the file."""
    try:
        features = parsed(metadata[b"huggingface"].decode())["info"]["features"]
        return {name: tuple(own["names"]) for name, own in features.items() if own.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _kind(column: pd.Series) -> str:
    if column.dtype.kind in "biuf":
        return "number"
    known = column.dropna()
    first: Any = known.iloc[0] if len(known) else None
    if isinstance(first, str):
        return "text"
    if isinstance(first, dict) and isinstance(first.get("bytes"), bytes):
        return "image"
    return "other"
