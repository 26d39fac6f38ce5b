"""Progress of the long stages: bars on a terminal, elsewhere a line every so often."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.common import peers, tensorboard
from irtjax.errors import InputError, printable
from irtjax.training.progress import Progress, seconds_left

_FORMAT = "  {desc:<12} {bar} {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}]{postfix}"
_BEST_GUESS = _FORMAT.replace("{remaining}", "{left}")
_AT_MOST = _FORMAT.replace("<{remaining}", ", at most {remaining} more")  # what may stop early
_WITHOUT_END = "  {desc:<12} {n_fmt} {unit} [{elapsed}]{postfix}"
_STEPS = "  {desc:<12} [{elapsed}]{postfix}"
WIDEST = 110  # columns
SECONDS_PER_LINE = 30
BEAT = "progress"  # the thread that goes on where nothing is reported
SECONDS_PER_BEAT = 1.0


def progress_bar(bar_format: str = _FORMAT, **options: Any) -> "_Bar":
    """A bar on standard error that fits the terminal; lines where it is none, such as a file or a pipe."""
    options["disable"] = not peers.is_first()
    if sys.stderr.isatty():
        return _Bar(bar_format=bar_format, ncols=min(WIDEST, shutil.get_terminal_size().columns - 1), **options)
    return _Lines(bar_format=bar_format.replace(" {bar}", ""), ncols=WIDEST, **options)


class _Bar(tqdm):
    """A bar whose clock goes on while what it tells of takes minutes without a word.

    Attributes:
        seconds_left: elapsed seconds -> those that are left, if known; where the bar's own count is not what time goes
            with. Shown as `{left}`.
    """

    disable: bool

    def __init__(self, **options: Any) -> None:
        self.seconds_left: Callable[[float], float | None] = lambda elapsed: None
        self._ended = threading.Event()
        super().__init__(**options)
        if not self.disable:
            threading.Thread(target=self._beat, name=BEAT, daemon=True).start()

    @property
    def format_dict(self) -> Any:
        """What the format of the bar may name."""
        found = super().format_dict
        left = self.seconds_left(found["elapsed"])
        return found | {"left": "?" if left is None else self.format_interval(left)}

    def close(self) -> None:
        """Stops the clock."""
        self._ended.set()
        super().close()

    def _beat(self) -> None:
        while not self._ended.wait(SECONDS_PER_BEAT):
            self.refresh()


class _Lines(_Bar):
    """Prints a line at most every `SECONDS_PER_LINE` seconds, and one at the end; a bar would overwrite its own."""

    def __init__(self, **options: Any) -> None:
        self._last = time.monotonic()  # nothing to tell yet
        super().__init__(**options)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Prints a line if it is time for one."""
        if time.monotonic() - self._last >= SECONDS_PER_LINE:
            self._print()
        return True

    def clear(self, *_: Any, **__: Any) -> None:
        """Nothing to make room for."""

    def close(self) -> None:
        """Prints the last line."""
        self._ended.set()
        if not self.disable and self.leave:
            self._print()
        self.disable = True

    def _print(self) -> None:
        self._last = time.monotonic()
        print(str(self).rstrip(), file=sys.stderr, flush=True)


@contextlib.contextmanager
def _bar(description: str, total: int | None, unit: str, bar_format: str = _FORMAT) -> Iterator[_Bar]:
    with progress_bar(bar_format, total=total, desc=description, unit=unit, mininterval=0.2) as bar:
        try:
            yield bar
        except InputError:
            bar.leave = False  # the error is all there is to say
            raise
        # early stopping is an end too: leave a full bar behind
        bar.total = bar.n
        bar.refresh()


@contextlib.contextmanager
def networks_bar(description: str, num_networks: int) -> Iterator[Callable[[Progress], None]]:
    """A bar of finished networks, which also shows how many are in training, and their validation accuracies.

    Yields a function of the progress of a pool or a crowd, which writes the curves of --tensorboard too.
    """
    bar_of_networks = _bar(description, num_networks, "networks", _BEST_GUESS)
    with bar_of_networks as bar, tensorboard.networks(description) as curves:
        bar.set_postfix_str("compiling")
        first: Progress | None = None

        def on_progress(state: Progress) -> None:
            nonlocal first
            first = began = first or state
            bar.initial = began.finished  # an interrupted run trained these; they took no time now
            bar.seconds_left = lambda elapsed: seconds_left(elapsed, state, began)
            bar.n, bar.total = state.finished, state.finished + state.training + state.waiting
            low, high = np.nanmin(state.accuracies), np.nanmax(state.accuracies)
            bar.set_postfix_str(f"{state.training} training, accuracy {low:.2f} to {high:.2f}")
            curves(state)

        yield on_progress


@contextlib.contextmanager
def reading_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Bars over the records of data sets that are read for the first time; none where the cache has them."""
    bars: dict[str, tqdm] = {}

    def on_progress(description: str, done: int, total: int) -> None:
        if description not in bars:
            bars[description] = progress_bar(total=total, desc=description, unit="records")
        bars[description].update(done - bars[description].n)

    try:
        yield on_progress
    finally:
        for bar in bars.values():
            bar.close()


class CurriculumProgress:
    """One bar per strategy, over the epochs of its slowest seed; and one curve of --tensorboard."""

    def __init__(self, max_epochs: int) -> None:
        self._max_epochs = max_epochs
        self._bar: _Bar | None = None
        self._curve: Callable[[np.ndarray, np.ndarray], None]

    @contextlib.contextmanager
    def strategy(self, name: str, max_epochs: int | None = None) -> Iterator[None]:
        """The bar and the curve of one strategy, which may have more epochs than the others."""
        most = self._max_epochs if max_epochs is None else max_epochs
        bar, curve = _bar(name, most, "epochs", _AT_MOST), tensorboard.strategy(name)
        with bar as self._bar, curve as self._curve:
            yield

    def on_epoch(self, epochs: np.ndarray, accuracies: np.ndarray) -> None:
        """Moves the bar and the curve on."""
        if self._bar is None:
            return
        self._bar.n = max(self._bar.n, int(epochs.max()))
        self._bar.set_postfix_str(f"accuracy {np.mean(accuracies):.3f}")
        self._curve(epochs, accuracies)


@contextlib.contextmanager
def fit_bar(description: str, quantity: str = "change") -> Iterator[Callable[[int, float], None]]:
    """Steps of an estimator, any of them the last, with a number: the `change` by mml, the `elbo` by svi."""
    with _bar(description, None, "steps", _WITHOUT_END) as bar, tensorboard.fit(description, quantity) as curve:

        def on_step(steps: int, value: float) -> None:
            bar.n = steps
            bar.set_postfix_str(f"{quantity} {value:.6g}")
            curve(steps, value)

        yield on_step


@contextlib.contextmanager
def steps(description: str) -> Iterator[Callable[[str], None]]:
    """One line that says what is being done, for work in steps of unequal length."""
    with progress_bar(_STEPS, total=0, desc=printable(description)) as bar:
        yield bar.set_postfix_str
        bar.set_postfix_str("done")


@contextlib.contextmanager
def counting_bar(unit: str, total: int) -> Iterator[Callable[[int, int, str], None]]:
    """A bar of work that is done piece by piece, with what is being done. Yields a function of done, total and what."""
    with _bar("comparing", total, unit) as bar:

        def on_progress(done: int, total: int, what: str) -> None:
            bar.total, bar.n = total, done
            bar.set_postfix_str(what)

        yield on_progress
