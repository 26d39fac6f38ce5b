"""Commands that run as several processes at once, on one machine or on many: how they find and lose each other.

JAX's distributed runtime joins them and notices who dies. Here is what it leaves open: one line, and an end, where
peers do not come, fail or die; and that the first process alone writes and talks.
"""

import contextlib
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

import jax
from absl import flags

from experiments.common import help
from irtjax import InputError, processes
from irtjax.kernels.sharding import mesh_of
from irtjax.storage.files import discard_partial, whole_results

flags.disclaim_key_flags()  # the flags belong to the binary that defines them

SILENT_SECONDS = 40  # after which a process that is not heard is given up
FAREWELL_SECONDS = 10  # for which a process that failed waits until all others have heard why
LOST = 3  # the exit status of a process that has lost the others
# of what C++ says when a peer is gone, in whichever call
_SIGNS = ("Gloo", "NCCL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "coordination", "heartbeat", "Connection")


def define_flags() -> None:
    """The flags of a command that can be several processes."""
    flags.DEFINE_bool(
        "distributed", False, "be one of several processes, as Slurm, MPI, Kubernetes or a TPU's metadata tell"
    )
    flags.DEFINE_string("coordinator", None, "HOST:PORT where process 0 of several listens, in place of --distributed")
    flags.DEFINE_integer("num_processes", None, "how many there are, with --coordinator", lower_bound=1)
    flags.DEFINE_integer("process_id", None, "which of them this is, from 0 on, with --coordinator", lower_bound=0)
    flags.DEFINE_integer("peer_timeout", 60, "seconds to wait for the other processes to come", lower_bound=1)
    names = ("distributed", "coordinator", "num_processes", "process_id", "peer_timeout")
    help.GROUPS.update(dict.fromkeys(names, "several processes"))


@contextlib.contextmanager
def joined(worded: Callable[[str], str]) -> Iterator[None]:
    """Joins the processes that the flags speak of for the time of the block; alone, nothing.

    Args:
        worded: an error of the library in words of the command.

    Raises:
        InputError: flags that do not go together, or no sign of other processes.
    """
    if not _asked():
        yield
        return
    _fix_hash_seed()
    last_word = _quiet()
    _join(last_word)
    team = _Team(last_word)
    if jax.process_index() > 0:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        yield
        team.wait_for_all()
    except InputError as error:
        team.fail(worded(str(error)))
    except Exception as error:
        if any(sign in str(error) for sign in _SIGNS):
            team.lost()
        traceback.print_exc()
        # left to Python, the end would wait for the others, and they for this process
        team.fail(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
    team.part()


def is_first() -> bool:
    """Whether this process writes and talks; alone, it is."""
    return not _asked() or jax.process_index() == 0


def mesh() -> jax.sharding.Mesh | None:
    """All devices of all processes in a row of items; None where there is one device only."""
    return mesh_of(1, jax.device_count()) if jax.device_count() > 1 else None


@contextlib.contextmanager
def results_of_first(output_dir: str, former: Collection[str] = ()) -> Iterator[Path | None]:
    """`whole_results` of the first process; None for the others."""
    if not is_first():
        yield None
        return
    with whole_results(output_dir, former) as folder:
        yield folder


def _asked() -> bool:
    """Whether the flags speak of other processes.

    Raises:
        InputError: not all that are needed are given.
    """
    if "coordinator" not in flags.FLAGS:
        return False
    values: dict[str, Any] = {name: flags.FLAGS[name].value for name in ("coordinator", "num_processes", "process_id")}
    given = [name for name, value in values.items() if value is not None]
    if flags.FLAGS.distributed and given:
        raise InputError(f"--{given[0]} has no effect with --distributed: leave it out")
    if given and len(given) < 3:
        missing = next(name for name in values if name not in given)
        raise InputError(f"--{given[0]} needs --{missing}, too")
    if given and values["process_id"] >= values["num_processes"]:
        raise InputError(
            f"--process_id={values['process_id']} of --num_processes={values['num_processes']}: the first is 0"
        )
    if given and not values["coordinator"].rpartition(":")[2].isdigit():
        raise InputError(f"--coordinator={values['coordinator']}: expected HOST:PORT")
    return bool(given) or flags.FLAGS.distributed


def _fix_hash_seed() -> None:
    """Starts Python anew with a fixed seed of its hashes, unless it has one.

    The order of sets depends on it, and with that the order in which JAX and NumPyro put the operations of a program.
    Processes that compiled different programs would exchange different numbers, without a word.
    """
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {"PYTHONHASHSEED": "0"})


def _join(last_word: Callable[[str], None]) -> None:
    seconds, address = flags.FLAGS.peer_timeout, flags.FLAGS.coordinator

    def give_up() -> None:
        where = f" at {address}" if address else ""
        last_word(f"the other processes did not come{where} within {seconds} seconds: start all (--peer_timeout)")
        os._exit(2)

    # the service would take SIGTERM for a warning, and the process would not end
    jax.config.update("jax_enable_preemption_service", False)
    # JAX would end the process itself, with a stack trace
    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        jax.distributed.initialize(
            address,  # with --distributed it and the next two are None
            flags.FLAGS.num_processes,
            flags.FLAGS.process_id,
            initialization_timeout=seconds + 60,
            heartbeat_timeout_seconds=SILENT_SECONDS,
        )
    except (ValueError, RuntimeError) as error:
        last_word("")
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the processes cannot be joined ({reason}): give --coordinator") from error
    finally:
        timer.cancel()


class _Team:
    """The other processes. One that fails writes why to the key of each other, which listens to its own."""

    def __init__(self, last_word: Callable[[str], None]) -> None:
        self._store, self._last_word = processes.store(), last_word
        self._ending = threading.Lock()  # held by the thread that has the last word
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for_all(self) -> None:
        """Until all are at the end."""
        self._store.wait_at_barrier("irtjax/done", processes.MOST_MILLISECONDS)

    def part(self) -> None:
        """Leaves in good order."""
        self._ending.acquire()
        # a thread that returns from C++ while the interpreter ends would abort the process
        self._tell(jax.process_index(), "")
        self._listener.join()
        self._last_word("")
        sys.stdout.flush()
        jax.distributed.shutdown()

    def fail(self, message: str) -> NoReturn:
        """Ends this process, and all others with the reason."""
        self._say(message)
        me, number = jax.process_index(), jax.process_count()
        with contextlib.suppress(Exception):
            for peer in set(range(number)) - {me}:
                self._tell(peer, f"process {me} of {number} failed: {message}")
        self._leave(2)

    def lost(self) -> NoReturn:
        """Ends this process because another is gone."""
        self._say("lost contact with another process: start all of them again")
        os._exit(LOST)

    def _listen(self) -> None:
        with contextlib.suppress(Exception):  # without process 0 the store is gone, and JAX ends this process
            reason = self._store.blocking_key_value_get(_key(jax.process_index()), processes.MOST_MILLISECONDS)
            if reason:
                self._say(reason)
                self._leave(LOST)

    def _tell(self, peer: int, reason: str) -> None:
        self._store.key_value_set(_key(peer), reason, allow_overwrite=True)

    def _say(self, message: str) -> None:
        self._ending.acquire()
        discard_partial()
        self._last_word(message)

    def _leave(self, status: int) -> NoReturn:
        """Ends this process when the others know why, too: the store goes with process 0."""
        with contextlib.suppress(Exception):
            self._store.wait_at_barrier("irtjax/failed", 1000 * FAREWELL_SECONDS)
        os._exit(status)


def _key(process: int) -> str:
    return f"irtjax/failed/{process}"


def _quiet() -> Callable[[str], None]:
    """From here on, what Python prints goes where it belongs, and what C++ prints nowhere.

    The runtime prints stack traces when a peer dies, and without process 0 it ends this process from within: then a
    child has the last word.

    Returns:
        What says an error in place of the child, or nothing if it is empty.
    """
    line = "error: this process was ended, or has lost the others: start all of them again"
    child = subprocess.Popen(
        ["sh", "-c", f"read -r word || echo '{line}' >&2"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    null = os.open(os.devnull, os.O_WRONLY)
    for number, name in ((1, "stdout"), (2, "stderr")):
        getattr(sys, name).flush()
        setattr(sys, name, os.fdopen(os.dup(number), "w", buffering=1, errors="backslashreplace"))
        os.dup2(null, number)

    def last_word(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            child.communicate(b"over\n", timeout=10)
        if text:
            with contextlib.suppress(OSError):
                print(f"error: {text}", file=sys.stderr, flush=True)

    return last_word
