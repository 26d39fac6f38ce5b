"""A run directory: one folder per stage, either finished or absent, so that an interrupted run can go on."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from experiments.common.settings import FILES
from irtjax import InputError, versions
from irtjax.storage.files import whole_directory, whole_file, writable_directory
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS

RECORD = "stage.json"  # in the folder of each finished stage
DATA = "data"  # beside the settings in config.json: a digest of what was read
READ = ("data_dir", *FILES, "items")  # flags that name what a run reads
CHECKPOINTS = ".checkpoints"  # folder of what unfinished stages keep


def open_run(
    output_dir: str,
    flags: dict[str, Any],
    task: Task,
    items: pd.DataFrame | None = None,
) -> Path:
    """Makes the directory, or accepts one that an earlier run with the same flags and data left.

    Args:
        output_dir: the directory.
        flags: values of all flags that results depend on.
        task: with its data.
        items: difficulties, where they come from a file.

    Returns:
        The directory. No other process can open it until this one ends.

    Raises:
        InputError: it cannot be written to, or holds results of other settings or data.
    """
    directory = writable_directory(output_dir)
    _lock(directory)
    config = directory / "config.json"
    wanted = flags | {DATA: _digest(flags, task, items)}
    # without a stage or checkpoint there is nothing that could be mixed with results of other settings
    begun = [*directory.glob(f"*/{RECORD}"), *directory.glob(f"{CHECKPOINTS}/*")]
    if begun and not config.exists():
        raise InputError(
            f"{directory} holds {begun[0].relative_to(directory)}, but no config.json that tells of which settings: "
            "choose another --output_dir"
        )
    if begun:
        try:
            found: dict[str, Any] = dict(json.loads(config.read_text()))
        except (ValueError, TypeError) as error:
            raise InputError(f"{config}: not the settings of a run ({error}); choose another --output_dir") from error
        different = sorted(name for name in wanted | found if wanted.get(name) != found.get(name))
        if different == [DATA]:
            files = ", ".join(f"--{name}" for name in READ)
            raise InputError(
                f"{directory} holds a run on other data: what lies in {files} has changed; choose another --output_dir"
            )
        if wanted.keys() != found.keys():
            raise InputError(f"{directory} holds a run of another command or version; choose another --output_dir")
        if different:
            changes = ", ".join(f"--{name}={found.get(name)} (now {wanted.get(name)})" for name in different)
            raise InputError(
                f"{directory} holds a run with {changes}: give the same flags to go on, or choose another --output_dir"
            )
    else:
        with whole_file(config) as path:
            path.write_text(json.dumps(wanted, indent=2) + "\n")
    return directory


def _digest(flags: dict[str, Any], task: Task, items: pd.DataFrame | None) -> str:
    """A digest of all that a run reads: examples, labels, ids, word vectors, the table of members, difficulties."""
    digest = hashlib.blake2b(digest_size=16)
    vectors = getattr(task.format, "embeddings", None)
    table = [] if items is None else [items.to_numpy()]
    examples = [task.split(name)[:3] for name in SPLITS]
    for leaf in jax.tree.leaves((examples, vectors, *table)):
        digest.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    if flags.get("members"):
        digest.update(Path(flags["members"]).read_bytes())
    return digest.hexdigest()


def _lock(directory: Path) -> None:
    """Keeps other processes out of the directory until this one ends."""
    handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(f"{directory}: another run is writing there; wait for it, or choose another one") from error
    except OSError:
        pass  # a file system without locks


def stage(directory: Path, name: str, title: str, work: Callable[[Path], None]) -> Path:
    """Runs one stage into the folder `name`, unless that folder is there already.

    The work is done in a temporary folder that is renamed at the end, so that an interrupted stage leaves no folder of
    that name. Its `stage.json` records the seconds that it took, the versions that it ran on, and checksums of its
    files. A stage may keep checkpoints in `checkpoints_of`; they are removed when it is finished.

    Args:
        directory: of the run.
        name: of the stage.
        title: shown to the user.
        work: writes the results into the folder that it is given.

    Returns:
        The folder.

    Raises:
        InputError: the folder is there, and no stage has written it, or its files are no longer what was written.
    """
    folder = directory / name
    if folder.exists():
        try:
            record = json.loads((folder / RECORD).read_text())
            made_with, checksums = record["versions"], dict(record.get("checksums", {}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder} is not a finished stage (no readable {RECORD}): remove it") from error
        found = _checksums(folder)
        for file, checksum in checksums.items():
            if found.get(file) != checksum:
                what = "has changed since it was written" if file in found else "is gone"
                raise InputError(f"{folder / file} {what}: remove {folder}, and the stage is run again")
        other = "" if made_with == versions() else ", made with other package versions"
        print(f"{title}: reused from {folder}{other}", flush=True)
        _remove_checkpoints(directory, name)  # left by a run that was killed just after it finished the stage
        return folder
    print(title, flush=True)
    began = time.perf_counter()
    with whole_directory(folder) as partial:
        work(partial)
        seconds = round(time.perf_counter() - began, 3)
        record = {"seconds": seconds, "versions": versions(), "checksums": _checksums(partial)}
        (partial / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    _remove_checkpoints(directory, name)
    return folder


def _checksums(folder: Path) -> dict[str, str]:
    """A digest of each file in the folder of a stage, by its name there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != RECORD)
    found = {}
    for path in files:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        found[str(path.relative_to(folder))] = digest.hexdigest()
    return found


def _remove_checkpoints(directory: Path, name: str) -> None:
    shutil.rmtree(checkpoints_of(directory, name), ignore_errors=True)
    with contextlib.suppress(OSError):  # other stages have some too, or there are none
        (directory / CHECKPOINTS).rmdir()


def checkpoints_of(directory: Path, name: str) -> Path:
    """The folder where the stage `name` keeps checkpoints, to go on after a kill."""
    return directory / CHECKPOINTS / name
