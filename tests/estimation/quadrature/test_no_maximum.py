"""Likelihoods without a finite maximum, or with more than one: the fit ends soon, and says so."""

import json

import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit
from simulation import by_difficulty, draw, simulate_model

import irtjax
from irtjax import FitWarning
from irtjax.estimation.priors import NormalPrior
from irtjax.fits.status import Status
from irtjax.kernels.quadrature import rectangular


def noise(num_subjects=60, num_items=12):
    return matrix((np.random.default_rng(0).random((num_subjects, num_items)) < 0.6).astype(np.int8))


def steps(num_items=10):
    """Everyone who has an item right has all easier ones right."""
    return matrix((np.arange(num_items + 2)[:, None] > np.arange(1, num_items + 1)).astype(np.int8))


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(
    ("dims", "most_iterations"), [(2, 100), *(pytest.param(dims, 150, marks=pytest.mark.slow) for dims in (3, 4))]
)
def test_slopes_that_run_off_are_held_and_named(tmp_path, dims, most_iterations):
    with pytest.warns(FitWarning, match=r"of 12 items, such as 'i0', have no finite estimate.*`slope_prior`"):
        fit = irtjax.fit(noise(), "2pl", dims=dims)
    assert fit.status is Status.NO_MAXIMUM
    assert not fit.converged
    assert fit.iterations < most_iterations  # 3,000 were not enough
    off = np.isin(fit.responses.item_ids, fit.details["without_maximum"])
    assert 0 < off.sum() < 6
    errors = np.stack([values for name, values in fit.item_columns.items() if name.endswith("_se")])
    assert np.isnan(errors[:, off]).all()
    assert np.isfinite(errors[:, ~off]).all()
    assert np.abs(fit.parameters.slope[~off]).max() < 8 < np.abs(fit.parameters.slope[off]).max(axis=1).min()
    fit.save(tmp_path)
    assert json.loads((tmp_path / "fit.json").read_text(), parse_constant=refuse)["status"] == "no finite maximum"
    assert "inf" not in (tmp_path / "items.csv").read_text()


def test_a_dropped_prior_is_taken_up_again_where_an_item_runs_off():
    """Responses determine the slopes of most items, so that their prior is dropped, but not that of the last one."""
    responses, theta, _ = simulate_model("2pl", 500, 20, seed=3)
    values = np.concatenate([responses.values, (theta[:, None] > 1).astype(np.int8)], axis=1)
    values[25:, 20] = -1
    fit = irtjax.fit(matrix(values[:, :20]))
    assert fit.details["maximum_likelihood"]
    fit = irtjax.fit(matrix(values))
    assert fit.converged
    assert not fit.details["maximum_likelihood"]
    assert fit.details["without_maximum"] == []
    assert 0 < fit.item_columns["discrimination"][20] < 20


def test_a_prior_gives_them_a_maximum():
    fit = irtjax.fit(noise(), "2pl", dims=2, slope_prior=NormalPrior(0.0, 2.0))
    assert fit.converged
    assert fit.details["without_maximum"] == []


@pytest.mark.parametrize("model", [pytest.param("2pl", marks=pytest.mark.slow), "1pl", "rasch"])
def test_steps_have_no_finite_slope(model):
    with pytest.warns(FitWarning, match="10 of 10 items, such as 'i0', have no finite estimate"):
        fit = irtjax.fit(steps(), model, priors=None)
    assert fit.status is Status.NO_MAXIMUM
    assert np.isnan(fit.difficulty_se).all()
    assert (np.diff(fit.difficulty) > 0).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:of 2 items 2 correlate negatively")
def test_what_responses_do_not_determine_has_no_errors(tmp_path):
    """One item gives one number, the share of right answers, for two parameters; two items give three for four."""
    for model, num_items in (("rasch", 1), ("1pl", 1), ("2pl", 1), ("2pl", 2)):
        with pytest.warns(FitWarning, match="do not determine the estimates"):
            fit = irtjax.fit(matrix(noise().values[:, :num_items]), model, priors=None)
        assert fit.status is Status.NOT_IDENTIFIED
        assert np.isnan(fit.difficulty_se).all()
    fit.save(tmp_path)
    assert json.loads((tmp_path / "fit.json").read_text(), parse_constant=refuse)["status"] == "not identified"


