"""A task of examples from anywhere: classes found, splits drawn where there are none, inputs ready for networks."""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import naming, shown
from irtjax.tasks import images
from irtjax.tasks.duplicates import note_of_duplicates
from irtjax.tasks.extra_images import read_images
from irtjax.tasks.inputs import KINDS, Features, Inputs, Pictures, Place, Texts, read_inputs
from irtjax.tasks.labels import ClassNames, number_labels, read_labels
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.sentences import make_task
from irtjax.tasks.splitting import SHARE, draw_splits
from irtjax.tasks.task import SPLITS, ImageFormat, Split, Task
from irtjax.tasks.text import Examples
from irtjax.tasks.validation import require_ids

Note = Callable[[str], None]
SPELLED = 6  # features of an example that reports show
_KNOWN = tuple(field.name for field in dataclasses.fields(TaskOptions))
_OF_FILES = ("data_dir", "dataset", "test_labels")  # which a named task has read its data from
_LOG = logging.getLogger("irtjax")


class Given(NamedTuple):
    """The examples of one split as they are given.

    Attributes:
        inputs: of any form that `read_inputs` takes, or what it makes of them.
        labels: one each, of any kind that `read_labels` takes.
        ids: one each; None to call them by the task, the split and their position.
        place: where an example stands, by its position, for errors.
    """

    inputs: Any
    labels: Any
    ids: Any = None
    place: Place = lambda at: f"example {at} (counted from 0)"


def divide(given: Given, at: int) -> tuple[Given, Given]:
    """The examples of a named task before position `at`, and the others."""
    rows = np.arange(len(given.labels))
    before, after = (
        Given(_choose(given.inputs, part), given.labels[part], given.ids[part]) for part in (rows[:at], rows[at:])
    )
    return before, after


@dataclasses.dataclass(frozen=True)
class Choices:
    """What the ways to a task of one's own have in common.

    Attributes:
        name: of the task.
        class_names: see `irtjax.tasks.labels.number_labels`.
        seed: of the splits, and of word vectors that are drawn.
        validation_share, test_share: of the examples that there are, for splits that are not given.
        flips: whether an image and its mirror image have the same class, so that training may flip and shift it.
        on_note: called with one line of news; None to log it as a warning of `irtjax`.
        options: fields of `TaskOptions` that texts have a use for.
        scale: the value of images that counts as one, where they are not to be standardised; None where they are.
    """

    name: str
    class_names: ClassNames = None
    seed: int = 0
    validation_share: float = SHARE
    test_share: float = SHARE
    flips: bool = False
    on_note: Note | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    scale: float | None = None

    @classmethod
    def of_named(cls, name: str, classes: tuple[str, ...], options: TaskOptions, **own: Any) -> "Choices":
        """Those of a named task, whose data `options.data_dir` has been read from."""
        used = {field: getattr(options, field) for field in _KNOWN if field not in _OF_FILES}
        return cls(name, classes, on_note=options.on_note, options=used, **own)

    def note(self, line: str) -> None:
        """Tells one line of news."""
        (_LOG.warning if self.on_note is None else self.on_note)(f"{self.name}: {line}")


def build(given: Mapping[str, Given], choices: Choices) -> Task:
    """The task of some examples; splits that are not given are drawn from training.

    Args:
        given: by split, training among them.
        choices: see there.

    Raises:
        InputError: begins with the name of the task, and says which example is wrong and how.
    """
    if choices.seed < 0:
        raise InputError(f"`seed`={choices.seed}: expected 0 or more")
    if unknown := [name for name in choices.options if name not in _KNOWN]:
        of_texts = [name for name in _KNOWN if name not in (*_OF_FILES, "seed") and not name.startswith("on_")]
        raise InputError(f"`{unknown[0]}`: there is no such option; texts have {', '.join(of_texts)}")
    with naming(choices.name):
        inputs = _same_kind({split: _inputs(split, own) for split, own in given.items()})
        classes, labels = _labels(given, choices.class_names)
        for split, own in inputs.items():
            if (found := _length(own)) != labels[split].size:
                raise InputError(f"{split}: {found} inputs and {labels[split].size} labels, expected as many")
        ids = {split: _ids(split, own, labels[split].size, choices.name, len(given)) for split, own in given.items()}
        missing = [split for split in SPLITS if split not in given]
        if missing:
            shares = {split: getattr(choices, f"{split}_share") for split in missing}
            rows = draw_splits(labels["train"], len(classes), shares, choices.seed)
            inputs |= {split: _choose(inputs["train"], at) for split, at in rows.items() if split != "train"}
            inputs["train"] = _choose(inputs["train"], rows["train"])
            labels |= {split: labels["train"][rows[split]] for split in (*missing, "train")}
            ids |= {split: ids["train"][rows[split]] for split in (*missing, "train")}
    texts = [part for own in inputs.values() if isinstance(own, Texts) for part in own.sentences]
    blank = sum(not text.strip() for part in texts for text in part)
    if blank:
        choices.note(f"{blank:,} {'texts are' if blank > 1 else 'text is'} empty: nobody can tell the class")
    require_ids(choices.name, {split: ids[split] for split in SPLITS})
    absent = np.setdiff1d(np.arange(len(classes)), labels["train"])
    if absent.size:
        choices.note(f"no training example of {', '.join(classes[at] for at in absent[:5])}: nobody can learn that")
    if duplicates := note_of_duplicates({split: inputs[split] for split in SPLITS}, labels, ids):
        choices.note(duplicates)
    return _task(inputs, labels, ids, classes, choices)


