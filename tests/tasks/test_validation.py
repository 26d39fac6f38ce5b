"""Hand-built tasks: each thing that does not hold together is said in one line."""

import dataclasses

import numpy as np
import pytest

from irtjax import InputError
from irtjax.crowd import train_crowd
from irtjax.tasks import ImageFormat, Split, Task, TextFormat

LABELS = np.array([0, 1, 2, 0], np.int32)
SPLIT = Split(np.zeros((4, 2, 2, 1), np.uint8), LABELS, np.array(["a", "b", "c", "d"]))
CLASSES = ("x", "y", "z")


def task(split=SPLIT, validation=SPLIT, classes=CLASSES, format=ImageFormat(255.0)):  # noqa: B008
    return Task("mine", split, validation, validation, classes, format)


def words(*numbers):
    return SPLIT._replace(inputs=(np.tile(np.array(numbers, np.int32), (4, 1)),))


VECTORS = TextFormat(("<padding>", "<unknown>", "one"), np.zeros((3, 2), np.float32), ((2,),))


def test_what_holds_together_is_a_task():
    assert task().num_classes == 3
    assert task(words(2, 0), words(1, 2), format=VECTORS).format.sentences == 1
    others = SPLIT._replace(ids=np.array(["e", "f", "g", "h"]))
    assert task(SPLIT, others).validation is others


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"split": SPLIT._replace(labels=LABELS + 1)}, "mine: train: example 2 has label 3, expected 0 to 2"),
        ({"split": SPLIT._replace(labels=LABELS - 1)}, "mine: train: example 0 has label -1, expected 0 to 2"),
        ({"split": SPLIT._replace(labels=np.array(["x", "y", "z", "x"]))}, "labels are texts such as 'x', expected"),
        ({"split": SPLIT._replace(labels=LABELS.astype(float))}, "labels are of type float64 and shape .4,., expected"),
        ({"split": SPLIT._replace(labels=LABELS.tolist())}, "labels are a list, expected an array of integers"),
        ({"split": SPLIT._replace(labels=LABELS[:3])}, "mine: train: 3 labels, and inputs for 4 examples"),
        ({"split": SPLIT._replace(ids=SPLIT.ids[:3])}, "mine: train: 4 labels, and ids for 3 examples"),
        (
            {"split": SPLIT._replace(ids=np.arange(4))},
            "ids are of type int64 and shape .4,., expected an array of text",
        ),
        (
            {"split": SPLIT._replace(inputs=SPLIT.inputs[..., 0])},
            r"\(4, 2, 2\) have no channels: give inputs\[\.\.\., Non",
        ),
        ({"split": SPLIT._replace(inputs=np.zeros((4, 3)))}, "from_arrays takes tables of features"),
        ({"split": SPLIT._replace(inputs=np.full((4, 2, 2, 1), np.nan))}, "example 0 has a value that is not finite"),
        ({"validation": Split(SPLIT.inputs[:0], LABELS[:0], SPLIT.ids[:0])}, "mine: validation: no examples"),
        (
            {"validation": SPLIT._replace(inputs=np.zeros((4, 3, 3, 1)), ids=np.array([*"efgh"]))},
            "images of several sh",
        ),
        ({"classes": ("x",)}, "mine: 1 classes, expected 2 or more"),
        ({"classes": ("x", "y", "x")}, "two classes are called 'x'"),
        ({"classes": (0, 1, 2)}, r"^`classes` \(0, 1, 2\), expected a list of names$"),
        ({"format": ImageFormat(1.0, (0.0, 0.0))}, "images of 1 channels, and a format of 2"),
        ({"format": VECTORS}, "inputs are no tuple, and the format says that they are a tuple of sentences"),
        ({"split": words(2, 3), "format": VECTORS}, "a word has number 3, and the vocabulary 3 words"),
        ({"split": words(1, 2)}, "inputs are a tuple, and the format says that they are images"),
        (
            {"format": dataclasses.replace(VECTORS, embeddings=VECTORS.embeddings[:2]), "split": words(1, 1)},
            "a vocabulary of 3 words, and vectors of 2",
        ),
    ],
)
def test_what_does_not_is_said(given, message):
    with pytest.raises(InputError, match=message):
        task(**given)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a", "d"], "^mine: two examples have the id 'a' .of train, twice"),
        (["d", "f", "g", "h"], "^mine: two examples have the id 'd' .of train and of validation"),
    ],
)
def test_a_crowd_needs_an_id_for_each_example(ids, message):
    others = SPLIT._replace(ids=np.array([*"efgh"])) if ids[0] == "a" else SPLIT
    with pytest.raises(InputError, match=message):
        train_crowd(task(SPLIT._replace(ids=np.array(ids)), others), num_models=2)
