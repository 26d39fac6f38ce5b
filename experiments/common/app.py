"""What all experiment binaries share: one line and exit status 2 for bad input, and a quiet log."""

import contextlib
import gc
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from absl import app, flags, logging

import irtjax
from experiments.common import help
from experiments.common.interrupt import end_on_ctrl_c
from experiments.common.streams import sound_streams
from irtjax.errors import InputError, printable
from irtjax.storage.files import discard_partial
from irtjax.storage.sources import one_line

NO_DEVICES = "Unable to initialize backend"  # what JAX says, which has no error of its own for that
ALWAYS_FILES = ("responses", "items")  # flags; others may have values in place of a file


def run(
    main: Callable[[], None], *, resumes: bool = False, device_per_core: bool = False, compiles_anew: bool = False
) -> None:
    """Parses the flags and runs `main`; bad flags and `InputError` end in one line on stderr and exit status 2.

    Args:
        main: the binary.
        resumes: whether the same command goes on where this one was interrupted; an interrupted user is told so.
        device_per_core: see `one_device_per_core`.
        compiles_anew: whether programs of earlier commands are left aside, as a benchmark does that times their
            compilation; see `keep_compiled`.
    """

    def parse(arguments: list[str]) -> list[str]:
        if help.ASKS & set(arguments[1:]):
            print(help.text(main))
            sys.exit()
        try:
            rest = flags.FLAGS(arguments)
        except flags.Error as error:
            _stop(_about_flags(error, arguments[1:]))
        if len(rest) > 1:
            _stop(f"unexpected argument {rest[1]!r}; flags start with --")
        _require_finite()
        return rest

    def guarded(_: list[str]) -> None:
        gc.disable()  # of what imports make, nothing is garbage: to look for it is a tenth of a short command
        from experiments.common import peers  # here, as `--help` and wrong flags need not wait for JAX
        from experiments.common.compiled import keep_compiled

        _show_warnings()
        if device_per_core:
            one_device_per_core()
        if not compiles_anew:
            keep_compiled()
        gc.freeze()
        gc.enable()
        try:
            with peers.joined(as_flags):
                main()
        except InputError as error:
            _stop(as_flags(str(error)))
        except RuntimeError as error:
            if NO_DEVICES not in str(error):
                raise
            _stop(f"JAX finds no devices ({one_line(error)}): see the environment variable JAX_PLATFORMS")

    end_on_ctrl_c("; the same command goes on where it stopped" if resumes else "", discard_partial)
    warnings.simplefilter("ignore")
    logging.set_verbosity(logging.FATAL)  # the default of --verbosity, which can be given to see more
    with sound_streams():
        app.run(guarded, flags_parser=parse)


def _show_warnings() -> None:
    """Has the warnings of fits told in one line, by the first of several processes."""
    from tqdm import tqdm

    from experiments.common import peers

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if peers.is_first():  # on a line of its own beside a bar
            tqdm.write(f"warning: {as_flags(printable(str(message)))}", file=sys.stderr)

    warnings.simplefilter("always", irtjax.FitWarning)
    warnings.showwarning = show


def as_flags(message: str) -> str:
    """An error of the library, which names arguments in backticks, with flags in place of the arguments."""
    return re.sub(
        r"`(\w+)(=\w+)?`", lambda name: f"--{name[1]}{name[2] or ''}" if name[1] in flags.FLAGS else name[0], message
    )


def _about_flags(error: flags.Error, arguments: Sequence[str]) -> str:
    """An error of absl in one line; of a flag that is missing, with what it is for, of one in a file, with the file."""
    message = " ".join(str(error).split())
    if isinstance(error, flags.CantOpenFlagFileError):
        return message.replace("ERROR:: Unable to open flagfile", "--flagfile: cannot be read")
    if isinstance(error, flags.UnrecognizedFlagError):
        given = {name.lstrip("-"): value for name, _, value in (argument.partition("=") for argument in arguments)}
        if "flagfile" in given and error.flagname not in given:
            return f"--flagfile={given['flagfile']}: this command has no flag --{error.flagname}, which is in that file"
    missing = re.fullmatch(r"flag --(\w+)=None: .*", message)
    if missing is not None:
        return f"--{missing[1]} is missing: {flags.FLAGS[missing[1]].help}"
    wrong = re.match(r"flag --(\w+)=(.*?): (.*)", message)
    expected = wrong and _expected(flags.FLAGS[wrong[1]])
    return f"--{wrong[1]}={wrong[2]}: expected {expected}" if wrong and expected else message


