"""Progress bars for the long stages."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
from tqdm import tqdm

from irtjax.training.pool import Progress

_FORMAT = "  {desc:<12} {bar} {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}]{postfix}"


@contextlib.contextmanager
def _bar(description: str, total: int, unit: str) -> Iterator[tqdm]:
    with tqdm(total=total, desc=description, unit=unit, bar_format=_FORMAT, ncols=110, mininterval=0.2) as bar:
        yield bar
        # early stopping is an end too: leave a full bar behind
        bar.total = bar.n
        bar.refresh()


@contextlib.contextmanager
def networks_bar(description: str, num_networks: int) -> Iterator[Callable[[Progress], None]]:
    """A bar of finished networks, which also shows how many are in training, and their validation accuracies.

    Yields a function of the progress of a pool or a crowd.
    """
    with _bar(description, num_networks, "networks") as bar:
        bar.set_postfix_str("compiling")
        first = True

        def on_progress(state: Progress) -> None:
            nonlocal first
            if first:
                bar.initial = state.finished  # an interrupted run trained these; they took no time now
                first = False
            bar.n = state.finished
            low, high = np.nanmin(state.accuracies), np.nanmax(state.accuracies)
            bar.set_postfix_str(f"{state.training} training, accuracy {low:.2f} to {high:.2f}")

        yield on_progress


@contextlib.contextmanager
def reading_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Bars over the records of data sets that are read for the first time; none where the cache has them."""
    bars: dict[str, tqdm] = {}

    def on_progress(description: str, done: int, total: int) -> None:
        if description not in bars:
            bars[description] = tqdm(total=total, desc=description, unit="records", bar_format=_FORMAT, ncols=110)
        bars[description].update(done - bars[description].n)

    try:
        yield on_progress
    finally:
        for bar in bars.values():
            bar.close()


class CurriculumProgress:
    """One bar per strategy, over the epochs of its slowest seed.

    One object serves all strategies: its callback is compiled into the program, and another one would compile again.
    """

    def __init__(self, max_epochs: int) -> None:
        self._max_epochs = max_epochs
        self._bar: tqdm | None = None

    @contextlib.contextmanager
    def strategy(self, name: str) -> Iterator[None]:
        """The bar of one strategy."""
        with _bar(name, self._max_epochs, "epochs") as self._bar:
            yield

    def on_epoch(self, epochs: np.ndarray, accuracies: np.ndarray) -> None:
        """Moves the bar on."""
        if self._bar is None:
            return
        self._bar.n = max(self._bar.n, int(epochs.max()))
        self._bar.set_postfix_str(f"accuracy {np.mean(accuracies):.3f}")


@contextlib.contextmanager
def fit_bar(description: str, max_steps: int) -> Iterator[Callable[[int, float], None]]:
    """A bar over the steps of an estimator, with its objective (on long tests by mml, the largest change)."""
    with _bar(description, max_steps, "steps") as bar:

        def on_step(steps: int, objective: float) -> None:
            bar.n = steps
            bar.set_postfix_str(f"{objective:.6g}")

        yield on_step


@contextlib.contextmanager
def steps(description: str) -> Iterator[Callable[[str], None]]:
    """One line that says what is being done, for work in steps of unequal length."""
    with tqdm(total=0, desc=description, bar_format="  {desc:<12} [{elapsed}]{postfix}", ncols=110) as bar:
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
