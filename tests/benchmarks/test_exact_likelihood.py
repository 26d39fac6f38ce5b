"""The likelihood that judges all packages: against integrals of products, and against what was recorded of R's mirt."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from benchmarks.exact_likelihood import Items, log_likelihoods, log_probabilities

ITEMS = Items(
    slope=np.array([0.5, -2.0, 3.0, 1.0]),
    intercept=np.array([0.3, 1.0, -2.0, 0.0]),
    lower=np.array([0.2, 0.0, 0.1, 0.0]),
    slip=np.array([0.1, 0.05, 0.0, 0.0]),
)


def test_equals_the_integral_of_a_product():
    values = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [1, 0, -1, 1], [-1, -1, 0, 1], [-1, -1, -1, -1]])

    def joint(theta, row):
        p = ITEMS.lower + (1 - ITEMS.slip - ITEMS.lower) * expit(ITEMS.slope * theta + ITEMS.intercept)
        return np.prod(np.where(row == 1, p, np.where(row == 0, 1 - p, 1))) * norm.pdf(theta)

    expected = [np.log(quad(joint, -8, 8, args=(row,), epsabs=1e-12, limit=200)[0]) for row in values]
    np.testing.assert_allclose(log_likelihoods(ITEMS, values), expected, atol=1e-7)


def test_nothing_is_lost_in_the_tails():
    ones = np.ones(1)
    right, wrong = log_probabilities(Items(1000 * ones, 0 * ones, 0 * ones, 0 * ones), np.array([-6.0, 6.0]))
    np.testing.assert_allclose(right[:, 0], [-6000, 0])
    np.testing.assert_allclose(wrong[:, 0], [0, -6000])
    _, wrong = log_probabilities(Items(1000 * ones, 0 * ones, 0 * ones, 1e-20 * ones), np.array([6.0]))
    np.testing.assert_allclose(wrong, np.log(1e-20))


@pytest.mark.parametrize(("name", "recorded"), [("arc", -120_210.1), ("mmlu", -119_135.8)])
def test_parameters_of_mirt_have_the_recorded_likelihood(shared, name, recorded):
    path = shared / "llm_responses" / f"metabench_{name}.npz"
    if not path.is_file():
        pytest.skip(f"needs {path}, which is not here")
    with np.load(path, allow_pickle=False) as arrays:
        items = Items(arrays["a1"], arrays["d"], arrays["g"], 1 - arrays["u"])
        assert log_likelihoods(items, arrays["responses"]).sum() == pytest.approx(recorded, abs=0.06)
