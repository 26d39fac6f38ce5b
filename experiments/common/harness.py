"""The flags --metric and --filter: which scores count in files of language-model harnesses."""

from collections.abc import Sequence
from typing import Any

import jax
from absl import flags

import irtjax
from experiments.common import app, help
from irtjax.responses.convert import as_responses_or_stored
from irtjax.responses.formats import names_models
from irtjax.responses.stored import Responses

NAMES = ("metric", "filter")
help.GROUPS.update(dict.fromkeys(NAMES, "files of language-model harnesses"))

flags.disclaim_key_flags()  # the flags belong to the binary that defines them


def define_metric() -> Any:
    """The flag --metric."""
    return flags.DEFINE_list("metric", [], "the metric that says what is right; several, the most wanted first")


def define_filter() -> Any:
    """The flag --filter."""
    return flags.DEFINE_list("filter", [], "the filter of answers that counts; several, the most wanted first")


def require_effect(paths: Sequence[str]) -> None:
    """Refuses the flags where no file is of a harness.

    Raises:
        InputError: one is given.
    """
    if not any(map(names_models, paths)):
        app.without_effect(NAMES, "files that no language-model harness wrote")


def choice(path: str) -> dict[str, Any]:
    """What the flags choose in a file or folder of a harness, as lists of names; nothing in others."""
    return _values() if names_models(path) else {}


def given() -> dict[str, str]:
    """The flags that are given and their values, for the record."""
    return {name: ",".join(words) for name, words in _values().items() if words}


def _values() -> dict[str, Any]:
    return {name: flags.FLAGS[name].value for name in NAMES}


def read(path: str) -> irtjax.ResponseMatrix:
    """The responses of a file or folder, by the flags.

    Raises:
        InputError: as `irtjax.read_responses`.
    """
    return irtjax.read_responses(path, **choice(path))


def open_or_read(path: str, mesh: jax.sharding.Mesh | None) -> Responses:
    """The responses of a file or folder, by the flags; they stay there where they should.

    Raises:
        InputError: as `irtjax.open_responses`.
    """
    return as_responses_or_stored(path, mesh, **choice(path))
