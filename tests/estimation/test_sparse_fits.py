"""Fits by the answer against fits of the whole matrix, and standard errors of many items against a matrix of all."""

import numpy as np
import pytest
from conftest import matrix
from simulation import by_difficulty, draw

import irtjax
from benchmarks.sparse_data import simulate
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import item_rest_correlations
from irtjax.estimation.quadrature import common_parameters, finish
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.sparse import SparseResponses, of_matrix

CASES = {
    "2pl": {"model": "2pl"},
    "rasch": {"model": "rasch"},
    "3pl": {"model": "3pl"},
    "without priors": {"model": "2pl", "priors": None},
    "groups": {"model": "2pl", "groups": True},
    "covariates": {"model": "1pl", "covariates": True},
    "anchors": {"model": "2pl", "anchors": True},
}


@pytest.fixture(scope="module")
def responses() -> dict[float, tuple[ResponseMatrix, np.ndarray]]:
    """Of 500 subjects to 14 items, one of which everyone answered right; by the share that is missing."""
    found = {}
    for missing in (0.0, 0.6, 0.9):
        rng = np.random.default_rng(4)
        theta, b = rng.normal(size=500), rng.normal(size=14)
        values = draw(rng, by_difficulty(theta, rng.lognormal(0, 0.3, 14), b), missing)
        values[:, 3] = np.where(values[:, 3] >= 0, 1, -1)
        there = (values >= 0).any(axis=1)
        found[missing] = matrix(values[there]), theta[there]
    return found


@pytest.fixture(scope="module")
def adaptive() -> tuple[SparseResponses, np.ndarray]:
    """Of 1,500 subjects, each asked 10 of 60 items that suit them: what links easy and hard items hangs together."""
    drawn = simulate(1500, 60, 10, "adaptive")
    return drawn.responses, drawn.theta


pytestmark = pytest.mark.filterwarnings("ignore::irtjax.FitWarning")


def options(case: str, theta: np.ndarray, anchors) -> dict:
    given = dict(CASES[case])
    if given.get("groups"):
        given["groups"] = np.where(theta + np.sin(np.arange(len(theta))) > 0, "a", "b").tolist()
    if given.get("covariates"):
        given["covariates"] = {"x": theta + np.sin(np.arange(len(theta)))}
    if given.get("anchors"):
        given["anchors"] = anchors
    return given


def same(one: irtjax.Fit, other: irtjax.Fit, tolerance: float = 1e-8) -> None:
    """The same status and steps, and the same figures."""
    assert (one.status, one.iterations) == (other.status, other.iterations)
    np.testing.assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-8)
    for name, column in one.item_columns.items():
        np.testing.assert_allclose(column, other.item_columns[name], rtol=tolerance, atol=tolerance, err_msg=name)
    np.testing.assert_allclose(one.ability, other.ability, atol=tolerance)
    np.testing.assert_allclose(one.ability_se, other.ability_se, atol=tolerance)


@pytest.mark.parametrize(
    ("case", "missing"), [("2pl", 0.0), ("2pl", 0.9), ("rasch", 0.9), *((case, 0.6) for case in CASES)]
)
def test_equals_the_fit_of_the_matrix(responses, case, missing):
    whole, theta = responses[missing]
    anchors = irtjax.fit(whole).items().iloc[[0, 5, 9]] if CASES[case].get("anchors") else None
    given = options(case, theta, anchors)
    dense, sparse = (irtjax.fit(data, sparse=data is not whole, **given) for data in (whole, of_matrix(whole)))
    same(dense, sparse)
    if "groups" in given:
        np.testing.assert_allclose(dense.groups()["mean_se"], sparse.groups()["mean_se"], atol=1e-8)
    if "covariates" in given:
        np.testing.assert_allclose(
            dense.covariates()["coefficient_se"], sparse.covariates()["coefficient_se"], atol=1e-8
        )


@pytest.mark.slow
def test_equals_the_fit_of_the_matrix_in_two_dimensions(responses):
    whole, _ = responses[0.6]
    same(irtjax.fit(whole, dims=2, sparse=False), irtjax.fit(of_matrix(whole), dims=2))


def test_order_of_answers_subjects_and_items_does_not_matter(responses):
    whole, _ = responses[0.6]
    sparse = of_matrix(whole)
    rng = np.random.default_rng(0)
    order = rng.permutation(sparse.num_answers)
    again = SparseResponses.from_triples(
        sparse.subjects[order], sparse.items[order], sparse.answers[order], whole.subject_ids, whole.item_ids
    )
    assert again == sparse
    fit = irtjax.fit(sparse)
    rows, columns = rng.permutation(whole.num_subjects), rng.permutation(whole.num_items)
    other = irtjax.fit(sparse.choose_subjects(rows).choose_items(columns))
    np.testing.assert_allclose(other.difficulty, fit.difficulty[columns], atol=1e-7)
    np.testing.assert_allclose(other.ability, fit.ability[rows], atol=1e-7)


