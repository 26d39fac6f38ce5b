"""Whether several processes were started as one command, with the same flags and the same files.

Where programs differ, processes wait for each other without end; where responses do, the result is of neither file.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

OWN = {"coordinator", "process_id", "peer_timeout", "output_dir", "tensorboard"}  # each may have others
ENDS, ENDS_IN_FOLDER = 2**20, 2**16  # bytes at either end of a file that are compared, beside its size
MILLISECONDS = 60_000  # in which all have compared


def difference(store: Any, process: int, number: int) -> str | None:
    """In words, the first flag or file that this process and another one do not share; None if there is none.

    Args:
        store: keys and barriers of the runtime that has joined them.
        process: this one.
        number: of processes, as this one was told.
    """
    mine = said()
    store.key_value_set(_key(process), json.dumps(mine))
    found = None
    for other in range(number):
        if other == process:
            continue
        theirs = json.loads(store.blocking_key_value_get(_key(other), MILLISECONDS))
        found = between(mine, theirs, process, other)
        if found is not None:
            break
    store.wait_at_barrier("irtjax/compared", MILLISECONDS)  # as the store ends with process 0
    return found


def said() -> dict[str, list[str]]:
    """What the flags of this command come to: each as a text, and as what its files hold if it names any."""
    found = {}
    for module, of_module in flags.FLAGS.flags_by_module_dict().items():
        if module.startswith("absl."):
            continue
        for flag in of_module:
            if flag.name in OWN:
                continue
            values = flag.value if isinstance(flag.value, list) else [flag.value]
            paths = [Path(value) for value in values if isinstance(value, str) and os.path.exists(value)]
            # the same file may be in another folder on each machine
            shown = ",".join(os.path.basename(str(value).rstrip(os.sep)) for value in values)
            found[flag.name] = [shown, *map(print_of, paths)]
    return found


def between(mine: dict[str, list[str]], theirs: dict[str, list[str]], process: int, other: int) -> str | None:
    """What the first difference of two processes is, in words."""
    for name in sorted(mine.keys() | theirs.keys()):
        one, another = mine.get(name, ["left out"]), theirs.get(name, ["left out"])
        if one[0] != another[0]:
            return (
                f"--{name}={one[0]} of process {process}, --{name}={another[0]} of process {other}: "
                "start all processes with the same flags"
            )
        if len(one) != len(another):
            there, absent = (process, other) if len(one) > len(another) else (other, process)
            return f"--{name}={one[0]}: a file that process {there} has is missing on process {absent}: copy it to all"
        if one != another:
            return f"--{name}={one[0]} of process {process} is not the file of process {other}: copy one to all"
    return None


def print_of(path: Path) -> str:
    """Of the size and both ends of a file; of a folder, of all its files.

    The end of an archive has the checksums of its parts, that of Parquet their statistics. A CSV of more than two MiB
    that differs in the middle alone is taken for the same.
    """
    digest = hashlib.sha256()
    alone = path.is_file()
    paths: Sequence[Path] = [path] if alone else sorted(one for one in path.iterdir() if one.is_file())
    ends = ENDS if alone else ENDS_IN_FOLDER  # there may be thousands
    for one in paths:
        size = one.stat().st_size
        digest.update(f"{'' if alone else one.name} {size}\n".encode())
        with one.open("rb") as file:
            digest.update(file.read(ends))
            file.seek(max(0, size - ends))
            digest.update(file.read(ends))
    return digest.hexdigest()


def _key(process: int) -> str:
    return f"irtjax/command/{process}"
