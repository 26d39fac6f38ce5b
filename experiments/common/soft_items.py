"""Items with soft labels from files: answers of people, shares, or the classes that a crowd predicts."""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax import FitWarning, InputError
from irtjax.soft_labels.annotations import Annotations, read_annotations
from irtjax.soft_labels.items import take_out, without
from irtjax.soft_labels.labels import soft_labels
from irtjax.soft_labels.share_tables import read_shares
from irtjax.soft_labels.train import SoftItems
from irtjax.storage.archives import read_arrays
from irtjax.tasks import Task
from irtjax.tasks.task import Split, select

ARRAYS = ("predictions", "item_ids")
SOFT = 2  # the random stream of the items that have soft labels
HELD_OUT = 3  # of those of them that are not learned from


class Found(NamedTuple):
    """What is learned from.

    Attributes:
        task: without the items.
        items: with their soft labels.
        removed: how many examples of each split were taken out.
        answers: the classes that people gave to all items of the file, also to those without a text; None where single
            answers are not known.
        places: (I,) columns of the answers that the items have; None likewise.
        held_out: items that are not learned from, and are in no split of the task either; None for none.
    """

    task: Task
    items: SoftItems
    removed: dict[str, int]
    answers: Annotations | None = None
    places: np.ndarray | None = None
    held_out: SoftItems | None = None

    def holding_out(self, share: float, seed: int) -> "Found":
        """With a random share of the items held out.

        Raises:
            InputError: none is left, or none is held out.
        """
        number = len(self.items.split.labels)
        held = np.zeros(number, bool)
        held[np.random.default_rng((seed, HELD_OUT)).permutation(number)[: round(share * number)]] = True
        if held.all() or not held.any():
            raise InputError(f"--held_out={share:g}: of {number:,} items, {held.sum():,} would be held out")
        places = None if self.places is None else self.places[~held]
        return self._replace(items=_some(self.items, ~held), places=places, held_out=_some(self.items, held))

    def of_people(self, number: int, seed: int) -> SoftItems:
        """The items with the soft labels of some of the people, drawn without replacement.

        Raises:
            InputError: there are fewer people, or none of those drawn answered an item.
        """
        assert self.answers is not None
        assert self.places is not None
        people = self.answers.num_people
        if number > people:
            raise InputError(f"--respondents={number}: there are answers of {people} people")
        drawn = np.zeros(people, bool)
        drawn[np.random.default_rng(seed).choice(people, number, replace=False)] = True
        counts = self.answers.counts(self.task.num_classes, drawn[self.answers.people])[self.places]
        without = self.items.split.ids[counts.sum(1) == 0]
        if without.size:
            raise InputError(f"--respondents={number}: none of those drawn answered item {without[0]}: take more")
        return SoftItems(self.items.split, soft_labels(counts), counts)


def of_answers(path: str, codes: dict[str, str], task: Task) -> Found:
    """Soft labels from a table of answers: one row per person, or one row per label of an annotator.

    Args:
        path: the table (`irtjax.soft_labels.annotations.read_annotations`).
        codes: the class that each other cell stands for.
        task: with the items' texts in its split `extra`.

    Raises:
        InputError: a cell that stands for no class, a code of no class, or no item with a text.
    """
    found = read_annotations(path)
    split, places = _with_text(task, found.item_ids, path)
    codes = codes or {name: name for name in task.classes}
    for code, name in codes.items():
        if name not in task.classes:
            raise InputError(f"--codes={code}:{name}: {task.name} has no class {name}, only {', '.join(task.classes)}")
    unknown = sorted(set(found.names) - set(codes))
    if unknown:
        raise InputError(
            f"{path}: answer {unknown[0]!r} stands for no class of {task.name}; say for which by --codes="
            f"{unknown[0]}:{task.classes[0]},..."
        )
    answers = found.as_classes({code: task.classes.index(name) for code, name in codes.items()})
    counts = answers.counts(task.num_classes)
    left, removed = without(task, split)
    counts = counts[places]
    unanswered = split.ids[counts.sum(1) == 0]
    if unanswered.size:
        raise InputError(f"{path}: item {unanswered[0]} has no answers: leave it out of --extra_items")
    return Found(left, SoftItems(split, soft_labels(counts), counts), removed, answers, places)


