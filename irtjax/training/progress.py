"""What a caller sees of networks in training: a bar, a note that there could be one, or what it makes of it itself."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from tqdm import tqdm

NOTE_AFTER = 10.0  # seconds
_LOG = logging.getLogger("irtjax")


class Progress(NamedTuple):
    """Where networks that are trained, in one pool or several, stand.

    Attributes:
        finished, training, waiting: numbers of networks.
        accuracies: (J,) best validation accuracies so far, NaN for networks without a first one.
        epochs: that the networks have behind them, added up; a run that goes on counts on.
        work: the same three numbers with each network counted by the time of an epoch, in some unit; None where all
            epochs take as long.
    """

    finished: int
    training: int
    waiting: int
    accuracies: np.ndarray
    epochs: int = 0
    work: tuple[float, float, float] | None = None


Report = Callable[[Progress], None]


@contextlib.contextmanager
def reporter(
    progress: bool, on_progress: Report | None, number: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Report | None]:
    """Yields what to call with the progress of networks; of several processes, only the first shows it.

    Args:
        progress: whether to show a bar on standard error, from now on.
        on_progress: of the caller, who then sees to it. Without it and without a bar, one line is logged as a warning
            after `NOTE_AFTER` seconds, as training may take hours, and compiling before it minutes.
        number: of networks.
        clock: seconds.
    """
    if jax.process_index() > 0 or (on_progress is not None and not progress):
        yield on_progress
    elif progress:
        shown = _bar(number, clock)

        def both(state: Progress) -> None:
            shown(state)
            if on_progress is not None:
                on_progress(state)

        yield both
    else:
        message = "training %d networks (at first, programs are compiled): `progress=True` shows how far they are"
        timer = threading.Timer(NOTE_AFTER, _LOG.warning, (message, number))
        timer.daemon = True
        timer.start()
        try:
            yield None
        finally:
            timer.cancel()


def seconds_left(elapsed: float, state: Progress, began: Progress) -> float | None:
    """How long training will still take, by what it has taken so far; None before a network has finished.

    Networks in training count as half done, which they are on average. By the finished ones alone it would seem that
    each of those that train beside them had yet to begin. Those with the longest epochs begin first, so that by number
    alone the rest would seem to take far longer than it does.

    Args:
        elapsed: seconds.
        state: now.
        began: the state when the time began.
    """
    if state.finished <= began.finished:
        return None
    finished, training, waiting = state.work or state[:3]
    before = (began.work or began)[0]
    half = training / 2
    return elapsed * (half + waiting) / (finished - before + half)


def _bar(number: int, clock: Callable[[], float]) -> Report:
    began, first = clock(), None
    bar = tqdm(total=number, unit=" networks", bar_format="{desc} {bar} {n_fmt}/{total_fmt}{unit} [{elapsed}]{postfix}")
    bar.set_postfix_str("compiling")

    def show(state: Progress) -> None:
        nonlocal first
        first = first or state
        bar.total, bar.n = state.finished + state.training + state.waiting, state.finished
        left = seconds_left(clock() - began, state, first)
        accuracies = f"accuracy {np.nanmin(state.accuracies):.2f} to {np.nanmax(state.accuracies):.2f}"
        rest = [] if left is None else [f"{bar.format_interval(left)} left"]
        bar.set_postfix_str(", ".join([*rest, f"{state.training} training", accuracies]))
        if bar.n == bar.total:
            bar.close()

    return show
