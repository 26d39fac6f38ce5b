"""Fits of grades and categories: against R's mirt, a dense maximum by SciPy, and what must not change them."""

import re

import numpy as np
import pandas as pd
import pytest
from conftest import matrix
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, logsumexp
from scipy.stats import norm

import irtjax
from irtjax.errors import InputError
from irtjax.estimation.families import fit_families
from irtjax.estimation.quadrature import finish
from irtjax.responses.from_arrays import of_grades

MODELS = {"Rasch": "pcm", "2PL": "graded", "nominal_own": "nominal"}
FAST = ("science__rsm", "science__gpcm", "science__graded")
SLOW = (
    "science__Rasch",
    "science__nominal",
    "sim_dif2pl_refgroup__2PL",
    "sim_gpcm__Rasch",
    "sim_gpcm__gpcm",
    "sim_grm__graded",
    "sim_grm_mcar10__graded",
    "sim_nominal__nominal",
    "sst00_19__Rasch",
    "sst00_19__gpcm",
    "sst00_19__graded",
    "sst00_19__nominal_own",
)


def of_table(values):
    """Grades from 0; NaN is a missing one."""
    values = np.asarray(values, float)
    subjects, items = (np.char.mod(form, np.arange(n)) for form, n in zip(("s%d", "i%d"), values.shape, strict=True))
    return of_grades(values, list(subjects), list(items))


class Reference:
    """What mirt found, in the terms of `items.csv`: estimates and standard errors (I, columns)."""

    def __init__(self, folder, item_ids):
        self.log_likelihood = float(pd.read_csv(folder / "fit.csv")["logLik"].iloc[0])
        self.eap = pd.read_csv(folder / "scores_EAP.csv")["theta"].to_numpy()
        self.columns, self.errors = {}, {}
        kind = folder.name.split("__")[1]
        {"nominal": self._nominal, "nominal_own": self._baseline, "rsm": self._rsm}.get(kind, self._thresholds)(
            folder, list(item_ids)
        )

    def _add(self, name, at, size, value, error=np.nan):
        self.columns.setdefault(name, np.full(size, np.nan))[at] = value
        self.errors.setdefault(name, np.full(size, np.nan))[at] = error

    def _thresholds(self, folder, ids):
        """b_k and their errors out of slopes, intercepts and their covariances."""
        values = pd.read_csv(folder / "values_mirt.csv")
        free = pd.read_csv(folder / "vcov_mirt.csv", index_col=0)
        places = {int(name.rsplit(".", 1)[1]): k for k, name in enumerate(free.columns)}
        steps = folder.name.split("__")[1] in ("gpcm", "Rasch")
        for i, name in enumerate(ids):
            rows = values[values["item"] == name].set_index("name")
            top = sum(n[:1] == "d" and n != "d0" for n in rows.index)
            own = ["a1", *(["d"] if "d" in rows.index else [f"d{k}" for k in range(1, top + 1)])]
            estimate = rows.loc[own, "value"].to_numpy(float)
            at = [places.get(int(n)) for n in rows.loc[own, "parnum"]]
            cov = np.array([[0.0 if k is None or n is None else free.iloc[k, n] for n in at] for k in at])
            by_d = np.eye(top, top + 1, 1) - (np.eye(top, top + 1) * (np.arange(top + 1) > 0) if steps else 0)
            b = -by_d @ estimate / estimate[0]
            gradient = -by_d / estimate[0]
            gradient[:, 0] = -b / estimate[0]
            errors = np.sqrt(np.einsum("ik,kl,il->i", gradient, cov, gradient))
            self._add("discrimination", i, len(ids), estimate[0], np.sqrt(cov[0, 0]))
            for k in range(top):
                self._add(f"threshold_{k + 1}", i, len(ids), b[k], errors[k])

    def _rsm(self, folder, ids):
        table = pd.read_csv(folder / "par_mirt.csv")
        for i, name in enumerate(ids):
            rows = table[table["item"] == name].set_index("par")
            steps = rows.loc[[p for p in rows.index if p[0] == "b"]]
            for k, (b, se) in enumerate(zip(steps["est"], steps["se"], strict=True), 1):
                self._add(f"threshold_{k}", i, len(ids), b - rows.loc["c", "est"], se if i == 0 else np.nan)

    def _nominal(self, folder, ids):
        table = pd.read_csv(folder / "par_irt.csv")
        for i, name in enumerate(ids):
            rows = table[table["item"] == name].set_index("par")
            for par, (value, se) in zip(rows.index, rows[["est", "se"]].to_numpy(float), strict=True):
                kind = {"a": "slope", "c": "intercept"}[par[0]]
                self._add(f"{kind}_{int(par[1:]) - 1}", i, len(ids), value, se)

    def _baseline(self, folder, ids):
        table = pd.read_csv(folder / "par_nominal_baseline0.csv")
        for i, name in enumerate(ids):
            rows = table[table["item"] == name]
            for kind, column in (("slope", "alpha"), ("intercept", "c")):
                each = np.concatenate([[0.0], rows[column].to_numpy(float)])
                for k, value in enumerate(each - each.mean()):
                    self._add(f"{kind}_{k}", i, len(ids), value)


