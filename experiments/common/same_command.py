"""Whether several processes were started as one command, with the same flags and the same files.

Where programs differ, processes wait for each other without end; where responses do, the result is of neither file.
"""

import contextlib
import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import Any

from absl import flags

OWN = {"coordinator", "process_id", "peer_timeout", "output_dir", "tensorboard"}  # each may have others
ENDS, ENDS_IN_FOLDER = 2**20, 2**16  # bytes at either end of a file that are compared, beside its size
SECONDS = 60  # in which all have compared


def difference(store: Any, process: int, number: int) -> str | None:
    """In words, the first flag or file that two processes do not share, if possible this one; None if there is none.

    Where two differ all processes say so, also one that has not the file in which they do.

    Args:
        store: keys of the runtime that has joined them.
        process: this one.
        number: of processes, as this one was told.

    Raises:
        JaxRuntimeError: another process is gone, or has said nothing for `SECONDS`.
    """
    mine = said()
    store.key_value_set(_key(process), json.dumps(mine))
    theirs = {}
    for other in set(range(number)) - {process}:
        theirs[other] = json.loads(store.blocking_key_value_get(_key(other), 1000 * SECONDS))
        found = between(mine, theirs[other], process, other)
        if found is not None:  # at once: where the numbers of processes differ, some never come
            return found
    return among(theirs)


def among(everyone: dict[int, dict[str, dict[str, Any]]]) -> str | None:
    """What the first difference of any two processes is, in words; None if there is none."""
    pairs = itertools.combinations(everyone, 2)
    found = (between(everyone[one], everyone[other], one, other) for one, other in pairs)
    return next((words for words in found if words is not None), None)


def said() -> dict[str, dict[str, Any]]:
    """What the flags of this command come to: each as a text, `shown`, and the prints of the files that it names."""
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
            files: dict[str, str] = {}
            for path in paths:
                with contextlib.suppress(OSError):  # the reader will say so
                    files |= prints_of(path)
            found[flag.name] = {"shown": shown, "files": files}
    return found


def between(mine: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]], process: int, other: int) -> str | None:
    """What the first difference of two processes is, in words.

    A process needs only some files of a folder, such as the shards of its part. Files that both have must be the same.
    """
    none: dict[str, Any] = {"shown": "left out", "files": {}}
    for name in sorted(mine.keys() | theirs.keys()):
        one, another = mine.get(name, none), theirs.get(name, none)
        if one["shown"] != another["shown"]:
            return (
                f"--{name}={one['shown']} of process {process}, --{name}={another['shown']} of process {other}: "
                "start all processes with the same flags"
            )
        for file in sorted(one["files"].keys() | another["files"].keys()):
            here, there = one["files"].get(file), another["files"].get(file)
            if here and there and here != there:
                return f"--{name}: {file} of process {process} is not the file of process {other}: copy one to all"
            if "/" not in file and not (here and there):
                has, lacks = (process, other) if here else (other, process)
                return f"--{name}: {file}, which process {has} has, is missing on process {lacks}: copy it to all"
    return None


def prints_of(path: Path) -> dict[str, str]:
    """Of a file, or of each in a folder, by name: what its size and both ends come to.

    The end of an archive has the checksums of its parts, that of Parquet their statistics. A CSV of more than two MiB
    that differs in the middle alone is taken for the same.
    """
    if path.is_file():
        return {path.name: _print(path, ENDS)}
    files = sorted(one for one in path.iterdir() if one.is_file())
    return {f"{path.name}/{one.name}": _print(one, ENDS_IN_FOLDER) for one in files}  # there may be thousands


def _print(path: Path, ends: int) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(f"{size}\n".encode() + file.read(ends))
        file.seek(max(0, size - ends))
        digest.update(file.read(ends))
    return digest.hexdigest()[:16]


def _key(process: int) -> str:
    return f"irtjax/command/{process}"