def test_an_item_that_nobody_answered_is_named(responses):
    whole, _ = responses[0.6]
    sparse = of_matrix(whole)
    more = SparseResponses(
        sparse.starts, sparse.items, sparse.answers, sparse.subject_ids, [*sparse.item_ids.tolist(), "empty"]
    )
    with pytest.raises(InputError, match="item 'empty' has no responses"):
        irtjax.fit(more)


@pytest.mark.parametrize("case", ["2pl", "rasch", "3pl", "groups", "covariates"])
def test_errors_of_each_item_are_those_of_the_matrix(adaptive, case, monkeypatch):
    sparse, theta = adaptive
    given = options(case, theta, None)
    if case == "3pl":  # priors that are estimated on the way carry what rounding did before the fit was at rest
        given |= {"slope_prior": (0.9, 0.5), "intercept_prior": (0, 2), "guessing_prior": (-1.4, 1)}
    exact = irtjax.fit(sparse, **given)
    monkeypatch.setattr(finish, "MOST_PARAMETERS", 1)
    dense, each = (irtjax.fit(sparse, sparse=by_answer, **given) for by_answer in (False, True))
    assert each.details["standard_errors"] == dense.details["standard_errors"] == "each item"
    same(dense, each)
    if "groups" in given:
        for name in ("mean_se", "sd_se"):
            np.testing.assert_allclose(each.groups()[name], exact.groups()[name], rtol=1e-4)
    if "covariates" in given:
        error = "coefficient_se"
        np.testing.assert_allclose(each.covariates()[error], exact.covariates()[error], rtol=1e-4)


@pytest.mark.parametrize("case", ["groups", "covariates"])
def test_what_conjugate_gradients_did_not_solve_has_no_errors(adaptive, case, monkeypatch):
    sparse, theta = adaptive
    monkeypatch.setattr(finish, "MOST_PARAMETERS", 1)
    monkeypatch.setattr(common_parameters, "MOST_STEPS", 1)
    fit = irtjax.fit(sparse, sparse=True, **options(case, theta, None))
    errors = fit.groups()["mean_se"].to_numpy()[1:] if case == "groups" else fit.covariates()["coefficient_se"]
    assert np.isnan(errors).all()
    assert np.isfinite(fit.difficulty_se).all()


def test_what_is_chosen_and_told(responses, monkeypatch):
    whole, _ = responses[0.9]
    fit = irtjax.fit(whole, sparse=True)
    assert fit.responses == of_matrix(whole)
    assert "answers in " in fit.summary()
    assert "answer by answer" in repr(fit)
    assert "answer by answer" not in repr(irtjax.fit(whole))
    monkeypatch.setattr("irtjax.estimation.cells_or_answers.LARGE", 100)
    monkeypatch.setattr("irtjax.responses.sparse.LARGE", 100)
    monkeypatch.setattr("irtjax.responses.sparse.FEW", 0.2)
    fit = irtjax.fit(whole)
    assert "answer by answer" in repr(fit)
    assert fit.responses is whole
    assert "answer by answer" not in repr(irtjax.fit(whole, sparse=False))
    assert "answer by answer" not in repr(irtjax.fit(whole, integration="normal"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"integration": "normal"}, "`sparse`: a fit with `integration`"),
        ({"dims": 4}, "`sparse`: a fit with `dims`"),
        ({"features": np.zeros((14, 1))}, "`sparse`: a fit with `features`"),
    ],
)
def test_what_goes_through_the_whole_matrix_says_so(responses, given, message):
    whole, _ = responses[0.9]
    with pytest.raises(InputError, match=message):
        irtjax.fit(whole, **{"sparse": True, **given})


def test_blocks_without_a_link_are_named(responses):
    whole, _ = responses[0.0]
    values = np.array(whole.values)
    values[:250, :7], values[250:, 7:] = -1, -1
    with pytest.warns(irtjax.FitWarning, match="no answer links 2 blocks of subjects × items: 250 × 7"):
        irtjax.fit(of_matrix(matrix(values)))


def test_items_go_with_the_rest_whatever_was_asked(responses):
    whole, _ = responses[0.0]
    by_answer = item_rest_correlations(of_matrix(whole).values)
    np.testing.assert_allclose(by_answer, item_rest_correlations(np.asarray(whole.values)), atol=1e-6)
    # of hard items the able are asked, of easy ones the others: what is right of the rest says nothing by itself
    drawn = simulate(4000, 200, 6, "ability", "1pl").responses
    fair, unfair = (item_rest_correlations(values) for values in (drawn.values, drawn.read().values))
    assert np.nanmean(fair) > 3 * np.nanmean(unfair)
