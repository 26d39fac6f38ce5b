"""Curricula: schedules by formula, DDaCLAE by what it must select, and the cases where selection degenerates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import data_of, mesh_of

from irtjax import networks, tasks
from irtjax.kernels.scoring import Population
from irtjax.networks import Network
from irtjax.selection.curriculum import (
    Range,
    Window,
    full_share,
    hard,
    linear_share,
    ready,
    root_share,
    train_curriculum,
    widened,
)
from irtjax.training.data import to_device
from irtjax.training.trainer import Trainer

TASK = tasks.load("digits")
KEYS = jax.vmap(jax.random.key)(jnp.arange(2, dtype=jnp.uint32))

train = functools.partial(train_curriculum, learning_rate=1.0, width=16)


def test_schedules_by_hand():
    np.testing.assert_array_equal(full_share(3), [1, 1, 1])
    np.testing.assert_allclose(linear_share(6, length=4, c0=0.2), [0.2, 0.4, 0.6, 0.8, 1, 1])
    np.testing.assert_allclose(
        root_share(6, length=4, c0=0.2), [0.2, np.sqrt(0.28), np.sqrt(0.52), np.sqrt(0.76), 1, 1]
    )


def constant_network(parameter_start, step):
    """Answers class 0 where its one parameter exceeds the input, else class 1; each minibatch moves it by `step`.

    With gold label 0 everywhere and inputs 0, 1, 2, …, the number right is what the parameter says it is.
    """
    network = Network(
        init=lambda key, width: jnp.float32(parameter_start),
        logits=lambda parameter, embeddings, inputs, key: jnp.stack(
            [jnp.full(inputs.shape[0], parameter), inputs[:, 0]], axis=1
        ),
    )
    optimizer = optax.GradientTransformation(
        init=lambda parameters: (), update=lambda gradient, state, parameters=None: (jnp.float32(step), state)
    )
    return Trainer(network, optimizer, batch_size=4, patience=100, max_epochs=6)


def ladder(num_examples=64):
    return data_of(np.arange(num_examples, dtype=np.float32)[:, None], np.zeros(num_examples))


def expected_ability(num_right, difficulty):
    from scipy.optimize import brentq
    from scipy.special import expit

    return brentq(lambda theta: num_right - expit(theta - difficulty).sum(), -50, 50)


def test_ddaclae_selects_what_the_ability_is_ready_for():
    difficulty = np.linspace(-3, 3, 64)
    trainer = constant_network(20.5, step=0.0)  # 21 of 64 right, whatever happens
    history = train(trainer, KEYS, ladder(), difficulty, ready)
    theta = expected_ability(21, difficulty)
    eligible = (difficulty <= theta).sum()
    assert 4 < eligible < 64
    np.testing.assert_allclose(history.ability, theta, atol=1e-4)
    np.testing.assert_allclose(history.share, eligible / 64)
    np.testing.assert_array_equal(history.examples_used, eligible // 4 * 4)
    np.testing.assert_allclose(history.dev_accuracy, 21 / 64)


def test_ddaclae_by_map_is_drawn_to_the_population():
    difficulty = np.linspace(-3, 3, 64)
    trainer = constant_network(20.5, step=0.0)
    ml = train(trainer, KEYS, ladder(), difficulty, ready).ability[0, 0]
    drawn = train(trainer, KEYS, ladder(), difficulty, ready, population=Population(2.0, 0.1)).ability[0, 0]
    assert ml < -0.5
    assert drawn > 1


def test_a_network_that_knows_everything_gets_everything():
    history = train(constant_network(100.0, step=0.0), KEYS, ladder(), np.linspace(-3, 3, 64), ready)
    assert (history.ability == np.inf).all()
    assert (history.share == 1).all()
    assert (history.examples_used == 64).all()


def test_a_network_that_knows_nothing_still_gets_on():
    history = train(constant_network(-100.0, step=0.0), KEYS, ladder(), np.linspace(-3, 3, 64), ready)
    assert (history.ability == -np.inf).all()
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])  # doubling, from one minibatch


def test_the_share_falls_with_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train(constant_network(50.5, step=-0.7), KEYS, ladder(), difficulty, ready)
    assert (np.diff(history.ability) < 0).all()
    assert (np.diff(history.share) < 0).all()


def test_equal_difficulties_are_all_or_nothing():
    trainer = constant_network(40.5, step=0.0)  # 41 of 64 right: above the common difficulty
    history = train(trainer, KEYS, ladder(), np.full(64, 0.3), ready)
    assert (history.share == 1).all()
    trainer = constant_network(20.5, step=0.0)
    history = train(trainer, KEYS, ladder(), np.full(64, 0.3), ready)
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_hard_examples_are_those_beyond_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train(constant_network(20.5, step=0.0), KEYS, ladder(), difficulty, hard)
    theta = expected_ability(21, difficulty)
    np.testing.assert_allclose(history.share, (difficulty >= theta).sum() / 64)
    # nothing is beyond a network that knows everything: the hardest, and ever more of them
    history = train(constant_network(100.0, step=0.0), KEYS, ladder(), difficulty, hard)
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_a_window_is_about_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train(constant_network(20.5, step=0.0), KEYS, ladder(), difficulty, Window(0.8))
    theta = expected_ability(21, difficulty)
    np.testing.assert_allclose(history.share, (np.abs(difficulty - theta) <= 0.8).sum() / 64)
    history = train(constant_network(20.5, step=0.0), KEYS, ladder(), difficulty, Window(0.01))
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_what_is_too_little_is_widened_about_its_middle():
    for first, count, expected in ((30, 2, 27), (0, 0, 0), (64, 0, 56), (62, 2, 56)):
        assert widened(Range(jnp.int32(first), jnp.int32(count)), jnp.int32(8), 64).first == expected


@pytest.mark.parametrize(("rule", "kept"), [(ready, slice(0, 32)), (hard, slice(32, 64))])
def test_what_a_rule_selects_is_trained_on(rule, kept):
    # one parameter an example, which gradient descent raises where the example was in a minibatch; the easiest are the
    # last. All are wrong but those of the first half: an ability of 0 where difficulties are symmetric about 0.
    network = Network(
        init=lambda key, width: jnp.where(jnp.arange(64) < 32, 1.0, -1.0),
        logits=lambda parameters, embeddings, inputs, key: jnp.stack(
            [jnp.zeros(inputs.shape[0]), inputs @ parameters], axis=1
        ),
    )
    trainer = Trainer(network, optax.sgd(20.0), batch_size=4, patience=100, max_epochs=1)
    difficulty = np.linspace(3, -3, 64)
    history = train(trainer, KEYS, data_of(np.eye(64), np.ones(64)), difficulty, rule)
    np.testing.assert_allclose(history.ability, 0, atol=1e-4)
    assert (history.examples_used == 32).all()
    wrong = np.arange(64) >= 32  # before; those of them that were selected are right after
    chosen = np.argsort(difficulty)[kept]
    np.testing.assert_allclose(history.test_accuracy, 0.5 + wrong[chosen].sum() / 64)


def test_a_class_that_is_never_selected():
    trainer = Trainer(networks.build("mlp", TASK, 16), optax.adam(1.0), batch_size=32, patience=8, max_epochs=8)
    nine = TASK.train.labels == 9
    difficulty = np.where(nine, 30.0, np.random.default_rng(0).normal(size=nine.size))
    history = train(trainer, KEYS, to_device(TASK), difficulty, ready, learning_rate=5e-3)
    assert np.isfinite(history.ability).all()
    assert (history.share <= 1 - nine.mean() + 1e-6).all()
    assert (history.test_accuracy[:, -1] <= 1 - (TASK.test.labels == 9).mean()).all()
    assert history.test_accuracy[:, -1].max() > 0.6


def test_fewer_examples_than_a_minibatch():
    history = train(constant_network(1.5, step=0.0), KEYS, ladder(3), np.zeros(3), ready)
    assert (history.share == 1).all()
    assert (history.examples_used == 4).all()  # one minibatch, filled by reading the three again


def test_a_schedule_selects_its_share_of_the_easiest():
    shares = linear_share(6, length=4, c0=0.25)
    history = train(constant_network(20.5, step=0.0), KEYS, ladder(), np.linspace(3, -3, 64), shares)
    np.testing.assert_allclose(history.share[0], np.ceil(shares * 64) / 64)
    assert np.isnan(history.ability).all()


def test_a_schedule_below_one_minibatch_is_followed_too():
    shares = np.array([0.02, 0.02, 0.05, 0.02, 0.5, 1.0])
    history = train(constant_network(20.5, step=0.0), KEYS, ladder(), np.linspace(3, -3, 64), shares)
    np.testing.assert_allclose(history.share[0], np.ceil(shares * 64) / 64)
    np.testing.assert_array_equal(history.examples_used[0], [4, 4, 4, 4, 32, 64])  # one minibatch at the least


def test_only_the_selected_examples_are_trained_on():
    # the parameters count the examples seen; difficulty falls along the inputs, so the easiest are the last
    network = Network(
        init=lambda key, width: jnp.zeros(64),
        logits=lambda parameters, embeddings, inputs, key: jnp.stack(
            [inputs @ parameters, jnp.zeros(inputs.shape[0])], axis=1
        ),
    )
    trainer = Trainer(network, optax.sgd(1.0), batch_size=4, patience=100, max_epochs=1)
    history = train(trainer, KEYS, data_of(np.eye(64), np.zeros(64)), np.linspace(3, -3, 64), jnp.array([0.25]))
    assert (history.examples_used == 16).all()
    # class 0 wins ties, so the accuracy says nothing here; ask again with labels that only training can get right
    history = train(trainer, KEYS, data_of(np.eye(64), np.ones(64)), np.linspace(3, -3, 64), jnp.array([0.25]))
    np.testing.assert_allclose(history.test_accuracy, 0.25)


@pytest.fixture(scope="module")
def digits_runs():
    trainer = Trainer(networks.build("mlp", TASK, 16), optax.adam(1.0), batch_size=32, patience=4, max_epochs=25)
    difficulty = np.random.default_rng(0).normal(size=1197)
    keys = jax.vmap(jax.random.key)(jnp.arange(3, dtype=jnp.uint32))
    return trainer, difficulty, keys, train(trainer, keys, to_device(TASK), difficulty, ready, learning_rate=5e-3)


def test_seeds_run_together_are_what_they_are_alone(digits_runs):
    trainer, difficulty, keys, together = digits_runs
    alone = train(trainer, keys[1:2], to_device(TASK), difficulty, ready, learning_rate=5e-3)
    np.testing.assert_allclose(alone.ability[0][:8], together.ability[1][:8], atol=1e-3)
    np.testing.assert_allclose(alone.share[0][:8], together.share[1][:8], atol=2e-3)
    np.testing.assert_allclose(alone.test_accuracy[0][:8], together.test_accuracy[1][:8], atol=0.011)


def test_seeds_on_several_devices_are_what_they_are_on_one(digits_runs):
    trainer, difficulty, keys, together = digits_runs
    mesh = mesh_of(2)  # three seeds: one device has two of them
    spread = train(trainer, keys, to_device(TASK, mesh), difficulty, ready, learning_rate=5e-3, mesh=mesh)
    assert spread.share.shape == together.share.shape
    np.testing.assert_allclose(spread.ability[:, :8], together.ability[:, :8], atol=1e-3)
    np.testing.assert_allclose(spread.test_accuracy[:, :8], together.test_accuracy[:, :8], atol=0.011)


def test_rows_end_where_a_seed_stops_early(digits_runs):
    trainer, _, _, history = digits_runs
    for dev in np.asarray(history.dev_accuracy):
        made = int((~np.isnan(dev)).sum())
        assert not np.isnan(dev[:made]).any()
        best = int(dev[:made].argmax())
        assert made == min(best + 1 + trainer.patience, trainer.max_epochs)
    assert np.array_equal(np.isnan(history.share), np.isnan(history.dev_accuracy))


def test_progress_is_reported_from_within_the_program():
    trainer = constant_network(20.5, step=0.0)
    seen = []
    train(
        trainer,
        KEYS,
        ladder(),
        np.zeros(64),
        full_share(6),
        on_epoch=lambda epochs, best: seen.append(int(epochs.max())),
    )
    jax.effects_barrier()
    assert sorted(seen) == [1, 2, 3, 4, 5, 6]