def _inputs(split: str, given: Given) -> Inputs:
    with naming(split):
        return given.inputs if isinstance(given.inputs, Inputs) else read_inputs(given.inputs, given.place)


def _labels(given: Mapping[str, Given], names: ClassNames) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    read = []
    for split, own in given.items():
        with naming(split):
            read.append(read_labels(own.labels, own.place))
    places = [lambda at, own=own, split=split: f"{split}: {own.place(at)}" for split, own in given.items()]
    classes, numbers = number_labels(read, places, names)
    return classes, dict(zip(given, numbers, strict=True))


def _ids(split: str, given: Given, count: int, name: str, num_splits: int) -> np.ndarray:
    if given.ids is None:
        start = f"{name}_{split}" if num_splits > 1 else name  # examples of the only one come into all splits
        return np.array([f"{start}_{at:05d}" for at in range(count)])
    found = ["" if pd.isna(one) else str(one) for one in np.asarray(given.ids, object).ravel()]
    if len(found) != count:
        raise InputError(f"{split}: {len(found)} ids and {count} labels, expected as many")
    empty = next((at for at, one in enumerate(found) if not one.strip()), None)
    if empty is not None:
        raise InputError(f"{split}: {given.place(empty)} has no id")
    return np.array(found)


def _length(inputs: Inputs) -> int:
    return len(inputs.sentences[0] if isinstance(inputs, Texts) else inputs[0])


def _choose(inputs: Inputs, rows: np.ndarray) -> Inputs:
    """Some of the examples, by their positions."""
    if isinstance(inputs, Texts):
        return Texts(tuple([part[at] for at in rows] for part in inputs.sentences))
    return inputs._replace(**{inputs._fields[0]: inputs[0][rows]})


def _same_kind(inputs: dict[str, Inputs]) -> dict[str, Inputs]:
    """Inputs of all splits, which must be of one kind and shape; images are decimal where those of one split are."""

    def form(own: Inputs) -> str:
        if isinstance(own, Texts):
            return "pairs of texts" if len(own.sentences) > 1 else "texts"
        sides = " × ".join(map(str, own[0].shape[1:]))
        return f"{KINDS[type(own)]} of {sides}"

    forms = {split: form(own) for split, own in inputs.items()}
    if len(set(forms.values())) > 1:
        raise InputError(", ".join(f"{split} has {found}" for split, found in forms.items()) + ": expected one kind")
    columns = {own.columns for own in inputs.values() if isinstance(own, Features)}
    if len(columns) > 1:
        raise InputError("features of the splits have other names, or another order: " + shown(sorted(columns)))
    scales = {own.scale for own in inputs.values() if isinstance(own, Pictures)}
    if len(scales) < 2:
        return inputs
    if 1.0 in scales and any(own.images.dtype != np.uint8 for own in inputs.values() if isinstance(own, Pictures)):
        raise InputError("images of integers in one split, and of floating-point numbers in another: give all the same")
    return {split: own._replace(scale=255.0) if isinstance(own, Pictures) else own for split, own in inputs.items()}


def _task(
    inputs: Mapping[str, Inputs],
    labels: Mapping[str, np.ndarray],
    ids: Mapping[str, np.ndarray],
    classes: tuple[str, ...],
    choices: Choices,
) -> Task:
    train = inputs["train"]
    if isinstance(train, Texts):
        options = TaskOptions(**{"seed": choices.seed, "on_note": choices.note, **choices.options})
        options.check(choices.name, _OF_FILES)
        examples = {
            split: Examples(own.sentences, labels[split], ids[split])
            for split, own in inputs.items()
            if isinstance(own, Texts)
        }
        return make_task(choices.name, {split: examples[split] for split in SPLITS}, classes, options)
    used = () if isinstance(train, Features) else ("extra_items",)
    options = TaskOptions(**choices.options)
    options.check(choices.name, [name for name in _KNOWN if not name.startswith("on_") and name not in used])
    extra: Split | None = None
    if isinstance(train, Features):
        standardise = images.standardiser(train.values)
        arrays = {split: standardise(own.values) for split, own in inputs.items() if isinstance(own, Features)}
        format = ImageFormat(1.0)
    else:
        arrays = {split: own.images for split, own in inputs.items() if isinstance(own, Pictures)}
        if choices.scale is None:
            format = ImageFormat(train.scale, *images.statistics(train.images, train.scale), flips=choices.flips)
        else:
            format = ImageFormat(choices.scale, flips=choices.flips)
        if options.extra_items is not None:
            extra = read_images(options.extra_items, train.images, format.scale, classes)
    splits = {split: Split(arrays[split], labels[split], ids[split], _spelled(inputs[split])) for split in SPLITS}
    return Task(choices.name, classes=classes, format=format, extra=extra, **splits)


def _spelled(inputs: Inputs) -> np.ndarray | None:
    """Features as people read them, the first few: "age 41, weight 70.5, …"; None for images."""
    if not isinstance(inputs, Features):
        return None
    columns = [name if not name.isdecimal() else f"column {name}" for name in inputs.columns[:SPELLED]]
    more = ", …" if len(inputs.columns) > SPELLED else ""
    rows = inputs.values[:, :SPELLED].tolist()
    said = [", ".join(f"{name} {value:.5g}" for name, value in zip(columns, row, strict=True)) + more for row in rows]
    return np.array(said, object)
