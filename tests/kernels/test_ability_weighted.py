"""Weighted likelihood estimates against roots on a fine grid, on another scale, and against R's mirt."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters
from irtjax.scoring.abilities import abilities

RNG = np.random.default_rng(3)
SLOPE, DIFFICULTY = RNG.uniform(0.5, 2.5, 12), RNG.normal(0, 1.5, 12)
SLOPE[3] *= -1
PLAIN = ItemParameters(SLOPE[:, None], -SLOPE * DIFFICULTY, np.full(12, -np.inf), np.full(12, np.inf))
BOUNDED = PLAIN._replace(lower=logit(RNG.uniform(0.05, 0.3, 12)), upper=logit(RNG.uniform(0.9, 0.99, 12)))
ANSWERS = np.concatenate([RNG.integers(-1, 2, (20, 12)), np.ones((1, 12), int), np.zeros((1, 12), int)])


def warm(theta, items, row):
    """Warm's slope and the information at points, by the definition, with derivatives by differences of P."""
    c, d = expit(items.lower), expit(items.upper)
    x = theta[:, None] * items.slope[:, 0] + items.intercept
    s, a, seen = expit(x), items.slope[:, 0], row >= 0
    p = c + (d - c) * s
    first, second = a * (d - c) * s * (1 - s), a**2 * (d - c) * s * (1 - s) * (1 - 2 * s)
    weight = seen / (p * (1 - p))
    information = (weight * first**2).sum(1)
    return (weight * first * (row - p)).sum(1) + (weight * first * second).sum(1) / (2 * information), information


@pytest.mark.parametrize("items", [PLAIN, BOUNDED], ids=["2pl", "4pl"])
def test_roots_are_those_on_a_fine_grid(items):
    found = abilities(ANSWERS, items, "wle")
    assert np.isfinite(found.ability).all()
    theta = np.linspace(-9, 9, 36_001)
    for row, ability, error in zip(ANSWERS, *found, strict=True):
        slope, information = warm(theta, items, row)
        roots = theta[:-1][(slope[:-1] > 0) & (slope[1:] <= 0)]
        assert np.abs(roots - ability).min() < 6e-4
        np.testing.assert_allclose(error, np.interp(ability, theta, information) ** -0.5, rtol=1e-6)
        if items is PLAIN:  # of several roots the one where log L + log I / 2 is highest
            x = np.where(row == 0, -1, 1) * (theta[:, None] * SLOPE + PLAIN.intercept)
            height = np.where(row >= 0, -np.logaddexp(0, -x), 0).sum(1) + np.log(information) / 2
            assert abs(theta[height.argmax()] - ability) < 6e-4


def test_they_move_with_the_scale():
    plain = abilities(ANSWERS, BOUNDED, "wle")
    moved = BOUNDED._replace(slope=BOUNDED.slope / 10, intercept=BOUNDED.intercept - 50 * BOUNDED.slope[:, 0] / 10)
    other = abilities(ANSWERS, moved, "wle")
    np.testing.assert_allclose(other.ability, 50 + 10 * plain.ability, atol=1e-7)
    np.testing.assert_allclose(other.standard_error, 10 * plain.standard_error, rtol=1e-7)


def test_those_of_steep_and_distant_items_are_finite_and_no_answers_have_none():
    steep = PLAIN._replace(slope=PLAIN.slope * 1e3, intercept=PLAIN.intercept * 1e3 + np.linspace(-1e6, 1e6, 12))
    found = abilities(np.stack([ANSWERS[-1], ANSWERS[-2], np.full(12, -1)]), steep, "wle")
    assert np.isfinite(found.ability[:2]).all()
    assert np.isfinite(found.standard_error[:2]).all()
    assert np.isnan(found.ability[2])
    several = PLAIN._replace(slope=np.ones((12, 2)))
    with pytest.raises(InputError, match="method 'wle' has one dimension, and the items have 2"):
        abilities(ANSWERS, several, "wle")


def test_they_are_those_of_mirt(shared):
    folder = shared / "oracle2" / "a" / "sim_dif2pl_refgroup__2PL"
    table = pd.read_csv(folder / "par_mirt.csv")
    a, d = (table.est[table.par == name].to_numpy()[:20] for name in ("a1", "d"))
    answers = pd.read_csv(shared / "oracle2/data/sim_dif2pl_refgroup.csv").iloc[:200, 1:].to_numpy()
    items = ItemParameters(a[:, None], d, np.full(20, -np.inf), np.full(20, np.inf))
    expected = pd.read_csv(folder / "scores_WLE.csv")
    np.testing.assert_allclose(abilities(answers, items, "wle").ability, expected.theta, atol=1e-4)
