"""Monitors of curricula: against replays of the same answers, and without an effect on training."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from conftest import BUCKETS, data_of, sentences

from irtjax import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.replay import replay
from irtjax.kernels.models import ItemParameters
from irtjax.networks import Network
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.tracking import Tracked, track, tracking_errors
from irtjax.training.data import to_device
from irtjax.training.step import Trainer

NUM_ITEMS = 200
RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(size=NUM_ITEMS).astype(np.float32)
BANK = ItemParameters(
    np.ones((NUM_ITEMS, 1), np.float32),
    -DIFFICULTY,
    np.full(NUM_ITEMS, -np.inf, np.float32),
    np.full(NUM_ITEMS, np.inf, np.float32),
)
# Class 0, the gold label, where the parameter exceeds the input; each step of training raises the parameter.
INPUTS = (DIFFICULTY + RNG.logistic(size=NUM_ITEMS)).astype(np.float32)[:, None]
RISING = Network(
    init=lambda key, width, weights: jnp.float32(-3),
    logits=lambda parameter, embeddings, inputs, key: jnp.stack(
        [parameter - inputs[:, 0], jnp.zeros(inputs.shape[0])], axis=1
    ),
)
RAISE = optax.GradientTransformation(
    lambda parameters: (), lambda gradient, state, parameters=None: (jnp.ones_like(gradient), state)
)
TRAINER = Trainer(RISING, RAISE, batch_size=100, patience=9, max_epochs=6)
DATA = data_of(INPUTS, np.zeros(NUM_ITEMS))


def test_networks_get_what_a_replay_of_their_answers_gives():
    test = adaptive_test(BANK, rule="variance", stop=Stop(12), groups=np.arange(NUM_ITEMS) % 2)
    parameters = jnp.array([-1.0, 0.3, 2.0])
    keys = jax.random.split(jax.random.key(0), 3)
    found = jax.jit(lambda keys, parameters: track(TRAINER, test, keys, parameters, DATA))(keys, parameters)
    answers = (np.asarray(parameters)[:, None] > INPUTS[:, 0]).astype(np.int8)
    direct = replay(test, answers, jax.random.key(0))
    np.testing.assert_allclose(found.monitor_ability, direct.last()[0], atol=1e-5)
    np.testing.assert_allclose(found.monitor_ability_se, direct.last()[1], atol=1e-5)
    np.testing.assert_allclose(found.monitor_score, direct.score[:, -1], atol=1e-5)
    np.testing.assert_allclose(found.monitor_score_se, direct.score_error[:, -1], atol=1e-5)
    np.testing.assert_allclose(found.train_accuracy, answers.mean(axis=1), atol=1e-6)


@pytest.mark.slow
def test_a_monitor_follows_training_and_does_not_change_it():
    keys = jax.random.split(jax.random.key(0), 2)
    test = adaptive_test(BANK, rule="variance", stop=Stop(20))
    shares = np.ones(6)
    plain, watched = (
        train_curriculum(TRAINER, keys, DATA, DIFFICULTY, shares, learning_rate=0.5, monitor=monitor)
        for monitor in (None, test)
    )
    for name in ("share", "examples_used", "dev_accuracy", "test_accuracy"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(watched, name))
    for name in Tracked._fields:
        assert np.isnan(getattr(plain, name)).all()
    # two steps of 0.5 an epoch, from -3
    levels = np.arange(-2, 4)
    answers = (levels[:, None] > INPUTS[:, 0]).astype(np.int8)
    direct = replay(test, answers, jax.random.key(0))
    for seed in range(2):
        np.testing.assert_allclose(watched.train_accuracy[seed], answers.mean(axis=1), atol=1e-6)
        np.testing.assert_allclose(watched.monitor_score[seed], direct.score[:, -1], atol=1e-5)
    assert np.abs(watched.monitor_score - watched.train_accuracy).mean() < 0.08
    few = adaptive_test(BANK.take(slice(1, None)), stop=Stop(5))
    with pytest.raises(InputError, match="`monitor` has 199 items in D = 1, expected one for each of the 200"):
        train_curriculum(TRAINER, keys, DATA, DIFFICULTY, shares, learning_rate=0.5, monitor=few)


@pytest.mark.slow
def test_texts_of_any_length_are_answered():
    """A network that is right on sentences of more than four words; these are asked as a whole."""
    lengths = RNG.integers(1, 10, NUM_ITEMS)
    longer = Network(
        init=lambda key, width, weights: jnp.float32(0),
        logits=lambda parameter, embeddings, inputs, key: jnp.stack(
            [(inputs[0] > 0).sum(axis=1) - 4.5, jnp.zeros(inputs[0].shape[0])], axis=1
        ),
    )
    trainer = Trainer(longer, RAISE, batch_size=100, patience=9, max_epochs=2, buckets=BUCKETS)
    test = adaptive_test(BANK, rule="variance", stop=Stop(12))
    found = track(trainer, test, jax.random.key(0)[None], jnp.zeros(1), to_device(sentences(lengths)))
    right = (lengths > 4).astype(np.int8)
    direct = replay(test, right[None], jax.random.key(0))
    np.testing.assert_allclose(found.monitor_ability, direct.last()[0], atol=1e-5)
    np.testing.assert_allclose(found.train_accuracy, right.mean(), atol=1e-6)


def test_errors_of_what_was_tracked():
    rows = [("b", 0, 0.5, 0.4), ("b", 0, 0.7, 0.8), ("b", 1, 0.5, 0.6), ("b", 1, 0.9, 0.5), ("a", 0, 0.3, 0.3)]
    table = pd.DataFrame(rows, columns=["strategy", "seed", "monitor_score", "train_accuracy"])
    table = table.assign(monitor_score_se=[0.1, 0.2, 0.3, 0.2, 0.5], dev_accuracy=table.monitor_score)
    found = tracking_errors(table)
    assert found.index.tolist() == ["b", "a"]
    of_b = found.loc["b"]
    assert of_b.mean_error == pytest.approx((0.1 + 0.1 + 0.1 + 0.4) / 4)
    assert of_b.claimed_error == pytest.approx(0.2)
    assert of_b.r_train == pytest.approx(0)  # 1 and -1
    assert of_b.r_validation == pytest.approx(1)
