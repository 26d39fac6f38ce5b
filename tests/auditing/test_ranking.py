"""Ranks: all ranges hold at once as often as they say, by draws; ties, missing abilities, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, rankdata

import irtjax
from irtjax import InputError
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
