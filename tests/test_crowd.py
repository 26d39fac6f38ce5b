"""Crowds: members as specified, read back and retrained, graded answers, and answers that are left out."""

import jax
import numpy as np
import optax
import pandas as pd
import pytest
from conftest import mesh_of

from irtjax import InputError, crowd, networks, tasks
from irtjax.device_data import to_device
from irtjax.files import write_csv
from irtjax.pool import Job, classify_all
from irtjax.training import Trainer

TASK = tasks.load("digits")
DEFAULTS = {
    "num_models": 5,
    "num_examples": 100,
    "seed": 0,
    "min_subset": 10,
    "max_corruption": 0.5,
    "learning_rate": 1e-3,
    "width": 8,
    "networks": ["mlp"],
}
MANY = {"num_models": 2000, "num_examples": 1000, "learning_rate_factor": 10, "width": 20, "min_width": 5}


def sample(**changes):
    return crowd.sample_members(**(DEFAULTS | changes))


def test_members_are_as_asked():
    members = sample(**MANY, networks=["a", "b", "c"])
    assert len(np.unique(members.seed)) == 2000
    assert members.subset_size.min() >= 10
    assert members.subset_size.max() <= 1000
    # log-uniform: as many below 100 as above, out of 10..1000
    assert abs((members.subset_size < 100).mean() - 0.5) < 0.04
    assert abs(members.corruption_rate.mean() - 0.25) < 0.02
    assert members.corruption_rate.max() <= 0.5
    assert abs((members.learning_rate < 1e-3).mean() - 0.5) < 0.04
    assert 0.999e-4 <= members.learning_rate.min() < members.learning_rate.max() <= 1.001e-2
    np.testing.assert_array_equal(np.unique(members.width), np.arange(5, 21))
    assert sorted(np.unique(members.network, return_counts=True)[1]) == [666, 667, 667]
    for one, other in zip(members, sample(**MANY, networks=["a", "b", "c"]), strict=True):
        np.testing.assert_array_equal(one, other)


def members_of(**columns):
    size = len(next(iter(columns.values())))
    rest = {
        "number": np.arange(size),
        "seed": np.arange(size),
        "corruption_rate": np.zeros(size, np.float32),
        "learning_rate": np.full(size, 1e-2, np.float32),
        "width": np.full(size, 8),
        "network": np.full(size, "mlp"),
    }
    return crowd.Members(**rest | {name: np.asarray(column) for name, column in columns.items()})


def plan_of(members, number):
    row = jax.tree.map(lambda column: column[number], crowd.rows_of(members))
    return crowd.plan_member(row, crowd.gold_of(TASK)), row


def test_plans_hold_subsets_and_corrupt_only_those():
    members = members_of(subset_size=[100, 300], corruption_rate=np.float32([0.3, 0.0]))
    for number, num_wrong in ((0, 30), (1, 0)):
        plan, row = plan_of(members, number)
        order, labels = np.asarray(plan.order), np.asarray(plan.labels)
        assert sorted(order) == list(range(1197))
        wrong = labels != TASK.train.labels
        assert wrong.sum() == num_wrong
        assert not wrong[order[plan.size :]].any()
        assert labels.max() < 10
        np.testing.assert_array_equal(np.flatnonzero(crowd.in_subset(row, 1197)), np.sort(order[: plan.size]))
    assert (plan_of(members, 0)[0].order[:100] != plan_of(members, 1)[0].order[:100]).any()


def test_corrupted_labels_are_uniform_over_the_wrong_ones():
    members = members_of(subset_size=[1197], corruption_rate=np.float32([1.0]))
    shift = (np.asarray(plan_of(members, 0)[0].labels, int) - TASK.train.labels) % 10
    counts = np.bincount(shift, minlength=10)
    assert counts[0] == 0
    assert ((counts[1:] - 133) ** 2 / 133).sum() < 26  # chi-square with 8 degrees of freedom: p = 0.001


def test_members_are_read_back_as_they_were(tmp_path):
    members = sample(num_models=50, learning_rate_factor=3, width=9, min_width=2, networks=["mlp", "lenet"])
    columns = members._asdict()
    del columns["number"]
    write_csv(pd.DataFrame({"subject_id": members.subject_ids, **columns}), tmp_path / "members.csv")
    for one, other in zip(crowd.read_members(tmp_path / "members.csv"), members, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("subject_id,seed\nmodel_0000,1\n", "no column 'subset_size'"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,8,mlp\nmodel_0001,2,0,0.1,0.001,8,mlp\n", "row 3: subset_size 0"),
        ("{head}\nmodel_0000,1,50,1.5,0.001,8,mlp\n", "row 2: corruption_rate 1.5, expected 0 to 1"),
        ("{head}\nmodel_0000,1,50,0.1,fast,8,mlp\n", "row 2: learning_rate fast"),
        ("{head}\nuser,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id 'user'"),
        ("", "not a table of members"),
    ],
)
def test_bad_tables_of_members_are_named(tmp_path, text, message):
    path = tmp_path / "members.csv"
    path.write_text(text.format(head="subject_id,seed,subset_size,corruption_rate,learning_rate,width,network"))
    with pytest.raises(InputError, match=message) as error:
        crowd.read_members(path)
    assert str(path) in str(error.value)


TRAINER = Trainer(networks.build("mlp", TASK, 8), optax.adam(1.0), 32, patience=2, max_epochs=15)
MEMBERS = sample(num_models=6, num_examples=1197, min_subset=20, max_corruption=0.8, learning_rate=2e-2)


def train(members, folder=None, **options):
    """The crowd, its pool, and the parameters of every member, by what `classify_all` was asked."""
    mesh = mesh_of(2)
    job = Job(
        TRAINER, crowd.plan_member, crowd.rows_of(members), crowd.gold_of(TASK), to_device(TASK, mesh), 20, 2, mesh
    )
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
        row = jax.tree.map(lambda column, at=number: column[at], crowd.rows_of(MEMBERS))
        seen = np.asarray(crowd.in_subset(row, 1197))
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_models": 1}, "a crowd of 1"),
        ({"min_subset": 0}, "smallest subset 0"),
        ({"min_subset": 101}, "smallest subset 101, expected 1 to 100"),
        ({"max_corruption": 1.5}, "largest corruption rate 1.5"),
        ({"min_width": 9}, "smallest width 9, expected 1 to 8"),
        ({"learning_rate_factor": 0.5}, "learning rate factor 0.5, expected at least 1"),
    ],
)
def test_bad_crowds_are_named(change, message):
    with pytest.raises(InputError, match=message):
        sample(**change)
