"""Networks against hand computation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax import InputError, networks, tasks


def test_mlp_by_hand():
    task = tasks.load("digits")
    network = networks.build("mlp", task, width=5)
    parameters = network.init(jax.random.key(0))
    hidden, out = parameters["hidden"], parameters["out"]
    assert hidden["kernel"].get_value().shape == (64, 5)
    assert out["kernel"].get_value().shape == (5, 10)
    x = task.train.inputs[:3].reshape(3, 64) / 16.0
    h = np.maximum(x @ np.asarray(hidden["kernel"].get_value()) + np.asarray(hidden["bias"].get_value()), 0)
    expected = h @ np.asarray(out["kernel"].get_value()) + np.asarray(out["bias"].get_value())
    np.testing.assert_allclose(network.logits(parameters, jnp.asarray(task.train.inputs[:3])), expected, atol=1e-5)


def test_initial_weights_follow_the_key():
    network = networks.build("mlp", tasks.load("digits"), width=5)
    one, same, other = (jax.tree.leaves(network.init(jax.random.key(seed))) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_bad_requests_are_named():
    task = tasks.load("digits")
    with pytest.raises(InputError, match="unknown network 'resnet', expected one of mlp"):
        networks.build("resnet", task, 4)
    with pytest.raises(InputError, match="width 0, expected at least 1"):
        networks.build("mlp", task, 0)
