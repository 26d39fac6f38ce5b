"""Parts of the engine for short tests: directions, modes of items, priors, nodes that follow the posteriors."""

import dataclasses

import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit, log_expit, logsumexp
from simulation import by_difficulty, draw

import irtjax
from irtjax.estimation.priors import Priors, prior_terms
from irtjax.estimation.problem import as_array, as_items, layout
from irtjax.estimation.quadrature.climb import Memory, direction
from irtjax.estimation.quadrature.item_score import Counts, log_likelihood, score
from irtjax.estimation.quadrature.item_search import better_modes
from irtjax.estimation.specify import specify
from irtjax.item_models.binary import BINARY
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import rectangular


def test_directions_learn_the_curvature_that_the_preconditioner_lacks():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    curvature, best = root @ root.T + np.eye(8), rng.normal(size=8)
    x, memory = np.zeros(8), Memory()
    while np.linalg.norm(gradient := curvature @ (best - x)) > 1e-9:
        step = direction(gradient, memory, lambda vector: vector / np.diag(curvature))
        step *= (gradient @ step) / (step @ curvature @ step)  # an exact line search
        memory, x = memory.with_pair(step, curvature @ step), x + step
    assert len(memory.steps) < 15
    # along the remembered steps the curvature is known
    last = memory.steps[-1]
    np.testing.assert_allclose(direction(curvature @ last, memory, lambda v: v), last, atol=1e-8)
    assert memory.with_pair(last, -last) is memory, "what bends up says nothing"


def test_prior_terms_are_derivatives():
    rng = np.random.default_rng(0)
    array = rng.normal(0, 2, (6, 4))
    mean, precision = rng.normal(size=(6, 4)), rng.uniform(0.5, 2, (6, 4))
    precision[2, 2:] = 0
    array[2, 2:] = np.inf
    for asinh_slopes in (False, True):
        terms = prior_terms(array, mean, precision, asinh_slopes)
        for k in range(4):
            moved = [array.copy() for _ in range(2)]
            moved[0][:, k] -= 1e-5
            moved[1][:, k] += 1e-5
            low, high = (prior_terms(one, mean, precision, asinh_slopes).log_density for one in moved)
            np.testing.assert_allclose(terms.gradient[:, k], (high - low) / 2e-5, atol=1e-6)
        assert (terms.information >= 0).all()


def of_curves(slope, intercept, lower, upper):
    nodes = rectangular(121)
    c, d = expit(lower), expit(upper)
    p = c + (d - c) * expit(nodes.nodes * slope + intercept)
    number = 5000 * np.exp(nodes.log_weights)[:, None]
    return Counts(BINARY, nodes.nodes, number * p, np.broadcast_to(number, p.shape))


def test_items_leave_worse_modes_and_only_these():
    truth = ItemParameters(
        slope=np.array([[6.0], [-5.0], [1.2], [6.0]]),
        intercept=np.array([-8.0, 3.0, 0.3, -8.0]),
        lower=np.array([-1.5, -2.0, -1.8, -1.5]),
        upper=np.array([3.0, 2.5, 3.0, 3.0]),
    )
    counts = of_curves(truth.slope[:, 0], *truth[1:])
    specification = specify(("4pl",) * 4, priors=Priors(guessing=None, upper=None))
    flat = as_array(truth).copy()
    flat[:2] = [0.05, -0.5, -3.0, 3.0]  # where the first two are stuck
    free = np.array(specification.free)
    free[3] = False  # held, however bad it is
    specification = dataclasses.replace(specification, free=free)
    flat[3] = flat[0]
    begun = as_items(flat)
    found, moved = better_modes(begun, specification, counts)
    assert moved.tolist() == [True, True, False, False]
    gained = log_likelihood(found, counts) - log_likelihood(begun, counts)
    assert (gained[:2] > 100).all()
    assert (gained[2:] == 0).all()
    np.testing.assert_allclose(log_likelihood(found, counts)[:2], log_likelihood(truth, counts)[:2], atol=0.5)
    again, moved = better_modes(truth, dataclasses.replace(specification), counts)
    assert not moved.any()
    np.testing.assert_array_equal(as_array(again), as_array(truth))


def test_the_score_is_the_derivative_of_the_likelihood():
    counts = of_curves(np.array([1.5, -0.7]), np.array([0.3, -1.0]), np.array([-1.5, -2.0]), np.array([2.5, 3.0]))
    array = np.array([[1.0, 0.0, -1.0, 2.0], [0.4, 0.5, -2.0, 2.0]])
    gradient, information = score(as_items(array), counts, asymptotes=True)
    for k in range(4):
        moved = [array.copy() for _ in range(2)]
        moved[0][:, k] -= 1e-5
        moved[1][:, k] += 1e-5
        low, high = (log_likelihood(as_items(one), counts) for one in moved)
        np.testing.assert_allclose(gradient[:, k], (high - low) / 2e-5, rtol=1e-5)
    np.testing.assert_allclose(information, np.swapaxes(information, 1, 2))


