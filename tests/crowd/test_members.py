"""Members of a crowd: as specified, read back, and what each is trained on."""

import dataclasses

import jax
import numpy as np
import pandas as pd
import pytest

from irtjax import InputError, tasks
from irtjax.crowd.members import CrowdDesign, Members, default_design, read_members, sample_members
from irtjax.crowd.plans import gold_of, in_every_subset, in_subset, plan_member, rows_of
from irtjax.storage.files import write_csv
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
RECIPE = Recipe(width=8, learning_rate=1e-3)
DESIGN = CrowdDesign(min_subset=10, max_corruption=0.5)
WIDE = Recipe(width=20, learning_rate=1e-3)
VARIED = CrowdDesign(10, 0.5, min_width=5, learning_rate_factor=10.0, networks=("a", "b", "c"))


def sample(num_models=5, num_examples=100, recipe=RECIPE, **changes):
    return sample_members(num_models, num_examples, 0, recipe, dataclasses.replace(DESIGN, **changes))


def assert_equal(one, other):
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, getattr(other, name))


def test_members_are_as_asked():
    members = sample_members(2000, 1000, 0, WIDE, VARIED)
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
    assert_equal(members, sample_members(2000, 1000, 0, WIDE, VARIED))


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
    return Members(**rest | {name: np.asarray(column) for name, column in columns.items()})


make_plan = jax.jit(plan_member)


def plan_of(members, number):
    row = jax.tree.map(lambda column: column[number], rows_of(members))
    return make_plan(row, gold_of(TASK))


def test_plans_hold_subsets_and_corrupt_only_those():
    members = members_of(subset_size=[100, 300], corruption_rate=np.float32([0.3, 0.0]))
    for number, num_wrong in ((0, 30), (1, 0)):
        plan = plan_of(members, number)
        order, labels = np.asarray(plan.order), np.asarray(plan.labels)
        assert sorted(order) == list(range(1197))
        wrong = labels != TASK.train.labels
        assert wrong.sum() == num_wrong
        assert not wrong[order[plan.size :]].any()
        assert labels.max() < 10
        np.testing.assert_array_equal(np.flatnonzero(in_subset(members, 1197)[number]), np.sort(order[: plan.size]))
    assert (plan_of(members, 0).order[:100] != plan_of(members, 1).order[:100]).any()


def test_corrupted_labels_are_uniform_over_the_wrong_ones():
    members = members_of(subset_size=[1197], corruption_rate=np.float32([1.0]))
    shift = (np.asarray(plan_of(members, 0).labels, int) - TASK.train.labels) % 10
    counts = np.bincount(shift, minlength=10)
    assert counts[0] == 0
    assert ((counts[1:] - 133) ** 2 / 133).sum() < 26  # chi-square with 8 degrees of freedom: p = 0.001


def test_members_are_read_back_as_they_were(tmp_path):
    members = sample(num_models=50, learning_rate_factor=3.0, min_width=2, networks=("mlp", "lenet"))
    columns = members.columns
    del columns["number"]
    table = pd.DataFrame({"subject_id": members.subject_ids, **columns})
    write_csv(table, tmp_path / "members.csv")
    assert_equal(read_members(tmp_path / "members.csv"), members)
    assert_equal(read_members(table.iloc[3:5]), members.choose(slice(3, 5)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("subject_id,seed\nmodel_0000,1\n", "no column 'subset_size'"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,8,mlp\nmodel_0001,2,0,0.1,0.001,8,mlp\n", "row 3: subset_size 0"),
        ("{head}\nmodel_0000,1,1000000000000,0.1,0.001,8,mlp\n", "row 2: subset_size 1000000000000, expected a whole"),
        ("{head}\nmodel_0000,1.5,50,0.1,0.001,8,mlp\n", "row 2: seed 1.5, expected a whole number from 0"),
        ("{head}\nmodel_0000,1,50,0.1,inf,8,mlp\n", "row 2: learning_rate inf"),
        ("{head}\nmodel_3,1,50,0.1,0.001,8,mlp\nmodel_0003,2,50,0.1,0.001,8,mlp\n", "row 3: subject_id model_0003"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,8,\n", "row 2: network nan"),
        ("{head}\nmodel_0000,1,50,1.5,0.001,8,mlp\n", "row 2: corruption_rate 1.5, expected a number from 0 to 1"),
        ("{head}\nmodel_0000,1,50,0.1,fast,8,mlp\n", "row 2: learning_rate fast"),
        ("{head}\nuser,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id user"),
        ("", "is empty"),
    ],
)
def test_bad_tables_of_members_are_named(tmp_path, text, message):
    path = tmp_path / "members.csv"
    path.write_text(text.format(head="subject_id,seed,subset_size,corruption_rate,learning_rate,width,network"))
    with pytest.raises(InputError, match=message) as error:
        read_members(path)
    assert str(path) in str(error.value)


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


def test_the_usual_designs_fit_their_tasks():
    assert default_design(TASK) == CrowdDesign()
    small = dataclasses.replace(TASK, name="mine", classes=("a", "b"), train=TASK.train._replace(labels=np.zeros(40)))
    assert default_design(small) == CrowdDesign(min_subset=20, max_corruption=0.5)


def test_examples_in_every_subset():
    members = members_of(subset_size=[1197, 700, 600])
    seen = in_subset(members, 1197)
    everyone = in_every_subset(members, 1197)
    assert 0 < everyone.sum() < 600
    np.testing.assert_array_equal(everyone, seen.all(axis=0))
