"""Crowds: scored answers, members retrained, training interrupted, and answers that are left out."""

import dataclasses

import numpy as np
import pytest

import irtjax.crowd
from irtjax import InputError, networks, tasks
from irtjax.crowd import CrowdDesign, train_crowd
from irtjax.crowd.members import in_subset
from irtjax.tasks.task import select
from irtjax.training import resume
from irtjax.training.pool import Finished
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
# as in the tests of the pool: programs are compiled once for both
RECIPE = Recipe(width=32, learning_rate=5e-3, patience=2, max_epochs=12, steps_per_epoch=20)
MEMBERS = irtjax.crowd.sample_members(6, 1197, 0, RECIPE, CrowdDesign(min_subset=20, min_width=8))


def train(members=MEMBERS, **options):
    return train_crowd(TASK, members, **{"recipe": RECIPE, "slots": 1} | options)


@pytest.fixture(scope="module")
def trained():
    return train()


def assert_same(one, other):
    for name, responses in one.responses.items():
        np.testing.assert_array_equal(responses.values, other.responses[name].values)
    assert one.members.equals(other.members)


def test_answers_are_graded_against_gold_labels(monkeypatch, trained):
    classes, classify, accuracies = {}, Finished.classify, []

    def spy(finished, split):
        predicted = classify(finished, split)
        classes.setdefault(predicted.shape[1], []).append(predicted)
        return predicted

    monkeypatch.setattr(Finished, "classify", spy)
    again = train(on_progress=lambda progress: accuracies.append(progress.accuracies))
    right = np.concatenate(classes[1197]) == TASK.train.labels
    assert sorted(map(tuple, again.responses["train"].values)) == sorted(map(tuple, right.astype(np.int8)))
    assert_same(again, trained)
    for name, responses in trained.responses.items():
        assert trained.predictions[name].dtype == np.int8
        np.testing.assert_array_equal(trained.predictions[name] == TASK.split(name).labels, responses.values)
        np.testing.assert_array_equal(responses.item_ids, TASK.split(name).ids)
        np.testing.assert_allclose(trained.members[f"accuracy_{name}"], responses.values.mean(1))
    assert (trained.members.best_epoch < trained.members.epochs).any(), "all ended at their best: this sees nothing"
    # the answers are those of the best epoch, by the accuracy that chose it
    np.testing.assert_allclose(trained.members.accuracy_validation, accuracies[-1], atol=1e-6)


def test_a_crowd_answers_extra_items(trained):
    extra = dataclasses.replace(TASK, extra=select(TASK.test, np.array([5, 3])))
    crowd = train_crowd(extra, MEMBERS, recipe=RECIPE, slots=1)
    assert list(crowd.responses) == ["train", "validation", "test", "extra"]
    np.testing.assert_array_equal(crowd.responses["extra"].item_ids, TASK.test.ids[[5, 3]])
    np.testing.assert_array_equal(crowd.predictions["extra"], trained.predictions["test"][:, [5, 3]])
    assert "accuracy_extra" in crowd.members


def test_a_crowd_is_drawn_from_a_seed(trained):
    options = {"num_models": 6, "seed": 0, "design": CrowdDesign(min_subset=20, min_width=8)}
    assert_same(train(None, **options), trained)


@pytest.mark.slow
def test_a_member_is_retrained_alone(trained):
    for chosen in (MEMBERS.choose(slice(4, 5)), trained.members.iloc[4:5]):
        alone = train(chosen)
        assert list(alone.members.subject_id) == ["model_0004"]
        for name, responses in alone.responses.items():
            # not to the last bit: another pool rounds otherwise
            assert (responses.values[0] == trained.responses[name].values[4]).mean() > 0.995


def test_out_of_bag_leaves_out_what_a_member_was_trained_on(trained):
    left = train(out_of_bag=True)
    seen = in_subset(MEMBERS, 1197)
    np.testing.assert_array_equal(seen.sum(axis=1), MEMBERS.subset_size)
    values, full = left.responses["train"].values, trained.responses["train"].values
    np.testing.assert_array_equal(values, np.where(seen, -1, full))
    for number in range(6):
        assert left.members.accuracy_train[number] == pytest.approx(full[number][~seen[number]].mean())
    np.testing.assert_array_equal(left.responses["test"].values, trained.responses["test"].values)