@pytest.mark.parametrize("name", [*FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_fits_are_those_of_mirt(shared, name):
    data, kind = name.split("__")
    table = pd.read_csv(shared / "oracle2" / "data" / f"{data}.csv").drop(columns="group", errors="ignore")
    responses = of_grades(table.to_numpy(float), list(table.index.astype(str)), list(table.columns))
    reference = Reference(shared / "oracle2" / "a" / name, table.columns)
    fit = fit_families(responses, MODELS.get(kind, kind), priors=None)
    assert fit.status == "converged"
    assert fit.log_likelihood == pytest.approx(reference.log_likelihood, abs=1e-3)
    sign = 1.0
    if "slope_0" in reference.columns:  # which way is up is told by no slope
        sign = np.sign(np.nansum(reference.columns["slope_1"] * fit.item_columns["slope_1"]))
    np.testing.assert_allclose(sign * fit.ability[: len(reference.eap)], reference.eap, atol=1e-4)
    for column, expected in reference.columns.items():
        found, error = (fit.item_columns[column + end] for end in ("", "_se"))
        found = sign * found if column.startswith("slope") else found
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        off, far = np.abs(found - expected), np.maximum(1e-4, 1e-3 * error)
        assert not (off > far).any(), (column, off / far)
        known = np.isfinite(reference.errors[column])
        np.testing.assert_allclose(error[known], reference.errors[column][known], rtol=0.01, atol=1e-12)


RNG = np.random.default_rng(0)
NODES = np.linspace(-6, 6, 81)
WEIGHTS = np.log(norm.pdf(NODES) / norm.pdf(NODES).sum())
SLOPES, TOPS = np.array([1.2, 0.8, 1.6, 1.0]), np.array([3, 2, 3, 1])


def log_p_graded(theta, a, d):
    """Log-probabilities (Q, K + 1), with P(y ≥ k) = σ(a θ + d_k)."""
    x = a * theta[:, None] + d
    first, last = log_expit(-x[:, :1]), log_expit(x[:, -1:])
    gap = np.maximum(d[:-1] - d[1:], 1e-12)
    return np.concatenate([first, log_expit(x[:, :-1]) + log_expit(-x[:, 1:]) + np.log(-np.expm1(-gap)), last], axis=1)


def log_p_gpcm(theta, a, d):
    """The same with P(y = k) ∝ exp(k a θ + d_1 + … + d_k)."""
    return log_softmax(np.pad(np.cumsum(a * theta[:, None] + d, axis=1), ((0, 0), (1, 0))), axis=1)


CURVES = {"graded": log_p_graded, "gpcm": log_p_gpcm}


def simulated(num_subjects):
    """Grades of so many subjects on 4 items, with up to four categories, some missing."""
    theta, values = RNG.normal(size=num_subjects), np.empty((num_subjects, 4))
    for i, (a, top) in enumerate(zip(SLOPES, TOPS, strict=True)):
        p = np.exp(log_p_graded(theta, a, np.linspace(1.2, -1.2, top) if top > 1 else np.array([0.2])))
        values[:, i] = (RNG.random((num_subjects, 1)) > p.cumsum(axis=1)).sum(axis=1)
    values[RNG.random(values.shape) < 0.06] = np.nan
    return values


WITHOUT_MAXIMUM = simulated(150)  # of the slope of the third item
TABLE = simulated(300)


@pytest.fixture(scope="module")
def fits():
    return {model: fit_families(of_table(TABLE), model, priors=None) for model in ("graded", "gpcm", "pcm")}


def dense(model):
    """Maximum and covariance of slopes and intercepts (a, d_1 … d_K of each item), by SciPy."""
    sizes = 1 + TOPS

    def loss(vector):
        joint = np.tile(WEIGHTS, (len(TABLE), 1))
        for i, part in enumerate(np.split(vector, np.cumsum(sizes)[:-1])):
            log_p, seen = CURVES[model](NODES, part[0], part[1:]), ~np.isnan(TABLE[:, i])
            joint[seen] += log_p.T[TABLE[seen, i].astype(int)]
        return -logsumexp(joint, axis=1).sum()

    start = np.concatenate([[1.0, *np.linspace(1, -1, top)] if top > 1 else [1.0, 0.0] for top in TOPS])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-5})
    step = 1e-3 * np.eye(len(start))
    hessian = [[loss(found.x + a + b) - loss(found.x + a - b) - loss(found.x - a + b) + loss(found.x - a - b)
                for b in step] for a in step]  # fmt: skip
    return found.x, -found.fun, np.linalg.inv(np.array(hessian) / (4 * 1e-6))


