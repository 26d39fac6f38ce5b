"""Members of a crowd: as specified, read back, and what each is trained on."""

import dataclasses
import re

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from readers import damaged, parse_csv, read_or_refused, refusal

from irtjax import InputError, tasks
from irtjax.crowd.members import (
    CrowdDesign,
    Members,
    default_design,
    gold_of,
    in_every_subset,
    in_subset,
    plan_member,
    read_members,
    rows_of,
    sample_members,
)
from irtjax.storage.files import write_csv
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
HEAD = "subject_id,seed,subset_size,corruption_rate,learning_rate,width,network"
RECIPE = Recipe(width=8, learning_rate=1e-3)
DESIGN = CrowdDesign(min_subset=10, max_corruption=0.5)
WIDE = Recipe(width=20, learning_rate=1e-3)
VARIED = CrowdDesign(10, 0.5, min_width=5, learning_rate_factor=10.0, networks=("a", "b", "c"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("members")


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
        ("{head}\n", "no members"),
        ("{head},\nmodel_0000,1,50,0.1,0.001,8,mlp\n", "line 2 has 7 cells, expected 8"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,8,mlp,\n", "line 2 has 8 cells, expected 7"),
        ("{head},width\nmodel_0000,1,50,0.1,0.001,8,mlp,8\n", "2 columns are called 'width'"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,8,mlp\nmodel_00", "line 3 has 1 cells"),
        ('{head}\nmodel_0000,1,50,0.1,0.001,8,mlp\nmodel_0001,2,50,0.1,0.001,8,"mlp\n', "line 3 is not CSV"),
        (
            "{head}\nmodel_０００１,1,50,0.1,0.001,8,mlp\n",
            "row 2: subject_id model_０００１, expected model_ and a number",
        ),
        ("{head}\nmodel_1234567890,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id model_1234567890"),
        ("{head}\n model_0000,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id  model_0000"),
        ("{head}\nMODEL_0000,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id MODEL_0000"),
        ("{head}\nmodel_-001,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id model_-001"),
        ("{head}\n,1,50,0.1,0.001,8,mlp\n", "row 2: subject_id nan"),
        ('{head}\n"model_\n0",1,50,0.1,0.001,8,mlp\n', r"row 2: subject_id 'model_.n0'"),
        ("{head}\n{long},1,50,0.1,0.001,8,mlp\n", "row 2: subject_id 'xxx"),
        ("{head}\nmodel_0000,99999999999999999999,50,0.1,0.001,8,mlp\n", "row 2: seed 99999999999999999999, expected"),
        ("{head}\nmodel_0000,-1,50,0.1,0.001,8,mlp\n", "row 2: seed -1, expected a whole number from 0 to 2147483647"),
        ("{head}\nmodel_0000,TRUE,50,0.1,0.001,8,mlp\n", "row 2: seed TRUE"),
        ("{head}\nmodel_0000,,50,0.1,0.001,8,mlp\n", "row 2: seed nan"),
        ("{head}\nmodel_0000,1,2147483648,0.1,0.001,8,mlp\n", "row 2: subset_size 2147483648"),
        ("{head}\nmodel_0000,1,50,nan,0.001,8,mlp\n", "row 2: corruption_rate nan"),
        ("{head}\nmodel_0000,1,50,-0.1,0.001,8,mlp\n", "row 2: corruption_rate -0.1"),
        ("{head}\nmodel_0000,1,50,0.1,0,8,mlp\n", "row 2: learning_rate 0"),
        ("{head}\nmodel_0000,1,50,0.1,1e-46,8,mlp\n", "row 2: learning_rate 1e-46"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,0,mlp\n", "row 2: width 0"),
        ("{head}\nmodel_0000,1,50,0.1,0.001,８,mlp\n", "row 2: width ８"),
    ],
)
def test_bad_tables_of_members_are_named(tmp_path, text, message):
    path = tmp_path / "members.csv"
    text = text.format(head=HEAD, long="x" * 5000)
    path.write_text(text, newline="", encoding="utf-8")
    assert re.search(message, refusal(read_members, path))


ROWS = [["model_0007", 11, 50, 0.25, 0.001, 8, "mlp"], ["model_0003", 2**31 - 1, 1, 1.0, 1e6, 1, "le, net"]]


def test_numbers_are_read_however_they_are_written(tmp_path):
    path = tmp_path / "members.csv"
    path.write_text(
        f'\ufeff{HEAD},note\r\nmodel_7,11.0, 50,.25,1e-3,+8,mlp,\r\n\r\nmodel_3,2147483647,1,1,1E6,1,"le, net",x'
    )
    found = read_members(path)
    assert [list(column) for column in found.columns.values()] == [
        list(column) for column in zip(*expected_rows(), strict=True)
    ]


def expected_rows():
    return [
        (int(name[-1]), seed, size, rate, np.float32(step), width, kind)
        for name, seed, size, rate, step, width, kind in ROWS
    ]


TABLE = pd.DataFrame(ROWS, columns=HEAD.split(","))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.assign(seed=pd.to_datetime(["1970", "1971"])), "row 2: seed 1970-01-01"),
        (TABLE.assign(width=[True, True]), "row 2: width True"),
        (TABLE.assign(seed=["1", "x"]), "row 3: seed x"),
        (TABLE.assign(seed=[[1], {}]), r"row 2: seed \[1\]"),
        (TABLE.assign(width=pd.array([1, None], "Int64")), "row 3: width <NA>"),
        (TABLE[["subject_id", *TABLE.columns]], "two columns are called 'subject_id'"),
        (TABLE.drop(columns="seed"), "no column 'seed'"),
        (TABLE.iloc[:0], "no members"),
    ],
)
def test_bad_data_frames_of_members_are_named(table, message):
    with pytest.raises(InputError, match=f"^table of members: {message}"):
        read_members(table)


