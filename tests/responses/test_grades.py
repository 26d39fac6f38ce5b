"""Grades as users have them: one reading of every kind of table, and one line for what is none."""

import re

import numpy as np
import pandas as pd
import pytest

from irtjax import InputError, ResponseMatrix
from irtjax.fits.reading import read

WIDE = pd.DataFrame([[1, 3.5, 0], [4, np.nan, 1], [2, 1, 1]], index=["ann", "bob", "eve"], columns=["i", "j", "k"])
LONG = WIDE.rename_axis("subject_id").reset_index().melt("subject_id", var_name="item_id", value_name="response")
LONG = LONG.dropna().assign(judge="x")
VALUES = [[0, 3, 0], [4, -1, 1], [1, 0, 1]]  # of 1, 2, 3.5, 4 and of 0, 1
VALUES[0][1], VALUES[1][0] = 2, 3


def tables(folder):
    """The same responses in every form."""
    wide, long, parquet, by_item = (folder / name for name in ("w.csv", "l.csv", "p.parquet", "i.parquet"))
    WIDE.to_csv(wide, index_label="subject_id")
    LONG.to_csv(long, index=False)
    WIDE.to_parquet(parquet)
    WIDE.T.rename_axis("item_id").reset_index().to_parquet(by_item)
    archive = folder / "a.npz"
    np.savez(archive, responses=WIDE.to_numpy(), subject_ids=WIDE.index.to_numpy(str), item_ids=["i", "j", "k"])
    return [WIDE, LONG, WIDE.astype(object), WIDE.astype("Float64"), wide, str(long), parquet, by_item, archive]


def test_every_kind_of_table_holds_the_same_grades(tmp_path):
    for data in tables(tmp_path):
        responses, model = read(data, "auto")
        assert model == "graded"
        np.testing.assert_array_equal(responses.values, VALUES)
        assert [list(ids) for ids in (responses.subject_ids, responses.item_ids)] == [
            ["ann", "bob", "eve"],
            list("ijk"),
        ]
        assert [scale.labels for scale in responses.scales] == [(1, 2, 3.5, 4)] * 2 + [(0, 1)]


@pytest.mark.parametrize("kind", [list, np.array, lambda rows: np.ma.array(rows, mask=[[0, 0], [0, 1]])])
def test_arrays_and_lists(kind):
    rows = [["low", "high"], ["mid", None]] if kind is not np.array else [["low", "high"], ["mid", ""]]
    responses, _ = read(kind(rows), "graded", grades=["low", "mid", "high"])
    np.testing.assert_array_equal(responses.values, [[0, 2], [1, -1]])
    whole, _ = read(np.array([[1, 2], [3, -1]]), "graded")
    np.testing.assert_array_equal(whole.values, [[0, 1], [2, -1]])


def test_columns_that_are_named_or_seen(tmp_path):
    path = tmp_path / "runs.csv"
    renamed = LONG.rename(columns={"subject_id": "who", "item_id": "what", "response": "stars"})
    for data, columns in (
        (renamed, {"subject": "who", "item": "what", "response": "stars"}),
        (renamed.drop(columns="judge"), None),
    ):
        data.to_csv(path, index=False)
        for source in (path, data):
            np.testing.assert_array_equal(read(source, "auto", columns=columns)[0].values, VALUES)


def test_all_grades_may_be_named():
    responses, _ = read(WIDE[["i"]], "graded", grades=range(1, 6))
    assert responses.scales[0].labels == (1, 2, 3, 4, 5)
    by_item, _ = read(WIDE[["i", "k"]], "graded", grades={"i": [1, 2, 4], "k": [0, 1, 2]})
    assert [scale.labels for scale in by_item.scales] == [(1, 2, 4), (0, 1, 2)]


def test_auto_leaves_right_and_wrong_to_the_2pl():
    responses, model = read([[1, 0], [0, 1]], "auto")
    assert isinstance(responses, ResponseMatrix)
    assert model == "2pl"


def test_letters_without_order_are_categories():
    responses, _ = read([["B", "A"], ["C", None]], "nominal")
    np.testing.assert_array_equal(responses.values, [[1, 0], [2, -1]])


def test_repeated_grades_become_the_nearest_to_their_mean():
    again = pd.concat([LONG, LONG.assign(response=lambda rows: rows.response.clip(upper=2))])
    responses, _ = read(again, "auto", repeats="mean")  # i: 1, (4 + 2) / 2, 2; j: 2.75 and 1
    np.testing.assert_array_equal(responses.values, [[0, 2, 0], [2, -1, 1], [1, 0, 1]])


def test_repeated_answers_are_counted_and_grades_averaged_unless_they_have_no_order():
    again = pd.concat([LONG, LONG])
    responses, models = read(again, "auto")
    assert models == ("graded", "graded", "binomial")
    np.testing.assert_array_equal(responses.values[:, :2], np.array(VALUES)[:, :2])
    assert (responses.values[:, 2].tolist(), responses.trials[:, 2].tolist()) == ([0, 2, 2], [2, 2, 2])
    assert responses.averaged == 2
    with pytest.raises(InputError, match="'ann' answers item 'i' 2 times, the first of 8 such, and categories without"):
        read(again, "nominal")


