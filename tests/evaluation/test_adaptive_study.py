"""An adaptive test beside others: forms, courses and errors, against loops and by what must come out."""

import jax
import numpy as np
import pytest
from adaptive_reference import bank_of, mixed_bank
from simulation import draw, probability

from irtjax import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.adaptive_study import compare_tests, course, fixed_form, until
from irtjax.evaluation.replay import replay
from irtjax.evaluation.replay_tables import answers_table, exposure_table, subjects_table
from irtjax.populations.normal import Population

KEY = jax.random.key(0)
BANK = mixed_bank()
RNG = np.random.default_rng(0)
THETA = RNG.normal(size=7)
VALUES = draw(RNG, probability(BANK, THETA))
VALUES[2, 5:] = -1
VALUES[6] = -1


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def test_form_has_the_most_expected_information():
    theta = np.linspace(-8, 8, 4001)
    p = probability(BANK, 0.5 + 1.3 * theta)
    slope = np.gradient(p, 1.3 * theta, axis=0)
    weights = np.exp(-0.5 * theta**2) / np.exp(-0.5 * theta**2).sum()
    expected = weights @ (slope**2 / (p * (1 - p)))
    best = np.argsort(-expected)
    assert fixed_form(BANK, 9, Population(0.5, 1.3)).tolist() == best[:9].tolist()
    groups = np.where(np.arange(30) < 10, "few", "many")
    form = fixed_form(BANK, 9, Population(0.5, 1.3), groups, {"few": 2 / 3, "many": 1 / 3})
    for name, number in (("few", 6), ("many", 3)):
        inside = [item for item in best if groups[item] == name]
        assert [item for item in form if groups[item] == name] == inside[:number]


@pytest.mark.slow
def test_course_of_tests_that_end_early_and_of_batches():
    test = adaptive_test(BANK, rule="variance", stop=Stop(10))
    one, three = (replay(test, VALUES, KEY, at_a_time=number) for number in (1, 3))
    known = course(test, one)
    assert known["ability"].shape == (7, 11)
    np.testing.assert_array_equal(known["ability"][:, 0], 0)
    np.testing.assert_allclose(known["ability_se"][:, 0], 1, atol=1e-6)
    np.testing.assert_array_equal(known["score"][0, 1:], one.score[0])
    np.testing.assert_array_equal(known["score"][2, 5:], np.full(6, one.score[2, 4]))  # five recorded answers
    np.testing.assert_array_equal(known["ability"][6], 0)  # none
    batches = course(test, three, at_a_time=3)["ability"]
    for number, after in ((1, 0), (2, 0), (3, 3), (5, 3), (9, 9), (10, 10)):
        np.testing.assert_array_equal(batches[0, number], three.ability[0, after - 1] if after else 0)
    assert batches[2, 4] == three.ability[2, 2]
    assert batches[2, 5] == three.ability[2, 4]  # the last, incomplete batch
    assert until(np.array([[1.0, 0.3, 0.2, 0.4], [1.0, 0.9, 0.8, 0.7]]), 0.3).tolist() == [1, np.inf]


@pytest.mark.slow
def test_comparison_is_what_loops_find_and_the_adaptive_test_wins():
    rng = np.random.default_rng(1)
    bank = bank_of(rng.lognormal(0.3, 0.3, 150), rng.normal(0, 1.5, 150))
    theta = rng.normal(size=200)
    values = draw(rng, probability(bank, theta))
    said = []
    study = compare_tests(bank, values, KEY, max_items=20, on_method=said.append)
    assert said == ["adaptive", "random", "form"]
    grid = np.linspace(-6, 6, 1201)
    p = probability(bank, grid)
    likelihood = values @ np.log(p).T + (1 - values) @ np.log1p(-p).T - 0.5 * grid**2
    weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    eap = weights @ grid / weights.sum(axis=1)
    tests = replay(adaptive_test(bank, rule="variance", stop=Stop(20)), values, KEY)
    rows = study.errors.set_index(["method", "num_items"])
    for number in (1, 7, 20):
        row = rows.loc[("adaptive", number)]
        np.testing.assert_allclose(row.ability_mae, np.abs(tests.ability[:, number - 1] - eap).mean(), atol=1e-5)
        share = values.mean(axis=1)
        np.testing.assert_allclose(row.score_mae, np.abs(tests.score[:, number - 1] - share).mean(), atol=1e-9)
        np.testing.assert_allclose(row.ability_se, tests.standard_error[:, number - 1].mean(), atol=1e-9)
    form = fixed_form(bank, 20)
    p, answers = p[:, form[:7]], values[:, form[:7]]
    weights = np.exp(answers @ np.log(p).T + (1 - answers) @ np.log1p(-p).T - 0.5 * grid**2)
    of_form = weights @ grid / weights.sum(axis=1)
    np.testing.assert_allclose(rows.ability_mae[("form", 7)], np.abs(of_form - eap).mean(), atol=1e-5)
    last = rows.xs(20, level="num_items").ability_mae
    assert last["adaptive"] < last["form"] < last["random"]
    needed = study.needed.set_index(["method", "target"])
    first = [next((k + 1 for k, se in enumerate(row) if se <= 0.3), np.inf) for row in tests.standard_error]
    assert needed["median"][("adaptive", 0.3)] == np.median(first)
    assert needed.reached[("adaptive", 0.3)] == np.isfinite(first).mean()
    assert needed.reached[("adaptive", 0.1)] == 0
    assert needed["median"][("adaptive", 0.1)] == np.inf
    with pytest.raises(InputError, match="`values` has no recorded answer"):
        compare_tests(bank, np.full((2, 150), -1), KEY, max_items=20)


def test_tables():
    test = adaptive_test(BANK, stop=Stop(10, standard_error=0.7))
    tests = replay(test, VALUES, KEY)
    ids = np.array([f"i{i}" for i in range(30)])
    names = np.array([f"s{j}" for j in range(7)])
    subjects = subjects_table(test, tests, names).set_index("subject_id")
    assert subjects.loc["s6"].tolist()[-2:] == [0, "no_items"]
    assert subjects.ability_se["s6"] == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(subjects.ability[:6], tests.last()[0][:6])
    answers = answers_table(tests, names, ids)
    assert len(answers) == subjects.num_items.sum()
    for row in answers.itertuples():
        j, i = int(row.subject_id[1:]), int(row.item_id[1:])
        assert row.answer == VALUES[j, i]
        assert row.ability == tests.ability[j, row.step - 1]
    exposure = exposure_table(tests, ids)
    assert exposure.times_asked.tolist() == answers.item_id.value_counts().reindex(ids, fill_value=0).tolist()
    np.testing.assert_allclose(exposure.share, exposure.times_asked / 7)
