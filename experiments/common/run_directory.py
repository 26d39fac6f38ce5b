"""A run directory: one folder per stage, either finished or absent, so that an interrupted run can go on."""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import pandas as pd

from experiments.common import peers
from experiments.common.memory import peak_memory
from experiments.common.settings import FILES
from irtjax import InputError, networks, processes, versions
from irtjax.storage.files import whole_directory, whole_file, writable_directory
from irtjax.storage.json_files import read_json
from irtjax.tasks import Task
from irtjax.training.resume import VISIBLE_SECONDS

T = TypeVar("T")

RECORD = "stage.json"  # in the folder of each finished stage
DATA = "data"  # beside the settings in config.json: a digest of what was read
PARAMETERS = "parameters"  # and of networks that a user brings, a digest of their shapes
READ = ("task", "data_dir", *FILES, "items", "outside")  # flags that name what a run reads
READ_BY_ALL = ("data_dir", "items")  # which are not among the settings of a run
LOCK = ".lock"
CHECKPOINTS = ".checkpoints"  # folder of what unfinished stages keep


def open_run(
    output_dir: str,
    flags: dict[str, Any],
    task: Task,
    items: pd.DataFrame | None = None,
) -> Path:
    """Makes the directory, or accepts one that an earlier run with the same flags and data left.

    Of several processes the first makes it; all must have the same flags and data.

    Args:
        output_dir: the directory.
        flags: values of all flags that results depend on.
        task: with its data.
        items: difficulties, where they come from a file.

    Returns:
        The directory. No other command can open it until this one ends.

    Raises:
        InputError: it cannot be written to, or holds results of other settings or data; or processes differ.
    """
    wanted = flags | {DATA: _digest(flags, task, items)} | _parameters(flags, task)
    with processes.together(peers.mesh()):
        for process, other in enumerate(processes.everyone(wanted)):
            for name in sorted(wanted | other):
                if other.get(name) != wanted.get(name):
                    what = "data" if name == DATA else f"--{name}"
                    raise InputError(f"{what} of process {process} differs: give all processes the same flags and data")
        directory = processes.agreed(lambda: _open(output_dir, wanted) if processes.index() == 0 else Path(output_dir))
        if processes.number() > 1:
            mark, of_this_run = directory / LOCK, processes.everyone(secrets.token_hex(8))[0]
            processes.agreed(lambda: mark.write_text(of_this_run) if processes.index() == 0 else None)
            processes.agreed(lambda: _wait_for(mark, of_this_run))
        return directory


