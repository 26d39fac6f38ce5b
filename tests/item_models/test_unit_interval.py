"""Shares from 0 to 1: against the Beta distribution of SciPy, numerical integrals, differences, and the oracle."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln, expit, log_expit
from scipy.stats import beta

from irtjax.estimation.families import fit_families
from irtjax.estimation.quadrature import finish
from irtjax.item_models.listing import columns, model_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.item_models.unit_interval import ORDERED_BETA
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.joining import beside

THETA = np.array([[-2.0], [0.3], [1.1]])
OTHERS = {"beta": np.array([[0.5], [2.0]]), "ordered_beta": np.array([[0.5, -2.0, 1.2], [2.0, -1.0, 0.4]])}
SLOPE, INTERCEPT = np.array([1.3, -0.6]), np.array([0.2, -0.8])
TOP = np.ones(2, int)


@pytest.fixture(params=["beta", "ordered_beta"])
def family(request):
    return request.param


def items(family, array=None):
    array = np.column_stack([SLOPE, INTERCEPT, OTHERS[family]]) if array is None else array
    return PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], TOP)


def density(family, y, q, i):
    """Of an item at a node, as the page of the model has it."""
    x, others = SLOPE[i] * THETA[q, 0] + INTERCEPT[i], OTHERS[family][i]
    mu, phi = expit(x), np.exp(others[0])
    between = beta.pdf(y, mu * phi, (1 - mu) * phi)
    if family == "beta":
        return between
    low, high = others[1], others[1] + np.exp(others[2])
    inner = expit(x - low) - expit(x - high)
    return np.where(y == 0, 1 - expit(x - low), np.where(y == 1, expit(x - high), inner * between))


def integral(family, q, i):
    """Statistics (N, S) and their weights (N,): the rectangle rule on the scale of logits, and the ends."""
    t = np.arange(-500, 500, 0.02)
    mu, phi = expit(SLOPE[i] * THETA[q, 0] + INTERCEPT[i]), np.exp(OTHERS[family][i, 0])
    logs = np.column_stack([log_expit(t), log_expit(-t)])
    weights = 0.02 * np.exp(logs @ [mu * phi, (1 - mu) * phi] - betaln(mu * phi, (1 - mu) * phi))
    if family == "beta":
        return logs, weights
    ends = np.array([density(family, np.array(y), q, i) for y in (0, 1)])
    at = np.zeros((len(t) + 2, 4))
    at[:-2, 2:], at[-2, 0], at[-1, 1] = logs, 1, 1
    return at, np.concatenate([weights * (1 - ends.sum()), ends])


def test_densities_means_and_covariances(family):
    model = model_of((family,) * 2, TOP)
    ends = np.array([] if family == "beta" else [0.0, 1.0])
    y = np.concatenate([np.array([1e-6, 0.2, 0.5, 0.97]), ends])
    values = np.column_stack([y, y])
    found = model.natural(items(family), THETA, asymptotes=True)
    statistics = model.statistics(values)
    size = model.per_item
    with jax.enable_x64(True):
        moments = model.moments(items(family), THETA, asymptotes=True)
    for i in range(2):
        own = slice(i * size, (i + 1) * size)
        base = model.families[0].log_base(values, None)[:, i]
        for q in range(len(THETA)):
            log_p = statistics[:, own] @ found.eta[q, own] - found.log_normalizer[q, i] + base
            np.testing.assert_allclose(log_p, np.log(density(family, y, q, i)), rtol=1e-9, atol=1e-9)

            at, weights = integral(family, q, i)
            mean = weights @ at
            np.testing.assert_allclose(moments.mean[q, own], mean, rtol=1e-8)
            covariance = (at - mean).T @ ((at - mean) * weights[:, None])
            np.testing.assert_allclose(moments.covariance[q, i], covariance, rtol=1e-7, atol=1e-9)

            share = np.concatenate([np.exp(at[: len(at) - len(ends), -2]), ends])
            found_worth = [part[q, i] for part in model.worth(items(family), THETA, np.zeros((2, size + 1)))]
            expected = weights @ share, weights @ (share - weights @ share) ** 2
            np.testing.assert_allclose(found_worth, expected, rtol=1e-7)


def test_derivatives_are_those_by_differences(family):
    model, here = model_of((family,) * 2, TOP), np.column_stack([SLOPE, INTERCEPT, OTHERS[family]])
    residual = np.random.default_rng(0).normal(size=(len(THETA), 2 * model.per_item))

    def eta(step):
        return np.asarray(model.natural(items(family, here + step), THETA, asymptotes=True).eta)

    def slopes(step, of):
        return np.asarray(of(model.moments(items(family, here + step), THETA, asymptotes=True)))

    size, width = here.shape[1] - 1, 1e-5
    with jax.enable_x64(True):
        moments = model.moments(items(family), THETA, asymptotes=True)
        curvature = np.asarray(model.curvature(items(family), THETA, residual))
        for k in range(size):
            step = np.zeros_like(here)
            step[:, k + 1] = width  # intercept, others
            found = moments.by_predictor if k == 0 else moments.by_others[:, :, k - 1]
            np.testing.assert_allclose(found, (eta(step) - eta(-step)) / (2 * width), rtol=1e-6, atol=1e-7)
            for n in range(size):
                by = lambda m, n=n: m.by_predictor if n == 0 else m.by_others[:, :, n - 1]  # noqa: E731
                change = residual * (slopes(step, by) - slopes(-step, by)) / (2 * width)
                expected = change.reshape(len(THETA), 2, -1).sum(axis=2)
                np.testing.assert_allclose(curvature[:, :, n, k], expected, rtol=1e-5, atol=1e-6)


def test_far_out_everything_is_finite(family):
    model = model_of((family,) * 2, TOP)
    with jax.enable_x64(True):
        found = model.natural(items(family), THETA * 1e4, asymptotes=True)
        moments = model.moments(items(family), THETA * 1e4, asymptotes=True)
        for array in (*found, *moments):
            assert np.isfinite(array).all()
        assert all(np.isfinite(one).all() for row in moments.weights(np.ones((3, 2))) for one in row)


def test_columns_and_their_inverse(family):
    model = model_of((family,) * 2, TOP)
    here = items(family)
    size = 2 + OTHERS[family].shape[1]
    found = columns(model, here, np.broadcast_to(np.eye(size), (2, size, size)))
    np.testing.assert_allclose(found["difficulty"], -INTERCEPT / SLOPE)
    np.testing.assert_allclose(found["precision"], np.exp(OTHERS[family][:, 0]))
    np.testing.assert_allclose(found["precision_se"], found["precision"])
    if family == "ordered_beta":
        np.testing.assert_allclose(found["cut_1"] - found["cut_0"], np.exp(OTHERS[family][:, 2]))
        np.testing.assert_allclose(found["cut_1_se"], np.sqrt(1 + np.exp(2 * OTHERS[family][:, 2])))
    again = model.families[0].restored(found, TOP)
    for one, other in zip(again, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


ORACLES = {
    "binomial": ("binomial2pl", "sim_binomial_k", ()),
    "beta": ("beta2pl", "sim_beta", ("log_phi",)),
    "ordered_beta": ("ordbeta2pl", "sim_ordbeta", ("log_phi", "c0", "log_c1_minus_c0")),
}


def ids(table):
    return [f"s{j}" for j in range(len(table))], [f"i{i}" for i in range(table.shape[1])]


@pytest.mark.parametrize("model", ORACLES)
def test_fits_equal_the_oracle(shared, model):
    name, data, others = ORACLES[model]
    folder = shared / "oracle2"
    table = pd.read_csv(folder / "data" / f"{data}.csv").to_numpy(float)
    if model == "binomial":
        trials = pd.read_csv(folder / "data" / "sim_binomial_truth.csv").n.to_numpy()
        fit = fit_families(of_counts(table, trials, *ids(table)), model, priors=None)
    else:
        fit = fit_families(of_shares(table, *ids(table)), model, priors=None)
    assert fit.converged
    of_fit, par, eap = (pd.read_csv(folder / "b" / f"{name}_{part}.csv") for part in ("fit", "par", "scores_EAP"))
    assert fit.log_likelihood == pytest.approx(of_fit.logLik[0], abs=1e-3)
    found = {"a": fit.parameters.slope[:, 0], "d": fit.parameters.intercept}
    found |= {each: fit.parameters.others[:, k] for k, each in enumerate(others)}
    by_name = {each: par[par.par == each] for each in found}
    for each, reference in by_name.items():
        assert np.abs((found[each] - reference.est) / reference.se_obs_info).max() < 1e-3
    errors = {"a": fit.item_columns["discrimination_se"]}
    if others:
        errors["log_phi"] = fit.item_columns["precision_se"] / fit.item_columns["precision"]
    if len(others) > 1:
        errors["c0"] = fit.item_columns["cut_0_se"]
    for each, error in errors.items():
        np.testing.assert_allclose(error, by_name[each].se_obs_info, rtol=0.01)
    np.testing.assert_allclose(fit.ability[:200], eap.theta_eap, atol=1e-4)
    np.testing.assert_allclose(fit.ability_se[:200], eap.se_eap, atol=1e-4)


@pytest.fixture(scope="module")
def simulated():
    """Shares with ends, grades, and counts of the same 400 subjects."""
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(400, 1))
    x = theta * np.array([0.8, 1.2, 1.5, 1.0]) + np.array([-0.5, 0.0, 0.4, 1.0])
    low, high, phi = -2.0, 2.5, 5.0
    uniform = rng.uniform(size=x.shape)
    mu = expit(x)
    shares = np.where(uniform < 1 - expit(x - low), 0.0, rng.beta(mu * phi, (1 - mu) * phi))
    shares = np.where(uniform > 1 - expit(x - high), 1.0, np.clip(shares, 0.0, 1.0))
    grades = (theta * 1.1 + rng.logistic(size=(400, 3)) > np.array([-1.0, 0, 1])[:, None, None]).sum(axis=0)
    counts = rng.binomial(6, expit(theta - np.array([-0.7, 0.8])))
    subjects = [f"s{j}" for j in range(400)]
    return (
        of_shares(shares, subjects, [f"share{i}" for i in range(4)]),
        of_grades(grades.astype(float), subjects, [f"grade{i}" for i in range(3)]),
        of_counts(counts, 6, subjects, [f"count{i}" for i in range(2)]),
    )


@pytest.mark.slow
def test_kinds_side_by_side(simulated):
    shares = simulated[0]
    models = ["ordered_beta"] * 4 + ["graded"] * 3 + ["binomial"] * 2
    fit = fit_families(beside(*simulated), models, priors=None)
    assert fit.converged
    # parts that share nothing but abilities: their sum has the likelihood of all at the abilities of the nodes
    nodes = np.linspace(-8, 8, 321)[:, None]
    weights = np.exp(-0.5 * nodes[:, 0] ** 2)
    total = np.log(weights / weights.sum())[None, :]
    at = 0
    for part, name in zip(simulated, ("ordered_beta", "graded", "binomial"), strict=True):
        here = slice(at, at + part.num_items)
        at += part.num_items
        own = fit.parameters.take(here)
        model = model_of((name,) * part.num_items, own.top)
        size = model.families[0].num_others(int(own.top.max()))
        found = model.natural(own._replace(others=own.others[:, :size]), nodes, asymptotes=True)
        trials = 1 if part.trials is None else part.trials
        values = np.asarray(part.values)
        log_p = model.statistics(values) @ np.asarray(found.eta).T
        total = total + log_p - np.broadcast_to(trials, values.shape) @ np.asarray(found.log_normalizer).T
        total = total + model.log_base(values, part.trials)[:, None]
    largest = total.max(axis=1)
    by_hand = (largest + np.log(np.exp(total - largest[:, None]).sum(axis=1))).sum()
    assert fit.log_likelihood == pytest.approx(by_hand, abs=1e-4)
    np.testing.assert_array_equal(np.isnan(fit.item_columns["cut_0"]), [False] * 4 + [True] * 5)
    assert np.abs(fit.item_columns["discrimination"] - [0.8, 1.2, 1.5, 1, 1.1, 1.1, 1.1, 1, 1]).max() < 0.4
    alone = fit_families(shares, "ordered_beta", priors=None)
    difference = np.abs(alone.item_columns["difficulty"] - fit.item_columns["difficulty"][:4])
    assert (difference < 3 * alone.item_columns["difficulty_se"]).all()
    with_priors = fit_families(beside(*simulated), models)
    assert with_priors.converged


@pytest.mark.slow
def test_no_exact_share_no_cut(simulated):
    shares, *_ = simulated
    table = np.array(shares.values)
    table[:, 0] = np.where(table[:, 0] == 0, 0.01, table[:, 0])
    table[:, 1] = np.where(table[:, 1] == 1, 0.99, table[:, 1])
    fit = fit_families(of_shares(table, shares.subject_ids, shares.item_ids), "ordered_beta", priors=None)
    assert fit.converged
    np.testing.assert_array_equal(np.isinf(fit.item_columns["cut_0"]), [True, False, False, False])
    np.testing.assert_array_equal(np.isinf(fit.item_columns["cut_1"]), [False, True, False, False])
    assert fit.num_parameters == 4 * 5 - 2
    again = ORDERED_BETA.restored(fit.item_columns, np.ones(4, int))
    np.testing.assert_allclose(again.others[2:], fit.parameters.others[2:], rtol=1e-9)


@pytest.mark.slow
def test_errors_item_by_item(simulated, monkeypatch):
    """Those of long tests, which leave out what errors of different items have in common but for the scale."""
    models = ["ordered_beta"] * 4 + ["graded"] * 3 + ["binomial"] * 2
    with jax.enable_x64(True):
        one = fit_families(beside(*simulated), models, priors=None)
        monkeypatch.setattr(finish, "MOST_PARAMETERS", 0)
        other = fit_families(beside(*simulated), models, priors=None)
    assert other.details["standard_errors"] == "each item"
    for name in ("difficulty_se", "discrimination_se", "precision_se", "cut_0_se", "cut_1_se", "threshold_2_se"):
        np.testing.assert_allclose(other.item_columns[name], one.item_columns[name], rtol=0.15, err_msg=name)
