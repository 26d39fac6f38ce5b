"""Tasks of arrays: inputs of every form, labels of every kind, and what is refused by name."""

import logging

import numpy as np
import pandas as pd
import pyarrow
import pytest
from other_packages import Polars, Streamed
from PIL import Image

from irtjax import InputError, tasks
from irtjax.tasks.task import SPLITS

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(60, 3)) * [1, 1e9, 0] + [0, 1.7e9, 5]
LABELS = np.arange(60) % 3


def everything(task, field):
    return np.concatenate([getattr(task.split(name), field) for name in SPLITS])


def test_a_table_of_features_is_standardised_in_double_precision():
    TABLE[:, 1] = 1.7e9 + RNG.normal(size=60)  # in single precision, nothing of them would be left
    task = tasks.from_arrays(TABLE, LABELS, name="dates")
    inputs = task.train.inputs
    assert inputs.shape == (42, 1, 1, 3)
    assert inputs.dtype == np.float32
    at = [int(name.removeprefix("dates_")) for name in task.train.ids]
    truth = (TABLE[at] - TABLE[at].mean(0)) / np.where(TABLE[at].std(0) > 1e-9, TABLE[at].std(0), 1)
    np.testing.assert_allclose(inputs[:, 0, 0, :2], truth[:, :2], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(inputs[..., 2], 0)  # a constant column
    np.testing.assert_array_equal(task.train.labels, LABELS[at])
    np.testing.assert_array_equal(np.sort(everything(task, "ids")), [f"dates_{at:05d}" for at in range(60)])


def test_very_large_numbers_stay_finite():
    task = tasks.from_arrays(RNG.normal(size=(60, 2)) * [1e300, 1e-300], LABELS)
    np.testing.assert_allclose(task.train.inputs.std(0).ravel(), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LABELS * 7 - 3, ("-3", "4", "11")),
        (list("cab" * 20), ("a", "b", "c")),
        (pd.Series(["no", "yes"] * 30, index=range(5, 65)), ("no", "yes")),
        (LABELS == 1, ("False", "True")),
        (LABELS.astype(np.uint8), ("0", "1", "2")),
        (pd.Categorical(["x ", "x", "y"] * 20), ("x", "y")),
    ],
)
def test_labels_of_every_kind(labels, classes):
    task = tasks.from_arrays(TABLE, labels)
    assert task.classes == classes
    at = [int(name[-5:]) for name in everything(task, "ids")]
    named = [str(np.asarray(labels)[one]).strip() for one in at]
    assert [task.classes[number] for number in everything(task, "labels")] == named


def test_names_of_classes():
    def names(labels, given):
        return tasks.from_arrays(TABLE, labels, class_names=given).classes

    assert names(LABELS, ["a", "b", "c", "d"]) == ("a", "b", "c", "d")
    assert names(LABELS * 2 - 2, ["low", "middle", "high"]) == ("low", "middle", "high")
    assert names(LABELS, {2: "two", 0: "none", 1: "one"}) == ("two", "none", "one")
    assert names(list("cab" * 20), ["c", "b", "a"]) == ("c", "b", "a")
    with pytest.raises(
        InputError, match=r"arrays: train: example 1 \(counted from 0\) has the label 'a', expected one of"
    ):
        names(list("cab" * 20), ["c", "b"])
    with pytest.raises(InputError, match="2 `class_names`, and 3 different labels from 0 to 2"):
        names(LABELS, ["a", "b"])


def test_images_of_every_form():
    grey = RNG.integers(0, 256, (40, 5, 4))
    labels = np.arange(40) % 2
    whole = tasks.from_arrays(grey, labels)
    assert whole.train.inputs.shape == (28, 5, 4, 1)
    assert whole.train.inputs.dtype == np.uint8
    assert whole.format.mean[0] == pytest.approx(whole.train.inputs.mean() / 255)
    assert whole.format.deviation[0] == pytest.approx(whole.train.inputs.std() / 255)
    decimal = tasks.from_arrays(np.stack([grey / 255.0, grey * 0], axis=-1), labels)
    assert decimal.train.inputs.dtype == np.float32
    assert decimal.format.deviation == (pytest.approx(whole.format.deviation[0], rel=1e-5), 1.0)
    pillow = tasks.from_arrays([Image.fromarray(one.astype(np.uint8)) for one in grey], labels)
    np.testing.assert_array_equal(pillow.train.inputs, whole.train.inputs)


def test_texts_and_pairs_of_every_form():
    one = [f"a sentence number {at}" for at in range(30)]
    two = [f"another one {at}" for at in range(30)]
    labels = np.arange(30) % 2
    single = [
        tasks.from_arrays(form, labels)
        for form in (one, np.array(one), pd.Series(one), pyarrow.chunked_array([one]), pd.DataFrame({"t": one}))
    ]
    for task in single:
        np.testing.assert_array_equal(task.train.texts, single[0].train.texts)
    pairs = [
        tasks.from_arrays(form, labels)
        for form in (
            list(zip(one, two, strict=True)),
            (one, two),
            np.array([one, two]).T,
            pd.DataFrame({"x": one, "y": two}),
            Polars(pd.DataFrame({"x": one, "y": two})),
            Streamed(pd.DataFrame({"x": one, "y": two})),
        )
    ]
    for task in pairs:
        assert task.format.sentences == 2
        np.testing.assert_array_equal(task.train.texts, pairs[0].train.texts)
    assert pairs[0].train.texts[0].split(" / ")[1].startswith("another one")


