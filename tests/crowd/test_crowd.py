"""Crowds: graded answers, members retrained, and answers that are left out."""

from pathlib import Path

import jax
import numpy as np
import optax
import pytest
from conftest import mesh_of

from irtjax import InputError, networks, tasks
from irtjax.crowd import answers as crowd
from irtjax.crowd.members import gold_of, in_subset, plan_member, rows_of, sample_members
from irtjax.training.data import to_device
from irtjax.training.pool import Job, classify_all
from irtjax.training.trainer import Trainer

TASK = tasks.load("digits")
TRAINER = Trainer(networks.build("mlp", TASK, 8), optax.adam(1.0), 32, patience=2, max_epochs=15)
MEMBERS = sample_members(6, 1197, 0, min_subset=20, max_corruption=0.8, learning_rate=2e-2, width=8, networks=["mlp"])


def train(members, folder=None, **options):
    """The crowd, its pool, and the parameters of every member, by what `classify_all` was asked."""
    mesh = mesh_of(2)
    job = Job(TRAINER, plan_member, rows_of(members), gold_of(TASK), to_device(TASK, mesh), 20, 2, mesh)
    answers = crowd.blank_answers(TASK, len(members.seed), folder)
    places = np.arange(len(members.seed))
    pool = crowd.train_members(job, TASK, places, answers, **options)
    return crowd.assemble(TASK, members, answers, [(places, pool)]), pool


@pytest.fixture(scope="module")
def trained():
    return train(MEMBERS)


def test_answers_are_graded_against_gold_labels(monkeypatch, trained):
    expected, pool = trained
    classes = {}

    def spy(job, parameters, split):
        predicted = classify_all(job, parameters, split)
        classes.setdefault(predicted.shape[1], []).append(predicted)
        return predicted

    monkeypatch.setattr(crowd, "classify_all", spy)
    again, _ = train(MEMBERS)
    right = np.concatenate(classes[1197]) == TASK.train.labels
    assert sorted(map(tuple, again.responses["train"].values)) == sorted(map(tuple, right.astype(np.int8)))
    for name, responses in expected.responses.items():
        np.testing.assert_array_equal(again.responses[name].values, responses.values)
        np.testing.assert_array_equal(responses.item_ids, TASK.split(name).ids)
        np.testing.assert_allclose(expected.members[f"accuracy_{name}"], responses.values.mean(1))
    assert (expected.members.best_epoch < expected.members.epochs).any(), "all ended at their best: this sees nothing"
    # the answers are those of the best epoch, by the accuracy that chose it
    np.testing.assert_allclose(expected.members.accuracy_validation, pool.best_accuracies, atol=1e-6)


def test_a_member_is_retrained_alone(trained):
    whole, _ = trained
    alone, _ = train(MEMBERS[4:5])
    assert list(alone.members.subject_id) == ["model_0004"]
    for name, responses in alone.responses.items():
        # not to the last bit: another pool rounds otherwise
        assert (responses.values[0] == whole.responses[name].values[4]).mean() > 0.995


def test_out_of_bag_leaves_out_what_a_member_was_trained_on(trained):
    whole, _ = trained
    left, _ = train(MEMBERS, out_of_bag=True)
    for number in range(6):
        values, full = left.responses["train"].values[number], whole.responses["train"].values[number]
        row = jax.tree.map(lambda column, at=number: column[at], rows_of(MEMBERS))
        seen = np.asarray(in_subset(row, 1197))
        assert seen.sum() == MEMBERS.subset_size[number]
        assert (values[seen] == -1).all()
        np.testing.assert_array_equal(values[~seen], full[~seen])
        assert left.members.accuracy_train[number] == pytest.approx(full[~seen].mean())
    np.testing.assert_array_equal(left.responses["test"].values, whole.responses["test"].values)


def test_answers_in_files_are_those_in_memory(tmp_path, trained):
    whole, _ = trained
    stored, _ = train(MEMBERS, tmp_path)
    np.testing.assert_array_equal(stored.responses["train"].values, whole.responses["train"].values)
    assert (np.load(tmp_path / "answers_test.npy") == whole.responses["test"].values).all()


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-100])])
def test_answers_of_a_crowd_in_training_that_are_gone_or_cut_are_refused(tmp_path, damage):
    crowd.blank_answers(TASK, 3, tmp_path)
    (tmp_path / "mlp").mkdir()
    (tmp_path / "mlp" / "job.json").write_text("{}")
    crowd.blank_answers(TASK, 3, tmp_path)
    damage(tmp_path / "answers_test.npy")
    with pytest.raises(InputError, match=rf"answers_test.npy: .* gone or damaged: remove {tmp_path}"):
        crowd.blank_answers(TASK, 3, tmp_path)
