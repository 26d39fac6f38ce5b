"""What a task is: splits of examples with gold labels and stable ids."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from irtjax.arguments import checks_types, require_bounds
from irtjax.errors import InputError
from irtjax.pretrained.folder import Pretrained
from irtjax.tasks.validation import require_classes, require_split

SPLITS = ("train", "validation", "test")
PADDING, UNKNOWN = 0, 1  # word numbers
FLIPS = 1  # a random stream of its own: by the seed alone, a sample of the same seed would consist of wrong labels


class Split(NamedTuple):
    """N examples of one split.

    Attributes:
        inputs: images (N, H, W, channels), uint8 or float32; text: a tuple of arrays (N, L) of word numbers, one array
            per sentence of an example (one for both where pairs are packed), in the smallest dtype, padded at the end
            with `PADDING`.
        labels: (N,) int32 gold labels.
        ids: (N,) names that lead back to the example.
        texts: (N,) strings as objects, the examples as published, sentences joined by ' / '; of a table the first
            features; None for images.
    """

    inputs: np.ndarray | tuple[np.ndarray, ...]
    labels: np.ndarray
    ids: np.ndarray
    texts: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class ImageFormat:
    """How stored images become inputs, on the device: (x / scale - mean) / deviation, by channel.

    Attributes:
        scale: stored values run from 0 to this.
        mean, deviation: of the scaled training images, one value per channel.
        flips: whether an image and its mirror image have the same class, so that training may flip and shift it.
    """

    scale: float
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)
    flips: bool = False

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)


@dataclasses.dataclass(frozen=True, eq=False)
class TextFormat:
    """What the word numbers of a text task stand for.

    Attributes:
        vocabulary: V words, by number; the first two are `PADDING` and `UNKNOWN`.
        embeddings: (V, D) float32 vectors of the words; zeros for padding.
        buckets: ascending lengths that examples are cut to when they are batched, each a tuple of one length per
            array of the inputs; the last one holds every example.
        encoder: whose word pieces these words are; None for words of the task.
        packed: whether both sentences of a pair are in one row (`irtjax.tasks.pairs`).
    """

    vocabulary: tuple[str, ...]
    embeddings: np.ndarray
    buckets: tuple[tuple[int, ...], ...]
    encoder: Pretrained | None = None
    packed: bool = False

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)

    @property
    def num_words(self) -> int:
        """What all numbers in the inputs are below; those of a second sentence that is packed are V higher."""
        return len(self.embeddings) * (1 + self.packed)

    @property
    def sentences(self) -> int:
        """Of an example."""
        return 2 if self.packed else len(self.buckets[-1])


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification data set; `from_arrays` and its like make one of almost anything.

    The same split may be given twice. Else a crowd needs an id of its own for each example of the three splits; `extra`
    may repeat some of them.

    Attributes:
        name: as given to `load`.
        train, validation, test: the splits.
        extra: further examples for a crowd to answer; None for none.
        classes: names of the C classes; labels run from 0 to C - 1.
        format: what the inputs are.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    classes: tuple[str, ...]
    format: ImageFormat | TextFormat
    extra: Split | None = None

    def __repr__(self) -> str:
        """One line: what there is, without the examples."""
        sizes = ", ".join(f"{len(self.split(name).labels):,} {name}" for name in self.splits)
        if isinstance(self.format, TextFormat):
            what = f"texts of {self.format.num_words:,} words"
        else:
            what = "inputs of " + " × ".join(map(str, np.shape(self.train.inputs)[1:]))
        return f"Task({self.name!r}: {sizes}; {self.num_classes:,} classes; {what})"

    def __post_init__(self) -> None:
        """Refuses what does not hold together.

        Raises:
            InputError: names the field of another type than its annotation says; or the split, and what is wrong:
                labels outside the classes, images without channels, lengths that differ, words without a vector.
        """
        require_bounds(self)
        require_classes(self.name, self.classes)
        words: int | None = None
        channels: tuple[int, ...] = ()
        if isinstance(self.format, TextFormat):
            words = self.format.num_words
            if len(self.format.embeddings) < len(self.format.vocabulary):
                raise InputError(
                    f"{self.name}: a vocabulary of {len(self.format.vocabulary)} words, and vectors of "
                    f"{len(self.format.embeddings)}"
                )
        else:
            channels = len(self.format.mean), len(self.format.deviation)
        for name in self.splits:
            require_split(f"{self.name}: {name}", self.split(name), self.num_classes, words, channels)
            if name != "train" and not len(self.split(name).labels):  # with soft labels, there may be no others
                raise InputError(f"{self.name}: {name}: no examples")
        shapes = {np.shape(self.split(name).inputs)[1:] for name in self.splits} if words is None else {()}
        if len(shapes) > 1:
            raise InputError(f"{self.name}: images of several shapes: {', '.join(map(str, sorted(shapes)))}")
        if len({len(self.split(name).inputs) for name in self.splits}) > 1 and words is not None:
            raise InputError(f"{self.name}: examples of one sentence in one split, and of two in another")

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, `extra` among them if there is one."""
        return SPLITS if self.extra is None else (*SPLITS, "extra")

    @property
    def num_classes(self) -> int:
        """C."""
        return len(self.classes)

    @checks_types
    def split(self, name: str) -> Split:
        """The split called `name`."""
        return getattr(self, name)


def select(split: Split, rows: slice | np.ndarray) -> Split:
    """Some examples of a split, by their positions."""
    inputs = split.inputs
    return Split(
        tuple(sentence[rows] for sentence in inputs) if isinstance(inputs, tuple) else inputs[rows],
        split.labels[rows],
        split.ids[rows],
        None if split.texts is None else split.texts[rows],
    )


def join(*splits: Split) -> Split:
    """Splits one after the other; texts of all, or of none."""

    def concatenate(arrays: Sequence[Any]) -> Any:
        if isinstance(arrays[0], tuple):
            return tuple(concatenate(sentence) for sentence in zip(*arrays, strict=True))
        return np.concatenate(arrays)

    inputs, labels, ids, texts = zip(*splits, strict=True)
    known = all(part is not None for part in texts)
    return Split(concatenate(inputs), concatenate(labels), concatenate(ids), concatenate(texts) if known else None)


@checks_types
def flip_labels(task: Task, share: float, seed: int) -> tuple[Task, np.ndarray]:
    """Gives a random share of the training examples a wrong label, uniform over the other classes.

    Returns:
        The task with wrong labels, and a (N,) bool array that marks them.
    """
    rng = np.random.default_rng((seed, FLIPS))
    labels = task.train.labels.copy()
    chosen = rng.choice(labels.size, size=round(share * labels.size), replace=False)
    labels[chosen] = (labels[chosen] + rng.integers(1, task.num_classes, size=chosen.size)) % task.num_classes
    flipped = np.zeros(labels.size, bool)
    flipped[chosen] = True
    return dataclasses.replace(task, train=task.train._replace(labels=labels)), flipped


@checks_types
def sample_split(task: Task, name: Literal["train", "validation", "test"], count: int, seed: int) -> Task:
    """The task with a random sample of `count` examples of one split, in their order; its vocabulary stays as it is.

    Raises:
        InputError: there are fewer than `count`.
    """
    split = task.split(name)
    num_examples = len(split.labels)
    if count > num_examples:
        kind = "training" if name == "train" else name
        raise InputError(f"a sample of {count} {kind} examples: {task.name} has {num_examples}")
    kept = np.sort(np.random.default_rng(seed).choice(num_examples, count, replace=False))
    some: dict[str, Any] = {name: select(split, kept)}
    return dataclasses.replace(task, **some)