def test_flat_items_have_no_difficulty():
    """Two subjects with opposite answers: slopes end at 0."""
    with pytest.warns(FitWarning):
        fit = irtjax.fit([[1, 0, 1, 0], [0, 1, 0, 1]], "2pl", priors=None)
    assert np.isnan(fit.difficulty).all() or np.isfinite(fit.difficulty).all()
    assert not np.isinf(fit.items().select_dtypes("number")).to_numpy().any()


def test_abilities_without_variance_are_reported():
    rng = np.random.default_rng(1)
    values = (rng.random((300, 20)) < 0.6).astype(np.int8)  # coin tosses that agree less than by chance
    for model in ("rasch", "1pl"):
        with pytest.warns(FitWarning, match="abilities have no variance"):
            irtjax.fit(matrix(values), model)


@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
@pytest.mark.parametrize("dims", [1, 2])
def test_most_slopes_are_positive(dims):
    """The likelihood does not know right from left."""
    rng = np.random.default_rng(0)
    values = (rng.random((300, 20)) < 0.6).astype(np.int8)
    model = "1pl" if dims == 1 else "2pl"
    fit = irtjax.fit(matrix(values), model, dims=dims)
    assert (fit.parameters.slope.sum(axis=0) > 0).all()
    expected = np.asarray(fit.ability).reshape(300, dims) @ fit.parameters.slope.sum(axis=0)
    assert np.corrcoef(expected, values.sum(axis=1))[0, 1] > 0.2


@pytest.mark.slow
def test_steep_slopes_that_are_determined_stand():
    """Items of slope 30 at one place tell each other's."""
    rng = np.random.default_rng(2)
    theta, a, b = rng.normal(size=4000), np.full(12, 30.0), rng.normal(0, 0.02, 12)
    a[:6], b[:6] = 1.5, rng.normal(size=6)
    fit = irtjax.fit(matrix(draw(rng, by_difficulty(theta, a, b))), "2pl")
    assert fit.converged
    slope = fit.item_columns["discrimination"]
    assert (np.abs(slope[6:] - 30) < 4 * fit.item_columns["discrimination_se"][6:]).all()
    assert 20 < slope[6:].max() < 60


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:1 of 10 items.*separate the subjects so sharply")
def test_nodes_become_finer_where_a_steep_slope_has_a_maximum():
    """The first nodes of two dimensions tell slopes up to 16 from steps; some samples like this have no maximum."""
    rng = np.random.default_rng(2)
    slope = np.concatenate([rng.uniform(0.5, 1.5, (6, 2)), np.tile([18.0, 12.0], (4, 1))])
    slope[0, 1] = 0.0
    intercept = np.concatenate([rng.normal(size=6), rng.normal(0, 0.3, 4)])
    theta = rng.normal(size=(600, 2))
    fit = irtjax.fit(matrix(draw(rng, expit(theta @ slope.T + intercept))), "2pl", dims=2)
    assert fit.converged
    assert fit.details["nodes"] > 31**2
    assert np.abs(fit.parameters.slope).max() > 16


def test_extreme_items_add_their_likelihood_in_several_dimensions():
    values = np.concatenate([noise(80, 10).values, np.ones((80, 1), np.int8)], axis=1)
    fit = irtjax.fit(matrix(values), "2pl", dims=2, slope_prior=NormalPrior(0.0, 1.0))
    nodes = rectangular(61, dims=2)
    p = expit(nodes.nodes @ fit.parameters.slope.T + fit.parameters.intercept)
    joint = (values == 1) @ np.log(p).T + (values == 0) @ np.log1p(-p).T + nodes.log_weights
    assert fit.log_likelihood == pytest.approx(np.logaddexp.reduce(joint, axis=1).sum(), abs=1e-6)
