"""Optimisers against their equations, written out."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from irtjax import InputError, networks, tasks
from irtjax.networks.group_norm import NormalisedConvolution
from irtjax.training.recipe import optimizer_of, sgd_rate

RNG = np.random.default_rng(0)
START, GRADIENTS = RNG.normal(size=4), RNG.normal(size=(3, 4))


def after_three_steps(optimizer, rate=0.1):
    weights = jnp.asarray(START, jnp.float32)
    state = optimizer.init(weights)
    for gradient in GRADIENTS:
        updates, state = optimizer.update(jnp.asarray(gradient, jnp.float32), state, weights)
        weights = optax.apply_updates(weights, rate * updates)
    return weights


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.01), (0.5, 0.1)])
def test_gradient_descent_by_hand(momentum, decay):
    weights, velocity = START.copy(), np.zeros(4)
    for gradient in GRADIENTS:
        velocity = momentum * velocity + gradient + decay * weights
        weights = weights - 0.1 * velocity
    np.testing.assert_allclose(after_three_steps(optimizer_of("sgd", momentum, decay)), weights, rtol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam_by_hand(decay):
    weights, mean, square = START.copy(), np.zeros(4), np.zeros(4)
    for step, gradient in enumerate(GRADIENTS, start=1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        direction = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = weights - 0.1 * (direction + decay * weights)
    np.testing.assert_allclose(after_three_steps(optimizer_of("adam", 0.0, decay)), weights, rtol=1e-4)


@pytest.mark.parametrize(("name", "decayed"), [("sgd", {"kernel", "bias"}), ("adam", {"kernel"})])
def test_masks_never_decay_and_biases_by_gradient_descent_alone(name, decayed):
    parameters = networks.build("mlp", tasks.load("digits"), 8).init(jax.random.key(0), 6)
    parameters["hidden"]["bias"] = nnx.Param(jnp.ones(8))
    optimizer = optimizer_of(name, 0.0, 0.5)
    steps, _ = optimizer.update(jax.tree.map(jnp.zeros_like, parameters), optimizer.init(parameters), parameters)
    for key in ("kernel", "bias"):
        assert bool((steps["hidden"][key][...] != 0).any()) == (key in decayed)
    assert (steps["mask"][...] == 0).all()


@pytest.mark.parametrize(("name", "decayed"), [("sgd", {"kernel", "bias", "gain"}), ("adam", {"kernel"})])
def test_scales_of_norms_decay_by_gradient_descent_alone(name, decayed):
    layer = NormalisedConvolution(3, 4, rngs=nnx.Rngs(0))
    layer.bias[...] = jnp.ones(4)
    parameters = nnx.state(layer, nnx.Param)
    optimizer = optimizer_of(name, 0.0, 0.5)
    steps, _ = optimizer.update(jax.tree.map(jnp.zeros_like, parameters), optimizer.init(parameters), parameters)
    assert {key for key in parameters if bool((steps[key][...] != 0).any())} == decayed


def test_equal_arguments_make_one_object():  # another would be compiled for again
    assert optimizer_of("sgd", 0.9, 0.1) is optimizer_of("sgd", 0.9, 0.1)


def test_steps_add_up_to_the_same_rate():
    assert sgd_rate(0.0) == sgd_rate(0.9) / (1 - 0.9) == 0.1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("rmsprop",), "unknown optimizer 'rmsprop', expected one of adam, sgd"),
        (("sgd", 1.0), "momentum 1.0, expected 0 to below 1"),
        (("sgd", float("nan")), "momentum nan, expected 0 to below 1"),
        (("sgd", 0.0, -1.0), "weight decay -1.0, expected 0 or more"),
        (("sgd", 0.0, float("inf")), "weight decay inf, expected 0 or more"),
        (("adam", 0.9), "momentum 0.9 has no effect on adam: choose sgd, or leave it out"),
    ],
)
def test_what_cannot_be_is_named(arguments, line):
    with pytest.raises(InputError) as caught:
        optimizer_of(*arguments)
    assert str(caught.value) == line
