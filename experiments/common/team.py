"""Processes of one command that lose each other: where one fails or dies, all end, each with one line that says why.

JAX's distributed runtime notices who dies, prints stack traces and ends the others from within C++.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import jax

from irtjax import InputError, processes
from irtjax.storage.files import discard_partial

FAREWELL_SECONDS = 10  # for which a process that failed waits until all others have heard why
LAST_SECONDS = 1  # for which process 0 outlasts the others
LOST_CONTACT = "lost contact with another process: start all of them again"
FAILED, LOST = 2, 3  # exit statuses: of a process that fails, and of one that has lost the others
KEY = "irtjax/failed/{}"  # where a process hears why another failed
# of what C++ says when a peer is gone, in whichever call
SIGNS = ("Gloo", "NCCL", "UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "coordination", "heartbeat", "Connection")


class Team:
    """The other processes. One that fails writes why to the key of each other, which listens to its own."""

    def __init__(self, last_word: Callable[[str], None], worded: Callable[[str], str]) -> None:
        self._store, self._last_word, self._worded = processes.store(), last_word, worded
        self._ending = threading.Lock()  # held by the thread that has the last word
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A block that all processes end, or none: where one fails, or is gone, each ends with a line that says so."""
        try:
            yield
            self._store.wait_at_barrier("irtjax/done", processes.MOST_MILLISECONDS)
        except InputError as error:
            self._end(self._worded(str(error)), FAILED)
        except Exception as error:
            if any(sign in str(error) for sign in SIGNS):
                self._end(LOST_CONTACT, LOST, wait=False)
            traceback.print_exc()
            # left to Python, the end would wait for the others, and they for this process
            self._end(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", FAILED)
        self._ending.acquire()
        # a thread that returns from C++ while the interpreter ends would abort the process
        self._tell(jax.process_index(), "")
        self._listener.join()
        self._last_word("")
        sys.stdout.flush()
        jax.distributed.shutdown()

    def _end(self, message: str, status: int, *, wait: bool = True) -> NoReturn:
        """Ends this process with a line, and with `FAILED` the others; it waits for them."""
        self._ending.acquire()
        discard_partial()
        self._last_word(message)
        me, number = jax.process_index(), jax.process_count()
        with contextlib.suppress(Exception):
            for peer in set(range(number)) - {me} if status == FAILED else ():
                self._tell(peer, f"process {me} of {number} failed: {message}")
        if wait:
            leave(self._store, "irtjax/failed", FAREWELL_SECONDS)
        os._exit(status)

    def _listen(self) -> None:
        with contextlib.suppress(Exception):  # without process 0 the store is gone, and JAX ends this process
            reason = self._store.blocking_key_value_get(KEY.format(jax.process_index()), processes.MOST_MILLISECONDS)
            if reason:
                self._end(reason, LOST)

    def _tell(self, peer: int, reason: str) -> None:
        self._store.key_value_set(KEY.format(peer), reason, allow_overwrite=True)


def leave(store: Any, barrier: str, seconds: float) -> None:
    """Waits for the others before this process ends; process 0 ends last.

    The store goes with it, and the runtime aborts a process that has not yet heard that all have come.
    """
    with contextlib.suppress(Exception):
        store.wait_at_barrier(barrier, int(1000 * seconds))
        if processes.place()[0] == 0:
            time.sleep(LAST_SECONDS)


def quiet() -> Callable[[str], None]:
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