def _open(output_dir: str, wanted: dict[str, Any]) -> Path:
    directory = writable_directory(output_dir)
    _lock(directory)
    config = directory / "config.json"
    # without a stage or checkpoint there is nothing that could be mixed with results of other settings
    begun = [*directory.glob(f"*/{RECORD}"), *directory.glob(f"{CHECKPOINTS}/*")]
    if begun and not config.exists():
        raise InputError(
            f"{directory} holds {begun[0].relative_to(directory)}, but no config.json that tells of which settings: "
            "choose another --output_dir"
        )
    if begun:
        try:
            found: dict[str, Any] = dict(read_json(config))
        except (ValueError, TypeError) as error:
            raise InputError(f"{config}: not the settings of a run ({error}); choose another --output_dir") from error
        different = sorted(name for name in wanted | found if wanted.get(name) != found.get(name))
        if different == [DATA]:
            files = ", ".join(f"--{name}" for name in READ if name in wanted or name in READ_BY_ALL)
            raise InputError(
                f"{directory} holds a run on other data: what lies in {files} has changed; choose another --output_dir"
            )
        if different == [PARAMETERS]:
            raise InputError(
                f"{directory} holds a run of --network={wanted['network']} with parameters of other shapes: its code "
                "has changed; choose another --output_dir"
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


def _parameters(flags: dict[str, Any], task: Task) -> dict[str, str]:
    """A digest of the parameters of networks that a user brings, if the flags name any."""
    names = [name for name in str(flags.get("network", "")).split(",") if networks.is_yours(name)]
    if not names:
        return {}
    return {PARAMETERS: "".join(networks.signature(name, task, flags["width"])[:32] for name in names)}


def _digest(flags: dict[str, Any], task: Task, items: pd.DataFrame | None) -> str:
    """A digest of all that a run reads: examples, labels, ids, word vectors, the table of members, difficulties."""
    digest = hashlib.blake2b(digest_size=16)
    encoder = getattr(task.format, "encoder", None)
    vectors = getattr(task.format, "embeddings", None), None if encoder is None else encoder.weights
    table = [] if items is None else [items.to_numpy()]
    examples = [task.split(name)[:3] for name in task.splits]
    for leaf in jax.tree.leaves((examples, vectors, *table)):
        digest.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    if flags.get("members"):
        digest.update(Path(flags["members"]).read_bytes())
    return digest.hexdigest()


def _lock(directory: Path) -> None:
    """Keeps other processes out of the directory until this one ends."""
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(f"{directory}: another run is writing there; wait for it, or choose another one") from error
    except OSError:
        pass  # a file system without locks


def stage(directory: Path, name: str, title: str, work: Callable[[], T], write: Callable[[T, Path], None]) -> Path:
    """Runs one stage into the folder `name`, unless that folder is there already.

    Results are written into a temporary folder that is renamed at the end, so that an interrupted stage leaves no
    folder of that name. Its `stage.json` records the seconds that it took, the most memory that the process had had
    when it ended, the versions that it ran on, and checksums of its files. A stage may keep checkpoints in
    `checkpoints_of`; they are removed when it is finished. Several processes work together, and the first writes.

    Args:
        directory: of the run.
        name: of the stage.
        title: shown to the user.
        work: computes the results.
        write: writes them into the folder that it is given.

    Returns:
        The folder.

    Raises:
        InputError: the folder is there, and no stage has written it, or its files are no longer what was written; or
            not all processes see it.
    """
    folder = directory / name
    with processes.together(peers.mesh()):
        finished = processes.agreed(lambda: peers.is_first() and folder.exists() and _reuse(folder, title))
        if processes.everyone(finished)[0]:
            return folder
    print(title, flush=True)
    began = time.perf_counter()
    results = work()
    with processes.together(peers.mesh()):
        processes.agreed(lambda: _write(results, write, folder, began) if peers.is_first() else None)
        processes.agreed(lambda: _wait_for(folder / RECORD))
    return folder


def _reuse(folder: Path, title: str) -> bool:
    """Looks at a stage that has been finished: it is, or an error."""
    try:
        record = read_json(folder / RECORD)
        made_with, checksums = record["versions"], dict(record.get("checksums", {}))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is not a finished stage (no readable {RECORD}): remove it") from error
    found = _checksums(folder)
    for file, checksum in checksums.items():
        if found.get(file) != checksum:
            what = "has changed since it was written" if file in found else "is gone"
            raise InputError(f"{folder / file} {what}: remove {folder}, and the stage is run again")
    other = "" if made_with == versions() else ", made with other package versions"
    print(f"{title}: reused from {folder}{other}", flush=True)
    _remove_checkpoints(folder.parent, folder.name)  # left by a run that was killed just after it finished the stage
    return True


def _write(results: T, write: Callable[[T, Path], None], folder: Path, began: float) -> None:
    with whole_directory(folder) as partial:
        write(results, partial)
        seconds = round(time.perf_counter() - began, 3)
        record = {"seconds": seconds, "peak_mib": round(peak_memory()), "versions": versions()}
        record["checksums"] = _checksums(partial)
        (partial / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    _remove_checkpoints(folder.parent, folder.name)


def _wait_for(path: Path, content: str | None = None) -> None:
    """Waits until a file that the first process has written, or what it has written there, is seen here."""
    until = time.monotonic() + VISIBLE_SECONDS
    while not path.exists() or (content is not None and path.read_text() != content):
        if time.monotonic() > until:
            raise InputError(f"{path} cannot be seen by all processes: give an --output_dir that all share")
        time.sleep(0.1)


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
