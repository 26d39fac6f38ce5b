"""Files of responses, read by the flags that say how, such as --columns, --transpose, --metric and --grades."""

from collections.abc import Sequence
from typing import Any

import jax
from absl import flags

import irtjax
from experiments.common import app
from experiments.common.shared_flags import OF_HARNESS, SPARSE, ColumnsSerializer
from irtjax.choices import LAST
from irtjax.errors import InputError, NotScoredError
from irtjax.fits import reading
from irtjax.fits.category_text import said
from irtjax.responses.convert import as_responses_or_stored
from irtjax.responses.formats import names_models
from irtjax.responses.formats import read_given as read_responses_given
from irtjax.responses.formats.collecting import InMemory
from irtjax.responses.formats.given import Given
from irtjax.responses.kinds import GRADES, kinds_of
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import Responses

OF_GRADES = ("grades", "repeats")
NAMES = (*OF_HARNESS, "columns", "trials", "transpose")


def number_of_trials() -> float | None:
    """What --trials says of all counts alike; None where it names a column, or is not given."""
    value = _value("trials")
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def sparse() -> bool | None:
    """What --sparse says; False where the binary does not have it."""
    return SPARSE[_value("sparse") or "false"]


def last() -> str | None:
    """What --repeats says of right and wrong answers: that the last counts, if anything."""
    return LAST if _value("repeats") == LAST else None


def of_grades_alone() -> list[str]:
    """Flags without effect where answers are right or wrong."""
    return [name for name in OF_GRADES if name != "repeats" or not last()]


def require_effect(paths: Sequence[str]) -> None:
    """Refuses flags of a kind of file that none of the files is.

    Raises:
        InputError: one is given.
    """
    of_models = list(map(names_models, paths))
    if not any(of_models):
        app.without_effect(OF_HARNESS, "files that no language-model harness wrote")
    if all(of_models):
        app.without_effect(["columns", "trials", "facet"], "files of a language-model harness, whose keys are known")


def choice(path: str) -> dict[str, Any]:
    """What the flags choose in a file or folder: a metric and a filter of a harness, columns in others."""
    if names_models(path):
        return {name: _value(name) for name in OF_HARNESS}
    columns = _value("columns") or {}
    if _value("trials") is not None and number_of_trials() is None:
        columns = {**columns, "trials": _value("trials")}
    if _value("facet") is not None:
        columns = {**columns, "facet": _value("facet")}
    return {"columns": columns or None}


def read_given(path: str | Sequence[str]) -> Given:
    """The responses of a file or folder as they were given, or of several of a language-model harness, by the flags.

    Raises:
        InputError: as `irtjax.responses.formats.read_given`.
    """
    responses = read_responses_given(path, **choice(path if isinstance(path, str) else path[0]))
    responses = responses.last() if last() else responses
    return responses.transposed() if _value("transpose") else responses


def given() -> dict[str, str]:
    """The flags that are given and their values, for the record."""
    found = {name: ",".join(_value(name)) for name in OF_HARNESS if _value(name)}
    found |= {name: _value(name) if name == "repeats" else ",".join(_value(name)) for name in OF_GRADES if _value(name)}
    if _value("columns"):
        found["columns"] = ColumnsSerializer().serialize(_value("columns"))
    if _value("trials"):
        found["trials"] = _value("trials")
    if _value("sparse") not in (None, "auto"):
        found["sparse"] = _value("sparse")
    return found | ({"transpose": "true"} if _value("transpose") else {})


def _value(name: str) -> Any:
    """Of a flag; None where the binary does not have it."""
    return flags.FLAGS[name].value if name in flags.FLAGS else None


def read(path: str | Sequence[str]) -> irtjax.ResponseMatrix:
    """The responses of a file or folder, or of several of a language-model harness, by the flags, as a matrix.

    Raises:
        InputError: as `irtjax.read_responses`.
    """
    return read_as_held(path, False)  # type: ignore[return-value]


def read_as_held(path: str | Sequence[str], as_single: bool | None) -> InMemory:
    """As `read`: single answers, a matrix, or (None) as takes less memory.

    Raises:
        InputError: as `irtjax.read_responses`.
    """
    of_path = choice(path if isinstance(path, str) else path[0])
    responses = irtjax.read_responses(path, **of_path, sparse=as_single, repeats=last())
    return responses.transposed() if _value("transpose") else responses


def read_or_grades(path: str, advice: str) -> irtjax.ResponseMatrix | ScaledResponses:
    """The responses of a file or folder, right and wrong; or grades, where most of the items have such.

    Args:
        path: of the file or folder.
        advice: what to do where some cells are neither right nor wrong.

    Raises:
        InputError: they cannot be read, or some cells are neither right nor wrong.
    """
    try:
        return read(path)
    except NotScoredError as error:
        kinds = kinds_of(read_given(path))
        if kinds.count(GRADES) <= len(kinds) / 2:  # a slip in some cells
            raise InputError(f"{error}; {advice}") from error
    found = read_scaled(path, reading.AUTO)
    print(f"{found.num_subjects:,} subjects × {found.num_items:,} items of {said(found.scales)}", flush=True)
    return found


def read_scaled(path: str, model: str) -> ScaledResponses:
    """The grades, counts or shares of a table, by the flags.

    Raises:
        InputError: they cannot be read, or are not what the model is of.
    """
    given = {name: _value(name) for name in ("columns", *OF_GRADES)}
    trials = number_of_trials() or _value("trials")
    found = reading.read(path, model, transpose=bool(_value("transpose")), trials=trials, **given)[0]
    assert isinstance(found, ScaledResponses)
    return found


def open_or_read(path: str, mesh: jax.sharding.Mesh | None) -> Responses:
    """The responses of a file or folder, by the flags; they stay there where they should and are not transposed.

    Raises:
        InputError: as `irtjax.open_responses`.
    """
    responses = as_responses_or_stored(path, mesh, **choice(path), repeats=last())
    return responses.read().transposed() if _value("transpose") else responses
