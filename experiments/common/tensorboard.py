"""The flag --tensorboard, and what the progress of the long stages writes for it; nothing where it is not given."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from absl import flags

from irtjax.tensorboard import Writer
from irtjax.training.progress import Progress


def require() -> None:
    """Refuses a folder or an environment in which nothing could be written, before anything takes long.

    Raises:
        InputError: says why.
    """
    with _writer():
        pass


@contextlib.contextmanager
def fit(name: str, quantity: str) -> Iterator[Callable[[int, float], None]]:
    """A function of the steps of a fit and what it is called with."""
    with _writer() as writer:
        yield _nothing if writer is None else writer.of_fit(f"fit/{name}", quantity)


@contextlib.contextmanager
def networks(name: str) -> Iterator[Callable[[Progress], None]]:
    """A function of the progress of networks."""
    with _writer() as writer:
        yield _nothing if writer is None else writer.of_crowd(name)


@contextlib.contextmanager
def strategy(name: str) -> Iterator[Callable[[np.ndarray, np.ndarray], None]]:
    """A function of the epochs and best accuracies of the networks, while a strategy is trained."""
    with _writer() as writer:
        if writer is None:
            yield _nothing
            return
        curves = writer.of_curricula()
        with curves.strategy(name):
            yield curves.on_epoch


@contextlib.contextmanager
def _writer() -> Iterator[Writer | None]:
    folder: str | None = flags.FLAGS["tensorboard"].value if "tensorboard" in flags.FLAGS else None
    if folder is None:
        yield None
        return
    with Writer(folder) as writer:
        yield writer


def _nothing(*_: Any) -> None:
    """In place of a curve."""
