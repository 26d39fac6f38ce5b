"""Grades from a table to a fit: the model that is taken, what the fit says of them, and files that restore it."""

import re

import numpy as np
import pandas as pd
import pytest
from conftest import matrix
from simulation import by_difficulty, draw

import irtjax
from irtjax import InputError

RNG = np.random.default_rng(5)
THETA = RNG.normal(size=200)
# three thresholds each; the last three items were answered right or wrong
STEPS = [draw(RNG, by_difficulty(THETA, 1.3, np.full(6, b) + np.linspace(-0.3, 0.3, 6))) for b in (-1.0, 0.2, 1.4)]
GRADES = pd.DataFrame(np.cumprod(STEPS, axis=0).sum(axis=0) + 1.0, columns=[f"q{i}" for i in range(1, 7)])
GRADES[["q4", "q5", "q6"]] = (GRADES[["q4", "q5", "q6"]] > 2).astype(float)
GRADES.loc[GRADES.q3 == 3, "q3"] = 2  # nobody was given a 3
GRADES.loc[0, "q1"] = np.nan


@pytest.fixture(scope="module")
def fit():
    return irtjax.fit(GRADES, model="auto")


def test_the_summary_says_what_was_read(fit):
    assert fit.model == "graded"
    assert (
        fit.summary()
        .splitlines()[0]
        .startswith("graded by mml of grades 1 to 4, right and wrong: 200 subjects × 6 items, converged")
    )
    assert fit.items().grades.tolist() == ["1|2|3|4", "1|2|3|4", "1|2|4", "0|1", "0|1", "0|1"]
    assert fit.items().num_responses.tolist() == [199, *[200] * 5]


def test_notes_name_grades_that_nobody_was_given(fit):
    (note,) = [note for note in fit.notes() if "nobody" in note]
    assert note == (
        "1 of 6 items has grades that nobody was given, such as 3 of 'q3': they are not among the categories of these "
        "items"
    )
    once = irtjax.fit(GRADES.replace({"q2": {4.0: 3.0}}).assign(q2=lambda t: t.q2.where(t.index != 7, 4)), model="auto")
    assert "1 of 6 items has grades that were given once, such as 4 of 'q2': little is known of them" in once.notes()


def test_files_restore_the_fit(fit, tmp_path):
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path).notes() == fit.notes()
    assert irtjax.load_fit(tmp_path) == fit  # to the last bit


def test_items_of_two_categories_are_the_2pl():
    """The same likelihood and slopes, whichever way they are asked for."""
    scored = matrix(STEPS[0])
    expected = irtjax.fit(scored, "2pl", priors=None)
    for data, model in ((scored, "graded"), (scored, ["graded"] * 5 + ["2pl"])):
        found = irtjax.fit(data, model, priors=None)
        assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-5)
        for name in ("discrimination", "difficulty", "difficulty_se"):
            np.testing.assert_allclose(found.item_columns[name], expected.item_columns[name], rtol=2e-3, atol=2e-3)


def test_grades_that_run_the_other_way_are_named():
    turned = irtjax.fit(GRADES.assign(q1=5 - GRADES.q1), model="auto")
    assert any(
        "'q1': their grades run against those of the other items; reverse them" in note for note in turned.notes()
    )
    assert not re.search("(easiest|hardest) items.*q1", turned.summary())


REFUSED = {
    "an item of one category": (
        GRADES.assign(q2=3.0),
        {"model": "graded"},
        "item 'q2' (1 of 1 such): every response is 3",
    ),
    "a subject without responses": (
        GRADES.reindex(range(201)),
        {"model": "graded"},
        "subject '200' has no responses",
    ),
    "several models by svi": (
        GRADES,
        {"model": ["graded"] * 5 + ["gpcm"], "estimator": "svi"},
        "estimator svi fits one model to all items",
    ),
    "a start that svi of grades does not have": (
        GRADES,
        {"model": "graded", "estimator": "svi", "start": "mml"},
        "unknown start 'mml' of the graded, expected proportions",
    ),
    "an option of others": (GRADES, {"model": "graded", "guessing": 0.2}, "has no option `guessing`"),
    "the usual model": (GRADES[["q1", "q2"]], {}, "item 'q1' has grades 1 to 4, and the 2pl is of right and wrong"),
    "too few models": (GRADES, {"model": ["graded"]}, "1 models for 6 items"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_says_what_cannot_be_fitted(case):
    data, options, message = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(message)):
        irtjax.fit(data, **options)


@pytest.mark.slow
def test_shares_at_one_end_are_told_as_such():
    rng = np.random.default_rng(0)
    shares = rng.beta(2, 2, (40, 5))
    shares[:, 2] = 1.0
    fit = irtjax.fit(shares, model="ordered_beta")
    assert any("1 of 5 items has the highest response only (1)" in note for note in fit.notes())
