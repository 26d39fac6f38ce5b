"""Score tests of DIF: near likelihood ratios of fits with the item split, levels, effects, purification."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import chi2

import irtjax
from irtjax.groups.score_test import score_test


def simulated(seed, sizes=(500, 500), num_items=12, shift=0.0, mean=-0.5):
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(len(sizes)), sizes)
    theta = rng.normal(size=member.size) + mean * member
    slope, difficulty = rng.lognormal(0, 0.3, num_items), rng.normal(size=num_items)
    moved = difficulty + np.outer(shift * (member == 1), np.arange(num_items) < 2)
    right = rng.random(moved.shape) < expit(slope * (theta[:, None] - moved))
    return pd.DataFrame(right.astype(float), columns=[f"i{k}" for k in range(num_items)]), np.array(["a", "b", "c"])[
        member
    ]


@pytest.fixture(scope="module")
def data():
    answers, groups = simulated(0, shift=0.6)
    return answers, groups, irtjax.fit(answers, "2pl", groups=groups, priors=None)


def test_statistics_are_near_likelihood_ratios(data):
    """An item that is split into one for each group has parameters of its own in each."""
    answers, groups, fit = data
    found = score_test(fit, fit)
    assert (found.df == 2).all()
    for item in (0, 3, 5):
        name = f"i{item}"
        split = answers.drop(columns=name)
        for group in "ab":
            split[f"{name} {group}"] = answers[name].where(groups == group)
        other = irtjax.fit(split, "2pl", groups=groups, priors=None)
        ratio = 2 * (other.log_likelihood - fit.log_likelihood)
        np.testing.assert_allclose(found.statistic[item], ratio, rtol=0.15, atol=0.3)


def test_uniform_and_nonuniform_add_up(data):
    _, _, fit = data
    both, uniform, nonuniform = (score_test(fit, fit, test) for test in ("both", "uniform", "nonuniform"))
    assert (uniform.df + nonuniform.df == both.df).all()
    np.testing.assert_allclose(uniform.statistic + nonuniform.statistic, both.statistic, rtol=1e-6)


def test_effects_and_purification(data):
    answers, groups, _ = data
    table = irtjax.dif(answers, groups, "score").set_index("item_id")
    assert (table["p_adjusted"][["i0", "i1"]] < 0.05).all()
    assert not table["anchor"][["i0", "i1"]].any()
    assert table["anchor"][2:].sum() >= 8
    assert table["effect"][["i0", "i1"]].between(-0.2, -0.05).all()  # 0.6 logits harder for the second group
    assert table["effect"][2:].abs().max() < 0.1


def test_three_groups_and_missing_answers():
    answers, groups = simulated(3, sizes=(300, 300, 300), mean=0.3)
    answers = answers.mask(np.random.default_rng(0).random(answers.shape) < 0.1)
    table = irtjax.dif(answers, groups, "score", purify=False)
    assert (table["df"] == 4).all()
    assert table["statistic"].between(0, chi2.ppf(1 - 1e-4, 4)).all()


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(500, 500), (2000, 28)])
def test_the_level_holds(sizes):
    p_values = []
    for seed in range(25):
        answers, groups = simulated(100 + seed, sizes, mean=-1.0)
        fit = irtjax.fit(answers, "2pl", groups=groups)
        found = score_test(fit, fit)
        p_values.append(chi2.sf(found.statistic, found.df))
    share = (np.array(p_values) < 0.05).mean()
    assert share < 0.05 + 3 * np.sqrt(0.05 * 0.95 / np.size(p_values))
