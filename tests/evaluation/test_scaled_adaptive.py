"""Adaptive tests of graded items: the posterior against brute force, recovery and coverage, recorded grades."""

import json

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom, norm
from simulation import simulate_grades

import irtjax
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import REASONS, Stop
from irtjax.evaluation.dialogue import hold
from irtjax.evaluation.scaled_replay import as_written, recorded, replay_recorded, replay_scaled, simulate_scaled
from irtjax.evaluation.scaled_study import compare_scaled, scaled_form
from irtjax.populations.normal import STANDARD
from irtjax.responses.from_arrays import of_counts
from irtjax.scoring.family_items import matched

GRADES, _, ITEMS = simulate_grades(300, 40, seed=3)


@pytest.fixture(scope="module")
def graded():
    return adaptive_test(ITEMS, stop=Stop(max_items=10))


def p_of(theta, row):
    above = [expit(row.discrimination * (theta - row[f"threshold_{k}"])) for k in (1, 2, 3)]
    return -np.diff(np.array([np.ones_like(theta), *above, np.zeros_like(theta)]), axis=0)


def test_ability_and_score_are_those_of_the_posterior(graded):
    state, answers = graded.init(), (4, 1, 3)
    for answer in answers:
        state = graded.update(state, graded.next_item(state), answer)
    theta = np.linspace(-7, 7, 20001)
    density, rest, noise = norm.pdf(theta), np.zeros_like(theta), np.zeros_like(theta)
    for i, row in ITEMS.iterrows():
        p = p_of(theta, row)
        if i in state.items:
            density = density * p[answers[state.items.index(i)] - 1]
            continue
        mean = np.arange(1, 5) @ p
        rest, noise = rest + mean, noise + np.arange(1, 5) ** 2 @ p - mean**2
    density /= density.sum()
    ability = density @ theta
    assert state.ability == pytest.approx(ability, abs=1e-6)
    assert state.standard_error == pytest.approx(np.sqrt(density @ (theta - ability) ** 2), abs=1e-6)
    assert state.score == pytest.approx((sum(answers) + density @ rest) / 40, abs=1e-6)
    variance = density @ rest**2 - (density @ rest) ** 2 + density @ noise
    assert state.score_error == pytest.approx(np.sqrt(variance) / 40, abs=1e-6)


def test_the_next_item_has_the_most_information_of_those_left(graded):
    state = graded.init()
    h = 1e-5
    told = []
    for _, row in ITEMS.iterrows():
        low, middle, high = p_of(np.array([-h, 0.0, h]), row).T
        told.append((((high - low) / (2 * h)) ** 2 / middle).sum())
    order = np.argsort(told)[::-1]
    assert graded.next_item(state) == order[0]
    available = np.isin(np.arange(40), order[5:])
    assert graded.next_item(graded.init(available=available)) == order[5]
    assert graded.next_item(graded.init(available=np.zeros(40, bool))) == -1


@pytest.mark.slow
def test_recovery_and_coverage(graded):
    theta = np.random.default_rng(8).normal(size=300)
    last = simulate_scaled(graded, theta).groupby("subject_id", sort=False).last()
    assert (last.number == 10).all()
    error = last.ability.to_numpy() - theta
    assert np.sqrt((error**2).mean()) == pytest.approx(last.ability_se.mean(), rel=0.12)
    assert 0.92 < (np.abs(error) < 1.96 * last.ability_se).mean() < 0.98
    random = adaptive_test(ITEMS, rule="random", stop=Stop(max_items=10))
    others = simulate_scaled(random, theta).groupby("subject_id", sort=False).last()
    assert last.ability_se.mean() < 0.85 * others.ability_se.mean()


def test_recorded_grades_lead_to_their_mean(graded):
    found = replay_scaled(graded, GRADES.iloc[:80])
    last = found.groupby("subject_id", sort=False).last()
    error = last.score - GRADES.iloc[:80].mean(axis=1)
    assert 0.84 < (np.abs(error) < 1.645 * last.score_se).mean() < 0.95
    assert np.sqrt((error**2).mean()) == pytest.approx(last.score_se.mean(), rel=0.15)
    # what was asked is what irtjax.score says of these grades
    one = found[found.subject_id == "s0"].item_id
    scored = irtjax.score(ITEMS, GRADES.loc[["s0"], one], method="eap")
    assert last.ability["s0"] == pytest.approx(scored.ability.iloc[0], abs=1e-5)


