"""The family of right/wrong items: against automatic differentiation, and in long arithmetic where doubles end."""

import functools
from decimal import Context, Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.item_models.binary import BINARY
from irtjax.kernels.models import ItemParameters, probabilities

RNG = np.random.default_rng(0)


def items_of(dims, asymptotes):
    slope, intercept = RNG.normal(1, 1, (7, dims)), RNG.normal(0, 2, 7)
    lower, upper = (
        (RNG.normal(-1.5, 1, 7), RNG.normal(3, 1, 7)) if asymptotes else (np.full(7, -np.inf), np.full(7, np.inf))
    )
    if asymptotes:
        lower[0], upper[1] = -np.inf, np.inf  # a 3PL with d alone, and one with c alone
    return ItemParameters(slope, intercept, lower, upper)


@pytest.mark.parametrize("asymptotes", [False, True])
@pytest.mark.parametrize("dims", [1, 3])
def test_the_family_is_that_of_the_curves(dims, asymptotes):
    items, theta = items_of(dims, asymptotes), RNG.normal(size=(5, dims))
    p, q = probabilities(items, theta)
    eta, log_normalizer = BINARY.natural(items, theta, asymptotes=asymptotes)
    np.testing.assert_allclose(eta - log_normalizer, np.log(p), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(-log_normalizer, np.log(q), rtol=1e-12, atol=1e-13)
    found = BINARY.moments(items, theta, asymptotes=asymptotes)
    np.testing.assert_allclose(found.mean, p, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, p * q, rtol=1e-12)
    with jax.enable_x64(True):
        compiled = jax.jit(functools.partial(BINARY.natural, asymptotes=True))(items, theta)
        np.testing.assert_allclose(compiled.eta, eta, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(compiled.log_normalizer, log_normalizer, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dims", [1, 2])
def test_derivatives_are_those_by_automatic_differentiation(dims):
    items, theta = items_of(dims, True), RNG.normal(size=(5, dims))

    def eta(by_item, at):
        x, lower, upper = by_item
        c, d = jax.nn.sigmoid(lower), jax.nn.sigmoid(upper)
        p = c + (d - c) * jax.nn.sigmoid(x)
        return jnp.log(p) - jnp.log1p(-p)

    with jax.enable_x64(True):
        x = theta @ items.slope.T + items.intercept
        coordinates = np.stack(np.broadcast_arrays(x, items.lower, items.upper), axis=-1)
        finite = np.where(np.isinf(coordinates), np.sign(coordinates) * 50.0, coordinates)  # c or 1 - d of 2e-22
        every = jax.vmap(jax.vmap(lambda one: (jax.grad(eta)(one, 0), jax.hessian(eta)(one, 0))))
        gradient, hessian = every(jnp.asarray(finite))
    found = BINARY.moments(items, theta, asymptotes=True)
    np.testing.assert_allclose(found.by_predictor, gradient[:, :, 0], rtol=1e-8)
    np.testing.assert_allclose(found.by_others, gradient[:, :, 1:], rtol=1e-8, atol=1e-12)
    curvature = BINARY.curvature(items, theta, found.mean)
    np.testing.assert_allclose(curvature, found.mean[:, :, None, None] * np.asarray(hessian), rtol=1e-8, atol=1e-12)
    plain = BINARY.moments(items_of(dims, False), theta, asymptotes=False)
    assert plain.by_predictor is None  # η is the predictor
    assert plain.by_others is None


@pytest.mark.parametrize("steep", [1e2, 1e4, 1e6])
def test_logarithms_are_right_where_probabilities_are_not(steep):
    """At -20 to 20 million logits, by 60 digits; probabilities there are 0 and 1 in float64."""
    slope = steep * np.array([[1.0], [-1.0], [1.0], [2.0]])
    lower, upper = np.array([-np.inf, -np.inf, -1.0, -700.0]), np.array([np.inf, np.inf, np.inf, 2.0])
    items = ItemParameters(slope, np.array([0.3, -0.2, 1.0, 0.5]), lower, upper)
    theta = np.array([[-10.0], [-0.37], [0.0], [1e-3], [10.0]])
    eta, log_normalizer = BINARY.natural(items, theta, asymptotes=True)
    found = BINARY.moments(items, theta, asymptotes=True)
    assert all(np.isfinite(leaf).all() for leaf in (eta, log_normalizer, *found))
    context = Context(prec=60, Emax=10**17, Emin=-(10**17))

    def sigmoid(x):
        return context.divide(1, context.add(1, context.exp(Decimal(-float(x)))))

    with localcontext(context):
        for q, at in enumerate(theta[:, 0]):
            for i in range(4):
                x = slope[i, 0] * at + items.intercept[i]
                s, not_s, c, not_d = sigmoid(x), sigmoid(-x), sigmoid(lower[i]), sigmoid(-upper[i])
                right, wrong = c * not_s + (1 - not_d) * s, (1 - c) * not_s + not_d * s
                by_x = (1 - not_d - c) * s * not_s / (right * wrong)
                np.testing.assert_allclose(-log_normalizer[q, i], float(wrong.ln()), rtol=1e-12, atol=1e-15)
                np.testing.assert_allclose(eta[q, i], float(right.ln() - wrong.ln()), rtol=1e-12)
                np.testing.assert_allclose(found.by_predictor[q, i], float(by_x), rtol=1e-9, atol=1e-300)
