"""Fit of items, subjects, pairs and whole tests with categories, counts and shares: by enumeration and brute force."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from simulation import by_difficulty, draw

import irtjax
from experiments.reports import item_fit as report
from irtjax import InputError
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.sparse import of_matrix
from irtjax.scale import mean_squares, tested
from irtjax.scale.collapsing import collapse
from irtjax.scale.fit_statistics import _curves
from irtjax.scale.local_dependence import Residuals, pairs
from irtjax.scale.margins import features
from irtjax.scale.misfit import lz, misfit
from irtjax.scale.misfit import mean_squares as of_right_wrong
from irtjax.scale.overall_fit import fit_of_margins
from irtjax.scale.person_fit import standardised_log_likelihoods
from irtjax.scale.posteriors import nodes_of
from irtjax.scale.response_curves import category_curves, worth
from irtjax.scale.sum_scores import rest_distributions, sum_distribution
from irtjax.scoring.family_items import known_items

THETA = np.random.default_rng(5).normal(size=300)
LINE = np.linspace(-9, 9, 1801)


def ids(values):
    return [f"s{j}" for j in range(values.shape[0])], [f"i{i}" for i in range(values.shape[1])]


def three_grades(theta=THETA, seed=1):
    """Grades 0, 1 and 2 of four items."""
    rng = np.random.default_rng(seed)
    uniform = rng.uniform(size=(len(theta), 4))
    steps = [by_difficulty(theta, 1.4, np.linspace(-0.8, 0.8, 4) + shift) for shift in (-0.6, 0.6)]
    return sum((uniform < p).astype(float) for p in steps)


@pytest.fixture(scope="module")
def fit():
    values = three_grades()
    return irtjax.fit(of_grades(values, *ids(values)), "graded", priors=None, standard_errors=False)


def test_sums_of_categories_by_enumeration():
    rng, top = np.random.default_rng(0), np.array([2, 1, 3])
    p = np.zeros((2, 3, 4))
    for i, highest in enumerate(top):
        p[:, i, : highest + 1] = rng.dirichlet(np.ones(highest + 1), 2)
    expected = np.zeros((7, 2))
    for pattern in itertools.product(*(range(k + 1) for k in top)):
        expected[sum(pattern)] += np.prod([p[:, i, k] for i, k in enumerate(pattern)], axis=0)
    np.testing.assert_allclose(sum_distribution(p, top), expected, rtol=1e-12)
    for item, rest in rest_distributions(p, top):
        others = np.delete(np.arange(3), item)
        np.testing.assert_allclose(rest, sum_distribution(p[:, others], top[others]), rtol=1e-12)


def test_rare_categories_are_joined_within_a_sum_and_then_rare_sums():
    expected = np.array([[5.0, 0.4, 3.0, 2.0], [6.0, 4.0, 3.0, 2.0], [9.0, 0.2, 0.3, 0.4]])
    found = collapse(np.round(expected), expected)
    # in the first sum the rarest joins the rarer neighbour; in the last three become one, and all columns are common
    np.testing.assert_allclose(found[0, :, 1], [5.0, 3.4, 2.0, 0.0])
    np.testing.assert_allclose(found[1:, :, 1].sum(axis=0), [15.0, 4.9, 3.0, 2.0])
    assert found[:, :, 1].sum() == pytest.approx(expected.sum())


def test_c2_is_what_the_matrices_say(fit):
    """Ξ over all response patterns and Δ by differences of the parameters, written out."""
    values, known = np.asarray(fit.responses.values), known_items(fit)
    nodes = np.linspace(-6, 6, 121)
    weights = norm.pdf(nodes) / norm.pdf(nodes).sum()
    patterns = np.array(list(itertools.product(range(3), repeat=4)))
    pairs = list(itertools.combinations(range(4), 2))
    margins = np.stack(
        [
            *((patterns[:, i] == k) * 1.0 for i in range(4) for k in (1, 2)),
            *(patterns[:, i] * patterns[:, j] for i, j in pairs),
        ]
    )

    def expected(array):
        items = PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], known.parameters.top)
        p = category_curves(known.model, items, nodes).p
        return weights @ np.prod(p[:, np.arange(4)[None], patterns], axis=2)

    array = np.concatenate(
        [known.parameters.slope, known.parameters.intercept[:, None], known.parameters.others], axis=1
    ).astype(float)
    probability = expected(array)
    jacobian = []
    for at in np.ndindex(array.shape):
        step = np.zeros(array.shape)
        step[at] = 1e-5
        jacobian.append(margins @ (expected(array + step) - expected(array - step)) / 2e-5)
    jacobian = np.stack(jacobian, axis=1)
    seen = margins @ np.array([(values == pattern).all(1).mean() for pattern in patterns])
    covariance = (margins * probability) @ margins.T - np.outer(margins @ probability, margins @ probability)
    inverse = np.linalg.inv(covariance)
    residual = seen - margins @ probability
    middle = inverse - inverse @ jacobian @ np.linalg.solve(jacobian.T @ inverse @ jacobian, jacobian.T @ inverse)
    found = irtjax.overall_fit(fit)
    assert (found.name, found.degrees_of_freedom) == ("C2", len(residual) - 12)
    assert found.m2 == pytest.approx(300 * residual @ middle @ residual, rel=1e-5)
    # nothing estimated: the whole quadratic form
    held = _curves(tested.of_fit(fit, fit.responses.choose_subjects(np.arange(300)[::-1])))
    whole = fit_of_margins(values, held, features(known.parameters.top, indicators=True), "C2")
    assert whole.m2 == pytest.approx(300 * residual @ inverse @ residual, rel=1e-5)
    assert whole.degrees_of_freedom == len(residual)


def test_what_overall_fit_refuses(fit):
    with pytest.raises(InputError, match=r"M2\* of 4 items has no degrees of freedom"):
        irtjax.overall_fit(fit, statistic="m2*")
    with pytest.raises(InputError, match="unknown statistic 'm3', expected c2 or m2"):
        irtjax.overall_fit(fit, statistic="m3")
    with pytest.raises(InputError, match="C2 needs 30 subjects, and there are 20"):
        irtjax.overall_fit(fit, fit.responses.choose_subjects(np.arange(20)))
    with pytest.raises(InputError, match="no_such_folder: expected a fit, or the folder of one"):
        irtjax.overall_fit("no_such_folder")
    with pytest.raises(InputError, match="unknown method 'best'"):
        irtjax.item_fit(fit, method="best")


def test_integrated_mean_squares_by_brute_force(fit):
    few = fit.responses.choose_subjects(np.arange(8))
    values = np.array(few.values)
    values[0, 1] = -1
    test = tested.of_fit(fit, dataclasses.replace(few, values=values))
    p = category_curves(test.model, test.items, LINE).p
    mean = p @ np.arange(3.0)
    variance = p @ np.arange(3.0) ** 2 - mean**2
    square, standardised, spread = np.zeros((3, 8, 4))
    for j, i in itertools.product(range(8), range(4)):
        others = [k for k in range(4) if k != i and values[j, k] >= 0]
        rest = norm.pdf(LINE) * np.prod([p[:, k, values[j, k]] for k in others], axis=0)
        rest /= rest.sum()
        chance = rest @ p[:, i]
        terms = np.array([rest * p[:, i, c] @ ((c - mean[:, i]) ** 2 / variance[:, i]) for c in range(3)]) / chance
        assert chance @ terms == pytest.approx(1)  # under the model
        spread[j, i] = chance @ (terms - 1) ** 2
        if values[j, i] >= 0:
            own = rest * p[:, i, values[j, i]] / chance[values[j, i]]
            square[j, i] = own @ (values[j, i] - mean[:, i]) ** 2
            standardised[j, i] = terms[values[j, i]]
    (part,) = mean_squares.terms(test, nodes_of(test))
    seen = values >= 0
    np.testing.assert_allclose(part.square, square[seen], rtol=1e-6)
    np.testing.assert_allclose(part.standardised, standardised[seen], rtol=1e-6)
    np.testing.assert_allclose(part.spread_of_standardised, spread[seen], rtol=1e-6)
    found = mean_squares.integrated(test, tested.own_parameters(test))[0]
    np.testing.assert_allclose(found.outfit, standardised.sum(axis=0) / seen.sum(axis=0), rtol=1e-6)
    assert np.isnan(found.outfit_t).all()  # of eight subjects


def test_person_fit_by_hand(fit):
    test = tested.of_fit(fit, fit.responses.choose_subjects(np.arange(20)))
    theta, sd = np.zeros(20), 1.3
    for j, y in enumerate(test.values):  # posterior modes, where Σ score = θ / sd²

        def slope(x, y=y):
            return category_curves(test.model, test.items, np.array([x])).by_theta[0, np.arange(4), y].sum() - x / sd**2

        theta[j] = brentq(slope, -6, 6, xtol=1e-12)
    values = test.values.astype(int)
    values[3] = -1
    found = standardised_log_likelihoods(values, category_curves(test.model, test.items, theta))
    assert np.isnan(found.lz_star[3])
    for j in (0, 17):
        at = category_curves(test.model, test.items, theta[[j]])
        log_p, score, p = at.log_p[0], at.by_theta[0], at.p[0]
        own = np.arange(4), values[j]
        mean = (p * log_p).sum(axis=1)
        variance = (p * (log_p - mean[:, None]) ** 2).sum(axis=1)
        c = (p * log_p * score).sum() / (p * score**2).sum()
        assert found.lz[j] == pytest.approx((log_p[own] - mean).sum() / np.sqrt(variance.sum()))
        weighted = log_p - c * score
        spread = (p * (weighted - (p * weighted).sum(axis=1)[:, None]) ** 2).sum()
        # Snijders' c r_0, with r_0 = -θ / sd²
        star = ((log_p[own] - mean).sum() - c * theta[j] / sd**2) / np.sqrt(spread)
        assert found.lz_star[j] == pytest.approx(star, abs=1e-9)


def pairs_of(observed, residuals, same_slope):
    single = of_matrix(ResponseMatrix(np.where(observed, 1, -1).astype(np.int8), *ids(observed)))
    one = np.ones(single.num_answers)
    return pairs(single, Residuals(residuals[observed], same_slope * one, one, one), np.inf)


def test_residual_correlations_over_those_who_answered_both():
    rng = np.random.default_rng(2)
    residuals, observed = rng.normal(size=(40, 3)), rng.uniform(size=(40, 3)) < 0.8
    both = observed[:, 0] & observed[:, 2]
    found = pairs_of(observed, residuals, same_slope=0.0)
    assert (found.first[1], found.second[1], found.number[1]) == (0, 2, both.sum())
    assert found.q3[1] == pytest.approx(np.corrcoef(residuals[both, 0], residuals[both, 2])[0, 1])
    same = np.ones((50, 6))  # parallel items, and no population
    np.testing.assert_allclose(pairs_of(same > 0, same, same_slope=1.0).expected, -1 / 5, rtol=1e-6)


@pytest.mark.slow
def test_right_and_wrong_answers_have_the_same_statistics_either_way():
    values = draw(np.random.default_rng(3), by_difficulty(THETA, 1.2, np.linspace(-1, 1, 6))).astype(np.int8)
    values[:20, 0] = -1
    scored = irtjax.ResponseMatrix(values, *ids(values))
    fit = irtjax.fit(scored, "2pl", priors=None, standard_errors=False)
    items, subjects = irtjax.item_fit(fit), irtjax.person_fit(fit)
    of_items, of_subjects = of_right_wrong(fit.parameters, values, *fit.population)
    for name in ("infit", "outfit"):
        np.testing.assert_allclose(items[name], of_items[name], rtol=1e-5)
        np.testing.assert_allclose(subjects[name], of_subjects[name], rtol=1e-5)
    np.testing.assert_allclose(subjects.lz_star, lz(fit.parameters, values, *fit.population), atol=1e-6)
    assert irtjax.overall_fit(fit).name == "M2"
    # of other subjects nothing was estimated
    renamed = irtjax.ResponseMatrix(values, [f"t{j}" for j in range(300)], scored.item_ids)
    assert (irtjax.item_fit(fit, renamed).degrees_of_freedom == items.degrees_of_freedom + 2).all()
    pairs = irtjax.local_dependence(fit)
    assert len(pairs) == 15
    assert not (pairs.p_holm < 0.01).any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["counts", "shares"])
def test_counts_and_shares_have_mean_squares_and_residual_correlations(kind):
    rng = np.random.default_rng(4)
    p = by_difficulty(THETA[:120], 1.2, np.linspace(-1, 1, 5))
    if kind == "counts":
        values = rng.binomial(20, p).astype(float)
        values[:, 4] = rng.binomial(20, rng.permutation(p[:, 4]))  # of someone else
        fit = irtjax.fit(of_counts(values, 20, *ids(values)), "binomial", standard_errors=False)
    else:
        values = rng.beta(15 * p, 15 * (1 - p))
        fit = irtjax.fit(of_shares(values, *ids(values), ends=False), "beta", standard_errors=False)
    items, subjects = irtjax.item_fit(fit), irtjax.person_fit(fit)
    assert items.s_x2.notna().all() if kind == "counts" else items.s_x2.isna().all()  # sums of shares have no groups
    assert subjects.lz.notna().all()
    assert items.infit[:4].between(0.7, 1.3).all()
    assert items.outfit_t[:4].abs().max() < 4
    if kind == "counts":
        assert items.outfit[4] > 2
    assert subjects.infit.mean() == pytest.approx(1, abs=0.3 if kind == "shares" else 0.8)
    assert irtjax.local_dependence(fit).q3.abs().max() < 0.6
    with pytest.raises(InputError, match="is of items with categories, and item 'i0' has counts or shares"):
        irtjax.overall_fit(fit)


def test_the_report_says_what_was_found(fit, tmp_path):
    subjects = pd.DataFrame(
        {"subject_id": list("abc"), "num_responses": 4, "ability": 0.0, "lz_star": [0.1, -2.0, 0.4]}
    )
    subjects = subjects.assign(p_value=norm.cdf(subjects.lz_star), infit=1.0, outfit=1.0)
    found = report.Found(irtjax.item_fit(fit), subjects, irtjax.local_dependence(fit), "C2 needs 30 subjects")
    lines = report.write(found, fit, {"fit": "runs/x"}, 3, tmp_path)
    assert lines[0] == "Whole test: not computed. C2 needs 30 subjects."
    assert lines[1].startswith("Items: S-X² (Holm) is significant for 0 of 4; infit or outfit has |t| > 3 for 0 of 4")
    assert lines[2] == "Pairs: Q3 (Holm) is significant for 0 of 6."
    assert (tmp_path / "local_dependence.csv").read_text().count("\n") == 4
    few = found._replace(subjects=subjects.assign(lz_star=1.0), overall=irtjax.overall_fit(fit))
    lines = report.write(few, fit, {"fit": "runs/x"}, 3, tmp_path)
    assert "Whole test: C2 = " in (tmp_path / "report.md").read_text()
    assert "the items were fitted to few subjects and follow their responses" in lines[3]


@pytest.mark.slow
def test_misfit_of_grades(fit):
    found = misfit(fit)
    assert list(found.items) == ["infit", "outfit"]
    assert list(found.subjects) == ["infit", "outfit", "lz"]


@pytest.mark.slow
def test_categories_without_order_are_worth_their_slopes():
    values = three_grades()
    fit = irtjax.fit(of_grades(values, *ids(values)), "nominal", priors=None, standard_errors=False)
    slopes = np.stack([fit.item_columns[f"slope_{k}"] for k in range(3)], axis=1)
    np.testing.assert_allclose(worth(tested.of_fit(fit)), slopes, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["graded", "gpcm"])
def test_false_alarms_under_the_model_are_few(model):
    items, subjects, pairs, overall = [], [], [], []
    for seed in range(20):
        theta = np.random.default_rng(100 + seed).normal(size=1000)
        rng = np.random.default_rng(seed)
        a, b = rng.lognormal(0.2, 0.3, 10), np.sort(rng.normal(0, 1, (10, 3)), axis=1)
        x = a[None, :, None] * (theta[:, None, None] - b[None])
        if model == "graded":
            values = (rng.uniform(size=(1000, 10, 1)) < 1 / (1 + np.exp(-x))).sum(axis=2).astype(float)
        else:
            p = np.exp(np.concatenate([np.zeros((1000, 10, 1)), np.cumsum(x, axis=2)], axis=2))
            p /= p.sum(axis=2, keepdims=True)
            values = (rng.uniform(size=(1000, 10, 1)) > np.cumsum(p, axis=2)).sum(axis=2).astype(float)
        fit = irtjax.fit(of_grades(values, *ids(values)), model, priors=None, standard_errors=False)
        items.append(irtjax.item_fit(fit))
        subjects.append(irtjax.person_fit(fit).p_value)
        pairs.append(irtjax.local_dependence(fit).p_value)
        overall.append(irtjax.overall_fit(fit).p_value)
    share = {name: np.mean([(table[name] < 0.05).mean() for table in items]) for name in ("p_value",)}
    share |= {name: np.mean([(table[name].abs() > 1.96).mean() for table in items]) for name in ("infit_t", "outfit_t")}
    share |= {name: np.mean(np.concatenate(part) < 0.05) for name, part in (("lz", subjects), ("q3", pairs))}
    share["c2"] = np.mean(np.array(overall) < 0.05)
    print(share)
    assert max(share[name] for name in ("p_value", "infit_t", "outfit_t", "q3")) < 0.1
    assert 0.03 < share["lz"] < 0.07
    assert share["c2"] <= 0.2
