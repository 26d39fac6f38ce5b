"""Ranks: all ranges hold at once as often as they say, by draws; ties, missing abilities, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm, rankdata

import irtjax
from irtjax import InputError
from irtjax.auditing import told_apart
from irtjax.auditing.ranking import ranks


@pytest.mark.parametrize(("number", "spread"), [(8, 0.5), (40, 1.0), (300, 2.0)])
def test_all_ranks_are_in_their_ranges_at_once(number, spread):
    """Posteriors of unequal errors, truths drawn from them: the claimed orders hold together with the probability."""
    rng = np.random.default_rng(number)
    mean, error = spread * rng.normal(size=number), rng.uniform(0.05, 0.4, number)
    found = ranks(mean, error, level=0.9)
    true = number + 1 - rankdata(mean + error * rng.normal(size=(4000, number)), axis=1)
    joint = ((found.best <= true) & (true <= found.worst)).all(axis=1).mean()
    assert joint > 0.9 - 3 * np.sqrt(0.9 * 0.1 / 4000)
    assert ((found.worst - found.best) < number - 1).mean() > 0.5  # they say something


def test_the_bound_is_where_one_wrong_order_is_as_likely_as_allowed():
    """Three subjects: two close, one far: the order of the far pairs is claimed only where both may be."""
    z = 1.9
    mean, error = np.array([0.0, 0.1, z * np.sqrt(2)]), np.ones(3)
    wrong = [multivariate_normal.cdf(-(mean[2] - mean[k]) / np.sqrt(2)) for k in (0, 1)]
    for level, apart in ((1 - sum(wrong) * 1.01, True), (1 - wrong[0] * 1.01, False)):
        found = ranks(mean, error, level)
        assert (found.worst[2] == 1) == apart
        assert found.rank.tolist() == [3, 2, 1]


def test_ties_and_missing_abilities():
    found = ranks(np.array([1.0, np.nan, 1.0, -9.0]), np.full(4, 0.1))
    assert found.rank.tolist() == [1, 0, 1, 3]
    assert found.best.tolist() == [1, 0, 1, 3]
    assert found.worst.tolist() == [2, 0, 2, 3]


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-(rng.normal(size=(300, 1)) - rng.normal(size=20))))
    return irtjax.fit(pd.DataFrame((rng.random(p.shape) < p).astype(int), [f"s{k}" for k in range(300)]), "1pl")


def test_a_table_by_ability(fit):
    table = irtjax.ranking(fit)
    assert table["ability"].is_monotonic_decreasing
    assert table["subject_id"][0] == fit.responses.subject_ids[fit.ability.argmax()]
    assert (table["best_rank"] <= table["rank"]).all()
    assert (table["rank"] <= table["worst_rank"]).all()
    pairs = irtjax.beats(fit, table["subject_id"][[0, 1, 299]])
    assert pairs.iloc[0, 1] == table["p_beats_next"][0]
    assert pairs.iloc[0, 2] > 0.999
    np.testing.assert_allclose(pairs + pairs.T, 1)
    assert np.isnan(table["p_beats_next"].iloc[-1])


def test_what_is_refused(fit):
    with pytest.raises(InputError, match="`level` 95: expected a number between 0 and 1"):
        irtjax.ranking(fit, 95)
    with pytest.raises(InputError, match="no subject 'nobody'"):
        irtjax.beats(fit, ["s1", "nobody"])


SPREADS = {
    "alike": lambda rng, number: 0.25 + 0.02 * rng.gamma(4, size=number),
    "equal": lambda rng, number: np.full(number, 0.3),
    "a few known well": lambda rng, number: np.where(rng.random(number) < 0.01, 0.01, rng.uniform(0.2, 1, number)),
    "one known": lambda rng, number: np.where(np.arange(number) == 7, 0.0, 0.3),
}


@pytest.mark.parametrize("kind", SPREADS)
def test_the_grid_expects_no_fewer_wrong_orders_than_there_are(kind, monkeypatch):
    """Against all pairs one by one: never a lower bound, and not much higher."""
    rng = np.random.default_rng(0)
    theta, error = rng.normal(size=1500), SPREADS[kind](rng, 1500)
    monkeypatch.setattr(told_apart, "MOST_PAIRED", 1000)
    far = told_apart.enough(theta, error**2, 0.95)
    one, other = np.triu_indices(1500, 1)
    z = np.abs(theta[one] - theta[other]) / np.hypot(error[one], error[other])
    assert norm.sf(z[z > far]).sum() <= 0.05
    assert norm.sf(z[z > far - 0.25]).sum() > 0.05  # so far below it are too many


def test_orders_are_those_of_all_pairs():
    rng = np.random.default_rng(1)
    theta, error = np.round(rng.normal(size=800), 1), rng.uniform(0, 0.4, 800)
    error[:3] = 0
    for far in (0.0, 2.0, 4.5, np.inf):
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (theta[:, None] - theta) / np.hypot(error[:, None], error)
        np.testing.assert_array_equal(told_apart.number_below(theta, error**2, far), (z > far).sum(axis=1))


def test_more_subjects_than_are_paired():
    rng = np.random.default_rng(2)
    theta, error = rng.normal(size=10_000), 0.3 + 0.03 * rng.gamma(3, size=10_000)
    found = ranks(theta, error)
    far = told_apart.enough(theta, error**2, 0.95)
    for subject in (0, 17, int(theta.argmax())):
        z = (theta - theta[subject]) / np.hypot(error, error[subject])
        assert (found.best[subject], found.worst[subject]) == (1 + (z > far).sum(), 10_000 - (z < -far).sum())
