"""Origin, unit and rotation of ability: what must stay stays, and the rest is found by brute force."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import minimize
from simulation import draw, probability

from irtjax.estimation.anchor_scale import anchors_only, on_scale
from irtjax.estimation.item_step import log_prior
from irtjax.estimation.normal.scale import (
    LatentScale,
    align_to_anchors,
    by_scale,
    project_out_scale,
    rotate,
    standardize,
)
from irtjax.estimation.priors import NormalPrior, Priors
from irtjax.estimation.specify import specify
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.models import ItemParameters

SUBJECTS, ITEMS = 30, 8
WEIGHT = (np.arange(SUBJECTS) < 25).astype(float)  # the last five are padding
SEEN = WEIGHT > 0


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def state_of(dims, seed=0):
    rng = np.random.default_rng(seed)
    infinite = np.full(ITEMS, np.inf)
    items = ItemParameters(rng.normal(1, 0.5, (ITEMS, dims)), rng.normal(size=ITEMS), -infinite, infinite)
    roots = rng.normal(0, 0.3, (SUBJECTS, dims, dims + 1))
    posterior = Posterior(rng.normal(0.7, 1.6, (SUBJECTS, dims)), roots @ roots.transpose(0, 2, 1))
    return jax.tree.map(jnp.asarray, LatentScale(items, posterior, np.zeros(dims), np.ones(dims)))


def logits(state):
    """The mean (J, I) of each logit under the posterior, and its variance."""
    slope = np.asarray(state.items.slope)
    mean = np.asarray(state.posterior.mean) @ slope.T + np.asarray(state.items.intercept)
    return mean, np.einsum("ik,jkl,il->ji", slope, state.posterior.covariance, slope)


def moments(posterior):
    """Mean and covariance of the population that these posteriors make up, without the padding."""
    mean, covariance = (np.asarray(leaf)[SEEN] for leaf in posterior)
    return mean.mean(axis=0), np.cov(mean.T, bias=True).reshape(2 * mean.shape[1:]) + covariance.mean(axis=0)


def standardized(state, specification, last=None):
    last = state.posterior.mean if last is None else last
    return standardize(state, last, jnp.asarray(WEIGHT), jax.tree.map(jnp.asarray, specification))


@pytest.mark.parametrize("dims", [1, 3])
def test_the_population_gets_mean_0_and_covariance_1_and_every_probability_stays(dims):
    # slopes above the diagonal are free while iterations go on
    state, specification = state_of(dims), specify(["2pl"] * ITEMS, dims=dims).without_rotation()
    found = standardized(state, specification)
    mean, covariance = moments(found.posterior)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(covariance, np.eye(dims), atol=1e-12)
    np.testing.assert_array_equal(found.mean, 0)
    np.testing.assert_array_equal(found.sd, 1)
    for got, expected in zip(logits(found), logits(state), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)


def test_of_all_frames_the_nearest_to_the_last_is_taken():
    state, last = state_of(3), np.random.default_rng(1).normal(size=(SUBJECTS, 3))
    found = standardized(state, specify(["2pl"] * ITEMS, dims=3).without_rotation(), jnp.asarray(last))
    mean, covariance = moments(state.posterior)
    white = (np.asarray(state.posterior.mean) - mean) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    turn, _ = orthogonal_procrustes(white[SEEN], last[SEEN])
    np.testing.assert_allclose(found.posterior.mean, white @ turn, atol=1e-12)


def test_moments_that_are_not_fixed_are_found():
    state = state_of(1)
    mean, covariance = moments(state.posterior)
    rasch = standardized(state, specify(["rasch"] * ITEMS))
    anchored = standardized(state, specify(["2pl"] * ITEMS, anchored=np.arange(ITEMS) < 3))
    for found, origin in ((rasch, 0.0), (anchored, mean)):
        np.testing.assert_allclose(found.mean, origin, atol=1e-12)
        np.testing.assert_allclose(found.sd, np.sqrt(covariance[0]), atol=1e-12)
        np.testing.assert_array_equal(found.items.slope, state.items.slope)
        for got, expected in zip(logits(found), logits(state), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-12)
    np.testing.assert_array_equal(anchored.posterior.mean, state.posterior.mean)


def test_a_move_loses_what_the_scale_would_take_back():
    """What is left are the residuals of a regression on the origin, and on the abilities for unit and rotation."""
    rng = np.random.default_rng(0)
    for dims, types, anchored, basis in (
        (1, "2pl", False, lambda mean: np.column_stack([WEIGHT, mean])),
        (3, "2pl", False, lambda mean: np.column_stack([WEIGHT, mean])),
        (1, "rasch", False, lambda mean: WEIGHT[:, None]),
        (1, "2pl", True, lambda mean: np.zeros((SUBJECTS, 1))),
    ):
        mean, move = rng.normal(size=(2, SUBJECTS, dims)) * WEIGHT[:, None]
        specification = specify([types] * ITEMS, dims=dims, anchored=anchored & (np.arange(ITEMS) < 3))
        left = project_out_scale(*map(jnp.asarray, (move, mean, WEIGHT)), specification)
        x = basis(mean)
        np.testing.assert_allclose(left, move - x @ np.linalg.lstsq(x, move, rcond=None)[0], atol=1e-12)


def nodes_of(posterior):
    """Abilities (Q, J) around the means, and their weights (Q,)."""
    places, weights = np.polynomial.hermite_e.hermegauss(21)
    mean, variance = np.asarray(posterior.mean)[:, 0], np.asarray(posterior.covariance)[:, 0, 0]
    return mean + places[:, None] * np.sqrt(variance), weights / weights.sum()


def expected_log_likelihood(values, items, posterior):
    theta, weights = nodes_of(posterior)
    p = np.stack([probability(items, at) for at in theta])
    return weights @ np.where(values == 1, np.log(p), np.log1p(-p)).sum(axis=(1, 2))


def subject_sums(values, items, posterior):
    """Expected gradient (J, 1) and information (J, 1, 1) of 2PL responses in each ability."""
    theta, weights = nodes_of(posterior)
    p, a = np.stack([probability(items, at) for at in theta]), np.asarray(items.slope)[:, 0]
    gradient, information = weights @ ((values - p) @ a), weights @ ((p * (1 - p)) @ a**2)
    return jnp.asarray(gradient)[:, None], jnp.asarray(information)[:, None, None]


def moved(posterior, origin, log_unit):
    """Of abilities θ exp(t) + o."""
    unit = np.exp(log_unit)
    return Posterior(posterior.mean * unit + origin, posterior.covariance * unit**2)


def answered(state):
    return draw(np.random.default_rng(2), probability(state.items, state.posterior.mean))


def test_derivatives_by_origin_and_unit_by_brute_force():
    state = state_of(1)
    values, items, posterior = answered(state), state.items, state.posterior
    gradient, _ = by_scale(posterior, subject_sums(values, items, posterior))
    h, steps = 1e-3, np.eye(2) * 1e-3

    def value(scale):
        return expected_log_likelihood(values, items, moved(posterior, *scale))

    np.testing.assert_allclose(gradient, [(value(s) - value(-s)) / (2 * h) for s in steps], rtol=1e-4)

    # information is that about abilities which are known without error
    known = posterior._replace(covariance=jnp.zeros_like(posterior.covariance))
    _, information = by_scale(known, subject_sums(values, items, known))

    def of_known(scale):
        at = known._replace(mean=known.mean * (1 + scale[1]) + scale[0])
        return expected_log_likelihood(values, items, at)

    second = [
        [(of_known(s + t) - of_known(s - t) - of_known(t - s) + of_known(-s - t)) / (4 * h**2) for t in steps]
        for s in steps
    ]
    np.testing.assert_allclose(information, -np.array(second), rtol=1e-4)


GIVEN = Priors(slope=NormalPrior(1.0, 0.3), intercept=NormalPrior(0.5, 0.7))


@pytest.mark.parametrize("case", ["2pl", "rasch", "2pl with priors"])
def test_anchors_find_their_scale_and_the_other_items_follow(case):
    """From abilities on another scale than the anchors' to where likelihood and priors that are given are highest."""
    types, priors = case.split()[0], GIVEN if "priors" in case else Priors()
    specification = specify([types] * ITEMS, anchored=np.arange(ITEMS) < 3, priors=priors)
    specification = jax.tree.map(jnp.asarray, specification)
    state = state_of(1)
    items = state.items._replace(slope=jnp.ones((ITEMS, 1))) if types == "rasch" else state.items
    values = draw(np.random.default_rng(2), probability(items, state.posterior.mean))
    only = anchors_only(items, specification)
    np.testing.assert_array_equal(only.slope[:3], items.slope[:3])
    np.testing.assert_array_equal(only.slope[3:], 0)
    began = LatentScale(items, Posterior(state.posterior.mean * 1.5 - 1.0, state.posterior.covariance), 0.0, 1.0)
    found, posterior = began.items, began.posterior
    for _ in range(25):
        sums = subject_sums(values, only, posterior)
        found, posterior, _ = align_to_anchors(found, posterior, sums, specification, False)

    def at(scale):
        return scale[0], scale[1] if types == "2pl" else 0.0

    def loss(scale):
        there = on_scale(items, jnp.asarray(at(scale)), specification)
        of_anchors = expected_log_likelihood(
            values[:, :3], items.take(np.arange(3)), moved(began.posterior, *at(scale))
        )
        return -of_anchors - float(log_prior(there, specification).sum())

    best = minimize(loss, [0, 0], tol=1e-8).x
    np.testing.assert_allclose(posterior.mean, moved(began.posterior, *at(best)).mean, atol=1e-4)
    np.testing.assert_allclose(posterior.covariance, moved(began.posterior, *at(best)).covariance, atol=1e-4)
    ended = LatentScale(found, posterior, 0.0, 1.0)
    for got, expected in zip(logits(ended), logits(began), strict=True):
        np.testing.assert_allclose(got[:, 3:], expected[:, 3:], atol=1e-12)
    for got, expected in zip(found, items, strict=True):
        np.testing.assert_array_equal(got[:3], expected[:3])