def test_counts_of_a_column_of_trials(tmp_path):
    """k of n by a column that is called trials, or named; of an array by n; the 2PL of them is the binomial model."""
    counts = pd.DataFrame(
        {"model": ["a", "a", "b", "b"], "task": ["s", "t"] * 2, "passes": [3, 0, 40, 1], "n": [5, 1, 40, 2]}
    )
    usual = counts.rename(columns={"model": "subject_id", "task": "item_id", "passes": "response", "n": "trials"})
    path = tmp_path / "counts.csv"
    usual.to_csv(path, index=False)
    counts.to_parquet(tmp_path / "counts.parquet")
    for data, options in (
        (usual, {}),
        (path, {}),
        (counts, {"trials": "n"}),
        (tmp_path / "counts.parquet", {"trials": "n"}),
        (counts.assign(more=1), {"columns": {"subject": "model", "item": "task", "response": "passes", "trials": "n"}}),
        ([[3, 0], [40, 1]], {"trials": [[5, 1], [40, 2]]}),
    ):
        for model in ("2pl", "auto"):
            responses, found = read(data, model, **options)
            assert found == "binomial"
            assert responses.values.tolist() == [[3, 0], [40, 1]]
            assert responses.trials.tolist() == [[5, 1], [40, 2]]
    trials_of_one, found = read(usual.assign(trials=1, response=[0, 1, 1, 0]), "auto")
    assert (found, trials_of_one.values.tolist()) == ("2pl", [[0, 1], [1, 0]])
    with pytest.raises(InputError, match=r"row 2: 1\.5 trials: expected an integer, 1 or more"):
        read(usual.assign(trials=[5, 1.5, 40, 2]), "auto")
    with pytest.raises(InputError, match="subject 'a', item 's': 7 successes of 5 trials"):
        read(usual.assign(response=7), "auto")
    with pytest.raises(InputError, match="there is no column 'tries' for the trials"):
        read(counts, "auto", trials="tries")
    counts.to_csv(path, index=False)  # four columns of other names are not guessed, but their meaning is asked for
    for data in (counts, path):
        with pytest.raises(InputError, match="'a' occurs more than once; a table with one row per response has the"):
            read(data, "auto")


def test_models_by_item():
    responses, models = read(WIDE, ["graded", "gpcm", "2pl"])
    assert models == ("graded", "gpcm", "graded")
    np.testing.assert_array_equal(responses.values, VALUES)


REFUSED = {
    "a grade outside": (WIDE, {"grades": [1, 2, 3.5]}, "subject 'bob', item 'i': 4 is none of the grades 1, 2, 3.5"),
    "texts without order": ([["low"], ["high"]], {}, "item 'item_1' has texts in no order, such as 'high', 'low'"),
    "numbers and texts": (
        [["3", "1"], ["good", "2"]],
        {},
        "item 'item_1' has numbers and texts, such as '3' and 'good'",
    ),
    "all missing": ([[None, None], [None, None]], {}, "all responses are missing"),
    "an item without any": (WIDE.assign(k=np.nan), {}, "item 'k' has no responses (1 of 1 such)"),
    "ids as an item": (
        WIDE.assign(age=[30.25, 41.5, 67]),
        {},
        "item 'age' has 3 different numbers, from 30.25 to 67: neither grades (up to 15 on a common grid) nor shares "
        "from 0 to 1: divide percentages by 100, leave it out",
    ),
    "shares": (np.linspace(0, 1, 40).reshape(20, 2) ** 2, {}, "item 'item_1' has shares from 0 to 1 and no grades"),
    "one grade of the scale": (WIDE, {"grades": [3]}, "`grades` [3]: expected two or more"),
    "a grade twice": (WIDE, {"grades": ["a", "a"]}, "`grades` a, a: one is there twice"),
    "grades that fall": (WIDE, {"grades": [3, 2, 1]}, "`grades` 3, 2, 1: expected the lowest first"),
    "grades of some items": (WIDE, {"grades": {"i": [1, 2, 4]}}, "`grades` has none of item 'j'"),
    "other ways with repeats": (WIDE, {"repeats": "first"}, "`repeats` 'first': expected 'mean'"),
    "below -1": (np.array([[-2, 1], [0, 1]]), {}, "where -1 is missing: use decimals"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_says_what_is_wrong(case):
    data, options, message = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read(data, "graded", **options)
    assert "\n" not in str(caught.value)


def test_the_usual_model_says_what_to_pass(tmp_path):
    path = tmp_path / "grades.csv"
    WIDE[["i", "j"]].to_csv(path, index_label="subject_id")
    expected = "item 'i' has 4 grades from 1 to 4, and the 2pl is of right and wrong answers: pass `model=graded`"
    for data in (path, WIDE[["i", "j"]]):
        with pytest.raises(InputError, match=expected):
            read(data, "2pl")
    with pytest.raises(InputError, match=r"'oops' is not a response.*`model=auto`"):
        read([["1", "oops"], ["0", "1"]], "2pl")
    with pytest.raises(InputError, match="`grades` is not for right and wrong answers"):
        read(WIDE, "2pl", grades=[1, 2])


def test_a_model_of_right_and_wrong_beside_grades():
    with pytest.raises(InputError, match="item 'j' is not right or wrong: the 2pl does not fit it"):
        read(WIDE, ["graded", "2pl", "2pl"])
    with pytest.raises(InputError, match="unknown model '3pl' beside other responses"):
        read(WIDE, ["graded", "graded", "3pl"])
