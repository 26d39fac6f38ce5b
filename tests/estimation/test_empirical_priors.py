"""Priors estimated from the items."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import matrix
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from simulation import by_difficulty, draw

import irtjax
from irtjax.estimation import empirical_priors
from irtjax.estimation.empirical_priors import summary
from irtjax.estimation.priors import WEAK_SLOPES, NormalPrior, Priors
from irtjax.estimation.specify import specify
from irtjax.kernels.models import ItemParameters

ITEMS = 400
reestimate = jax.jit(empirical_priors.reestimate)


def test_the_fixed_point_maximises_the_marginal_likelihood():
    """Of asymptotes x_i ~ N(m, s²) known with errors N(0, 1/w_i): x̂_i ~ N(m, s² + 1/w_i)."""
    rng = np.random.default_rng(0)
    weight = np.full(ITEMS, 30.0)
    seen = rng.normal(-1.2, 0.4, ITEMS) + rng.normal(size=ITEMS) * weight**-0.5
    specification = specify(("3pl",) * ITEMS, priors=Priors(guessing=NormalPrior(-1.0, 2.0)), estimate=("guessing",))
    information = np.broadcast_to(np.eye(4, dtype=np.float32), (ITEMS, 4, 4)).copy()
    information[:, 2, 2] = weight
    for _ in range(60):
        prior = NormalPrior(float(specification.prior_mean[0, 2]), float(specification.prior_precision[0, 2]) ** -0.5)
        best = (weight * seen + prior.mean * prior.sd**-2) / (weight + prior.sd**-2)
        nothing = jnp.zeros(ITEMS)
        gradient = jnp.zeros((ITEMS, 4)).at[:, 2].set(weight * (seen - best))
        items = ItemParameters(nothing[:, None] + 1, nothing, jnp.asarray(best, jnp.float32), nothing + jnp.inf)
        specification = reestimate(items, gradient, jnp.asarray(information), specification)
    expected = minimize(
        lambda x: -norm.logpdf(seen, x[0], np.sqrt(np.exp(2 * x[1]) + 1 / weight)).sum(), np.zeros(2), tol=1e-10
    ).x
    assert prior.mean == pytest.approx(expected[0], abs=1e-4)
    assert prior.sd == pytest.approx(np.exp(expected[1]), abs=1e-4)


def test_what_is_held_or_shared_has_no_say():
    kinds = ("1pl", "1pl") + ("2pl",) * 60 + ("3pl",) * 60
    num_items = len(kinds)
    specification = specify(kinds, priors=Priors(slope=NormalPrior(1.0, 2.0)), estimate=("slope", "guessing", "upper"))
    assert specification.estimated == ((0,), (2,))
    assert set(specification.prior_precision[:2, 0]) == {0}
    assert set(specification.prior_precision[2:, 0]) == {1.0}
    edge = jnp.full(num_items, jnp.inf)
    slope = jnp.asarray(np.r_[9.0, 9.0, np.ones(60), np.full(60, 2.0)], jnp.float32)[:, None]
    items = ItemParameters(slope, jnp.zeros(num_items), (-edge).at[62:].set(-2.0), edge)
    information = 100 * jnp.broadcast_to(jnp.eye(4)[None], (num_items, 4, 4))
    estimated = reestimate(items, jnp.zeros((num_items, 4)), information, specification)
    np.testing.assert_allclose(estimated.prior_mean[2:, 0], (np.arcsinh(1) + np.arcsinh(2)) / 2, atol=0.02)
    np.testing.assert_allclose(estimated.prior_mean[62:, 2], -2.0, atol=0.01)
    np.testing.assert_allclose(estimated.prior_mean[:62, 1:], specification.prior_mean[:62, 1:])
    np.testing.assert_allclose(estimated.prior_mean[:2], specification.prior_mean[:2])


def test_an_item_at_infinity_has_no_say():
    specification = specify(("2pl",) * 60, priors=Priors(slope=NormalPrior(1.0, 2.0)), estimate=("slope",))
    slope = jnp.full((60, 1), 1.5).at[7].set(jnp.nan)
    edge = jnp.full(60, jnp.inf)
    items = ItemParameters(slope, jnp.zeros(60), -edge, edge)
    information = 100 * jnp.broadcast_to(jnp.eye(2)[None], (60, 2, 2))
    estimated = reestimate(items, jnp.zeros((60, 2)), information.at[7].set(jnp.nan), specification)
    np.testing.assert_allclose(estimated.prior_mean[:, 0], np.arcsinh(1.5), atol=0.01)
    assert np.isfinite(estimated.prior_precision).all()


def test_a_few_items_with_asymptotes_do_not_make_a_prior():
    few = specify(("1pl",) * 500 + ("3pl",) * 3, estimate=("slope", "intercept", "guessing"))
    assert few.estimated == ((0,), (1,))
    assert specify(("3pl",) * 49, estimate=("slope", "intercept", "guessing")).estimated == ()
    assert specify(("1pl",) * 500, estimate=("slope",)).estimated == ()


def test_a_few_items_have_priors_of_their_own_width_and_the_usual_one():
    """Slopes known well, of which three are alike: s² = (Σ (x - m)² + 4 · 0.25²) / (3 + 4)."""
    specification = specify(("2pl",) * 3, estimate=("slope", "intercept"))
    slope, intercept, edge = jnp.asarray([[1.0], [1.2], [0.9]]), jnp.asarray([-1.0, 0.0, 2.0]), jnp.full(3, jnp.inf)
    items = ItemParameters(slope, intercept, -edge, edge)
    information = 1e6 * jnp.broadcast_to(jnp.eye(2)[None], (3, 2, 2))
    for _ in range(20):
        specification = reestimate(items, jnp.zeros((3, 2)), information, specification)
    x = np.arcsinh(np.asarray(slope)[:, 0])
    assert specification.prior_precision[0, 0] ** -1.0 == pytest.approx((3 * x.var() + 0.25) / 7, rel=1e-3)
    bent = np.asarray(slope)[:, 0] / np.hypot(1, np.asarray(slope)[:, 0] / (3 * np.sinh(x.mean())))
    line = np.polyval(np.polyfit(bent, np.asarray(intercept), 1), bent)
    np.testing.assert_allclose(specification.prior_mean[:, 1], line, atol=1e-3)
    squares = ((np.asarray(intercept) - line) ** 2).sum() + 5 * 1.5**2
    assert specification.prior_precision[0, 1] ** -1.0 == pytest.approx(squares / 8, rel=1e-3)


def test_many_slopes_that_are_known_need_nothing_else():
    """Of 60 well-known slopes s² is their variance, beyond the bound for those that are not."""
    slope = np.sinh(np.random.default_rng(0).normal(1.5, 0.9, (60, 1)))
    specification = specify(("2pl",) * 60, estimate=("slope", "intercept"))
    items = ItemParameters(slope, np.zeros(60), np.full(60, -np.inf), np.full(60, np.inf))
    for certainty, expected in ((1e6, np.arcsinh(slope).var()), (1.0, WEAK_SLOPES.most_sd**2)):
        information = certainty * np.broadcast_to(np.eye(2), (60, 2, 2))
        found = specification
        for _ in range(30):
            found = reestimate(items, np.zeros((60, 2)), information, found)
        assert found.prior_precision[0, 0] ** -1.0 == pytest.approx(expected, rel=1e-3)


def test_the_share_of_intercepts_that_responses_determine():
    """Of simulated logits it is their squared correlation with the truth, or less where answers are few."""
    rng = np.random.default_rng(0)
    for number in (5, 20, 200):
        truth = rng.normal(0.5, 1.2, 4000)
        right = rng.binomial(number, expit(truth))
        found = empirical_priors.intercepts_determined(right, np.full(4000, number))
        logits = np.log((right + 0.5) / (number - right + 0.5))
        share = np.corrcoef(truth, logits)[0, 1] ** 2
        assert found < share + 0.02
    assert found == pytest.approx(share, abs=0.03)


def test_the_summary_names_the_prior_of_a_shared_slope():
    shared = specify(("1pl",) * 40, priors=Priors(slope=NormalPrior(1.0, 0.5)))
    assert summary(shared) == {"discrimination": pytest.approx({"mean": 1.0, "sd": 0.5, "estimated": False})}


@pytest.mark.slow
def test_guessing_does_not_bend_the_scale():
    """With fixed priors the abilities of this test are off by twice their standard errors."""
    rng = np.random.default_rng(4)
    theta = rng.normal(size=500)
    a, b, c = rng.lognormal(0, 0.3, 2500), rng.normal(size=2500), rng.uniform(0.1, 0.3, 2500)
    responses = matrix(draw(rng, by_difficulty(theta, a, b, c)))
    with pytest.warns(irtjax.FitWarning, match="hardly support asymptotes"):
        fit = irtjax.fit(responses, "3pl")
    residual = (fit.ability - (theta - theta.mean()) / theta.std()) / fit.ability_se
    assert np.sqrt((residual**2).mean()) < 1.15
    priors = fit.details["priors"]
    scaled = np.arcsinh(a)
    assert priors["discrimination"].pop("scale") == "asinh a"
    assert all(prior.pop("estimated") for prior in priors.values())
    assert priors["discrimination"] == pytest.approx({"mean": scaled.mean(), "sd": scaled.std()}, rel=0.15)
    logit = np.log(c / (1 - c))
    assert priors["logit_guessing"] == pytest.approx({"mean": logit.mean(), "sd": logit.std()}, abs=0.15)


def test_few_subjects_keep_the_unit_of_ability():
    """The prior of 200 slopes says more of all slopes together than 50 subjects do, and must not."""
    rng = np.random.default_rng(0)
    ability, slope = rng.normal(size=50), np.exp(0.3 * rng.normal(size=200))
    right = rng.random((50, 200)) < expit(slope * (ability[:, None] - rng.normal(size=200)))
    fit = irtjax.fit(right.astype(np.int8))
    assert "discrimination" in fit.details["priors"]
    assert fit.ability.var() + np.mean(fit.ability_se**2) == pytest.approx(1, abs=0.01)
    expected = np.median(slope) * ability.std()  # on the scale of these subjects
    assert np.median(fit.item_columns["discrimination"]) == pytest.approx(expected, rel=0.15)
