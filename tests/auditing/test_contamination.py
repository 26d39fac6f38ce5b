"""Gains on items before a cutoff: planted ones are found with their size, better subjects and harder items are none."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
from irtjax import InputError
from irtjax.auditing.contamination import contamination

J, NUM_ITEMS = 24, 400
SUBJECTS, ITEMS = [f"m{j}" for j in range(J)], [f"i{i}" for i in range(NUM_ITEMS)]
DATES = pd.Series(pd.date_range("2023-01-01", periods=NUM_ITEMS, freq="D"), ITEMS)
CUTOFFS = pd.Series("2022-06-01", SUBJECTS)
CUTOFFS.iloc[:8] = "2023-07-20"  # half of the items are older


def fitted(seed, gain):
    """New items are harder, subjects with a late cutoff better; the first four of these gain."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=J) + 0.8 * (np.arange(J) < 8)
    known = np.zeros((J, NUM_ITEMS))
    known[:4] = gain * (pd.Timestamp("2023-07-20") > DATES).to_numpy()
    p = expit(1.2 * (theta[:, None] + known - rng.normal(size=NUM_ITEMS) - np.linspace(-1, 1, NUM_ITEMS)))
    return irtjax.fit(pd.DataFrame((rng.random(p.shape) < p).astype(int), SUBJECTS, ITEMS), "2pl", integration="nodes")


def test_planted_gains_are_found():
    found = contamination(fitted(0, 1.0), DATES, CUTOFFS, permutations=99)
    table = found.subjects.set_index("subject_id")
    assert table.index.tolist() == SUBJECTS[:8]
    assert (table["before"] + table["after"] == NUM_ITEMS).all()
    apart = (table["gain"].iloc[:4] - table["gain"].iloc[4:].mean() - 1.0) / table["standard_error"].iloc[:4]
    assert np.abs(apart).max() < 3.5
    assert (table["p_value"].iloc[:4] <= 0.02).all()
    assert found.p_value < 0.02
    assert (found.items["exposed"] == 8).all()
    assert (found.items["date"] < pd.Timestamp("2023-07-20")).all()


def test_no_gain_where_there_is_none():
    """Over some data sets: shares of small p-values, and gains over their standard errors."""
    z, p_values = [], []
    for seed in range(4):
        found = contamination(fitted(seed, 0.0), DATES, CUTOFFS, permutations=99)
        z.append(found.subjects["gain"] / found.subjects["standard_error"])
        p_values.append(found.p_value)
        assert (found.items["p_adjusted"] < 0.05).sum() <= 1
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.4
    assert min(p_values) > 0.01


@pytest.fixture(scope="module")
def fit():
    return fitted(0, 0.0)


@pytest.mark.parametrize(
    ("dates", "cutoffs", "message"),
    [
        (DATES, {"m0": "soon"}, "`cutoffs`: subject 'm0' has 'soon', expected a date"),
        (DATES, {"nobody": "2023-07-20"}, "`cutoffs`: no subject of the fit has a date"),
        ({"i3": "2023-99-01"}, CUTOFFS, "`dates`: item 'i3' has '2023-99-01', expected a date"),
        ({"i3": 5}, CUTOFFS, "`dates`: item 'i3' has 5, expected a date"),
        ({"i3": "now"}, CUTOFFS, "`dates`: item 'i3' has 'now', expected a date"),
        (DATES, {"m0": 1.7e9}, "`cutoffs`: subject 'm0' has 1700000000.0, expected a date"),
        (DATES, {"m0": "2022-01-01"}, "`cutoffs`: no subject has 10 items before its cutoff and 10 after it"),
        (pd.concat([DATES, DATES.iloc[:1]]), CUTOFFS, "`dates`: item 'i0' is there twice"),
    ],
)
def test_what_is_refused(fit, dates, cutoffs, message):
    with pytest.raises(InputError, match=message):
        contamination(fit, dates, cutoffs)


def test_numbers_are_dates_by_their_digits(fit):
    numbers = DATES.dt.strftime("%Y%m%d").astype(int)
    found, same = (contamination(fit, dates, CUTOFFS, permutations=19) for dates in (numbers, DATES))
    pd.testing.assert_frame_equal(found.items, same.items)


def test_dates_are_by_id_and_some_may_be_missing(fit):
    some = DATES.iloc[50:].sample(frac=1, random_state=0).dt.strftime("%Y-%m-%d")
    found = contamination(fit, some, CUTOFFS.iloc[::-1], permutations=19)
    assert (found.subjects["before"] + found.subjects["after"] == len(some)).all()
    assert not set(found.items["item_id"]) & set(ITEMS[:50])
