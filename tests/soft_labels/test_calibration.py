"""How far networks are from people, against SciPy and known temperatures."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import entropy

from irtjax import InputError
from irtjax.soft_labels.calibration import calibration, permuted


def test_divergence_is_that_of_scipy():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(100, [0.7, 0.3, 0.0], 12)
    shares = counts / 100
    logits = rng.normal(size=(4, 12, 3)) * 2
    found = calibration(shares, log_softmax(logits, axis=-1))
    for network in range(4):
        expected = [entropy(p, softmax(z)) for p, z in zip(shares, logits[network], strict=True)]
        np.testing.assert_allclose(found.kl[network], expected, rtol=1e-10)
    np.testing.assert_allclose(calibration(shares, logits).kl, found.kl)  # logits do as well
    hard = calibration(np.array([[1.0, 0.0]]), np.log([[[0.25, 0.75]]]))
    assert hard.kl[0, 0] == pytest.approx(np.log(4))


def test_the_temperature_that_people_have_is_found():
    """People who divide as softmax(z / T) say: nothing is left at T."""
    z = np.random.default_rng(1).normal(size=(200, 3)) * 2
    true = np.array([2.5, 1.0, 0.4])
    found = calibration(softmax(z, axis=1), np.stack([z * t for t in true]))
    np.testing.assert_allclose(found.temperature, true, rtol=1e-4)
    np.testing.assert_allclose(found.kl_at_best, 0, atol=1e-8)
    assert found.kl[0].mean() > 0.1
    assert found.kl[1].mean() == pytest.approx(0, abs=1e-12)


def test_the_best_temperature_is_that_of_a_grid():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(1, 50, 4)) * 3
    shares = 0.6 * softmax(z[0] / 2, axis=1) + 0.4 * rng.dirichlet(np.ones(4), 50)
    found = calibration(shares, z)
    grid = [calibration(shares, z / t).kl.mean() for t in np.geomspace(0.2, 50, 400)]
    assert found.kl_at_best.mean() == pytest.approx(min(grid), rel=1e-4)
    assert found.kl_at_best.mean() <= min(grid) + 1e-12


def test_shapes_must_agree():
    with pytest.raises(InputError, match=r"log-probabilities \(2, 3, 4\) of soft labels \(3, 5\): expected \(networks"):
        calibration(np.full((3, 5), 0.2), np.zeros((2, 3, 4)))


def test_permuted_labels_stay_within_their_class():
    rng = np.random.default_rng(3)
    shares, gold = rng.dirichlet(np.ones(3), 90), rng.integers(0, 3, 90)
    found = permuted(shares, gold, (0, 4))
    for label in range(3):
        np.testing.assert_array_equal(np.sort(found[gold == label, 0]), np.sort(shares[gold == label, 0]))
    assert (found[:, 0] == shares[:, 0]).mean() < 0.2
    np.testing.assert_array_equal(found, permuted(shares, gold, (0, 4)))
    assert (found != permuted(shares, gold, (1, 4))).any()
