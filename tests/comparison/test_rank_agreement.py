"""Rank agreement of difficulties against SciPy, closed forms and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr

from irtjax import InputError
from irtjax.comparison.rank_agreement import _ranks, disattenuated, join, rank_agreement, rank_gaps, spearman_brown


def two_sources(num_items, correlation, seed):
    rng = np.random.default_rng(seed)
    one = rng.normal(size=num_items)
    return one, correlation * one + (1 - correlation**2) ** 0.5 * rng.normal(size=num_items)


def test_ranks_of_a_resample_are_those_of_the_items_written_out():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 12, 30)  # with ties
    drawn = rng.integers(0, 30, 30)
    copies = np.bincount(drawn, minlength=30)
    ranks = _ranks(np.unique(values, return_inverse=True)[1], copies)[drawn]
    np.testing.assert_allclose(ranks, rankdata(values[drawn]) - 15.5)


def test_agreement_is_that_of_scipy_and_ignores_scale_and_order():
    one, other = two_sources(200, 0.5, 1)
    one = one.round(1)  # with ties
    found = rank_agreement(one, other)
    assert found.spearman == spearmanr(one, other).statistic
    assert found.low < found.spearman < found.high
    np.testing.assert_allclose(rank_agreement(np.exp(one), 3 * other - 7), found)
    shuffled = np.random.default_rng(2).permutation(200)
    again = rank_agreement(one[shuffled], other[shuffled])
    np.testing.assert_allclose(again[:2] + again[4:], found[:2] + found[4:])
    resampled = rank_agreement(one, other, seed=7)  # other resamples, and as many
    assert resampled.low != found.low
    np.testing.assert_allclose([resampled.low, resampled.high], [found.low, found.high], atol=0.02)  # 4 standard errors
    opposite = rank_agreement(one, -other)
    np.testing.assert_allclose([opposite.spearman, opposite.low, opposite.high], [-found[1], -found[3], -found[2]])


@pytest.mark.parametrize(("num_items", "published"), [(180, 60.0), (131, 43.7)])  # Lalor, Wu and Yu (2019)
def test_random_ranks_differ_by_a_third_of_the_items(num_items, published):
    rng = np.random.default_rng(0)
    found = [rank_agreement(*rng.normal(size=(2, num_items)), resamples=2) for _ in range(400)]
    assert found[0].random_rank_difference == pytest.approx(published, abs=0.05)
    mean = np.mean([agreement.rank_difference for agreement in found])
    assert mean == pytest.approx(found[0].random_rank_difference, rel=0.01)


def test_intervals_cover_the_truth():
    truth = 6 / np.pi * np.arcsin(0.25)  # of normal variables that correlate by 0.5
    found = [rank_agreement(*two_sources(98, 0.5, seed), resamples=200) for seed in range(200)]
    covered = np.mean([agreement.low <= truth <= agreement.high for agreement in found])
    assert 0.90 < covered < 0.985


def test_sources_without_an_order_have_no_correlation():
    found = rank_agreement(np.zeros(9), np.arange(9.0))
    assert np.isnan([found.spearman, found.low, found.high]).all()
    with pytest.raises(InputError, match="3 items in common, expected at least 4"):
        rank_agreement(np.arange(3.0), np.arange(3.0))


def test_disattenuation_gives_the_correlation_without_error():
    assert spearman_brown(0.5) == pytest.approx(2 / 3)
    one, other = two_sources(100_000, 0.6, 3)
    rng = np.random.default_rng(4)
    noisy = [values + rng.normal(0, sd, values.size) for values, sd in ((one, 0.5), (other, 1.0))]
    attenuated = np.corrcoef(*noisy)[0, 1]
    assert disattenuated(attenuated, 1 / 1.25, 1 / 2) == pytest.approx(0.6, abs=0.02)
    assert np.isnan(disattenuated(0.5, -0.1, -0.2))
    assert np.isnan(disattenuated(0.5, float("nan"), 0.9))


def test_rounding_does_not_break_ties():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 6, 40).astype(float), rng.normal(size=40)
    noise = 1e-7 * rng.normal(size=40)
    assert rank_agreement(one + noise, other) == rank_agreement(one, other)
    assert rank_agreement(one, other).spearman == pytest.approx(spearmanr(one, other).statistic, abs=1e-12)
    np.testing.assert_array_equal(rank_gaps(one + noise, other), rank_gaps(one, other))
    one[0] = other[1] = 1e9  # ties are of what is not far off
    assert rank_agreement(one, other).spearman == pytest.approx(spearmanr(one, other).statistic, abs=1e-12)


def test_few_items_and_infinite_difficulties():
    for size in range(4):
        with pytest.raises(InputError, match=f"{size} items in common, expected at least 4"):
            rank_agreement(np.arange(float(size)), np.arange(float(size)))
    order = np.array([-np.inf, 0.0, 1.0, 2.0, np.inf])
    assert rank_agreement(order, np.arange(5.0)).spearman == pytest.approx(1)


def test_gaps_between_ranks():
    np.testing.assert_allclose(
        rank_gaps(np.array([9.0, 1.0, 5.0, 5.0]), np.array([1, 2, 3, 4])), [0.75, -0.25, -0.125, -0.375]
    )


def test_sources_are_joined_by_ids_in_the_order_of_the_first():
    one = pd.Series(range(6), list("fedcba"), float)
    other = pd.Series(range(6), list("bcdefx"), float)
    table = join({"one": one, "other": other})
    assert list(table.index) == list("fedcb")
    assert list(table.other) == [4, 3, 2, 1, 0]
    with pytest.raises(InputError, match=r"2 items in common.*one has 6, other has 2"):
        join({"one": one, "other": other[:2]})
