"""Folders of shards: some items each, as plain NumPy files, so that no program need ever hold the whole matrix.

shards.json                 {"format": 1, "num_subjects": J, "num_items": [n, …]}, one entry per shard
subject_ids.npy             (J,) texts
item_ids_00000.npy          (n,) texts
responses_00000.npy         (J, n) int8; 1 right, 0 wrong, -1 missing
"""

import bisect
import itertools
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.responses.masks import as_array
from irtjax.responses.matrix import as_ids, require_sound_ids, require_unique, sound
from irtjax.responses.stored import StoredResponses
from irtjax.storage.files import exists, whole_directory
from irtjax.storage.json_files import read_json
from irtjax.storage.sources import naming, one_line, shown
from irtjax.types import Int, Shaped

INDEX = "shards.json"
FORMAT = 1
MOST = 2**40  # subjects, or items of a shard: far more than any disk holds
Part = tuple[Shaped[np.ndarray, "J _"], Shaped[np.ndarray, " _"] | Sequence[str]]  # each of its own number of items


@checks_types
def write_shards(
    parts: Iterable[Part], subject_ids: Shaped[np.ndarray, " J"] | Sequence[str], folder: str | Path
) -> None:
    """Writes responses a part at a time, for `irtjax.open_responses` and `irtjax.fit` to read a part at a time.

        irtjax.write_shards(((answers(batch), ids(batch)) for batch in batches), subject_ids, "responses")

    Args:
        parts: each the responses (J, n) of all subjects to n items, and the ids of these.
        subject_ids: of the J subjects.
        folder: to be made; it must not exist yet.

    Raises:
        InputError: parts that do not fit the subjects, a value that is no response, an id that occurs twice, or a
            folder that exists or cannot be written to.
    """
    subjects = as_ids(subject_ids, "subject")
    require_sound_ids(subjects, "subject")
    folder = Path(folder)
    if exists(folder):
        raise InputError(f"{folder}: exists already; remove it, or name another folder")
    sizes, seen = [], []
    with whole_directory(folder) as partial:
        np.save(partial / "subject_ids.npy", subjects, allow_pickle=False)
        for number, (values, item_ids) in enumerate(parts):
            items = as_ids(item_ids, "item")
            with naming(f"part {number}"):
                require_sound_ids(items, "item")
                array = as_array(values)
                if array.dtype.kind not in "biuf":
                    raise InputError(f"responses of type {array.dtype}, expected 0, 1 or -1 (missing)")
                require_unique(subjects, items, array.shape)
                array = sound(array, subjects, items).astype(np.int8)
            np.save(partial / f"item_ids_{number:05d}.npy", items, allow_pickle=False)
            np.save(partial / f"responses_{number:05d}.npy", array, allow_pickle=False)
            sizes.append(items.size)
            seen.append(items)
        if not sizes:
            raise InputError("no parts, so there are no items")
        require_unique(subjects, np.concatenate(seen), (subjects.size, sum(sizes)))
        record = {"format": FORMAT, "num_subjects": subjects.size, "num_items": sizes}
        (partial / INDEX).write_text(json.dumps(record) + "\n")


def holds_shards(path: str | Path) -> bool:
    """Whether a folder is one of shards."""
    return os.path.isfile(os.path.join(path, INDEX))


def open_shards(folder: Path) -> StoredResponses:
    """The responses of a folder; only ids are read.

    Raises:
        InputError: it is damaged, or a shard is missing.
    """
    source = Shards(folder)
    subject_ids = _array(folder / "subject_ids.npy", (source.shape[0],), "U")
    sizes = np.diff(source.starts)
    items = [_array(folder / f"item_ids_{at:05d}.npy", (int(size),), "U") for at, size in enumerate(sizes)]
    item_ids = np.concatenate(items)
    with naming(folder):
        for ids, what in ((subject_ids, "subject"), (item_ids, "item")):
            require_sound_ids(ids, what)
        return StoredResponses(source, subject_ids, item_ids)


class Shards:
    """The matrix of a folder; nothing of it is in memory.

    Attributes:
        name: the folder.
        shape: J and I.
        by_item: True.
        starts: the first item of each shard, and one beyond the last.
    """

    by_item = True

    def __init__(self, folder: Path) -> None:
        path = folder / INDEX
        record = read_json(path)
        if not isinstance(record, dict) or not record.keys() >= {"format", "num_subjects", "num_items"}:
            raise InputError(
                f"{path}: not the index of a folder of shards, expected format, num_subjects and num_items"
            )
        version, num_subjects, sizes = record["format"], record["num_subjects"], record["num_items"]
        if version != FORMAT:
            raise InputError(f"{path}: of another version (format {shown(version)}, expected {FORMAT})")
        if not _is_size(num_subjects):
            raise InputError(f"{path}: num_subjects is {shown(num_subjects)}, expected a whole number, 1 or more")
        if not isinstance(sizes, list) or not sizes:
            raise InputError(f"{path}: num_items is {shown(sizes)}, expected a list of numbers, one for each shard")
        wrong = next((at for at, size in enumerate(sizes) if not _is_size(size)), None)
        if wrong is not None:
            raise InputError(
                f"{path}: num_items of shard {wrong} is {shown(sizes[wrong])}, expected a whole number, 1 or more"
            )
        self.name, self._folder = str(folder), folder
        self.starts = [0, *itertools.accumulate(sizes)]
        self.shape = num_subjects, self.starts[-1]

    def read(self, rows: range, columns: range) -> Int[np.ndarray, "_ _"]:
        """A part of it. Files are unmapped at once: pages that were read would count as memory of this process."""
        result, at = np.empty((len(rows), len(columns)), np.int8), columns.start
        while at < columns.stop:
            shard = bisect.bisect_right(self.starts, at) - 1
            begin, end = self.starts[shard], min(columns.stop, self.starts[shard + 1])
            part = self._open(shard)[rows.start : rows.stop, at - begin : end - begin]
            result[:, at - columns.start : end - columns.start] = part
            at = end
        return result

    def _open(self, shard: int) -> np.ndarray:
        shape = self.shape[0], self.starts[shard + 1] - self.starts[shard]
        return _array(self._folder / f"responses_{shard:05d}.npy", shape, "i")


def _is_size(value: object) -> bool:
    """Whether it is a number of subjects or items."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST


def _array(path: Path, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """An array of a file, mapped into memory.

    Raises:
        InputError: the file is missing, damaged, or not of that shape.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that old versions of NumPy wrote
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing, though {INDEX} lists it") from error
    except Exception as error:  # whatever NumPy and the parsers of its headers raise on damaged files
        raise InputError(f"{path}: not an array of NumPy ({one_line(error)})") from error
    if array.shape != shape or array.dtype.kind != kind or (kind == "i" and array.dtype.itemsize > 1):
        raise InputError(f"{path}: {array.dtype} of shape {array.shape}, expected shape {shape} as {INDEX} says")
    return array