def _require_finite() -> None:
    """Ends the command where a flag that takes a number is nan or infinite, which bounds let through."""
    for name in flags.FLAGS:
        value = flags.FLAGS[name].value
        if flags.FLAGS[name].flag_type() == "float" and value is not None and not math.isfinite(value):
            _stop(f"--{name}={value}: expected a finite number")


def _expected(flag: flags.Flag) -> str:
    """What a flag takes that is a number, a choice or on or off; empty for others, whose parsers say it themselves."""
    if isinstance(flag, flags.EnumFlag):
        return f"one of {', '.join(flag.parser.enum_values)}"
    kind = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(flag.flag_type(), "")
    low, high = (getattr(flag.parser, f"{end}_bound", None) for end in ("lower", "upper"))
    limits = [f"{what} {limit:,}" for what, limit in (("at least", low), ("at most", high)) if limit is not None]
    return ", ".join([kind, *limits])


def choose(flag: str, names: Sequence[str], choices: Sequence[str]) -> list[str]:
    """The names that a flag gives, each once.

    Raises:
        InputError: one is not among the choices, or there is none.
    """
    for name in names or [""]:
        if name not in choices:
            raise InputError(f"--{flag}={','.join(names)}: {name!r} is none of {', '.join(choices)}")
    return list(dict.fromkeys(names))


def without_effect(names: Sequence[str], beside: str, shared: Container[str] = ()) -> None:
    """Refuses flags that were given and have no effect beside another.

    Args:
        names: of the flags.
        beside: what leaves them without effect.
        shared: names of those that are nowhere read beside it, so that a flag file for several settings may have them:
            there a warning is enough.

    Raises:
        InputError: one was given.
    """
    own = {argument.lstrip("-").partition("=")[0] for argument in sys.argv[1:] if argument.startswith("-")}
    for name in names:
        if name not in flags.FLAGS or not flags.FLAGS[name].present:
            continue
        if name in shared and own.isdisjoint({name, f"no{name}"}):
            message = f"--{name} of the flag file has no effect with {beside}"
            warnings.warn(message, irtjax.FitWarning, stacklevel=2)
        else:
            raise InputError(f"--{name} has no effect with {beside}: leave it out")


def refuse_idle(idle: Mapping[str, Sequence[str]], value: Callable[[str], Any] | None = None) -> None:
    """Refuses flags that were given and have no effect beside others as they are.

    Args:
        idle: names of flags by what leaves them without effect: `--members`, `--rule=random` or `no --items`.
        value: of the others, by their names; by default those of their flags.

    Raises:
        InputError: one was given.
    """
    for beside, names in idle.items():
        name, _, wanted = beside.removeprefix("no ").removeprefix("--").partition("=")
        found = flags.FLAGS[name].value if value is None else value(name)
        if found == wanted if wanted else bool(found) != beside.startswith("no "):
            without_effect(names, beside)


def keep_inputs(names: Sequence[str], output_dir: str, results: Iterable[str]) -> None:
    """Refuses to write results over files that are read, or where there are folders.

    Args:
        names: of the flags that name files.
        output_dir: where results go.
        results: their names there; patterns such as `*/items.csv` are allowed.

    Raises:
        InputError: a file that a flag names is not there, or also one of the results, by whatever path; or a folder is.
    """
    places = [place for pattern in results for place in Path(output_dir).glob(pattern)]
    for place in places:
        if place.is_dir():
            raise InputError(f"{place}: is a folder where a file of the results belongs; remove it")
    for name in names:
        given = flags.FLAGS[name].value
        for file in given if isinstance(given, list) else [given]:
            if name in ALWAYS_FILES and file and irtjax.processes.number() == 1 and not os.path.exists(file):
                raise InputError(f"--{name}={file}: cannot be read (No such file or directory)")
            if file and Path(file).exists() and any(place.samefile(file) for place in places):
                raise InputError(f"--{name}={file} would be overwritten: choose another --output_dir")


def lists(names: Sequence[str]) -> dict[str, str]:
    """The values of flags that take lists, their words joined by commas, for the record."""
    values: dict[str, Any] = {name: flags.FLAGS[name].value for name in names}
    return {name: ",".join(words) for name, words in values.items()}


def one_device_per_core() -> None:
    """Makes every core of the processor a JAX device; to be called before JAX is used.

    One small network does not fill two cores, but two networks do, each on its own core. A number of devices that
    XLA_FLAGS gives is kept. Accelerators are not affected.
    """
    import jax

    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return
    jax.config.update(
        "jax_num_cpu_devices", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Puts the file that is being read or fitted in front of errors about it, but not of those about an argument."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(("`", path)) else f"{path}: {error}") from error


def _stop(message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)
