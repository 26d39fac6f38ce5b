"""Networks of several training sizes, and the regression on difficulty and size."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from irtjax import InputError
from irtjax.comparison.training_size import GROUPS, TERMS, accuracy_by_size, observed_shares, regress
from irtjax.crowd.training_size import half_decades, sized_members
from irtjax.training.recipe import Recipe

BETA = np.array([-2.0, -0.3, 0.4, -0.1])
SIZES = np.repeat([100, 1000, 10_000], 20)


def answers(seed, beta=BETA, network_sd=0.0, item_sd=0.0, num_items=60):
    """(J, I) right answers by the model, with what is a network's or an item's own on top, and the difficulties."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=num_items)
    log_size = np.log(SIZES)[:, None]
    logit = beta[0] + beta[1] * difficulty + beta[2] * log_size + beta[3] * difficulty * log_size
    logit = logit + network_sd * rng.normal(size=(SIZES.size, 1)) + item_sd * rng.normal(size=num_items)
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(int), difficulty


def information(found, difficulty):
    """(4, 4) that the answers would carry if they were independent."""
    log_size = np.log(SIZES)[:, None]
    terms = np.stack(np.broadcast_arrays(1.0, difficulty[None], log_size, difficulty * log_size), axis=-1)
    p = 1 / (1 + np.exp(-terms @ found.estimate))
    return np.einsum("jia,ji,jib->ab", terms, p * (1 - p), terms)


def test_members_of_each_size():
    members = sized_members([8, 32], 3, 0, Recipe(width=16), ("mlp", "lenet"))
    assert len(members) == 12
    assert members.subset_size.tolist() == [8, 8, 8, 32, 32, 32] * 2
    assert members.network.tolist() == ["mlp"] * 6 + ["lenet"] * 6
    assert (members.seed[:6] == members.seed[6:]).all()  # the same examples
    assert len(set(members.seed)) == 6
    assert not members.corruption_rate.any()
    for sizes in ([], [0, 1], [5, 5]):
        with pytest.raises(InputError, match="expected different numbers of examples"):
            sized_members(sizes, 1, 0, Recipe())
    with pytest.raises(InputError, match="0 networks of each size"):
        sized_members([5], 0, 0, Recipe())


def test_half_decades_end_with_all_examples():
    assert half_decades(100, 5000) == [100, 320, 1000, 3200, 5000]
    assert half_decades(100, 1000) == [100, 320, 1000]
    assert half_decades(100, 60) == [60]


def test_estimates_are_those_of_a_logistic_regression():
    """Against statsmodels' other implementation, Newton's method on single answers."""
    correct, difficulty = answers(0)
    found = regress(correct, difficulty, SIZES)
    log_size = np.repeat(np.log(SIZES), difficulty.size)
    b = np.tile(difficulty, SIZES.size)
    design = np.stack([np.ones_like(b), b, log_size, b * log_size], axis=1)
    reference = sm.Logit(correct.ravel(), design).fit(disp=0)
    np.testing.assert_allclose(found.estimate, reference.params, rtol=1e-6)
    np.testing.assert_allclose(found.plain_standard_error, reference.bse, rtol=1e-5)
    assert found.answers == correct.size


def test_two_way_clusters_by_definition():
    correct, difficulty = answers(1, network_sd=0.5, item_sd=0.5, num_items=12)
    found = regress(correct, difficulty, SIZES)
    log_size = np.log(SIZES)[:, None]
    terms = np.stack(np.broadcast_arrays(1.0, difficulty[None], log_size, difficulty * log_size), axis=-1)
    p = 1 / (1 + np.exp(-terms @ found.estimate))
    bread = np.linalg.inv(information(found, difficulty))
    scores = (correct - p)[..., None] * terms

    def sandwich(scores):
        groups = len(scores)
        return bread @ (scores.T @ scores) @ bread * groups / (groups - 1) * (correct.size - 1) / (correct.size - 4)

    expected = sandwich(scores.sum(1)) + sandwich(scores.sum(0))
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-6)


