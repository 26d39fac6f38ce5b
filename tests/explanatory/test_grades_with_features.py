"""Locations of graded and binomial items by features: with two categories those of right/wrong items; a simulation."""

import numpy as np
import pytest
from scipy.special import expit

import irtjax
from benchmarks import recovery_features
from irtjax import InputError, ResponseMatrix
from irtjax.explanatory.family_likelihoods import family_likelihoods
from irtjax.explanatory.item_likelihoods import item_likelihoods
from irtjax.responses.from_arrays import of_counts, of_grades

SUBJECTS, ITEMS = 60, 20
IDS = [f"s{j}" for j in range(SUBJECTS)], [f"i{i}" for i in range(ITEMS)]
OF_TWO = {"graded": of_grades, "binomial": lambda table, *ids: of_counts(table, 1, *ids)}


@pytest.fixture(scope="module")
def simulated():
    """Features and right/wrong answers, some missing."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ITEMS, 2))
    difficulty = features @ [0.8, -0.4] + 0.3 * rng.normal(size=ITEMS)
    right = (rng.random((SUBJECTS, ITEMS)) < expit(rng.normal(size=(SUBJECTS, 1)) - difficulty)).astype(float)
    return features, np.where(rng.random(right.shape) < 0.1, np.nan, right)


def matrix(right):
    return ResponseMatrix(np.where(np.isnan(right), -1, right).astype(np.int8), *map(np.array, IDS))


@pytest.mark.slow
def test_the_likelihoods_of_items_of_two_categories_are_those_of_right_and_wrong_ones(simulated):
    right = simulated[1]
    one, other = irtjax.fit(matrix(right), "2pl"), irtjax.fit(of_grades(right, *IDS), "graded")
    found = family_likelihoods(other, own_slopes=True)
    for expected, leaf in zip(item_likelihoods(one), found, strict=True):
        np.testing.assert_allclose(leaf, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", OF_TWO)
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_of_two_categories_it_is_the_2pl(simulated, model):
    features, right = simulated
    binary = irtjax.fit(matrix(right), "2pl", features=features)
    fit = irtjax.fit(OF_TWO[model](right, *IDS), model, features=features)
    assert fit.details["rounds"] == binary.details["rounds"]
    assert fit.log_likelihood == pytest.approx(binary.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(fit.difficulty, binary.difficulty, atol=1e-6)
    for one, other in zip(fit.regression, binary.regression, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    expected = binary.predict_items(features[:3])
    np.testing.assert_allclose(fit.predict_items(features[:3]).iloc[:, 1:], expected.iloc[:, 1:], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["graded", "binomial"])
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_a_simulation_is_recovered(model):
    """Weights are those of least squares on the true difficulties, to the sampling error of subjects and responses."""
    found = [recovery_features.recovered(model, seed) for seed in range(4)]
    off, of_truth, error, residual_sd = (np.array(leaf) for leaf in zip(*found, strict=True))
    assert np.sqrt(((off - of_truth) ** 2).mean()) < error.mean()
    assert np.abs((off - of_truth).mean()) < 0.03
    assert residual_sd.mean() == pytest.approx(recovery_features.RESIDUAL, abs=0.08)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_scales_stay_whole_and_a_fit_comes_back_from_its_files(simulated, tmp_path):
    """Without its middle grade the mean threshold of an item would be another."""
    features, right = simulated
    grades = np.where(np.arange(ITEMS) == 3, 3 * right, right + (np.arange(SUBJECTS) % 3)[:, None])
    fit = irtjax.fit(of_grades(grades, *IDS), "graded", features=features)
    assert fit.responses.scales[3].labels == (0, 1, 2, 3)
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit


def test_which_models_have_features_is_said(simulated):
    features, right = simulated
    with pytest.raises(InputError, match="rasch, 1pl, 2pl, graded, binomial, binomial_1pl, not with 'gpcm'"):
        irtjax.fit(of_grades(right, *IDS), "gpcm", features=features)
    with pytest.raises(InputError, match="`intercept_prior` of other models"):
        irtjax.fit(of_grades(right, *IDS), "graded", intercept_prior=(0, 1))