@pytest.mark.parametrize("model", ["graded", "gpcm"])
def test_a_fit_is_the_dense_maximum(fits, model):
    fit, (best, log_likelihood, covariance) = fits[model], dense(model)
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=1e-4)
    at = 0
    for i, top in enumerate(TOPS):
        part, errors = best[at : at + 1 + top], covariance[at : at + 1 + top, at : at + 1 + top]
        at += 1 + top
        assert fit.item_columns["discrimination"][i] == pytest.approx(part[0], abs=3e-3)
        assert fit.item_columns["discrimination_se"][i] == pytest.approx(np.sqrt(errors[0, 0]), rel=0.01)
        for k in range(1, top + 1):
            gradient = np.zeros(1 + top)
            gradient[0], gradient[k] = part[k] / part[0] ** 2, -1 / part[0]
            assert fit.item_columns[f"threshold_{k}"][i] == pytest.approx(-part[k] / part[0], abs=3e-3)
            assert fit.item_columns[f"threshold_{k}_se"][i] == pytest.approx(
                np.sqrt(gradient @ errors @ gradient), rel=0.01
            )


def test_a_slope_without_maximum_is_told():
    fit = fit_families(of_table(WITHOUT_MAXIMUM), "graded", priors=None)
    assert fit.details["without_maximum"] == ["i2"]


def test_errors_of_too_many_parameters_are_those_of_each_item(fits, monkeypatch):
    monkeypatch.setattr(finish, "MOST_PARAMETERS", 1)
    found = fit_families(of_table(TABLE), "graded", priors=None)
    for name in ("discrimination_se", "threshold_1_se"):
        np.testing.assert_allclose(found.item_columns[name], fits["graded"].item_columns[name], rtol=0.25)
    np.testing.assert_allclose(found.ability, fits["graded"].ability)


def test_nothing_but_the_order_of_subjects_and_items_changes(fits):
    rows, columns = RNG.permutation(len(TABLE)), np.array([2, 0, 3, 1])
    found = fit_families(of_table(TABLE[rows][:, columns]), "graded", priors=None)
    assert found.log_likelihood == pytest.approx(fits["graded"].log_likelihood, abs=1e-6)
    np.testing.assert_allclose(found.ability, fits["graded"].ability[rows], atol=1e-4)
    for name in ("threshold_1", "threshold_1_se", "discrimination"):
        expected = fits["graded"].item_columns[name][columns]
        np.testing.assert_allclose(found.item_columns[name], expected, rtol=1e-3)


def test_reversed_categories_reverse_abilities(fits):
    for model in ("graded", "gpcm"):
        found = fit_families(of_table(TOPS - TABLE), model, priors=None, standard_errors=False)
        sign = np.sign(found.item_columns["discrimination"][0])
        assert found.log_likelihood == pytest.approx(fits[model].log_likelihood, abs=1e-6)
        np.testing.assert_allclose(found.ability, -sign * fits[model].ability, atol=1e-4)


def test_missing_responses_are_none():
    """A subject without responses, and an item column of which some are missing: as if they were not there."""
    with_one = np.concatenate([TABLE, np.full((1, 4), np.nan)])
    alone = fit_families(of_table(TABLE), "graded", priors=None, standard_errors=False)
    found = fit_families(of_table(with_one), "graded", priors=None, standard_errors=False)
    assert found.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-6)
    assert found.ability[-1] == pytest.approx(0, abs=1e-6)
    assert found.ability_se[-1] == pytest.approx(1, abs=1e-3)


def test_models_are_nested(fits):
    """Rating scale in partial credit in generalised partial credit, and gpcm in nominal, by log-likelihood."""
    same = np.minimum(np.nan_to_num(TABLE[:, :3], nan=0.0), 2)
    found = [
        fit_families(of_table(same), model, priors=None, standard_errors=False)
        for model in ("rsm", "pcm", "gpcm", "nominal")
    ]
    log_likelihoods = [fit.log_likelihood for fit in found]
    assert (np.diff(log_likelihoods) > -1e-6).all()
    assert [fit.num_parameters for fit in found] == [3 + 1 + 1, 6 + 1, 9, 12]