def test_estimated_priors_move_along_and_hold_nothing():
    options = {"anchored": np.arange(ITEMS) < 3, "priors": GIVEN}
    estimated = jax.tree.map(jnp.asarray, specify(["2pl"] * ITEMS, estimate=("slope", "intercept"), **options))
    none = jax.tree.map(jnp.asarray, specify(["2pl"] * ITEMS, anchored=options["anchored"]))
    state = state_of(1)
    sums = subject_sums(answered(state), anchors_only(state.items, none), state.posterior)
    items, posterior, followed = align_to_anchors(state.items, state.posterior, sums, estimated, True)
    plain, as_plain, _ = align_to_anchors(state.items, state.posterior, sums, none, True)
    np.testing.assert_allclose(posterior.mean, as_plain.mean, atol=1e-12)
    np.testing.assert_allclose(items.slope, plain.slope, atol=1e-12)
    free = slice(3, None)
    for found, before, of, column in (
        (items, state.items, lambda one: np.arcsinh(one.slope[:, 0]), 0),
        (items, state.items, lambda one: one.intercept, 1),
    ):
        change = np.asarray(of(found) - of(before))[free].mean()
        assert abs(change) > 0.01
        np.testing.assert_allclose((followed.prior_mean - estimated.prior_mean)[free, column].mean(), change, atol=1e-6)
    held = align_to_anchors(state.items, state.posterior, sums, estimated, False)
    assert np.abs(held[1].mean - posterior.mean).max() > 0.01
    np.testing.assert_array_equal(held[2].prior_mean, estimated.prior_mean)