def of_shares(path: str, task: Task) -> Found:
    """Soft labels from a CSV of `item_id` and one column per class: shares of the answers, or their numbers.

    Raises:
        InputError: what `irtjax.soft_labels.share_tables.read_shares` refuses, or no item has a text.
    """
    found = read_shares(path, task.classes)
    split, places = _with_text(task, found.ids, path)
    left, removed = without(task, split)
    counts = None if found.counts is None else found.counts[places]
    return Found(left, SoftItems(split, found.shares[places], counts), removed)


def _some(items: SoftItems, rows: np.ndarray) -> SoftItems:
    counts = None if items.counts is None else np.asarray(items.counts)[rows]
    return SoftItems(select(items.split, rows), np.asarray(items.shares)[rows], counts)


def of_predictions(path: str, share: float, task: Task, seed: int) -> Found:
    """Soft labels from the classes that a crowd predicts for training items: a random share of them.

    Raises:
        InputError: the file is of another kind, or lacks training items.
    """
    predictions, ids = _predictions(path, task, "train")
    number = max(round(share * len(task.train.labels)), 1)
    rng = np.random.default_rng((seed, SOFT))
    rows = np.sort(rng.choice(len(task.train.labels), number, replace=False))
    left, split = take_out(task, rows)
    places = pd.Index(ids).get_indexer(split.ids)
    if (places < 0).any():
        raise InputError(
            f"{path}: no predictions for {split.ids[np.argmax(places < 0)]}: it is not of this task and split"
        )
    counts = _class_counts(predictions[:, places], task)
    return Found(left, SoftItems(split, soft_labels(counts), counts), {"train": number})


def counts_of_networks(path: str, items: Split, task: Task) -> np.ndarray:
    """How many networks of a crowd chose each class of the items, (I, C).

    Raises:
        InputError: the file is of another kind, or lacks an item.
    """
    predictions, ids = _predictions(path, task, "extra")
    places = pd.Index(ids).get_indexer(items.ids)
    if (places < 0).any():
        raise InputError(f"{path}: no predictions for {items.ids[np.argmax(places < 0)]}: was the crowd asked for it?")
    return _class_counts(predictions[:, places], task)


def _class_counts(classes: np.ndarray, task: Task) -> np.ndarray:
    return np.stack([(classes == at).sum(0) for at in range(task.num_classes)], axis=1)


def _predictions(path: str, task: Task, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes that a crowd predicts, one row per network, and the ids of the items."""
    try:
        arrays = read_arrays(Path(path), ARRAYS)
    except InputError as error:
        raise InputError(f"{path}: {error}; expected predictions_{split}.npz of experiments.crowd") from error
    predictions, ids = arrays["predictions"], arrays["item_ids"].astype(str)
    _require_unique(ids, path)
    if (
        not predictions.size
        or predictions.ndim != 2
        or predictions.shape[1] != ids.size
        or not np.issubdtype(predictions.dtype, np.integer)
    ):
        raise InputError(f"{path}: predictions {predictions.shape} of {ids.size} items, expected one row per network")
    if predictions.min() < 0 or predictions.max() >= task.num_classes:
        raise InputError(
            f"{path}: classes {predictions.min()} to {predictions.max()}, {task.name} has {task.num_classes}"
        )
    return predictions, ids


def _with_text(task: Task, ids: np.ndarray, path: str) -> tuple[Split, np.ndarray]:
    """The items that the extra split has the texts of, and their places among the ids; warns of those left aside."""
    if task.extra is None:
        raise InputError(f"--extra_items is missing: the ids, texts and labels of the items of {path}")
    _require_unique(ids, path)
    places = pd.Index(ids).get_indexer(task.extra.ids)
    if not (places >= 0).any():
        raise InputError(f"{path}: none of its {ids.size:,} items is in --extra_items")
    found = int((places >= 0).sum())
    for number, of, missing in ((ids.size, path, "--extra_items"), (places.size, "--extra_items", path)):
        if number > found:
            message = f"{number - found:,} of the {number:,} items of {of} are not in {missing}: not trained on"
            warnings.warn(message, FitWarning, stacklevel=3)
    return select(task.extra, places >= 0), places[places >= 0]


def _require_unique(ids: np.ndarray, path: str) -> None:
    """Refuses an item that is there twice."""
    names, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{path}: item {names[np.argmax(counts > 1)]} is there twice")
