"""Commands that run as several processes at once, on one machine or on many: how they find and lose each other.

JAX's distributed runtime joins them. Here is what it leaves open: one line, and an end, where peers do not come, fail,
or die; and that the first process alone writes and talks.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn

import jax
from absl import flags

from irtjax import InputError
from irtjax.kernels.sharding import mesh_of
from irtjax.storage.files import discard_partial, whole_results

flags.disclaim_key_flags()  # the flags belong to the binary that defines them

HEARTBEAT_SECONDS, SILENT_SECONDS = 2.0, 40.0  # of a peer: how often it is heard, and when it is given up
FAREWELL_SECONDS = 10.0  # for which a process that failed waits until the others know
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
    with _quiet() as sentinel:
        _join(sentinel)
        team = _Team(sentinel)
        if jax.process_index() > 0:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        try:
            yield
            team.wait_for_all()
        except InputError as error:
            team.end(worded(str(error)), own=True)
        except Exception as error:
            if any(sign in str(error) for sign in _SIGNS):
                team.lost()
            traceback.print_exc()
            # left to Python, the end would wait for the others, and they for this process
            team.end(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", own=True)
        team.over()


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


def _join(sentinel: "_Sentinel") -> None:
    seconds, address = flags.FLAGS.peer_timeout, flags.FLAGS.coordinator

    def give_up() -> None:
        where = f" at {address}" if address else ""
        sentinel.dismiss()
        _say(f"error: the other processes did not come{where} within {seconds} seconds: start all (--peer_timeout)")
        os._exit(2)

    # the service would take SIGTERM for a warning, and the process would not end
    jax.config.update("jax_enable_preemption_service", False)
    # JAX would end the process itself, with a stack trace
    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        options: dict[str, Any] = {"initialization_timeout": seconds + 60, "heartbeat_timeout_seconds": 100}
        if flags.FLAGS.distributed:
            jax.distributed.initialize(**options)
        else:
            jax.distributed.initialize(address, flags.FLAGS.num_processes, flags.FLAGS.process_id, **options)
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the processes cannot be joined ({reason}): give --coordinator") from error
    finally:
        timer.cancel()


class _Team:
    """The other processes, as this one hears of them by the runtime's store of keys."""

    def __init__(self, sentinel: "_Sentinel") -> None:
        from jax._src import distributed  # the store has no public name yet

        store = distributed.global_state.client
        assert store is not None, "the processes are joined"
        self._store, self._sentinel = store, sentinel
        self._me, self._number = jax.process_index(), jax.process_count()
        self._ending = threading.Lock()  # held by the thread that has the last word
        self._at_end = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def wait_for_all(self) -> None:
        """Until all are at the end."""
        self._put("done")
        for peer in range(self._number):
            while self._get("done", peer) is None:
                time.sleep(0.05)

    def over(self) -> None:
        """Leaves in good order."""
        self._ending.acquire()
        self._at_end.set()
        # a thread that returns from C++ while the interpreter ends would abort the process
        self._listener.join(timeout=FAREWELL_SECONDS)
        self._sentinel.dismiss()
        sys.stdout.flush()
        jax.distributed.shutdown()

    def end(self, message: str, *, own: bool) -> NoReturn:
        """Ends this process with a line; if the failure is its own, not before the others know."""
        self._ending.acquire()
        discard_partial()
        _say(f"error: {message}")
        self._sentinel.dismiss()
        with contextlib.suppress(Exception):
            self._put("failed" if own else "told", message)
            until = time.monotonic() + FAREWELL_SECONDS
            while own and time.monotonic() < until and not all(map(self._knows, range(self._number))):
                time.sleep(0.1)
            if self._me == 0:  # with which the runtime ends that of the others
                time.sleep(HEARTBEAT_SECONDS)
        os._exit(2 if own else LOST)

    def lost(self, peer: int | None = None) -> NoReturn:
        """Ends this process because another is gone."""
        time.sleep(HEARTBEAT_SECONDS if peer is None else 0)  # for the last words of who failed
        which = "another process" if peer is None else f"process {peer} of {self._number}"
        self.end(f"lost contact with {which}: start all of them again", own=False)

    def _listen(self) -> None:
        heard: dict[int, tuple[str | None, float]] = dict.fromkeys(range(self._number), (None, time.monotonic()))
        beat = 0
        while not self._at_end.is_set():
            beat += 1
            try:
                self._put("alive", str(beat))
                for peer in set(heard) - {self._me}:
                    failure, last = self._get("failed", peer), self._get("alive", peer)
                    if failure is not None:
                        self.end(f"process {peer} of {self._number} failed: {failure}", own=False)
                    if last != heard[peer][0]:
                        heard[peer] = last, time.monotonic()
                    if self._get("done", peer) is None and time.monotonic() - heard[peer][1] > SILENT_SECONDS:
                        self.lost(peer)
            except Exception:  # the store is gone, with process 0
                self.lost(0)
            self._at_end.wait(HEARTBEAT_SECONDS)

    def _knows(self, peer: int) -> bool:
        return any(self._get(key, peer) is not None for key in ("failed", "told"))

    def _put(self, key: str, value: str = "1") -> None:
        self._store.key_value_set(f"irtjax/{key}/{self._me}", value, allow_overwrite=True)

    def _get(self, key: str, peer: int) -> str | None:
        try:
            return self._store.key_value_try_get(f"irtjax/{key}/{peer}")
        except Exception as error:
            if "NOT_FOUND" in str(error):
                return None
            raise


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


_SENTINEL = """
import sys
last = sys.stdin.read()
if last != "over":
    print("error: this process has ended, or lost process 0, which keeps the others together: "
          "start all of them again", file=sys.stderr, flush=True)
"""


class _Sentinel:
    """A tiny process that has the last word where this one is ended from within, as JAX does without process 0."""

    def __init__(self, stderr: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _SENTINEL], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr
        )

    def dismiss(self) -> None:
        """Nothing is to be said any more."""
        with contextlib.suppress(OSError, ValueError):
            self._process.communicate(b"over", timeout=10)


@contextlib.contextmanager
def _quiet() -> Iterator[_Sentinel]:
    """What C++ prints goes to a file, and what Python prints where it belongs.

    The runtime prints stack traces of its own when a peer dies, and ends the process.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115
    out, err = os.dup(1), os.dup(2)
    sys.stdout.flush()
    sys.stdout = os.fdopen(out, "w", buffering=1, errors="backslashreplace")
    sys.stderr = os.fdopen(err, "w", buffering=1, errors="backslashreplace")
    sentinel = _Sentinel(err)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    try:
        yield sentinel
    finally:
        sentinel.dismiss()
