"""Counts and shares: what is taken, what is refused and how, and what fits make of items at the ends."""

import re

import numpy as np
import pytest

from irtjax import InputError
from irtjax.estimation.families import fit_families
from irtjax.estimation.specify_families import plan_families
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.joining import beside
from irtjax.responses.scaled import ScaledResponses

SUBJECTS, ITEMS = ["ann", "bob", "cem"], ["i", "j"]
COUNTS = np.array([[0, 3.0], [2, np.nan], [4, 1]])
SHARES = np.array([[0.2, 1.0], [0.5, np.nan], [0.9, 0.3]])


def changed(table, value):
    table = table.copy()
    table[1, 0] = value
    return table


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: of_counts(changed(COUNTS, 6), 4, SUBJECTS, ITEMS), "6 of 4, more successes than trials"),
        (lambda: of_counts(changed(COUNTS, -1), 4, SUBJECTS, ITEMS), "-1 of 4, expected a whole number of successes"),
        (lambda: of_counts(changed(COUNTS, 1.5), 4, SUBJECTS, ITEMS), "1.5 of 4, expected a whole number of successes"),
        (lambda: of_counts(COUNTS, [[4], [0], [4]], SUBJECTS, ITEMS), "2 of 0, expected a whole number of trials"),
        (lambda: of_counts(COUNTS, [[4], [np.nan], [4]], SUBJECTS, ITEMS), "2 of nan, expected a whole number of"),
        (lambda: of_shares(changed(SHARES, 1.2), SUBJECTS, ITEMS), "1.2, expected a share from 0 to 1"),
        (lambda: of_shares(changed(SHARES, -0.1), SUBJECTS, ITEMS), "-0.1, expected a share from 0 to 1"),
        (lambda: of_shares(changed(SHARES / 2, 0), SUBJECTS, ITEMS, ends=False), "0, expected a share between 0 and 1"),
        (
            lambda: fit_families(of_shares(changed(SHARES / 2, 0), SUBJECTS, ITEMS), "beta"),
            "exactly 0: take ordered_beta",
        ),
    ],
)
def test_what_is_refused_names_subject_and_item(call, message):
    with pytest.raises(InputError, match=re.escape("subject 'bob', item 'i': ") + ".*" + re.escape(message)):
        call()


def test_trials_have_the_shape_of_responses():
    of_cells = of_counts(COUNTS, [[4, 5], [4, np.nan], [4, 5]], SUBJECTS, ITEMS)  # none where no response is
    np.testing.assert_array_equal(of_cells.trials[of_cells.observed], [4, 5, 4, 4, 5])
    np.testing.assert_array_equal(of_counts(COUNTS, [4, 5], SUBJECTS, ITEMS).trials[0], [4, 5])
    np.testing.assert_allclose(of_cells.mean(axis=0), [0.5, 0.4])
    with pytest.raises(InputError, match=r"trials \(3,\) of responses \(3, 2\)"):
        of_counts(COUNTS, [1, 2, 3], SUBJECTS, ITEMS)


@pytest.mark.parametrize(
    ("responses", "model", "message"),
    [
        (of_counts(COUNTS, 4, SUBJECTS, ITEMS), "graded", "graded needs grades or categories"),
        (of_counts(COUNTS, 4, SUBJECTS, ITEMS), "beta", "beta needs shares from 0 to 1, and the responses are counts"),
        (of_shares(SHARES, SUBJECTS, ITEMS), "binomial", "binomial needs the number of trials"),
        (of_grades(COUNTS, SUBJECTS, ITEMS), "binomial", "binomial needs counts or shares, and the responses are cat"),
    ],
)
def test_models_of_other_responses_are_refused(responses, model, message):
    with pytest.raises(InputError, match=f"item 'i': the model {message}"):
        fit_families(responses, model)


def test_tests_side_by_side_have_the_same_subjects():
    both = beside(of_counts(COUNTS, 4, SUBJECTS, ITEMS), of_shares(SHARES, SUBJECTS, ["k", "l"]))
    np.testing.assert_array_equal(both.trials[:, 2:], 1)
    np.testing.assert_array_equal(both.item_ids, ["i", "j", "k", "l"])
    with pytest.raises(InputError, match="the same subjects"):
        beside(both, of_shares(SHARES[::-1], SUBJECTS[::-1], ["m", "n"]))


RNG = np.random.default_rng(1)
MANY = [f"s{j}" for j in range(60)], [f"i{i}" for i in range(6)]
THETA = RNG.normal(size=(60, 1))


@pytest.mark.slow
def test_items_at_the_ends():
    counts = RNG.binomial(5, 1 / (1 + np.exp(np.linspace(-1, 1, 6) - THETA)))
    counts[:, 0], counts[:, 1] = 0, 5
    responses = of_counts(counts, 5, *MANY)
    with pytest.raises(InputError, match=r"item 'i0' \(1 of 2 such\): all trials failed, or none did.*with priors"):
        fit_families(responses, "binomial", priors=None)
    fit = fit_families(responses, "binomial")
    difficulty = fit.item_columns["difficulty"]
    assert fit.converged
    assert np.isfinite(fit.item_columns["difficulty_se"]).all()
    assert difficulty[0] > difficulty[2:].max()
    assert difficulty[1] < difficulty[2:].min()

    shares = np.clip(1 / (1 + np.exp(RNG.normal(size=(60, 6)) - THETA)), 0.01, 0.99)
    shares[:, 0] = np.where(shares[:, 0] > 0.5, 1.0, 0.0)  # nothing between
    shares[:3, 1] = 0.0
    responses = of_shares(shares, *MANY)
    with pytest.raises(InputError, match=r"item 'i0' .* fewer than two different shares are between 0 and 1"):
        fit_families(responses, "ordered_beta", priors=None)
    fit = fit_families(responses, "ordered_beta")
    assert fit.converged
    assert all(np.isfinite(fit.item_columns[name]).all() for name in ("precision", "precision_se", "cut_0", "cut_1"))


def test_priors_where_responses_do_not_determine_thresholds():
    rate = 1 / (1 + np.exp(np.linspace(-2, 2, 6) - THETA))
    few, many = (
        of_counts(RNG.binomial(n, rate[:number]), n, MANY[0][:number], MANY[1]) for n, number in ((1, 8), (40, 60))
    )
    assert plan_families(few, ["binomial"] * 6, 1, "auto").specification.estimated == ((0,), (1,))
    assert plan_families(many, ["binomial"] * 6, 1, "auto").specification.estimated == ((0,),)


@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("binomial", lambda rate: of_counts(np.round(4 * rate), 4, MANY[0], np.arange(rate.shape[1]).astype(str))),
        ("ordered_beta", lambda rate: of_shares(rate, MANY[0], np.arange(rate.shape[1]).astype(str))),
        ("graded", lambda rate: of_grades(np.round(4 * rate), MANY[0], np.arange(rate.shape[1]).astype(str))),
    ],
)
def test_the_whole_matrix_is_not_read_for_each_item(monkeypatch, model, given):
    reads = []
    found = ScaledResponses.observed.fget
    monkeypatch.setattr(ScaledResponses, "observed", property(lambda self: reads.append(0) or found(self)))
    numbers = []
    for num_items in (5, 50):
        responses = given(1 / (1 + np.exp(RNG.normal(size=num_items) - THETA)))
        reads.clear()
        plan_families(responses, [model] * num_items, 1, "auto")
        responses.worths()
        numbers.append(len(reads))
    assert numbers[0] == numbers[1]
