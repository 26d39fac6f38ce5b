"""Where TensorFlow Datasets keeps what it has prepared: <folder>/<name>[/<config>]/<version>.

Data sets are found by their path, without that package: importing it takes a second, and the arrays may be in the cache
already.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from irtjax.errors import InputError
from irtjax.storage.json_files import read_json
from irtjax.storage.sources import expanded, refuse_address

FORMAT = "array_record"  # the one that can be read by position without TensorFlow

_NAME = re.compile(r"(\w+(?:/[\w.-]+)?)(?::(\d+\.\d+\.\d+))?")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class NotPreparedError(InputError):
    """There is no prepared copy of the data set."""


class OtherFormatError(InputError):
    """There are prepared copies, in formats that need TensorFlow."""


class Prepared(NamedTuple):
    """A prepared data set.

    Attributes:
        dataset: its name in TFDS, such as `glue/sst2`.
        folder: of one version, with its files.
        splits: the number of records of each split.
    """

    dataset: str
    folder: Path
    splits: dict[str, int]


def default_data_dir() -> Path:
    """`$TFDS_DATA_DIR`, or `~/tensorflow_datasets`, as in TFDS."""
    return expanded(os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets")


def find(task: str, own: str, data_dir: str | Path | None = None, dataset: str | None = None) -> Prepared:
    """The newest version of a data set that is prepared as array_record files.

    Args:
        task: named in errors.
        own: the task's own data set, by its TFDS name.
        data_dir: the folder to look in; None for `default_data_dir`.
        dataset: another one to take instead, `name[/config][:version]`.

    Raises:
        NotPreparedError: there is no copy of it.
        OtherFormatError: there is none in that format.
        InputError: `dataset` is no such name, `data_dir` is an address, or the copy is damaged.
    """
    name = dataset or own
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{task}: {name!r} is not the name of a data set, expected name[/config][:version]")
    if data_dir is not None:
        refuse_address(data_dir)
    root = default_data_dir() if data_dir is None else expanded(data_dir)
    versions = [folder for folder in _versions(root / match[1]) if match[2] in (None, folder.name)]
    for folder in versions:
        info = _read_info(folder)
        if FORMAT in _formats(info):
            return Prepared(match[1], folder, _splits(info, folder))
    if versions:
        found = ", ".join(_formats(_read_info(versions[0])))
        raise OtherFormatError(
            f"{task}: {versions[0]} is prepared as {found}, but only {FORMAT} can be read without TensorFlow"
            + ("; prepare it again in another `data_dir`" if dataset is None else "")
        )
    others = ", ".join(_listing(root))
    if dataset is not None:
        raise NotPreparedError(f"{task}: no prepared copy of {name} in {root}, which has {others or 'no data set'}")
    if others:
        there = f" (which has {others}; `dataset` can name one)"
    else:
        there = "" if root.is_dir() else " (which is not there)"
    raise NotPreparedError(f"{task}: no prepared copy in {root}{there}; prepare {own} there once, as {FORMAT} files")


def _versions(folder: Path) -> list[Path]:
    """Version folders that were prepared to the end, newest first."""
    found = [path.parent for path in folder.glob("*/dataset_info.json") if _VERSION.fullmatch(path.parent.name)]
    return sorted(found, key=lambda path: tuple(map(int, path.name.split("."))), reverse=True)


def _listing(root: Path) -> list[str]:
    """Names of all data sets prepared in a folder."""
    found = {path.parents[1] for depth in ("*/*", "*/*/*") for path in root.glob(f"{depth}/dataset_info.json")}
    return sorted(folder.relative_to(root).as_posix() for folder in found)


def _read_info(folder: Path) -> dict:
    path = folder / "dataset_info.json"
    try:
        info = read_json(path)
    except InputError as error:
        raise InputError(f"{error}; prepare the data set again") from error
    if not isinstance(info, dict) or not isinstance(info.get("alternativeFileFormats", []), list):
        raise InputError(f"{path}: not the description of a data set; prepare the data set again")
    return info


def _formats(info: dict) -> list[str]:
    return [str(info.get("fileFormat") or "tfrecord"), *map(str, info.get("alternativeFileFormats", []))]


def _splits(info: dict, folder: Path) -> dict[str, int]:
    try:
        return {split["name"]: sum(map(int, split["shardLengths"])) for split in info["splits"]}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder / 'dataset_info.json'}: does not say how many records the splits have; prepare the data set again"
        ) from error
