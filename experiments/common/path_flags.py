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


def define_output_dir(what: str = "folder for the results") -> Any:
    """The flag --output_dir, which every command that writes results needs."""
    return define_path("output_dir", f"{what}; made where missing", required=True)
