"""Tasks of arrays, tables and lists in memory."""

from collections.abc import Sequence
from typing import Any

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.tasks.building import Choices, Given, Note, build
from irtjax.tasks.labels import ClassNames
from irtjax.tasks.splitting import SHARE
from irtjax.tasks.task import Task


@checks_types
def from_arrays(
    inputs: Any,
    labels: Any,
    *,
    validation: Sequence[Any] | None = None,
    test: Sequence[Any] | None = None,
    ids: Any = None,
    class_names: ClassNames = None,
    name: str = "arrays",
    seed: int = 0,
    validation_share: float = SHARE,
    test_share: float = SHARE,
    flips: bool = False,
    on_note: Note | None = None,
    **options: Any,
) -> Task:
    """A task of images, features, texts or pairs of texts, in any of their usual forms.

        task = irtjax.tasks.from_arrays(images, labels)
        task = irtjax.tasks.from_arrays(table[["age", "weight"]], table["ill"], name="patients")
        task = irtjax.tasks.from_arrays(["fine", "awful"] * 50, ["good", "bad"] * 50)

    Images are (N, H, W) or (N, H, W, channels), integers from 0 to 255 or floating-point ones, or a list of such
    images, of PIL for example. Their channels are brought to mean 0 and deviation 1 over the training images. Features
    are (N, F) numbers or a table of them. They become images of one pixel whose channels are the features, with mean 0
    and deviation 1 over the training examples; the same column for all of them is 0. Texts are a list of N texts; pairs
    a list of N pairs, or a tuple of two columns (`irtjax.tasks.text` has what becomes of words).

    Splits that are not given are drawn from the examples, so that each has its share of every class.

    Args:
        inputs: N examples, the training ones where all splits are given.
        labels: (N,) integers, texts, or true and false. Classes are the different ones, in order.
        validation: its inputs and labels, and perhaps ids; None to draw it.
        test: as `validation`.
        ids: (N,) names of the examples, each once; None for the task and the position, as in `arrays_00017`, and
            where there are several splits also that: `arrays_train_00017`.
        class_names: of the labels 0, 1, …; of as many other numbers in their order; or a mapping of labels to names.
        name: of the task, with which ids begin.
        seed: of the splits, and of word vectors that are drawn.
        validation_share: of the examples, where it is drawn.
        test_share: as `validation_share`.
        flips: images: whether training may mirror and shift them.
        on_note: called with one line of news, such as duplicates; None to log it as a warning of `irtjax`.
        options: of texts: `glove`, `pretrained`, `vectors`, `embedding_dim`, `min_count`, `max_words`, `item_ids` or
            `extra_items`, see `TaskOptions`; of images: `extra_items`.

    Raises:
        InputError: names the example, counted from 0, and the column, that has no label or no value, one with a
            decimal point for a label, or another kind of input; or there are fewer than two classes, more than 1,000,
            or too few examples for one of each class and for each split.
    """
    given = {"train": Given(inputs, labels, ids)}
    for split, own in (("validation", validation), ("test", test)):
        if own is not None:
            if not isinstance(own, (tuple, list)) or len(own) not in (2, 3):
                raise InputError(f"`{split}`: expected its inputs and its labels, and perhaps its ids")
            given[split] = Given(*own)
    choices = Choices(name, class_names, seed, validation_share, test_share, flips, on_note, options)
    return build(given, choices)
