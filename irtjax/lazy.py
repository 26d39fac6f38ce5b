"""Packages that lend names of their modules, each loaded where it is first used.

JAX and pandas take a second to import: so modules of a package that need neither can be had without them.
"""

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def lend(package: str, places: Mapping[str, tuple[str, ...]]) -> None:
    """Has a package lend names of its modules.

    Args:
        package: its name.
        places: the names by module.
    """
    module = sys.modules[package]
    vars(module)["_PLACE_OF"] = {name: f"{package}.{place}" for place, names in places.items() for name in names}
    module.__class__ = _Lending


class _Lending(ModuleType):
    _PLACE_OF: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self._PLACE_OF:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(self._PLACE_OF[name]), name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        # Python enters each module that is imported; one that is called as what it has would be found in its place
        if not (name in self._PLACE_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._PLACE_OF})
