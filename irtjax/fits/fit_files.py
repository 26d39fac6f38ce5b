"""Fits as files: tables for people and other programs, and an archive that the same fit is restored from."""

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits import response_arrays
from irtjax.fits.draws import ItemPosterior
from irtjax.fits.joint_covariance import JointCovariance
from irtjax.fits.own_parameters import OwnParameters
from irtjax.fits.regression import Regression
from irtjax.fits.status import Status
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import ItemParameters
from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.populations.normal import Population
from irtjax.populations.several import SeveralPopulations
from irtjax.storage.archives import Arrays, read_arrays
from irtjax.storage.files import whole_results, write_csv
from irtjax.storage.json_files import parsed
from irtjax.storage.sources import expanded
from irtjax.storage.tables import read_table

ARCHIVE = "fit.npz"
GROUPS, COVARIATES, JUDGES = "groups.csv", "covariates.csv", "judges.csv"
FILES = ("items.csv", "subjects.csv", GROUPS, COVARIATES, JUDGES, "fit.json", ARCHIVE)
PROPORTION, FORMER_PROPORTION = "proportion_correct", "percent_correct"
FORMAT = 4  # of the archive
RECORD, CHECKSUM = "record", "checksum"  # its arrays that are bytes: JSON, and what that comes to
ENTRIES = (
    "model",
    "estimator",
    "log_likelihood",
    "log_likelihood_error",
    "num_parameters",
    "iterations",
    "integration",
    "seconds",
)
ARRAYS = ("ability", "ability_se", "unbounded")
TUPLES: dict[str, Any] = {
    "population": Population,
    "item_posterior": ItemPosterior,
    "regression": Regression,
    "slope_regression": Regression,
    "covariance": JointCovariance,
    "own_parameters": OwnParameters,
}
SEVERAL: dict[str, Any] = {"groups": FittedGroups, "covariates": FittedLatentRegression}


def write(
    directory: str | os.PathLike,
    tables: Mapping[str, pd.DataFrame],
    record: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> None:
    """Writes the files of a fit into `directory`, which is made where missing.

    Args:
        directory: `~` stands for the home folder.
        tables: by the names of their files, such as `items.csv`.
        record: of `fit.json`.
        fields: of the fit, for the archive.

    Raises:
        InputError: the directory cannot be written to.
    """
    with whole_results(expanded(directory), (GROUPS, COVARIATES, JUDGES)) as folder:
        for name, table in tables.items():
            write_csv(table, folder / name)
        (folder / "fit.json").write_text(json.dumps(_finite(record), indent=2, allow_nan=False) + "\n")
        np.savez(folder / ARCHIVE, allow_pickle=False, **_to_arrays(fields))


def read(directory: str | os.PathLike) -> dict[str, Any]:
    """The fields of the fit whose archive is in a folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = _archive(directory)
    if not path.is_file():
        raise InputError(f"{path}: no such file: expected the folder that a fit was saved to")
    try:
        return _from_arrays(read_arrays(path, uncompressed=True))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: not a fit, or damaged ({error!r})") from error


def holds_fit(path: Any) -> bool:
    """Whether `path` is the folder of a saved fit, or the archive in it."""
    return isinstance(path, str | os.PathLike) and _archive(path).is_file()


def _archive(path: str | os.PathLike) -> Path:
    """The archive in a folder, or the path itself if it names one."""
    given = expanded(path)
    return given if given.name == ARCHIVE else given / ARCHIVE


@checks_types
def read_items(path: str | Path) -> pd.DataFrame:
    """Reads an `items.csv`, one row per item; `irtjax.item_models.tables.from_columns` makes parameters of it.

    A column `percent_correct`, as `proportion_correct` was called until 2026-11-26, gets the present name.

    Raises:
        InputError: it cannot be read, has no item ids, or one of them twice.
    """
    table = read_table(path, "item_id")
    return table if PROPORTION in table else table.rename(columns={FORMER_PROPORTION: PROPORTION})


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _to_arrays(fields: Mapping[str, Any]) -> Arrays:
    responses = fields["responses"]
    arrays = {name: fields[name] for name in ARRAYS} | response_arrays.to_arrays(responses)
    kinds = {**fields, **dict.fromkeys(SEVERAL)}
    for name, kind in SEVERAL.items():
        if isinstance(fields["population"], kind):
            kinds |= {name: fields["population"], "population": None}
    for name in (*TUPLES, *SEVERAL, "parameters"):
        if kinds[name] is not None:
            arrays |= {f"{name}.{part}": np.asarray(leaf) for part, leaf in kinds[name]._asdict().items()}
    arrays |= {f"item_columns.{name}": column for name, column in fields["item_columns"].items()}
    record = {name: fields[name] for name in ENTRIES} | {
        "format": FORMAT,
        "status": fields["status"].value,
        "details": fields["details"],
        "item_columns": list(fields["item_columns"]),
        **response_arrays.to_record(responses),
    }
    record["checksums"] = {name: _checksum(array) for name, array in arrays.items()}
    content = json.dumps(record).encode()
    checksum = hashlib.sha256(content).digest()
    return arrays | {RECORD: np.frombuffer(content, np.uint8), CHECKSUM: np.frombuffer(checksum, np.uint8)}


def _from_arrays(arrays: Arrays) -> dict[str, Any]:
    record = _checked(arrays)
    return {
        "responses": response_arrays.from_arrays(arrays, record),
        "parameters": _restored("parameters", PredictorParameters if "scales" in record else ItemParameters, arrays),
        "item_columns": {name: arrays[f"item_columns.{name}"] for name in record["item_columns"]},
        **{name: arrays[name] for name in ARRAYS},
        "status": Status(record["status"]),
        "details": record["details"],
        **{name: record[name] for name in ENTRIES},
        **{
            name: _restored(name, kind, arrays)
            for name, kind in TUPLES.items()
            if f"{name}.{kind._fields[0]}" in arrays
        },
        **_several(arrays),
    }


def _checked(arrays: Arrays) -> dict[str, Any]:
    """The record of the arrays, which are all that it lists, as they were written.

    Raises:
        InputError: they are not; other exceptions where there is no record.
    """
    content = arrays[RECORD].tobytes()
    record: dict[str, Any] = parsed(content.decode())
    if record["format"] != FORMAT:
        raise InputError(f"written by another version (format {record['format']}, expected {FORMAT}): fit again")
    wanted, found = record["checksums"], set(arrays) - {RECORD, CHECKSUM}
    changed = [RECORD] if arrays[CHECKSUM].tobytes() != hashlib.sha256(content).digest() else []
    changed += sorted(found ^ set(wanted))
    changed += [name for name in sorted(found & set(wanted)) if _checksum(arrays[name]) != wanted[name]]
    if changed:
        raise InputError(f"{changed[0]} is not as the fit was saved: it was edited or damaged; fit again")
    return record


def _checksum(array: np.ndarray) -> str:
    """Of type, shape and values."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    if array.size:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _several(arrays: Arrays) -> dict[str, SeveralPopulations]:
    """The populations, where there are several."""
    for name, kind in SEVERAL.items():
        if f"{name}.names" in arrays:
            parts = [field.name for field in dataclasses.fields(kind)]
            return {"population": kind(**{part: arrays[f"{name}.{part}"] for part in parts})}
    return {}


def _restored(name: str, kind: Any, arrays: Arrays) -> Any:
    """A tuple of arrays."""
    return kind(*(arrays[f"{name}.{part}"] for part in kind._fields))
