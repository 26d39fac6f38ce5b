"""Ctrl-C ends a command at once, with one line."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def end_on_ctrl_c(hint: str = "", clean: Callable[[], None] = lambda: None) -> None:
    """From here on, Ctrl-C cleans up, prints "interrupted" and the hint, and ends the process with exit status 130."""

    def interrupt(*_: Any) -> None:
        # Not by KeyboardInterrupt: raised within a callback of the running program, it would be lost. Nor by sys.exit:
        # it would tear the interpreter down under that program.
        with contextlib.suppress(Exception):
            clean()
            print(f"\ninterrupted{hint}", file=sys.stderr, flush=True)
        os._exit(130)

    signal.signal(signal.SIGINT, interrupt)
