"""What `--help` prints: the docstring of a command and its flags, those that it needs first, then by purpose."""

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from absl import flags

ASKS = {"--help", "-help", "-h", "-?"}
LONGEST = 80  # of choices that are shown beside a flag
WIDTH, COLUMN = 118, 33  # of the page, and where descriptions begin
VALUES = {
    "bool": "",
    "int": "=NUMBER",
    "float": "=NUMBER",
    "path": "=PATH",
    "paths": "=PATH",
    "comma separated list of strings": "=A,B,…",
}
GROUPS: dict[str, str] = {}  # what a flag is for, by its name; those of no group are what a command is about


def text(main: Callable[[], None]) -> str:
    """The help of the command whose `main` this is."""
    own = own_flags(main)
    needed = [flag for flag in own if _needed(flag)]
    rest = [flag for flag in own if not _needed(flag)]
    usage = " ".join([_command(), *(f"--{flag.name}{_value(flag)}" for flag in needed), "[flags]" if rest else ""])
    parts = [main.__globals__["__doc__"].strip(), f"usage: {usage.rstrip()}"]
    groups = {"needed": needed, "flags": [flag for flag in rest if not GROUPS.get(flag.name)]}
    groups |= {title: [flag for flag in rest if GROUPS.get(flag.name) == title] for title in GROUPS.values() if title}
    parts += ["\n".join([f"{title}:", *map(_entry, group)]) for title, group in groups.items() if group]
    return "\n\n".join(parts)


def own_flags(main: Callable[[], None]) -> list[flags.Flag]:
    """The flags of a command, not those of libraries: shared ones first, then in the order of definition."""
    # absl knows the module that is run by the path of its file
    name = sys.argv[0] if main.__module__ == "__main__" else main.__module__
    found = flags.FLAGS.get_key_flags_for_module(name)
    defined = {flag.name for flag in flags.FLAGS.flags_by_module_dict().get(name, [])}
    return sorted(found, key=lambda flag: flag.name in defined)


def _needed(flag: flags.Flag) -> bool:
    return flag.default is None and any(not validator.checker(None) for validator in flag.validators)


def _value(flag: flags.Flag) -> str:
    if isinstance(flag, flags.EnumFlag):
        names = "|".join(flag.parser.enum_values)
        return f"={names}" if len(names) <= LONGEST else "=NAME"
    return VALUES.get(flag.flag_type(), "=TEXT")


def _entry(flag: flags.Flag) -> str:
    # the flags of settings tell their defaults, which depend on the task, themselves
    default = "" if "(default" in flag.help else _default(flag)
    name = f"  --[no]{flag.name}" if flag.flag_type() == "bool" else f"  --{flag.name}{_value(flag)}"
    purpose = flag.help.split(">: ", 1)[-1] if isinstance(flag, flags.EnumFlag) else flag.help
    if isinstance(flag, flags.EnumFlag) and _value(flag) == "=NAME":
        purpose = f"{purpose}; one of {', '.join(flag.parser.enum_values)}"
    indent = " " * COLUMN
    described = textwrap.fill(
        f"{purpose}{default}", WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"{name:<{COLUMN - 1}}{described[COLUMN - 1 :]}" if len(name) < COLUMN else f"{name}\n{described}"


def _default(flag: flags.Flag) -> str:
    if flag.default is None or flag.default is False or flag.default == []:
        return ""
    value = ",".join(map(str, flag.default)) if isinstance(flag.default, list) else flag.default
    return f" (default {'on' if value is True else value})"


def _command() -> str:
    """How the command was started: `irtjax VERB`, or `python -m` with the name of the module."""
    script = Path(sys.argv[0])
    return f"python -m {script.parent.name}.{script.stem}" if script.suffix == ".py" else sys.argv[0]