def test_splits_that_are_given_and_ids():
    task = tasks.from_arrays(TABLE[:40], LABELS[:40], test=(TABLE[40:], LABELS[40:]), name="own")
    assert [len(task.split(name).labels) for name in SPLITS] == [34, 6, 20]
    np.testing.assert_array_equal(task.test.ids, [f"own_test_{at:05d}" for at in range(20)])
    assert all(name.startswith("own_train_") for name in task.validation.ids)
    ids = [f"patient {at}" for at in range(40)]
    named = tasks.from_arrays(TABLE[:40], LABELS[:40], ids=ids, test=(TABLE[40:], LABELS[40:], range(20)))
    assert set(named.train.ids) | set(named.validation.ids) == set(ids)
    np.testing.assert_array_equal(named.test.ids, np.arange(20).astype(str))
    with pytest.raises(InputError, match=r"two examples have the id '0' .of train and of test"):
        tasks.from_arrays(TABLE[:40], LABELS[:40], ids=range(40), test=(TABLE[40:], LABELS[40:], range(20)))


def test_duplicates_are_told_in_one_note(caplog):
    texts = [f"text {at}" for at in range(20)]
    notes = []
    task = tasks.from_arrays(
        [*texts, texts[0]],
        [*([0, 1] * 10), 1],
        validation=([texts[3], "new"], [1, 0]),
        test=(["other", "new 2"], [0, 1]),
        on_note=notes.append,
    )
    assert notes == [
        "arrays: 2 examples repeat the input of another; 1 input lies in more than one split, such as "
        "arrays_train_00003 of train, which is arrays_validation_00000 of validation: accuracy on them flatters; 1 "
        "input has more than one label"
    ]
    assert len(task.train.labels) == 21
    with caplog.at_level(logging.WARNING, logger="irtjax"):
        tasks.from_arrays([*texts, texts[0]], [*([0, 1] * 10), 1])
    assert "1 example repeats the input of another" in caplog.text


NAN = TABLE.copy()
NAN[7, 2] = np.nan


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (TABLE, [*LABELS[:-1], None], r"train: example 59 \(counted from 0\) has no label: leave it out"),
        (TABLE, [*"ab" * 29, "a", " "], "example 59 .* has no label"),
        (TABLE, np.where(LABELS == 0, np.nan, 1), "example 0 .* has no label"),
        (TABLE, LABELS + 0.5, "example 0 .* has the label 0.5, a number with a decimal point"),
        (TABLE, LABELS.astype(float), "example 0 .* has the label 0.0, a number with a decimal point"),
        (TABLE, np.zeros(60, int), "all labels are 0, expected two classes or more"),
        (TABLE, [*LABELS[:-1], "a"], "example 59 .* has the label 'a', where others are an integer"),
        (
            TABLE,
            np.eye(3)[LABELS],
            r"labels of shape \(60, 3\), expected one for each example: of columns of 0 and 1, giv",
        ),
        (TABLE[:5], range(5), "5 examples of 5 classes are too few"),
        (np.zeros((1500, 1)), range(1500), "1,500 different labels, such as 0, 1, 2, 3, 4, …; expected at most 1,000"),
        (TABLE, LABELS[:50], "train: 60 inputs and 50 labels"),
        (NAN, LABELS, r"example 7 \(counted from 0\), column 2: no value"),
        (pd.DataFrame(NAN, columns=["a", "b", "c"]), LABELS, "example 7 .*, column c: no value"),
        (pd.DataFrame(TABLE).assign(city="Rome"), LABELS, "example 0 .*, column city: 'Rome' is not a number"),
        (TABLE[:, 0], LABELS, r"of one feature, give inputs\[:, None\]"),
        (np.zeros((60, 3, 8, 8)), LABELS, "have their channels first"),
        (
            [np.zeros((8, 8)), *[np.zeros((9, 8))] * 59],
            LABELS,
            r"example 1 .* has the shape \(9, 8\), the first one \(8, 8\)",
        ),
        (["a"] * 59 + [None], LABELS, "example 59 .* has no text"),
        (np.full((60, 4, 4), np.inf), LABELS, "example 0 .* has a pixel that is missing or not finite"),
    ],
)
def test_what_is_wrong_is_named(inputs, labels, message):
    with pytest.raises(InputError, match=message):
        tasks.from_arrays(inputs, labels)


def test_options_of_texts_are_refused_elsewhere():
    with pytest.raises(InputError, match=r"`glove`=vectors.txt: the task arrays has no use for it"):
        tasks.from_arrays(TABLE, LABELS, glove="vectors.txt")
