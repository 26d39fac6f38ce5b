"""Output that may go anywhere: into a pipe that closes early, to a full disk, in an encoding without our signs."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
CLOSED_PIPE = 128 + 13  # the status that a shell gives what a closed pipe ends


@contextlib.contextmanager
def sound_streams() -> Iterator[None]:
    """Within the block, text that an encoding lacks is escaped, and output that fails ends the process in one line."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        with contextlib.suppress(AttributeError):  # another kind of stream, such as a notebook's
            getattr(sys, name).reconfigure(errors="backslashreplace")
    try:
        yield
    except OSError as error:
        _end(error)
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            _end(error)


def _end(error: OSError) -> None:
    """Ends the process at once: the interpreter would try to write the rest once more.

    Raises:
        OSError: it is of another kind.
    """
    if isinstance(error, BrokenPipeError):
        os._exit(CLOSED_PIPE)
    if error.errno not in FULL:
        raise error
    with contextlib.suppress(OSError):
        print(f"error: output cannot be written ({error.strerror})", file=sys.stderr, flush=True)
    os._exit(2)