def test_a_crowd_can_do_without_the_validation_split():
    few = MEMBERS.choose(slice(4))
    validation = TASK.validation._replace(labels=np.roll(TASK.validation.labels, 1))
    other = dataclasses.replace(TASK, validation=validation)
    options = {"recipe": RECIPE, "slots": 1}
    answers, same, looked = (
        train_crowd(task, few, stop_on=stop_on, **options).responses["train"].values
        for task, stop_on in ((TASK, "train"), (other, "train"), (other, "validation"))
    )
    np.testing.assert_array_equal(answers, same)
    assert (looked != same).any()


MIXED = dataclasses.replace(MEMBERS, network=np.array(["mlp", "twin"] * 3))
SHORT = {"recipe": dataclasses.replace(RECIPE, steps_per_epoch=6), "slots": 1}


@pytest.fixture(scope="module")
def mixed():
    """A crowd of two architectures, and its progress after each epoch: three members wait for the second one.

    The second is the first under another name, whose programs need not be compiled again.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(networks.KINDS, "twin", networks.KINDS["mlp"])
        seen = []
        yield train_crowd(TASK, MIXED, on_progress=seen.append, **SHORT), seen


def test_progress_is_that_of_the_whole_crowd(mixed):
    crowd, seen = mixed
    for progress in seen:
        assert progress.finished + progress.training + progress.waiting == 6
    assert [progress.waiting for progress in seen] == sorted((p.waiting for p in seen), reverse=True)
    assert {progress.waiting for progress in seen} == {3, 0}
    assert np.isnan(seen[0].accuracies[1::2]).all()
    assert seen[-1].finished == 6
    np.testing.assert_allclose(seen[-1].accuracies, crowd.members.accuracy_validation, atol=1e-6)


class Interruption(Exception):
    """In place of a kill."""


def finished_in(folder):
    return sum(np.load(path)["networks"].size for path in folder.glob("finished/*.npz"))


# epochs before or after the last of the first architecture
@pytest.mark.parametrize("offset", [-2, 0, 1, 3])
def test_an_interrupted_crowd_ends_with_the_same_bits(tmp_path, monkeypatch, mixed, offset):
    monkeypatch.setattr(resume, "PAUSE_FACTOR", 0)  # a checkpoint after each epoch
    whole, seen = mixed
    last = sum(progress.waiting == 3 for progress in seen) + offset
    assert 1 < last < len(seen)
    options = SHORT | {"checkpoints": tmp_path, "checkpoint_seconds": 0.0}
    before, after = [], []

    def interrupt(progress):
        before.append(progress)
        if len(before) == last:
            raise Interruption

    with pytest.raises(Interruption):
        train_crowd(TASK, MIXED, on_progress=interrupt, **options)
    for other in ({"stop_on": "train"}, {"recipe": dataclasses.replace(RECIPE, batch_size=7)}):
        with pytest.raises(InputError, match="with other members, data or options"):
            train_crowd(TASK, MIXED, **options | other)
    assert finished_in(tmp_path) < 6
    assert_same(train_crowd(TASK, MIXED, on_progress=after.append, **options), whole)
    # the epoch of the interruption was not saved yet, unless nothing was left of the architecture
    assert len(before) + len(after) == len(seen) + (offset != 0)
    assert finished_in(tmp_path) == 6


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"subset_size": [1197]}, {"out_of_bag": True}, "model_0003: subset_size 1197, expected at most 1196"),
        ({"width": [33]}, {}, "model_0003: width 33, expected at most 32, the `width` of the recipe"),
        ({"network": ["lstm"]}, {}, "model_0003: network lstm cannot read digits, choose from mlp, lenet, vgg16"),
        ({}, {"stop_on": "test"}, "`stop_on`=test: expected one of validation, train"),
        ({}, {"slots": 0}, "`slots`=0: expected at least 1"),
        ({}, {"seed": -1}, "`seed`=-1: expected 0 or more"),
    ],
)
def test_members_that_cannot_be_trained_are_named(columns, options, message):
    member = MEMBERS.choose(slice(3, 4))
    changed = dataclasses.replace(member, **{name: np.array(column) for name, column in columns.items()})
    with pytest.raises(InputError, match=message):
        train(changed, **options)
