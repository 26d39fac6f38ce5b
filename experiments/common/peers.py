"""Commands that run as several processes at once, on one machine or on many: how they find each other.

JAX's distributed runtime joins them; `team` ends all where one fails. The first process alone writes and talks.
"""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jax
from absl import flags

from experiments.common import same_command
from experiments.common.formulas import guarded_results
from experiments.common.team import FAILED, LOST, LOST_CONTACT, Team, leave, quiet
from irtjax import InputError, processes
from irtjax.kernels.sharding import mesh_of

SILENT_SECONDS = 40  # after which a process that is not heard is given up


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
    if flags.FLAGS.process_id == 0:
        require_port(flags.FLAGS.coordinator)
    last_word = quiet()
    _join(last_word)
    team = Team(last_word, worded)
    if jax.process_index() > 0:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    with team.together():
        yield


def is_first() -> bool:
    """Whether this process writes and talks; alone, it is."""
    return not _asked() or jax.process_index() == 0


def mesh() -> jax.sharding.Mesh | None:
    """All devices of all processes in a row of items; None where there is one device only."""
    return mesh_of(1, jax.device_count()) if jax.device_count() > 1 else None


def results_of_first(output_dir: str, former: Collection[str] = ()) -> AbstractContextManager[Path | None]:
    """`guarded_results` of the first process; None for the others."""
    return guarded_results(output_dir, former) if is_first() else contextlib.nullcontext()


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
    port = values["coordinator"].rpartition(":")[2] if given else "1"
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise InputError(f"--coordinator={values['coordinator']}: expected HOST:PORT")
    return bool(given) or flags.FLAGS.distributed


def _fix_hash_seed() -> None:
    """Starts Python anew with a fixed seed of its hashes, unless it has one.

    The order of sets depends on it, and with that the order in which JAX and NumPyro put the operations of a program.
    Processes that compiled different programs would exchange different numbers, without a word.
    """
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {"PYTHONHASHSEED": "0"})


def require_port(address: str) -> None:
    """Refuses a port that process 0 cannot listen at: JAX's runtime would say nothing of it, or crash.

    Raises:
        InputError: says why.
    """
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        socket.create_server(("", int(address.rpartition(":")[2])), family=family, dualstack_ipv6=both).close()
    except OSError as error:
        raise InputError(
            f"--coordinator={address}: process 0 cannot listen at that port ({os.strerror(error.errno or 0)}): take "
            "another one for all processes"
        ) from error


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
    # before JAX asks for devices, which waits for as many processes as it was told
    store = processes.store()
    try:
        unlike = same_command.difference(store, *processes.place())
    except jax.errors.JaxRuntimeError:  # another one is gone
        last_word(LOST_CONTACT)
        os._exit(LOST)
    if unlike is not None:
        last_word(unlike)
        leave(store, "irtjax/unlike", same_command.SECONDS)  # all others find one, too
        os._exit(FAILED)  # left to Python, the end would wait for the others
