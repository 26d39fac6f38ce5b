"""Items tried n times by curves with asymptotes: with one try right/wrong items, else against sums."""

import numpy as np
import pytest
from binomial_counts import CONSTANT, IDS, NODES, RIGHT, SUCCESSES, TRIALS, WRONG
from scipy.special import expit, logsumexp

import irtjax
from irtjax import InputError, ResponseMatrix
from irtjax.estimation.families import fit_families
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.quadrature import finish
from irtjax.responses.from_arrays import of_counts


@pytest.mark.parametrize(
    ("curve", "name"), [("4pl", "binomial_4pl"), pytest.param("rasch", "binomial_1pl", marks=pytest.mark.slow)]
)
def test_one_trial_is_a_right_or_wrong_answer_by_the_same_curve(curve, name):
    values = np.where(np.isnan(SUCCESSES), np.nan, SUCCESSES > 2)
    matrix = ResponseMatrix(np.where(np.isnan(values), -1, values).astype(np.int8), *map(np.array, IDS))
    binary, counted = fit_mml(matrix, curve), fit_families(of_counts(values, 1, *IDS), name)
    assert counted.log_likelihood == pytest.approx(binary.log_likelihood, abs=1e-8)
    for column, expected in binary.item_columns.items():
        np.testing.assert_allclose(counted.item_columns[column], expected, atol=1e-8)
    np.testing.assert_allclose(counted.ability, binary.ability, atol=1e-8)


@pytest.fixture(scope="module")
def with_guessing():
    return irtjax.fit(SUCCESSES, "3pl", trials=TRIALS)


def test_counts_may_have_asymptotes(with_guessing):
    """The model is that of the curve; the log-likelihood is that of SciPy's distribution."""
    fit = with_guessing
    assert (fit.model, fit.converged) == ("binomial_3pl", True)
    x = NODES.nodes * fit.parameters.slope[:, 0] + fit.parameters.intercept
    guessing = fit.item_columns["guessing"]
    p = guessing + (1 - guessing) * expit(x)
    expected = CONSTANT + logsumexp(RIGHT @ np.log(p).T + WRONG @ np.log1p(-p).T + NODES.log_weights, axis=1).sum()
    assert fit.log_likelihood == pytest.approx(expected, abs=1e-5)
    table = fit.items()
    found = irtjax.score(table.set_index("item_id"), fit.responses).ability
    np.testing.assert_allclose(found, fit.ability, atol=1e-5)
    assert fit.details["dispersion"] == pytest.approx(1, abs=0.2)


@pytest.mark.slow
def test_errors_of_each_item_by_itself_are_about_those_of_all(with_guessing, monkeypatch):
    monkeypatch.setattr(finish, "MOST_PARAMETERS", 0)
    alone = irtjax.fit(SUCCESSES, "binomial_3pl", trials=TRIALS)
    assert alone.details["standard_errors"] == "each item"
    expected = with_guessing.item_columns["discrimination_se"]
    np.testing.assert_allclose(alone.item_columns["discrimination_se"], expected, rtol=0.15)


def test_what_curves_of_counts_do_not_have_is_said():
    counts = of_counts(SUCCESSES, TRIALS, *IDS)
    with pytest.raises(InputError, match=r"fitted beside binomial, .* and not beside beta_binomial"):
        irtjax.fit(counts, ["binomial_3pl"] * 7 + ["beta_binomial"])
    with pytest.raises(InputError, match=r"item 'i0' \(1 of 1 such\): all trials failed"):
        irtjax.fit(of_counts(SUCCESSES * (np.arange(8) > 0), TRIALS, *IDS), "binomial_3pl")
