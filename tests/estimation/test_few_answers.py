"""Defaults where responses do not determine the items: priors estimated from these, and what they predict."""

import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit

import irtjax
from irtjax.estimation.mml import fit_mml


def simulated(num_subjects, num_items, seed, spread=0.0):
    """Answers of the 2PL, the logarithms of whose slopes have a standard deviation of `spread`."""
    rng = np.random.default_rng(seed)
    slope = np.exp(spread * rng.normal(size=num_items))
    p = expit(slope * (rng.normal(size=(num_subjects, 1)) - rng.normal(size=num_items)))
    return matrix((rng.random(p.shape) < p).astype(np.int8)), slope, p


@pytest.fixture(scope="module")
def small():
    return [simulated(30, 20, seed) for seed in range(6)]


def test_items_of_small_tests_stay_in_place(small):
    """By maximum likelihood slopes reach 264, and difficulties -15.6 to 15.8."""
    for responses, _, _ in small:
        fit = fit_mml(responses, "2pl")
        assert fit.converged
        assert np.abs(fit.difficulty).max() < 5
        assert 0.2 < fit.parameters.slope.min() < fit.parameters.slope.max() < 4
        assert fit.discriminates is not None
        assert (fit.discriminates | fit.extreme).mean() > 0.9
        assert set(fit.details["priors"]) == {"discrimination", "intercept"}
        assert "(estimated from the items)" in fit.summary()


def test_curves_of_small_tests_are_as_near_to_the_truth_as_those_of_the_1pl(small):
    """Mean Kullback-Leibler divergence of the curves of the 2PL from the true ones, which are of the 1PL."""
    theta, weight = np.polynomial.hermite_e.hermegauss(21)
    found = {"1pl": [], "2pl": []}
    for number in range(len(small)):
        rng = np.random.default_rng(number)
        rng.normal(size=20), rng.normal(size=(30, 1))  # as in `simulated`
        truth = expit(theta[:, None] - rng.normal(size=20))
        for model in found:
            fit = fit_mml(small[number][0], model)
            p = expit(fit.parameters.slope[:, 0] * theta[:, None] + fit.parameters.intercept)
            divergence = truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))
            found[model].append((weight @ divergence / weight.sum()).mean())
    worse = np.subtract(found["2pl"], found["1pl"])
    assert worse.mean() < 0.1 * np.mean(found["1pl"])


@pytest.mark.slow
def test_the_default_2pl_predicts_small_tests_hardly_worse_than_the_1pl_which_is_true(small):
    """Each item has a parameter more; by maximum likelihood the log-loss is 0.06 to 0.25 higher."""
    for responses, _, _ in small[:3]:
        losses = irtjax.compare(responses, ("1pl", "2pl"), seed=1).table.set_index("model")["log_loss"]
        assert losses["2pl"] < losses["1pl"] + 0.005


@pytest.mark.slow
def test_the_default_2pl_predicts_25_agents_no_worse_than_the_1pl(shared):
    """On nodes: without a prior of intercepts it was worse by three standard errors."""
    path = shared / "llm_responses" / "swebench_verified_bash_only.npz"
    assert_no_worse(irtjax.compare(irtjax.read_responses(path), ("1pl", "2pl"), seed=1).folds, at_most=0.3592)


@pytest.mark.slow
def test_the_default_2pl_predicts_ten_models_no_worse_than_the_1pl(shared):
    responses = irtjax.read_responses(shared / "llm_responses" / "metabench_mmlu.npz")
    rows = np.sort(np.random.default_rng(0).choice(responses.num_subjects, 10, replace=False))
    assert_no_worse(irtjax.compare(matrix(responses.values[rows]), ("1pl", "2pl"), seed=1).folds, at_most=0.41)


def assert_no_worse(folds, at_most=np.inf):
    losses = folds.pivot(index="fold", columns="model", values="log_loss")
    difference = losses["2pl"] - losses["1pl"]
    assert difference.mean() <= difference.std(ddof=1) / np.sqrt(len(difference))
    assert losses["2pl"].mean() < at_most


@pytest.mark.slow
def test_priors_have_no_say_in_origin_and_unit_of_ability():
    """500 items say more of all intercepts and slopes together than 25 subjects do, and must not."""
    for seed in range(3):
        fit = fit_mml(simulated(25, 250, seed, spread=0.4)[0], "2pl")
        assert {"discrimination", "intercept"} <= set(fit.details["priors"])
        assert fit.ability.mean() == pytest.approx(0, abs=0.05)
        assert fit.ability.var() + np.mean(fit.ability_se**2) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        pytest.param("1pl", (400, 12), marks=pytest.mark.slow),
        ("2pl", (600, 12)),
        pytest.param("2pl", (2000, 60), marks=pytest.mark.slow),
        pytest.param("3pl", (3000, 12), marks=pytest.mark.slow),
    ],
)
def test_where_responses_determine_items_there_are_no_priors(model, shape):
    responses, _, _ = simulated(*shape, seed=2, spread=0.4)
    fit, plain = (fit_mml(responses, model, priors=priors, guessing_prior=(-1.4, 1)) for priors in ("auto", None))
    assert set(fit.details["priors"]) <= {"logit_guessing"}
    np.testing.assert_allclose(fit.parameters.intercept, plain.parameters.intercept, atol=1e-4)
    assert fit.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)
    assert ("none of all items" in fit.summary()) is (model != "3pl")


def test_what_is_given_is_not_estimated():
    responses, _, _ = simulated(30, 20, 0)
    given = fit_mml(responses, "2pl", slope_prior=(1, 0.5), intercept_prior=(0, 2)).details["priors"]
    assert given == {
        "discrimination": pytest.approx({"mean": 1.0, "sd": 0.5, "estimated": False}),
        "intercept": pytest.approx({"mean": 0.0, "sd": 2.0, "estimated": False}),
    }
    assert fit_mml(responses, "2pl", slope_prior=(1, 0.5), priors=None).details["priors"].keys() == {"discrimination"}
