"""Images moved against a network, by the closed form for one that is linear."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from irtjax.joint.adversarial import attacked
from irtjax.networks import Network

RNG = np.random.default_rng(0)
WEIGHTS = (0.1 * RNG.normal(size=(12, 5))).astype(np.float32)
IMAGES = RNG.integers(0, 17, (7, 3, 4, 1)).astype(np.uint8)
LINEAR, CERTAIN = (
    Network(lambda *_: None, lambda _parameters, _vectors, images, _key, by=by: images.reshape(-1, 12) @ (by * WEIGHTS))
    for by in (1, 30)
)


def test_the_step_is_the_sign_of_the_gradient():
    flat = IMAGES.reshape(-1, 12).astype(float)
    found = flat @ WEIGHTS[:, :3]  # the first three outputs are classes
    slope = (softmax(found, axis=1) - np.eye(3)[found.argmax(1)]) @ WEIGHTS[:, :3].T
    moved = np.clip(flat + 0.1 * 16 * np.sign(slope), 0, 16)
    said = attacked(LINEAR, 3, 0.1, 0.0, 16.0).logits(None, None, jnp.asarray(IMAGES), None)
    np.testing.assert_allclose(said, moved @ WEIGHTS, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("network", [LINEAR, CERTAIN])
def test_the_most_probable_class_becomes_less_probable(network):
    """Even where its probability is 1 in float32, so that cross-entropy has no slope."""
    before, after = (
        np.asarray(which.logits(None, None, jnp.asarray(IMAGES), None), float)
        for which in (network, attacked(network, 5, 0.01, 0.0, 16.0))
    )
    best = before.argmax(1)
    certain = softmax(before.astype(np.float32), axis=1).max(1) == 1
    assert certain.any() == (network is CERTAIN)
    for row, moved, label in zip(before, after, best, strict=True):
        assert logit(moved, label) < logit(row, label)


def logit(said, label):
    """Of the probability of a class, exact where that is 1."""
    return said[label] - logsumexp(np.delete(said, label))


def test_equal_networks_are_one_program():
    assert attacked(LINEAR, 3, 0.1, 0.0, 16.0) is attacked(LINEAR, 3, 0.1, 0.0, 16.0)