def test_the_layout_numbers_every_free_parameter_once():
    specification = specify(["1pl"] * 3 + ["2pl"] * 2 + ["3pl"], anchored=np.arange(6) == 4)
    places = layout(specification)
    assert places.size == (3 + 1) + 2 + 3 + 2  # intercepts and their slope, the free 2PL, the 3PL, the population
    used = np.concatenate([places.items[places.items >= 0], places.mean, places.log_sd])
    assert set(used) == set(range(places.size))
    assert (places.items[:3, 0] == places.num_own).all()
    assert (places.items[4] == -1).all()
    gathered = places.gather(np.arange(places.size, dtype=float))
    np.testing.assert_array_equal(gathered, np.where(places.items >= 0, places.items, 0))
    assert places.add_up(np.ones((6, 4)))[places.num_own] == 3


def exact_log_likelihood(values, items, number=1201):
    """By nodes in [-6, 6] under standard normal weights, whatever the fit did."""
    nodes = rectangular(number)
    logit = nodes.nodes @ items.slope.T + items.intercept
    c, d = expit(items.lower), expit(items.upper)
    log_p, log_q = (
        np.logaddexp(low, np.log(d - c) + log_expit(sign * logit))
        for sign, low in ((1, np.log(np.maximum(c, 1e-300))), (-1, np.log(np.maximum(1 - d, 1e-300))))
    )
    joint = (values == 1).astype(float) @ log_p.T + (values == 0).astype(float) @ log_q.T + nodes.log_weights
    return float(logsumexp(joint, axis=1).sum())


def leaderboard(shared, name):
    found = np.load(shared / "llm_responses" / f"{name}.npz", allow_pickle=False)["responses"]
    return matrix(np.asarray(found).astype(np.int8))


@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
@pytest.mark.parametrize(
    ("name", "model", "reported", "most_iterations"),
    [
        ("metabench_arc", "2pl", -119_840.3, 70),
        pytest.param("metabench_gsm8k", "2pl", -409_792.2, 45, marks=pytest.mark.slow),
        pytest.param("metabench_arc_v2", "4pl", -183_379.2, 210, marks=pytest.mark.slow),
        pytest.param("metabench_mmlu", "3pl", -118_329.7, 300, marks=pytest.mark.slow),  # one slope is over 200
    ],
)
def test_default_fits_of_leaderboards_reach_the_likelihood_that_is_reported(
    shared, name, model, reported, most_iterations
):
    """The highest known: docs/results/leaderboards.md."""
    responses = leaderboard(shared, name)
    fit = irtjax.fit(responses, model)
    exact = exact_log_likelihood(responses.values, fit.parameters)
    assert fit.converged
    assert fit.iterations < most_iterations
    assert fit.log_likelihood == pytest.approx(exact, abs=0.05)
    assert exact == pytest.approx(reported, abs=0.2), "where this moves, so does docs/results/leaderboards.md"
    assert np.isfinite(fit.difficulty_se).all()


@pytest.mark.slow
def test_slopes_of_few_subjects_stay_in_place(shared):
    """25 models × 500 items: without a prior 435 slopes exceed 20."""
    responses = leaderboard(shared, "swebench_verified_bash_only")
    fit = irtjax.fit(responses, "2pl")
    assert fit.converged
    assert np.abs(fit.parameters.slope).max() < 5
    assert np.abs(fit.difficulty).max() < 10
    items = fit.items()
    assert items.extreme.sum() == 65
    assert not items.discriminates[items.extreme == 1].any()
    assert "65 of 500 items were answered right by everyone (1) or by no one (64)" in fit.notes()[0]
    assert len(fit.notes()) == 1 + (~fit.discriminates & ~fit.extreme).any()


@pytest.mark.slow
def test_a_slope_prior_goes_where_it_is_not_needed():
    rng = np.random.default_rng(0)
    theta, a, b = rng.normal(size=1500), rng.lognormal(0.2, 0.4, 60), rng.normal(size=60)
    responses = matrix(draw(rng, by_difficulty(theta, a, b)))
    fits = {prior: irtjax.fit(responses, "2pl", slope_prior=prior) for prior in ("auto", None)}
    assert fits["auto"].details["priors"] == {}
    np.testing.assert_allclose(fits["auto"].difficulty, fits[None].difficulty, atol=1e-3)
    few = irtjax.fit(matrix(responses.values[:60]), "2pl")
    assert set(few.details["priors"]) == {"discrimination"}
