"""A curriculum in the hands of a loop that is not ours: against the library's, by hand, saved, and misused."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from irtjax import InputError
from irtjax.populations.normal import Population
from irtjax.selection import Curriculum, CurriculumOptions, Sampler, ability, select
from irtjax.selection.choices import FILTERS, STRATEGIES
from irtjax.selection.curriculum import RULES
from irtjax.selection.own_loop import scored

RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(size=64).astype(np.float32)
ANSWERS = (RNG.random((8, 64)) < expit(np.linspace(-3, 3, 8)[:, None] - DIFFICULTY)).astype(np.int8)
ANSWERS[0], ANSWERS[1], ANSWERS[-1] = 0, np.arange(64) == 3, 1


def likeliest(right, difficulty, prior=lambda theta: 0.0):
    return brentq(lambda theta: (right - expit(theta - difficulty)).sum() + prior(theta), -40, 40)


def test_ability_is_where_the_likelihood_or_the_posterior_is_highest():
    right, b = ANSWERS[4], DIFFICULTY.astype(float)
    found = ability(right, DIFFICULTY)
    theta = likeliest(right, b)
    p = expit(theta - b)
    np.testing.assert_allclose(found, [theta, (p * (1 - p)).sum() ** -0.5], rtol=1e-4)
    drawn = ability(right, DIFFICULTY, population=Population(2.0, 0.5)).ability
    np.testing.assert_allclose(drawn, likeliest(right, b, lambda theta: -(theta - 2) / 0.25), rtol=1e-4)
    asked = np.arange(64) % 3 > 0
    some = likeliest(right[asked], b[asked])
    for given in (np.where(asked, right, -1), np.where(asked, right, np.nan)):
        np.testing.assert_allclose(ability(given, jnp.asarray(DIFFICULTY)).ability, some, atol=1e-4)
    assert abs(some - theta) > 0.01
    assert [float(ability(np.full(64, x), DIFFICULTY).ability) for x in (1, 0)] == [np.inf, -np.inf]
    assert np.isnan(ability(np.full(64, -1), DIFFICULTY).ability)
    of_all = jax.jit(jax.vmap(lambda right: ability(right, DIFFICULTY).ability))(ANSWERS)
    np.testing.assert_allclose(of_all[4], theta, rtol=1e-4)


def test_classes_and_logits_are_scored_by_their_labels():
    labels, logits = np.array([0, 1, 2, 1]), np.eye(3)[[0, 2, 2, 1]]
    logits[3] = np.nan
    for of in (np.asarray, jnp.asarray):
        for answers in (logits, np.array([0, 2, 2, -1]), np.array([0, 2, 2, np.nan])):
            np.testing.assert_array_equal(scored(of(answers), of(labels)), [1, 0, 1, -1])
        np.testing.assert_array_equal(scored(of(np.array([True, False]))), [1, 0])
    np.testing.assert_array_equal(jax.jit(scored)(logits, labels), [1, 0, 1, -1])


def test_rules_select_by_their_definition():
    for theta in (-9.0, -0.3, float(DIFFICULTY[5]), 9.0, np.inf, -np.inf):
        np.testing.assert_array_equal(select(DIFFICULTY, theta), theta >= DIFFICULTY)
        np.testing.assert_array_equal(select(DIFFICULTY, theta, "DDaCLAE-hard"), theta <= DIFFICULTY)
    window = select(DIFFICULTY, 0.25, "window", options=CurriculumOptions(half_width=0.5))
    np.testing.assert_array_equal(window, np.abs(DIFFICULTY - np.float32(0.25)) <= 0.5)
    masks = jax.jit(jax.vmap(select, (None, 0)))(DIFFICULTY, jnp.array([-0.3, 0.4]))
    np.testing.assert_array_equal(masks[1], DIFFICULTY <= 0.4)


def run(curriculum, epochs):
    return [curriculum.indices(epoch, ANSWERS[epoch] if curriculum.needs_answers else None) for epoch in epochs]


def of_rule(rule, **options):
    if rule in FILTERS:
        options |= {"share": 0.4, "percent_correct": np.round(expit(-DIFFICULTY), 1)}
    return Curriculum(DIFFICULTY, rule, batch_size=8, options=CurriculumOptions(6, 0.2, 0.5), **options)


def test_a_rule_that_selects_too_few_has_a_minibatch_and_then_twice_as_many():
    curriculum, order = of_rule("DDaCLAE"), np.argsort(DIFFICULTY)
    for epoch, expected in enumerate((8, 16, 32, 64, 64)):
        np.testing.assert_array_equal(curriculum.indices(epoch, np.zeros(64, int)), order[:expected])
    hard = of_rule("DDaCLAE-hard")
    np.testing.assert_array_equal(hard.indices(0, np.ones(64, int)), order[-8:])
    enough, theta = hard.indices(1, ANSWERS[4]), likeliest(ANSWERS[4], DIFFICULTY)
    np.testing.assert_array_equal(np.sort(enough), np.flatnonzero(theta <= DIFFICULTY))
    assert hard.indices(2, np.ones(64, int)).size == 16  # the number waits while it is not used


def test_schedules_and_filters():
    order = np.argsort(DIFFICULTY)
    for rule, shares in (
        ("CB-linear", [0.2, 1 / 3, 7 / 15]),
        ("CB-root", np.sqrt([0.04, 0.2, 0.36])),
        ("baseline", 3 * [1]),
    ):
        for found, share in zip(run(of_rule(rule), range(3)), shares, strict=True):
            np.testing.assert_array_equal(found, order[: math.ceil(share * 64 - 1e-9)])
    for rule in FILTERS:
        first, second = run(of_rule(rule, seed=3), (0, 5))
        np.testing.assert_array_equal(first, second)
        assert len(set(first.tolist())) == 26
    np.testing.assert_array_equal(run(of_rule("UB"), [0])[0], order[:26])
    kept = run(of_rule("AVI"), [0])[0]
    distance = np.abs(DIFFICULTY - DIFFICULTY.mean())
    assert distance[kept].max() < np.delete(distance, kept).min()
    from_median = np.argsort(np.abs(DIFFICULTY - np.median(DIFFICULTY)), kind="stable")
    shares = np.sqrt([0.04, 0.2, 0.36])
    for found, share in zip(run(of_rule("CB-root-average", centre="median"), range(3)), shares, strict=True):
        np.testing.assert_array_equal(found, from_median[: math.ceil(share * 64 - 1e-9)])
    assert set(RULES) == set(STRATEGIES) - {"no-effect", "CB-linear-length", "CB-root-length"} | set(FILTERS)


@pytest.mark.parametrize("rule", ["DDaCLAE", "window", "CB-root", "PCUB"])
def test_resumed_is_uninterrupted(rule, tmp_path):
    whole, first = of_rule(rule, population=Population(0.5, 2.0)), of_rule(rule, population=Population(0.5, 2.0))
    expected = run(whole, range(8))
    run(first, range(3))
    first.save(tmp_path / "curriculum.json")
    json.loads((tmp_path / "curriculum.json").read_text(), parse_constant=pytest.fail)
    second = Curriculum.load(tmp_path / "curriculum.json", DIFFICULTY)
    np.testing.assert_array_equal(second.selected, expected[2])
    for found, wanted in zip(run(second, range(3, 8)), expected[3:], strict=True):
        np.testing.assert_array_equal(found, wanted)
    pd.testing.assert_frame_equal(second.table(), whole.table())
    assert list(Sampler(second, 1)) == list(Sampler(whole, 1))


def test_infinite_abilities_are_saved(tmp_path):
    curriculum = Curriculum(pd.Series(DIFFICULTY, [f"example {n}" for n in range(64)]), batch_size=8)
    run(curriculum, (0, 7))
    curriculum.save(tmp_path / "c.json")
    json.loads((tmp_path / "c.json").read_text(), parse_constant=pytest.fail)
    loaded = Curriculum.load(tmp_path / "c.json")
    assert loaded.table().ability.tolist() == [-np.inf, np.inf]
    assert loaded.item_ids[loaded.selected[0]] == f"example {DIFFICULTY.argmin()}"


def test_a_sampler_reads_whole_minibatches():
    curriculum = of_rule("DDaCLAE")
    sampler = Sampler(curriculum, seed=5)
    assert len(sampler) == 64
    with pytest.raises(InputError, match="call `indices` first"):
        list(sampler)
    selected = curriculum.indices(0, ANSWERS[4])
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == selected.size // 8 * 8
    assert set(drawn) <= set(selected.tolist())
    assert len(set(drawn)) == len(drawn)
    assert drawn == list(sampler) != list(Sampler(curriculum, seed=6))
    few = Curriculum(DIFFICULTY, "CB-linear", batch_size=8, options=CurriculumOptions(initial_share=0.05))
    easiest = few.indices(0)
    assert easiest.size == 4
    assert sorted(Sampler(few)) == sorted([*easiest.tolist()] * 2)


def broken(record, name, value):
    return {**record, name: value}


def test_bad_input_is_one_error(tmp_path):
    curriculum = of_rule("DDaCLAE")
    curriculum.indices(3, ANSWERS[4])
    path = tmp_path / "c.json"
    curriculum.save(path)
    record = json.loads(path.read_text())
    other = np.where(np.arange(64) == 9, 1.5, DIFFICULTY)
    cases = {
        "`epoch` 3 after epoch 3": lambda: curriculum.indices(3, ANSWERS[0]),
        "`epoch` 2 after epoch 3": lambda: curriculum.indices(2, ANSWERS[0]),
        "give `answers`": lambda: curriculum.indices(4),
        "63 answers and 64 difficulties": lambda: curriculum.indices(4, ANSWERS[0][1:]),
        "none of 64 examples was asked": lambda: curriculum.indices(4, np.full(64, -1)),
        "`answers`: example 0 has 2, expected 1 right": lambda: curriculum.indices(4, np.full(64, 2)),
        "or give `labels`": lambda: ability(np.zeros((64, 3)), DIFFICULTY),
        "`labels`: example 1 has 3, expected a class from 0 to 2": lambda: scored(np.zeros((2, 3)), np.array([0, 3])),
        "`labels`: example 0 has -1": lambda: scored(np.zeros(2, int), np.array([-1, 0])),
        r"`answers` of the shape \(3, 2\)": lambda: scored(np.zeros((3, 2)), np.zeros(2, int)),
        "`difficulty`: example 2 has nan": lambda: Curriculum(np.array([0.0, 1.0, np.nan])),
        "`difficulty` of the shape": lambda: Curriculum(np.zeros((2, 2))),
        "`difficulty` holds values that are not numbers": lambda: Curriculum(["a", "b"]),
        "`ability` is NaN": lambda: select(DIFFICULTY, np.nan),
        "goes by the epoch": lambda: select(DIFFICULTY, 0.0, "CB-root"),
        "unknown `rule` 'easy'": lambda: Curriculum(DIFFICULTY, "easy"),
        "give lengths as `difficulty`": lambda: Curriculum(DIFFICULTY, "CB-root-length"),
        "keeps a `share`": lambda: Curriculum(DIFFICULTY, "UB"),
        "has no `share`": lambda: Curriculum(DIFFICULTY, "window", share=0.5),
        "`share` 1.5": lambda: Curriculum(DIFFICULTY, "UB", share=1.5),
        "goes by `percent_correct`": lambda: Curriculum(DIFFICULTY, "PCUB", share=0.5),
        r"`percent_correct` \(2,\)": lambda: Curriculum(DIFFICULTY, "PCUB", share=0.5, percent_correct=[0, 1]),
        "saved with other difficulties: example 9": lambda: Curriculum.load(path, other),
        "of 64 examples, `difficulty` has 63": lambda: Curriculum.load(path, DIFFICULTY[1:]),
        "cannot be read": lambda: Curriculum.load(tmp_path / "absent.json"),
    }
    for message, call in cases.items():
        with pytest.raises(InputError, match=message):
            call()
    assert curriculum.epoch == 3
    row = record["epochs"][0]
    for wrong in (
        [],
        broken(record, "format", "2"),
        broken(record, "difficulty", ["a"] * 64),
        broken(record, "min_examples", 0),
        broken(record, "epochs", [row, row]),
        broken(record, "epochs", [{**row, "num_examples": 65}]),
        broken(record, "epochs", [{**row, "ability": None}]),
        broken(record, "options", {"width": 1}),
        {name: value for name, value in record.items() if name != "rule"},
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(InputError, match="not a curriculum"):
            Curriculum.load(path)
