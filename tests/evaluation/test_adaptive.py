"""The state machine: abilities against the kernels', designs, stops, and errors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from adaptive_reference import GRID, bank_of, mixed_bank, posterior
from simulation import probability

import irtjax
from irtjax import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import REASONS, Band, Progressive, Randomesque, Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.scoring import abilities as scoring

next_item, update, gain = (jax.jit(f) for f in (AdaptiveTest.next_item, AdaptiveTest.update, AdaptiveTest.gain))
next_items = jax.jit(AdaptiveTest.next_items, static_argnums=2)
init = jax.jit(AdaptiveTest.init)

BANK = mixed_bank()
POPULATION = Population(-0.2, 1.3)
ANSWERS = np.array([1, 1, 1, 0, 1, 0, 0, 1, 1, 0])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def walk(test, answers=ANSWERS, key=0):
    """Items, and the states after each answer."""
    state, items, states = init(test, jax.random.key(key)), [], []
    for answer in answers:
        items.append(int(next_item(test, state)))
        state = update(test, state, items[-1], answer)
        states.append(state)
    return items, states


def row_of(items, answers, num_items=30):
    row = np.full((1, num_items), -1, np.int8)
    row[0, items] = answers
    return row


@pytest.mark.parametrize("method", ["eap", pytest.param("map", marks=pytest.mark.slow), "ml"])
def test_abilities_are_those_of_the_kernels(method):
    test = adaptive_test(BANK, ability=method, population=POPULATION, stop=Stop(10))
    items, states = walk(test)
    for number, state in enumerate(states, 1):
        row = row_of(items[:number], ANSWERS[:number])
        expected = scoring.abilities(row, BANK, method, POPULATION)
        if method == "ml" and not abs(expected.ability[0] - POPULATION.mean) < 6 * POPULATION.sd:
            assert number < 9  # no finite maximum: the posterior mean stands in
            expected = scoring.abilities(row, BANK, "eap", POPULATION)
        np.testing.assert_allclose(state.ability, expected.ability[0], atol=1e-6)
        np.testing.assert_allclose(state.standard_error, expected.standard_error[0], rtol=2e-5)
        assert state.number == number
    assert state.items.tolist() == items
    assert state.answers.tolist() == ANSWERS.tolist()


def test_scores_count_the_answers_and_expect_the_others():
    """Moments of the share right over the bank, by brute force; a skipped item is one of the others."""
    test = adaptive_test(BANK, population=POPULATION, stop=Stop(30))
    given = np.where(np.arange(30) == 2, -1, np.resize(ANSWERS, 30))
    items, states = walk(test, given)
    theta = POPULATION.mean + POPULATION.sd * GRID
    p = probability(BANK, theta)
    for number in (1, 3, 10, 30):
        answered = np.array(items[:number])[given[:number] >= 0]
        y = given[:number][given[:number] >= 0]
        weights = posterior(BANK, answered, y, POPULATION.mean, POPULATION.sd)
        others = np.delete(p, answered, axis=1)
        total = others.sum(axis=1)
        variance = weights @ (total - weights @ total) ** 2 + weights @ (others * (1 - others)).sum(axis=1)
        state = states[number - 1]
        np.testing.assert_allclose(state.score, (y.sum() + weights @ total) / 30, atol=1e-8)
        np.testing.assert_allclose(state.score_error, np.sqrt(variance) / 30, atol=1e-8)


@pytest.mark.parametrize("method", ["eap", *(pytest.param(method, marks=pytest.mark.slow) for method in ("map", "ml"))])
def test_abilities_by_steep_items(method):
    """Against a fine grid, on which the highest of several maxima is not missed."""
    bank = mixed_bank(steepness=15.0)
    test = adaptive_test(bank, ability=method, population=POPULATION, stop=Stop(10))
    items, states = walk(test)
    theta = POPULATION.mean + POPULATION.sd * np.linspace(-6, 6, 120_001)
    p, y = probability(bank.take(np.array(items)), theta), ANSWERS == 1
    with np.errstate(divide="ignore"):
        each = np.log(np.where(y, p, 1 - p))
    for number, state in enumerate(states, 1):
        log_likelihood = each[:, :number].sum(axis=1)
        log_posterior = log_likelihood - 0.5 * ((theta - POPULATION.mean) / POPULATION.sd) ** 2
        weights = np.exp(log_posterior - log_posterior.max())
        mean = weights @ theta / weights.sum()
        if method == "map":
            expected = theta[log_posterior.argmax()]
        elif method == "ml" and log_likelihood.max() > max(log_likelihood[0], log_likelihood[-1]) + 1e-3:
            expected = theta[log_likelihood.argmax()]
        else:
            expected = mean
        np.testing.assert_allclose(state.ability, expected, atol=1.3e-4 if method != "eap" else 1e-6)  # its spacing
    expected = scoring.abilities(row_of(items, ANSWERS), bank, "eap", POPULATION)
    if method == "eap":
        np.testing.assert_allclose(state.ability, expected.ability[0], atol=1e-5)
        np.testing.assert_allclose(state.standard_error, expected.standard_error[0], rtol=1e-4)


@pytest.mark.parametrize("answer", [0, 1])
def test_maximum_likelihood_while_all_answers_are_alike(answer):
    bank = BANK._replace(slope=np.abs(BANK.slope))
    likely, expected = (
        walk(adaptive_test(bank, ability=method, stop=Stop(10)), [answer] * 4) for method in ("ml", "eap")
    )
    assert likely[0] == expected[0]
    for one, other in zip(likely[1], expected[1], strict=True):
        assert one.ability == other.ability
        assert one.standard_error == other.standard_error


@pytest.mark.parametrize("method", ["map", *(pytest.param(method, marks=pytest.mark.slow) for method in ("eap", "ml"))])
def test_abilities_in_two_dimensions(method):
    rng = np.random.default_rng(1)
    bank = ItemParameters(
        rng.lognormal(0, 0.5, (30, 2)), rng.normal(size=30), np.full(30, -np.inf), np.full(30, np.inf)
    )
    test = adaptive_test(bank, rule="determinant", ability=method, population=POPULATION, stop=Stop(10))
    items, states = walk(test)
    for number in (1, 10):
        row = row_of(items[:number], ANSWERS[:number])
        expected = scoring.abilities(row, bank, method, POPULATION)
        if not np.isfinite(expected.ability).all():
            expected = scoring.abilities(row, bank, "map", POPULATION)
        np.testing.assert_allclose(states[number - 1].ability, expected.ability[0], atol=1e-6)
        np.testing.assert_allclose(states[number - 1].standard_error, expected.standard_error[0], rtol=1e-5)
    assert len(set(items)) == 10
    assert np.isnan(states[-1].score)


@pytest.mark.parametrize(
    "rule",
    ["information", "variance", *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("kl", "kl_posterior"))],
)
def test_masked_is_dropped_and_the_order_of_items_is_only_names(rule):
    kept = np.sort(np.random.default_rng(0).permutation(30)[:20])
    order = np.random.default_rng(1).permutation(30)
    whole, part, mixed = (
        adaptive_test(bank, rule=rule, stop=Stop(10), num_nodes=121)
        for bank in (BANK, BANK.take(kept), BANK.take(order))
    )
    available = np.isin(np.arange(30), kept)
    states = [
        init(whole, jax.random.key(0), jnp.asarray(available)),
        init(part, jax.random.key(0)),
        init(whole, jax.random.key(0)),
        init(mixed, jax.random.key(0)),
    ]
    names = [np.arange(30), kept, np.arange(30), order]
    for answer in ANSWERS:
        asked = []
        for k, test in enumerate((whole, part, whole, mixed)):
            item = next_item(test, states[k])
            asked.append(names[k][item])
            states[k] = update(test, states[k], item, answer)
        assert asked[0] == asked[1]
        assert asked[2] == asked[3]
    assert np.isclose(states[0].ability, states[1].ability, atol=1e-12)


def test_quotas_are_held_after_every_item():
    rng = np.random.default_rng(0)
    groups = rng.choice(["logic", "law", "art", "none"], 30)
    quotas = {"logic": 0.5, "law": 0.3, "art": 0.2}
    test = adaptive_test(BANK, stop=Stop(10), groups=groups, quotas=quotas)
    items, states = walk(test)
    batch = next_items(test, init(test, jax.random.key(0)), 10)
    for asked in (np.array(items), np.asarray(batch)):
        counts = {name: (groups[asked] == name).cumsum() for name in np.unique(groups)}
        assert (counts["none"] == 0).all()
        for name, share in quotas.items():
            assert (np.abs(counts[name] - share * np.arange(1, 11)) < 1).all()
    each = np.asarray(gain(test, states[-2]))
    possible = (groups == groups[items[-1]]) & ~np.isin(np.arange(30), items[:-1])
    assert items[-1] == np.flatnonzero(possible)[each[possible].argmax()]


def test_a_group_that_has_no_item_left_gives_way():
    groups = np.where(np.arange(30) < 2, "few", "many")
    test = adaptive_test(BANK, stop=Stop(10), groups=groups, quotas={"few": 0.5, "many": 0.5})
    items, _ = walk(test)
    assert len(set(items)) == 10
    assert (groups[items] == "few").sum() == 2
    by_share = adaptive_test(BANK, stop=Stop(10), groups=groups)
    np.testing.assert_allclose(by_share.design.quotas, [2 / 30, 28 / 30])


def first_of_many(test, state, number=3000):
    draw = jax.jit(jax.vmap(lambda test, key: test.next_item(state._replace(key=key)), (None, 0)))
    return np.bincount(draw(test, jax.random.split(jax.random.key(5), number)), minlength=30)


def test_randomesque_draws_from_the_best():
    test = adaptive_test(BANK, stop=Stop(10), exposure=Randomesque(4))
    state = init(test, jax.random.key(0))
    best = np.argsort(-np.asarray(gain(test, state)))[:4]
    counts = first_of_many(test, state)
    assert counts[best].sum() == 3000
    assert ((counts[best] - 750) ** 2 / 750).sum() < 22  # chi-square, 3 degrees of freedom: p = 7e-5
    few = state._replace(remaining=state.remaining._replace(open=jnp.zeros(30, bool).at[best[2]].set(True)))
    assert set(np.flatnonzero(first_of_many(test, few))) == {best[2]}


def test_progressive_begins_at_random_and_ends_at_the_best():
    test = adaptive_test(BANK, stop=Stop(10), exposure=Progressive())
    state = init(test, jax.random.key(0))
    counts = first_of_many(test, state)
    assert ((counts - 100) ** 2 / 100).sum() < 70  # chi-square, 29 degrees of freedom: p = 3e-5
    # at the share s item i wins where s gain_i + (1 - s) max U_i is largest
    each = np.asarray(gain(test, state))
    for number, share in ((5, 0.5), (9, 0.9)):
        later = state._replace(remaining=state.remaining._replace(number=jnp.asarray(number, jnp.int32)))
        noise = np.random.default_rng(0).random((20_000, 30)) * each.max()
        expected = np.bincount((share * each + (1 - share) * noise).argmax(axis=1), minlength=30) / 20_000
        found = first_of_many(test, later) / 3000
        np.testing.assert_allclose(found, expected, atol=0.04)
    assert found.max() > 0.9


def test_starts():
    given = adaptive_test(BANK, stop=Stop(10), start=[4, 9])
    items, _ = walk(given)
    assert items[:2] == [4, 9]
    assert next_items(given, init(given, jax.random.key(0)), 10)[:2].tolist() == [4, 9]
    without = np.arange(30) != 4
    state = init(given, jax.random.key(0), jnp.asarray(without))
    assert next_item(given, state) != 4
    band = adaptive_test(BANK, stop=Stop(10), start=Band(-0.8, 0.9))
    counts = first_of_many(band, init(band, jax.random.key(0)))
    difficulty = -BANK.intercept / BANK.slope[:, 0]
    within = (difficulty > -0.8) & (difficulty < 0.9)
    assert set(np.flatnonzero(counts)) == set(np.flatnonzero(within))
    items, states = walk(band)
    plain = adaptive_test(BANK, stop=Stop(10))
    assert items[1] == next_item(plain, states[0]._replace(remaining=states[0].remaining))


def test_first_item_is_the_best_at_the_mean_of_the_population():
    test = adaptive_test(BANK, population=POPULATION, stop=Stop(10))
    p = probability(BANK, POPULATION.mean + np.array([-1e-4, 0, 1e-4]))
    expected = ((p[2] - p[0]) / 2e-4) ** 2 / (p[1] * (1 - p[1]))
    assert next_item(test, init(test, jax.random.key(0))) == expected.argmax()


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop(10), "max_items"),
        (Stop(10, standard_error=0.55), "standard_error"),
        (Stop(10, score_error=0.09), "score_error"),
        (Stop(10, change=0.2), "change"),
        (Stop(10, standard_error=0.6, min_items=8), "standard_error"),
    ],
)
def test_stops(stop, reason):
    free = adaptive_test(BANK, stop=Stop(10))
    test = dataclasses.replace(free, stop=stop)
    _, states = walk(free)
    before, over = 0.0, 10
    for number, state in enumerate(states, 1):
        met = {
            "max_items": number == 10,
            "standard_error": stop.standard_error is not None and state.standard_error <= stop.standard_error,
            "score_error": stop.score_error is not None and state.score_error <= stop.score_error,
            "change": stop.change is not None and abs(state.ability - before) <= stop.change,
        }
        before, ended = state.ability, any(met.values()) and number >= stop.min_items
        assert bool(test.finished(state)) == ended
        assert not ended or met[REASONS[int(test.reason(state))]]
        if ended:
            over = number
            break
    assert REASONS[int(test.reason(state))] == reason
    assert over == 10 if reason == "max_items" else stop.min_items <= over < 10


def test_no_items_are_left():
    test = adaptive_test(BANK, stop=Stop(10))
    state = init(test, jax.random.key(0), jnp.arange(30) < 3)
    for _ in range(3):
        assert not test.finished(state)
        state = update(test, state, next_item(test, state), 1)
    assert REASONS[int(test.reason(state))] == "no_items"
    assert next_item(test, state) == -1
    same = update(test, state, -1, 1)
    for one, other in zip(jax.tree.leaves(state)[1:], jax.tree.leaves(same)[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_batches_of_items():
    test = adaptive_test(BANK, rule="variance", stop=Stop(10))
    state = init(test, jax.random.key(0))
    each = np.asarray(gain(test, state))
    items = next_items(test, state, 4)
    assert items.tolist() == np.argsort(-each)[:4].tolist()
    together = update(test, state, items, jnp.array([1, 0, -1, 1]))  # no answer to the third
    for item, answer in zip(items, (1, 0, -1, 1), strict=True):
        state = update(test, state, item, answer)
    np.testing.assert_allclose(together.log_posterior, state.log_posterior, atol=1e-10)
    assert together.items.tolist() == state.items.tolist()
    weights = posterior(BANK, np.asarray(items)[[0, 1, 3]], [1, 0, 1])
    np.testing.assert_allclose(together.ability, weights @ GRID, atol=1e-7)
    rest = next_items(test, update(test, together, next_items(test, together, 4), jnp.ones(4, int)), 4)
    assert (rest >= 0).tolist() == [True, True, False, False]  # to the tenth item


def test_bad_input():
    stop = Stop(10)
    cases = (
        ({"bank": BANK.take(slice(0))}, "`bank` is empty"),
        ({"bank": BANK._replace(slope=np.where(np.arange(30)[:, None] == 4, np.nan, BANK.slope))}, "item 4 of the"),
        ({"bank": BANK._replace(lower=BANK.upper)}, "asymptotes that cross"),
        ({"rule": "best"}, "unknown `rule` 'best', expected one of information, variance"),
        ({"ability": "mean"}, "unknown `ability` 'mean', expected one of eap, map, ml"),
        ({"bank": BANK._replace(slope=np.ones((30, 2)))}, "`rule` 'information' is for one dimension, the bank has 2"),
        ({"population": Population(0.0, 0.0)}, "`population` of mean 0.0 and sd 0.0"),
        ({"stop": Stop(31)}, "`max_items` 31, but the bank has 30"),
        ({"stop": Stop(0)}, "`max_items` 0, expected a whole number"),
        ({"stop": Stop(5, min_items=6)}, "`min_items` 6, expected a whole number, 0 to 5"),
        ({"stop": Stop(5, standard_error=-1.0)}, "`standard_error` -1.0, expected"),
        ({"num_nodes": 1}, "`num_nodes` 1, expected a whole number, at least 5"),
        ({"exposure": Randomesque(0)}, "`randomesque` 0, expected"),
        ({"quotas": {"a": 1.0}}, "`quotas` without `groups`"),
        ({"groups": ["a"]}, "`groups` of 1 items, expected one for each of the 30"),
        ({"groups": ["a"] * 30, "quotas": {"b": 1.0}}, "group 'b' has no item"),
        ({"groups": np.array(["a"] * 30), "quotas": {np.str_("a"): -1.0}}, r"`quotas\['a'\]` -1.0, expected"),
        ({"groups": ["a"] * 29 + ["b"], "quotas": {"a": 0.5, "b": 0.4}}, "`quotas` sum to 0.9, expected 1"),
        ({"groups": ["a"] * 25 + ["b"] * 5, "quotas": {"b": 1.0}}, "groups with quotas have 5 items"),
        ({"start": [30]}, "`start` 30, expected a whole number, 0 to 29"),
        ({"start": [3, 3]}, "`start` has an item twice"),
        ({"start": list(range(11))}, "`start` has 11 items, more than `max_items` 10"),
        ({"start": Band(20.0, 30.0)}, "no item has a difficulty from 20.0 to 30.0"),
        ({"start": Band(1.0, -1.0)}, "`start` by a band from 1.0 to -1.0: expected `low` at most `high`"),
        ({"start": Band(float("nan"), 1.0)}, "`start` by a band from nan to 1.0: expected"),
    )
    for options, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            adaptive_test(**{"bank": BANK, "stop": stop, **options})
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="`score_error` is for one dimension"):
        adaptive_test(BANK._replace(slope=np.ones((30, 2))), rule="random", stop=Stop(5, score_error=0.1))


def test_in_float32_and_vmapped():
    bank = bank_of(np.full(30, 1.5), np.linspace(-2, 2.3, 30))
    exact = walk(adaptive_test(bank, rule="variance", stop=Stop(10)))
    with jax.enable_x64(False):
        test = adaptive_test(bank, rule="variance", stop=Stop(10))
        states = jax.vmap(test.init)(jax.random.split(jax.random.key(0), 3))
        step = jax.jit(jax.vmap(lambda test, state, y: test.update(state, test.next_item(state), y), (None, 0, None)))
        for answer in ANSWERS:
            states = step(test, states, answer)
        assert states.ability.dtype == jnp.float32
        assert states.items[2].tolist() == exact[0]
        np.testing.assert_allclose(states.ability, np.full(3, float(exact[1][-1].ability)), atol=1e-5)


def test_items_are_what_score_takes(tmp_path):
    """A table, its path, a fit and its folder; the population of the fit, unless another is given."""
    rng = np.random.default_rng(0)
    values = (rng.random((200, 8)) < 1 / (1 + np.exp(-rng.normal(size=(200, 1)) + np.linspace(-1, 1, 8)))).astype(int)
    fit = irtjax.fit(values, "rasch")
    fit.save(tmp_path)
    sd = float(np.squeeze(fit.population.sd))
    assert abs(sd - 1) > 0.01
    stop, path = Stop(8), tmp_path / "items.csv"
    of_fit = adaptive_test(fit.parameters, population=Population(0.0, sd), stop=stop)
    of_table = adaptive_test(fit.parameters, stop=stop)
    sources = {fit: of_fit, tmp_path: of_fit, str(tmp_path): of_fit, path: of_table}
    for source, expected in [*sources.items(), (irtjax.read_items(path), of_table), (fit.items(), of_table)]:
        test = adaptive_test(source, stop=stop)
        for one, other in zip(jax.tree.leaves(test), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)  # files have six digits
    wide = adaptive_test(fit, population=Population(0.0, 2.0), stop=stop)
    assert wide.population.sd == 2
    scaled = fit.items().assign(discrimination=fit.items().discrimination / 1.7, D=1.7)
    np.testing.assert_allclose(adaptive_test(scaled, stop=stop).tables.items.slope, of_table.tables.items.slope)
    row = pd.DataFrame(values[:5], columns=fit.responses.item_ids)
    pd.testing.assert_frame_equal(irtjax.score(scaled, row), irtjax.score(fit.items(), row))
    with pytest.raises(InputError, match="items of type int"):
        adaptive_test(3, stop=stop)
    with pytest.raises(InputError, match=r"nothing\.csv: cannot be read"):
        adaptive_test(tmp_path / "nothing.csv", stop=stop)
