"""Flags that name files and folders on this machine."""

import os
from typing import Any

from absl import flags


class _PathParser(flags.ArgumentParser):
    """Expands ~, and refuses what names no file here."""

    syntactic_help = "a path"

    def parse(self, argument: str) -> str:
        """The path."""
        if not argument:
            raise ValueError("expected a path, found nothing")
        if "://" in argument:
            raise ValueError("expected a path on this machine, found an address: download the file first")
        path = os.path.expanduser(argument)
        if path.startswith("~"):
            raise ValueError(f"no home folder is known for {path.split(os.sep)[0]}; a name that begins so is ./~name")
        return path

    def flag_type(self) -> str:
        """For the record."""
        return "path"


flags.disclaim_key_flags()  # the flags belong to the binary that defines them


def define_path(name: str, help: str, *, required: bool = False) -> Any:
    """A flag that names a file or a folder; None where it is not given."""
    return flags.DEFINE(_PathParser(), name, None, help, serializer=flags.ArgumentSerializer(), required=required)


class _PathsParser(flags.ArgumentParser):
    """One path or several with commas; a comma may also be part of the name of a file that is there."""

    syntactic_help = "a path, or several with commas"

    def parse(self, argument: str | list[str]) -> list[str]:
        """The paths."""
        if isinstance(argument, list):
            return argument
        whole = [argument] if os.path.exists(os.path.expanduser(argument)) else argument.split(",")
        return [_PathParser().parse(path) for path in whole]

    def flag_type(self) -> str:
        """For the record."""
        return "paths"


def define_paths(name: str, help: str, *, required: bool = False) -> Any:
    """A flag that names one file or folder, or several; None where it is not given."""
    return flags.DEFINE(_PathsParser(), name, None, help, serializer=flags.ListSerializer(","), required=required)


def define_output_dir(what: str = "folder for the results") -> Any:
    """The flag --output_dir, which every command that writes results needs."""
    return define_path("output_dir", f"{what}; made where missing", required=True)
