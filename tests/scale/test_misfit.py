"""Infit, outfit and lz: brute force, their distribution under the model, and planted misfit that they must find."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import kstest
from simulation import draw, probability

import irtjax
from irtjax.kernels.models import ItemParameters
from irtjax.scale.misfit import lz, mean_squares, misfit

ZERO, ONE = np.zeros(1), np.ones(1)


def items_of(num_items, guessing, seed=0):
    rng = np.random.default_rng(seed)
    slope, lower = rng.lognormal(0.2, 0.3, (num_items, 1)), np.full(num_items, -np.inf)
    if guessing:
        lower[:] = np.log(guessing / (1 - guessing))
    return ItemParameters(slope, -slope[:, 0] * rng.normal(0, 1, num_items), lower, np.full(num_items, np.inf))


def test_mean_squares_by_brute_force():
    items = items_of(8, 0.2)
    values = draw(np.random.default_rng(1), probability(items, np.linspace(-2, 2, 6)), 0.2)
    values[0] = -1
    of_items, of_subjects = mean_squares(items, values, ZERO, ONE)
    nodes = np.linspace(-6, 6, 2001)
    p = probability(items, nodes)
    residual, variance, standardised = (np.zeros(values.shape) for _ in range(3))
    for j, row in enumerate(values):
        likelihood = np.where(row == 1, p, np.where(row == 0, 1 - p, 1.0))
        weights = likelihood.prod(axis=1) * np.exp(-0.5 * nodes**2)
        weights /= weights.sum()
        residual[j] = weights @ (row - p) ** 2
        variance[j] = weights @ (p * (1 - p))
        for i in range(8):  # predicted from the other responses
            rest = np.delete(likelihood, i, axis=1).prod(axis=1) * np.exp(-0.5 * nodes**2)
            alone = rest @ likelihood[:, i] / rest.sum()
            standardised[j, i] = (1 - alone) / alone
    seen = values >= 0
    for axis, table in ((0, of_items), (1, of_subjects.iloc[1:])):
        rows = slice(None) if axis == 0 else slice(1, None)
        residuals, variances, terms = ((x * seen).sum(axis)[rows] for x in (residual, variance, standardised))
        np.testing.assert_allclose(table["infit"], residuals / variances, rtol=1e-6)
        np.testing.assert_allclose(table["outfit"], terms / seen.sum(axis)[rows], rtol=1e-6)
    assert of_subjects.iloc[0].isna().all()


def test_lz_by_hand():
    items = items_of(12, 0.0)
    values = draw(np.random.default_rng(2), probability(items, np.linspace(-1, 1, 4)), 0.1)
    values[3] = -1
    found = lz(items, values, np.array([0.3]), np.array([1.2]))
    assert np.isnan(found[3])
    slope = items.slope[:, 0]
    for row, value in zip(values[:3], found[:3], strict=True):
        seen = row >= 0
        a, d, y = slope[seen], items.intercept[seen], row[seen]
        theta = brentq(lambda t, a=a, d=d, y=y: a @ (y - expit(a * t + d)) - (t - 0.3) / 1.2**2, -9, 9, xtol=1e-12)
        p = probability(items, np.array([theta]))[0][seen]
        w, r = np.log(p / (1 - p)), a  # in the 2PL r is the slope
        c = (r * p * (1 - p) * w).sum() / (r**2 * p * (1 - p)).sum()
        centred = ((y - p) * w).sum() - c * (theta - 0.3) / 1.2**2
        assert value == pytest.approx(centred / np.sqrt((p * (1 - p) * (w - c * r) ** 2).sum()), abs=1e-6)


@pytest.mark.parametrize(
    ("num_items", "guessing"),
    [
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((30, 0.0), (30, 0.2), (100, 0.0))),
        (100, 0.2),
    ],
)
def test_under_the_model_lz_is_standard_normal_and_mean_squares_are_one(num_items, guessing):
    items = items_of(num_items, guessing)
    values = draw(np.random.default_rng(4), probability(items, np.random.default_rng(3).normal(size=3000)), 0.05)
    found = lz(items, values, ZERO, ONE)
    assert abs(found.mean()) < 0.12
    assert 0.94 < found.std() < 1.04
    assert 0.038 < (found < -1.645).mean() < 0.065  # false alarms at 5%
    assert 0.006 < (found < -2.326).mean() < 0.023
    assert kstest(found, "norm").statistic < (0.09 if num_items == 30 else 0.05)  # it is a little skewed
    of_items, of_subjects = mean_squares(items, values, ZERO, ONE)
    assert of_items["infit"].between(0.8, 1.2).all()
    assert of_items["infit"].mean() == pytest.approx(1, abs=0.01)
    assert of_items["outfit"].mean() == pytest.approx(1, abs=0.03)
    assert of_subjects["outfit"].mean() == pytest.approx(1, abs=0.03)


@pytest.fixture(scope="module")
def planted():
    """Responses to 40 items, of which two have the wrong key; 20 of 600 subjects answer at random."""
    items = items_of(40, 0.0, seed=6)
    theta = np.random.default_rng(7).normal(0.5, 1, 600)
    values = draw(np.random.default_rng(8), probability(items, theta))
    values[:20] = np.random.default_rng(9).integers(0, 2, (20, 40))
    values[:, :2] = 1 - values[:, :2]
    return irtjax.ResponseMatrix(values, [f"s{j}" for j in range(600)], [f"i{i}" for i in range(40)])


@pytest.mark.slow
def test_planted_misfit_is_found(planted):
    fit = irtjax.fit(planted, "1pl")  # the 2PL would describe a wrong key by a negative slope
    found = misfit(fit)
    assert set(found.items["outfit"].nlargest(2).index) == {0, 1}
    assert set(found.items["infit"].nlargest(2).index) == {0, 1}
    assert found.items["infit"][:2].min() > 1.3
    random, others = found.subjects["lz"][:20], found.subjects["lz"][20:]
    assert (random < -1.645).mean() > 0.9
    assert (others < -1.645).mean() < 0.1
    assert found.subjects["infit"][:20].mean() > 1.2 > found.subjects["infit"][20:].mean()


def test_several_dimensions_have_no_lz(planted):
    few = planted.choose_items(np.arange(2, 12))
    with pytest.warns(irtjax.FitWarning, match="not converged"):
        fit = irtjax.fit(few, "2pl", dims=2, max_iterations=5, standard_errors=False)
    found = misfit(fit)
    assert list(found.subjects) == list(found.items) == ["infit", "outfit"]
    assert found.items["infit"].between(0.8, 1.2).all()
