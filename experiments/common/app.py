"""What every experiment binary shares: one line for bad input, exit status 2, a quiet log."""

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence

import jax
from absl import app, flags, logging

from irtjax import FitWarning, InputError


def run(main: Callable[[], None], *, resumes: bool = False) -> None:
    """Parses the flags and runs `main`; bad flags and `InputError` end in one line on stderr and exit status 2.

    Args:
        main: the binary.
        resumes: whether it goes on where it was interrupted, which is then said.
    """

    def parse(arguments: list[str]) -> list[str]:
        try:
            rest = flags.FLAGS(arguments)
        except flags.Error as error:
            _stop(str(error).replace("\n", " "))
        if len(rest) > 1:
            _stop(f"unexpected argument {rest[1]!r}; flags start with --")
        return rest

    def guarded(_: list[str]) -> None:
        try:
            main()
        except InputError as error:
            _stop(str(error))

    def interrupt(*_) -> None:
        # not by KeyboardInterrupt: raised within a callback of the running program it would be lost, and leaving by the
        # front door would tear the interpreter down under that program
        hint = "; the same command goes on where it stopped" if resumes else ""
        print(f"\ninterrupted{hint}", file=sys.stderr, flush=True)
        os._exit(130)

    def show(message, category, *_, **__) -> None:
        print(f"warning: {message}", file=sys.stderr)

    signal.signal(signal.SIGINT, interrupt)
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", FitWarning)
    warnings.showwarning = show
    logging.set_verbosity(logging.ERROR)  # the default of --verbosity, which can be given to see more
    app.run(guarded, flags_parser=parse)


def choose(flag: str, names: list[str], choices: Sequence[str]) -> list[str]:
    """The names that a flag gives, each once.

    Raises:
        InputError: one is none of the choices, or there is none.
    """
    for name in names or [""]:
        if name not in choices:
            raise InputError(f"--{flag}={','.join(names)}: {name!r} is none of {', '.join(choices)}")
    return list(dict.fromkeys(names))


def one_device_a_core() -> None:
    """Makes every core of the processor a device of its own; before JAX is used, and without effect on accelerators.

    A small network does not fill two cores: two networks, each on its own, do. A number that XLA_FLAGS gives stays.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    jax.config.update(
        "jax_num_cpu_devices", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Puts the file that is being read or fitted in front of what is wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _stop(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
