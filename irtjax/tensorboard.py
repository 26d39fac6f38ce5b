"""Curves of fits, crowds and curricula as they go, for TensorBoard.

    with irtjax.tensorboard.Writer("runs/curves") as writer:
        irtjax.fit(answers, on_iteration=writer.of_fit())

`tensorboard --logdir=runs/curves` shows them. The files are written by the package `tensorboardX`, or by
`torch.utils.tensorboard`.
"""

import contextlib
import importlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError

PACKAGES = ("tensorboardX", "torch.utils.tensorboard")
FLUSH_SECONDS = 10
Progress = Any  # `irtjax.training.groups.Progress`: what writes curves need not import what trains


class Writer:
    """Writes numbers by step to a folder of event files; those of earlier writers stay, and their curves go on.

    Of several processes, the first alone writes. Close it at the end, as `with` does: the last numbers may still wait.
    """

    @checks_types
    def __init__(self, folder: str | Path) -> None:
        """Makes the folder where it is missing.

        Raises:
            InputError: no package that writes event files is installed, or there can be no such folder.
        """
        self._folder, self._package = Path(folder), _package()
        self._events: Any = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}, expected a folder that can be written to") from error

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what is left."""
        if self._events is not None:
            self._events.close()
            self._events = None

    @checks_types
    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Writes numbers.

        Args:
            values: by the names of their curves, such as `crowd/finished`.
            step: where on these.
        """
        if jax.process_index() > 0:
            return
        if self._events is None:
            # two files of one second and one name would be one
            suffix = f".{secrets.token_hex(4)}"
            self._events = self._package.SummaryWriter(
                str(self._folder), flush_secs=FLUSH_SECONDS, filename_suffix=suffix
            )
        for name, value in values.items():
            self._events.add_scalar(re.sub(r"[^-/\w.]", "_", name, flags=re.ASCII), float(value), step)

    @checks_types
    def of_fit(self, name: str = "fit", quantity: str = "change") -> Callable[[int, float], None]:
        """A callback of a fit: `on_iteration` by MML, `on_chunk` by SVI, by the steps made.

        Args:
            name: of the fit.
            quantity: what the callback is called with: the `change` by MML, the `elbo` by SVI.
        """
        return lambda steps, value: self.scalars({f"{name}/{quantity}": value}, steps)

    @checks_types
    def of_crowd(self, name: str = "crowd") -> Callable[[Progress], None]:
        """A callback `on_progress` of `irtjax.crowd.train_crowd`, by the epochs of all networks together.

        The networks that have finished, train and wait, and the best and the median of their best validation
        accuracies.
        """
        return lambda state: self.scalars(
            {f"{name}/{quantity}": value for quantity, value in of_progress(state).items()}, state.epochs
        )

    @checks_types
    def of_curricula(self, name: str = "curriculum") -> "CurriculumCurves":
        """Callbacks of `irtjax.selection.compare_curricula`.

            curves = writer.of_curricula()
            compare_curricula(task, difficulty, on_strategy=curves.strategy, on_epoch=curves.on_epoch)

        Args:
            name: of the comparison.
        """
        return CurriculumCurves(self, name)


class CurriculumCurves:
    """The mean of the networks' best validation accuracies by epoch, a curve for each strategy."""

    def __init__(self, writer: Writer, name: str) -> None:
        self._writer, self._name = writer, name
        self._strategy = ""

    @contextlib.contextmanager
    def strategy(self, name: str) -> Iterator[None]:
        """The time in which a strategy is trained."""
        self._strategy = name.replace("/", " of ")  # the groups of one strategy
        yield

    def on_epoch(self, epochs: np.ndarray, accuracies: np.ndarray) -> None:
        """Takes the (S,) epochs and best accuracies of the networks."""
        self._writer.scalars(
            {f"{self._name}/{self._strategy}/accuracy": float(np.mean(accuracies))}, int(np.max(epochs))
        )


def of_progress(state: Progress) -> dict[str, float]:
    """The progress of networks as numbers by name; no accuracies before there is one."""
    values: dict[str, float] = {"finished": state.finished, "training": state.training, "waiting": state.waiting}
    known = state.accuracies[np.isfinite(state.accuracies)]
    if known.size:
        values |= {"accuracy_best": float(known.max()), "accuracy_median": float(np.median(known))}
    return values


def _package() -> Any:
    """The first package that is installed.

    Raises:
        InputError: none is.
    """
    for name in PACKAGES:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise InputError("files for TensorBoard are written by a package of its own: pip install tensorboardX")