def test_it_stops_and_refuses(graded):
    short = adaptive_test(ITEMS, stop=Stop(max_items=40, standard_error=0.35, min_items=3))
    found = replay_scaled(short, GRADES.iloc[:20]).groupby("subject_id").last()
    assert (found.ability_se <= 0.35).all()
    assert found.number.min() >= 3
    for arguments, message in (
        ({"rule": "kl"}, "unknown `rule` 'kl' of items with grades"),
        ({"ability": "ml"}, "`ability=ml`: tests of items with grades"),
        ({"start": [1]}, "`start`: tests of items with grades"),
    ):
        with pytest.raises(InputError, match=message):
            adaptive_test(ITEMS, stop=Stop(max_items=5), **arguments)
    with pytest.raises(InputError, match="item 'i0': 7, expected one of 1, 2, 3, 4"):
        graded.update(graded.init(), 0, 7)


def test_all_subjects_at_once_are_as_one_by_one(graded):
    grades = GRADES.iloc[:6, :20].astype(float).mask(np.random.default_rng(5).random((6, 20)) < 0.6)
    test = adaptive_test(ITEMS, stop=Stop(max_items=8, standard_error=0.45))
    known, _ = matched(grades, test.known)
    found = replay_recorded(test, recorded(test, known))
    for row, (_, answers) in enumerate(grades.iterrows()):
        state = test.init(available=np.isin(test.known.item_ids, answers.index[answers.notna()]))
        while not test.finished(state):
            item = test.next_item(state)
            state = test.update(state, item, int(answers[test.known.item_ids[item]]))
        number = len(state.items)
        assert found.number[row] == number
        assert found.items[row, :number].tolist() == list(state.items)
        assert found.reasons()[row] == REASONS[test.reason(state)]
        last = [leaf[row, number - 1] for leaf in found[2:6]]
        np.testing.assert_allclose(last, state.known, rtol=1e-10)
    assert {"standard_error", "no_items"} <= set(found.reasons())


def test_trials_of_each_response_count():
    items = ITEMS[["item_id", "discrimination"]].assign(model="binomial", difficulty=0.3).iloc[:4]
    test = adaptive_test(items, stop=Stop(max_items=4), trials=6)
    counts, n = np.array([[3, 1, 2, 2], [5, 4, 9, 0]]), np.array([[4, 2, 5, 2], [6, 4, 9, 8]])
    given = of_counts(counts, n, ["a", "b"], items.item_id.tolist())
    last = replay_scaled(test, given).groupby("subject_id").last()
    theta = np.linspace(-8, 8, 4001)
    p = expit(items.discrimination.to_numpy() * (theta[:, None] - 0.3))
    density = norm.pdf(theta)[:, None] * np.stack(
        [binom.pmf(*each, p).prod(axis=1) for each in zip(counts, n, strict=True)], axis=1
    )
    np.testing.assert_allclose(last.ability, theta @ density / density.sum(axis=0), atol=1e-6)
    np.testing.assert_allclose(last.score, (counts / n).mean(axis=1), atol=1e-12)


def test_a_fixed_form_and_random_items_are_scored_alike(graded):
    known, _ = matched(GRADES.iloc[:60], graded.known)
    study = compare_scaled(graded, known, STANDARD)
    at_end = study.errors[study.errors.num_items == 10].set_index("method")
    assert at_end.ability_mae["adaptive"] < at_end.ability_mae["random"]
    assert at_end.ability_se["adaptive"] < at_end.ability_se["random"]
    form = scaled_form(graded, 10)
    asked = np.isin(np.arange(40), form)
    by_form = irtjax.score(ITEMS, GRADES.iloc[:60].mask(np.tile(~asked, (60, 1))))
    everything = irtjax.score(ITEMS, GRADES.iloc[:60])
    expected = np.abs(by_form.ability - everything.ability).mean()
    assert at_end.ability_mae["form"] == pytest.approx(expected, abs=1e-5)


def test_a_dialogue_takes_grades(graded):
    asked, complaints = [], []
    lines = ["4", '{"answer": 9}', "skip", "best", '{"answer": 2}']
    found, end = hold(graded, graded.known.item_ids, 0, lines, asked.append, complaints.append)
    state = graded.init()
    for answer in (4, None, 2):
        state = graded.update(state, graded.next_item(state), answer)
    assert found.items[0, :3].tolist() == list(state.items)
    assert (end["finished"], end["number"]) == ("end_of_input", 3)
    assert end["ability"] == pytest.approx(state.ability, rel=1e-5)
    assert as_written(graded, found)[0, [0, 2]].tolist() == [4, 2]
    assert json.loads(asked[0])["ability"] == 0
    assert [json.loads(line)["error"] for line in complaints] == [
        f"line 2: item {str(ITEMS.item_id[state.items[1]])!r}: 9, expected one of 1, 2, 3, 4",
        'line 4: is no JSON, expected one of 1, 2, 3, 4, or null for no answer, alone or in {"answer": ...}',
    ]