def test_pcm_of_two_categories_is_the_rasch_model():
    right = np.nan_to_num(TABLE >= 1).astype(np.int8)
    found = fit_families(of_table(right), "pcm", priors=None)
    expected = irtjax.fit(matrix(right), model="rasch", priors=None)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(found.item_columns["threshold_1"], expected.item_columns["difficulty"], atol=1e-4)
    np.testing.assert_allclose(found.item_columns["threshold_1_se"], expected.item_columns["difficulty_se"], rtol=1e-3)
    np.testing.assert_allclose(found.ability, expected.ability, atol=1e-4)


def test_what_cannot_be_fitted_is_refused():
    one = TABLE.copy()
    one[:, 2] = 1
    with pytest.raises(InputError, match="item 'i2'"):
        fit_families(of_table(one), "graded")
    with pytest.raises(InputError, match="`priors` 'vague', expected 'auto'"):
        fit_families(of_table(TABLE), "graded", priors="vague")
    with pytest.raises(InputError, match="unknown model 'grade'"):
        fit_families(of_table(TABLE), "grade")
    with pytest.raises(InputError, match="3 models for 4 items"):
        fit_families(of_table(TABLE), ["graded"] * 3)
    with pytest.raises(InputError, match="have one dimension"):
        fit_families(of_table(TABLE), "pcm", dims=2)
    with pytest.raises(InputError, match="rsm needs all items on one scale"):
        fit_families(of_table(TABLE), "rsm", priors=None)


@pytest.mark.parametrize("model", ["graded", "gpcm"])
def test_two_dimensions_by_brute_force(model):
    """The log-likelihood on a square of nodes, which is the highest in every free parameter."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(300, 2))
    x = 1.4 * theta[:, [0, 0, 0, 1, 1, 1]] + 0.6 * theta[:, [1, 0, 1, 1, 0, 1]]
    table = (rng.random((300, 6, 1)) < expit(x[:, :, None] + np.array([0.8, -0.8]))).sum(axis=2)
    alone, fit = (
        fit_families(of_table(table), model, dims=dims, priors=None, standard_errors=dims > 1) for dims in (1, 2)
    )
    assert fit.status == "converged"
    assert fit.log_likelihood > alone.log_likelihood
    nodes = np.stack(np.meshgrid(NODES[::2], NODES[::2]), axis=2).reshape(-1, 2)
    weights = norm.logpdf(nodes).sum(axis=1)
    weights -= logsumexp(weights)

    def log_likelihood(slopes, d):
        of_items = [CURVES[model](nodes @ slope, 1.0, own).T for slope, own in zip(slopes, d, strict=True)]
        return logsumexp(weights + sum(log_p[table[:, i]] for i, log_p in enumerate(of_items)), axis=1).sum()

    slopes = np.stack([fit.item_columns[f"discrimination_{k}"] for k in (1, 2)], axis=1)
    d = np.stack([fit.item_columns[f"intercept_{k}"] for k in (1, 2)], axis=1)
    best = log_likelihood(slopes, d)
    assert fit.log_likelihood == pytest.approx(best, abs=1e-3)
    for array, name in ((slopes, "discrimination"), (d, "intercept")):
        for i, k in np.argwhere(np.isfinite(array)):
            if fit.item_columns[f"{name}_{k + 1}_se"][i] > 0:
                step = np.zeros(array.shape)
                step[i, k] = 0.3
                ends = [
                    log_likelihood(*((slopes + sign * step, d) if array is slopes else (slopes, d + sign * step)))
                    for sign in (1, -1)
                ]
                assert max(ends) < best + 1e-3


@pytest.mark.parametrize("others", [0.5, 0.4])
def test_shares_that_are_grades_are_told(others):
    """Of equal shares the likelihood has no maximum; one share that differs is enough for one."""
    values = np.random.default_rng(0).choice([0.0, 0.5, 1.0], (30, 4))
    values[0, 1:] = others
    with pytest.warns(irtjax.FitWarning) as said:
        irtjax.fit(values, "ordered_beta", max_iterations=1)
    (told,) = [str(one.message) for one in said if "shares between 0 and 1" in str(one.message)]
    assert re.match(r"all \d+ shares between 0 and 1 of item 'item_1' are 0\.5", told)
    assert f"({4 if others == 0.5 else 1} such items)" in told
    assert told.endswith("fit `graded`")
