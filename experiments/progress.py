"""Progress bars for the long stages."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
from tqdm import tqdm

_FORMAT = "  {desc:<12} {bar} {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}]{postfix}"


@contextlib.contextmanager
def _bar(description: str, total: int, unit: str) -> Iterator[tqdm]:
    with tqdm(total=total, desc=description, unit=unit, bar_format=_FORMAT, ncols=110, mininterval=0.2) as bar:
        yield bar
        # early stopping is an end too: leave a full bar behind
        bar.total = bar.n
        bar.refresh()


@contextlib.contextmanager
def training_bar(
    description: str, max_epochs: int, num_networks: int
) -> Iterator[Callable[[int, int, np.ndarray], None]]:
    """A bar over epochs, with networks still training and the range of their validation accuracies."""
    with _bar(description, max_epochs, "epochs") as bar:

        def on_epoch(epoch: int, training: int, accuracies: np.ndarray) -> None:
            bar.n = epoch
            low, high = accuracies.min(), accuracies.max()
            bar.set_postfix_str(f"training {training}/{num_networks}, accuracy {low:.2f} to {high:.2f}")

        yield on_epoch


class CurriculumProgress:
    """A bar a strategy over the epochs of its slowest seed.

    One object serves all strategies: the callback is compiled into the program, and another one would be compiled anew.
    """

    def __init__(self, max_epochs: int):
        self._max_epochs = max_epochs
        self._bar: tqdm | None = None

    @contextlib.contextmanager
    def strategy(self, name: str) -> Iterator[None]:
        """The bar of one strategy."""
        with _bar(name, self._max_epochs, "epochs") as self._bar:
            yield

    def on_epoch(self, epochs: np.ndarray, accuracies: np.ndarray) -> None:
        """Moves the bar on."""
        self._bar.n = max(self._bar.n, int(epochs.max()))
        self._bar.set_postfix_str(f"accuracy {np.mean(accuracies):.3f}")


@contextlib.contextmanager
def fit_bar(description: str, max_steps: int) -> Iterator[Callable[[int, float], None]]:
    """A bar over steps of an estimator, with its objective or, on long tests by mml, the largest change."""
    with _bar(description, max_steps, "steps") as bar:

        def on_step(steps: int, objective: float) -> None:
            bar.n = steps
            bar.set_postfix_str(f"{objective:.6g}")

        yield on_step