def test_one_step_towards_anchors_is_bounded():
    state, specification = state_of(1), specify(["2pl"] * ITEMS, anchored=np.arange(ITEMS) < 3)
    specification = jax.tree.map(jnp.asarray, specification)
    sums = 1e3 * jnp.ones((SUBJECTS, 1)), jnp.ones((SUBJECTS, 1, 1))
    _, posterior, _ = align_to_anchors(state.items, state.posterior, sums, specification, False)
    mean = np.asarray(state.posterior.mean)
    unit = np.sqrt(np.asarray(posterior.covariance / state.posterior.covariance))
    np.testing.assert_allclose(posterior.mean, mean * unit[0, 0] + 0.5, atol=1e-12)
    assert np.abs(np.log(unit)).max() <= 0.5 + 1e-12
    # anchors that tell nothing move nothing
    nothing = jnp.ones((SUBJECTS, 1)), jnp.zeros((SUBJECTS, 1, 1))
    _, posterior, _ = align_to_anchors(state.items, state.posterior, nothing, specification, False)
    np.testing.assert_array_equal(posterior.mean, mean)


def test_a_turn_makes_the_first_items_triangular_and_nothing_else():
    dims, rng = 3, np.random.default_rng(0)
    state = jax.tree.map(np.asarray, state_of(dims))
    roots = rng.normal(size=(ITEMS, dims + 1, dims + 3))
    information = roots @ roots.transpose(0, 2, 1)
    held = specify(["2pl"] * ITEMS, dims=dims)
    specification = held.without_rotation()
    specification = dataclasses.replace(specification, prior_mean=rng.normal(size=(ITEMS, dims + 3)))
    turned, of_turned, priors = rotate(state, information, specification)
    slope = turned.items.slope
    np.testing.assert_array_equal(np.triu(slope[:dims], 1), 0)
    np.testing.assert_array_equal(priors.free, held.free)  # what is 0 by a turn is no parameter
    assert (np.diagonal(slope[:dims]) > 0).all()
    for got, expected in zip(logits(turned), logits(state), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-12)
    turn = np.linalg.lstsq(state.items.slope, slope, rcond=None)[0]
    np.testing.assert_allclose(turn @ turn.T, np.eye(dims), atol=1e-12)
    # what a small change of an item costs, and how far the prior's mean is from the slopes, is the same in either frame
    change = rng.normal(size=(ITEMS, dims + 1))
    as_turned = np.column_stack([change[:, :dims] @ turn, change[:, dims]])
    cost, of_other = (
        np.einsum("ik,ikl,il->i", *x) for x in ((change, information, change), (as_turned, of_turned, as_turned))
    )
    np.testing.assert_allclose(of_other, cost, rtol=1e-12)
    away, other = slope - priors.prior_mean[:, :dims], state.items.slope - specification.prior_mean[:, :dims]
    np.testing.assert_allclose((away**2).sum(axis=1), (other**2).sum(axis=1), rtol=1e-12)
    again, *_ = rotate(turned, of_turned, priors)
    np.testing.assert_allclose(again.items.slope, slope, atol=1e-12)