def test_data_frames_of_texts_are_read():
    assert_equal(read_members(TABLE.astype(str)), read_members(TABLE))


@given(damaged(f"{HEAD}\nmodel_0007,11,50,0.25,0.001,8,mlp\nmodel_0003,2,1,1.0,1e3,1,lenet\n".encode()))
def test_damaged_tables_of_members_are_read_or_refused(folder, content):
    path = folder / "members.csv"
    path.write_bytes(content)
    found = read_or_refused(read_members, path)
    if found is not None:
        header, *rows = parse_csv(content.decode())
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
        assert list(found.number) == [int(name[6:]) for name in columns["subject_id"]]
        assert list(found.network) == list(columns["network"])
        for name in ("seed", "subset_size", "width", "corruption_rate", "learning_rate"):
            np.testing.assert_array_equal(
                getattr(found, name), np.array(columns[name], float).astype(getattr(found, name).dtype)
            )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_models": 1}, "a crowd of 1"),
        ({"min_subset": 0}, "`min_subset`=0: expected 1 to"),
        ({"min_subset": 101}, "smallest subset 101, expected 1 to 100"),
        ({"max_corruption": 1.5}, "`max_corruption`=1.5: expected 0 to 1"),
        ({"min_width": 9}, "smallest width 9, expected 1 to 8"),
        ({"learning_rate_factor": 0.5}, "`learning_rate_factor`=0.5: expected 1 to 1000"),
    ],
)
def test_bad_crowds_are_named(change, message):
    with pytest.raises(InputError, match=message):
        sample(**change)


def test_the_usual_designs_fit_their_tasks():
    assert default_design(TASK) == CrowdDesign()

    def design(count, classes):
        return default_design(tasks.from_arrays(np.arange(float(count))[:, None], np.arange(count) % classes))

    assert design(40, 2) == CrowdDesign(min_subset=4, max_corruption=0.5)  # two of each class
    assert design(2000, 4) == CrowdDesign(min_subset=50, max_corruption=0.75)
    assert design(2000, 100) == CrowdDesign(min_subset=200, max_corruption=0.8)
    pictures = tasks.from_arrays(np.arange(1000 * 48).reshape(1000, 4, 4, 3) % 256, np.arange(1000) % 5)
    assert default_design(pictures) == CrowdDesign(
        min_subset=35, max_corruption=0.5
    )  # a twentieth of those in training


def test_examples_in_every_subset():
    members = members_of(subset_size=[1197, 700, 600])
    seen = in_subset(members, 1197)
    everyone = in_every_subset(members, 1197)
    assert 0 < everyone.sum() < 600
    np.testing.assert_array_equal(everyone, seen.all(axis=0))
