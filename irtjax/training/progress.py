"""What a caller sees of networks in training: a bar, a note that there could be one, or what it makes of it itself."""

import logging
import time
from collections.abc import Callable

import jax
import numpy as np
from tqdm import tqdm

from irtjax.training.groups import Progress

NOTE_AFTER = 10.0  # seconds
_LOG = logging.getLogger("irtjax")


def reporter(
    progress: bool, on_progress: Callable[[Progress], None] | None, clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None] | None:
    """What to call with the progress of networks; of several processes, only the first shows it.

    Args:
        progress: whether to show a bar on standard error.
        on_progress: of the caller, who then sees to it. Without it and without a bar, one line is logged as a warning
            after `NOTE_AFTER` seconds, as training may take hours.
        clock: seconds.
    """
    if on_progress is not None and not progress:
        return on_progress
    if jax.process_index() > 0:
        return on_progress
    shown = _bar(clock) if progress else _note(clock)

    def both(state: Progress) -> None:
        shown(state)
        if on_progress is not None:
            on_progress(state)

    return both


def seconds_left(elapsed: float, state: Progress, before: int = 0) -> float | None:
    """How long training will still take, by what it has taken so far; None before a network has finished.

    Networks in training count as half done, which they are on average. By the finished ones alone it would seem that
    each of those that train beside them had yet to begin.

    Args:
        elapsed: seconds.
        state: now.
        before: networks that had finished when the time began.
    """
    finished, half = state.finished - before, state.training / 2
    return elapsed * (half + state.waiting) / (finished + half) if finished > 0 else None


def _note(clock: Callable[[], float]) -> Callable[[Progress], None]:
    began, told = clock(), False

    def note(state: Progress) -> None:
        nonlocal told
        if not told and state.training and clock() - began >= NOTE_AFTER:
            told = True
            number = state.finished + state.training + state.waiting
            _LOG.warning("training %d networks: `progress=True` shows how far they are", number)

    return note


def _bar(clock: Callable[[], float]) -> Callable[[Progress], None]:
    began, before = clock(), 0
    bar = tqdm(unit=" networks", bar_format="{desc} {bar} {n_fmt}/{total_fmt}{unit} [{elapsed}]{postfix}", delay=1e-9)

    def show(state: Progress) -> None:
        nonlocal before
        if bar.total is None:
            before = state.finished
        bar.total, bar.n = state.finished + state.training + state.waiting, state.finished
        left = seconds_left(clock() - began, state, before)
        accuracies = f"accuracy {np.nanmin(state.accuracies):.2f} to {np.nanmax(state.accuracies):.2f}"
        rest = [] if left is None else [f"{bar.format_interval(left)} left"]
        bar.set_postfix_str(", ".join([*rest, f"{state.training} training", accuracies]))
        if bar.n == bar.total:
            bar.close()

    return show