def test_clustered_intervals_cover_where_plain_ones_do_not():
    """The effect of difficulty, where networks and items differ in ways that the regression does not know."""
    covered = np.zeros(2)
    for seed in range(40):
        correct, difficulty = answers(seed, network_sd=0.6, item_sd=0.6, num_items=40)
        found = regress(correct, difficulty, SIZES)
        # a logit is flatter by about (1 + 0.346 variance)^-1/2 where not all that it depends on is known
        truth = (BETA[1] + BETA[3] * np.log(1000)) / np.sqrt(1 + 0.346 * (0.6**2 + 0.6**2))
        slope = found.of_logit(1000)
        weights = np.array([0, 1, 0, np.log(1000)])
        half = 1.96 * np.sqrt(weights @ np.linalg.inv(information(found, difficulty)) @ weights)
        covered += [slope.low < truth < slope.high, abs(slope.value - truth) < half]
    assert covered[0] >= 33  # 95% of 40 is 38, with a standard deviation of 1.4; few clusters make it a little less
    assert covered[1] < 28


def test_contrasts():
    correct, difficulty = answers(2)
    found = regress(correct, difficulty, SIZES)
    step = found.at(0.7, 1000) - found.at(0.7, 100)
    assert found.of_tenfold(0.7).value == pytest.approx(step)
    assert found.of_logit(500).value == pytest.approx(found.at(1.0, 500) - found.at(0.0, 500))
    for term, value, error in zip(TERMS, found.estimate, found.standard_error, strict=True):
        contrast = found.coefficient(term)
        assert contrast.value == pytest.approx(value)
        assert contrast.high - contrast.low == pytest.approx(2 * 1.959964 * error)
    assert found.at(np.zeros((3, 1)), np.array([10, 100])).shape == (3, 2)


def test_the_table_has_a_row_per_term():
    found = regress(*answers(2), SIZES)
    table = found.table().set_index("term")
    assert tuple(table.index) == TERMS
    half = 1.959964 * table.standard_error
    np.testing.assert_allclose(table.low, table.estimate - half, rtol=1e-6)
    np.testing.assert_allclose(table.high, table.estimate + half, rtol=1e-6)
    assert (table.plain_standard_error == found.plain_standard_error).all()
    assert (table.answers == found.answers).all()


def test_observed_shares_answer_by_answer():
    correct, difficulty = answers(4, num_items=30)
    found = regress(correct, difficulty, SIZES)
    observed = observed_shares(found, correct, difficulty, SIZES)
    width = np.ptp(difficulty) / GROUPS
    group = np.minimum((difficulty - difficulty.min()) // width, GROUPS - 1)
    cells = pd.DataFrame(
        {
            "size": np.repeat(SIZES, difficulty.size),
            "group": np.tile(group, SIZES.size),
            "share": correct.ravel(),
            "by_regression": (1 / (1 + np.exp(-found.at(difficulty, SIZES[:, None])))).ravel(),
        }
    )
    expected = cells.groupby(["size", "group"]).mean()
    np.testing.assert_allclose(observed[["share", "by_regression"]], expected, rtol=1e-6)
    np.testing.assert_allclose(observed.high - observed.low, width, rtol=1e-6)
    assert (observed.groupby("size")["items"].sum() == 30).all()


def test_accuracies_of_each_size():
    correct = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    found = accuracy_by_size(correct, np.array([20, 20, 5]))
    assert found.index.tolist() == [5, 20]
    assert found["mean"].tolist() == [1, 0.5]
    assert found["std"][20] == pytest.approx(0.5 / 2**0.5)  # of 0.25 and 0.75
    assert found["size"].tolist() == [1, 2]


def test_what_cannot_be_regressed():
    correct, difficulty = answers(3)
    cases = [
        ((correct, np.zeros_like(difficulty), SIZES), "all difficulties are the same"),
        ((correct, difficulty, np.full_like(SIZES, 7)), "all sizes are the same"),
        ((np.ones_like(correct), difficulty, SIZES), "all answers are right"),
        ((np.broadcast_to(difficulty < 0, correct.shape).astype(int), difficulty, SIZES), "tell all right answers"),
        ((correct, np.where(difficulty == difficulty[4], np.nan, difficulty), SIZES), "item number 5: not a number"),
    ]
    for arguments, message in cases:
        with pytest.raises(InputError, match=message):
            regress(*arguments)
