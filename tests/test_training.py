"""Training: which examples are seen, when it stops, and that a crowd's members are what they would be alone."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import mesh_of

from irtjax import crowd, networks, tasks, training
from irtjax.networks import Network
from irtjax.training import Data, Examples, Plan, Trainer

TASK = tasks.load("digits")


def counting_trainer(batch_size=4, patience=2, max_epochs=8):
    """A "network" whose parameters count how often each of 20 examples was seen: plain SGD, gradient -1 a sight."""
    network = Network(
        init=lambda key: jnp.zeros(20),
        # inputs are one-hot; two equal logits, so that d loss / d parameters is the mean over the batch of ± x / 2
        logits=lambda parameters, inputs: jnp.stack([inputs @ parameters, jnp.zeros(inputs.shape[0])], axis=1),
    )
    # the label pushes logit 0 up; sign of the gradient marks the example as seen, its size how often
    return Trainer(network, optax.sgd(1.0), batch_size, patience, max_epochs)


def seen(trainer, size, num_steps, epoch=0, order=None):
    order = jnp.arange(20) if order is None else order
    plan = Plan(jax.random.key(0), order, jnp.int32(size), jnp.zeros(20, jnp.int32))
    learner = training.start(trainer, plan.key)._replace(epoch=jnp.int32(epoch))
    learner = training.train_epoch(trainer, learner, jnp.eye(20), plan, num_steps)
    return np.asarray(learner.parameters)


def test_an_epoch_sees_each_example_of_the_prefix_once():
    trained = seen(counting_trainer(), size=12, num_steps=3)
    assert (trained[:12] > 0).all()
    assert (trained[12:] == 0).all()
    np.testing.assert_allclose(trained[:12], trained[0], rtol=1e-6)  # once each: equal steps


def test_a_short_epoch_sees_a_random_part_without_repeats():
    first, second = (seen(counting_trainer(), size=20, num_steps=2, epoch=epoch) for epoch in (0, 1))
    for trained in (first, second):
        assert (trained > 0).sum() == 8
        np.testing.assert_allclose(trained[trained > 0], trained.max(), rtol=1e-6)
    assert ((first > 0) != (second > 0)).any()


def test_a_long_epoch_starts_again_from_the_beginning_of_the_prefix():
    trained = seen(counting_trainer(), size=6, num_steps=3)  # 12 places for 6 examples
    assert (trained[:6] > 0).all()
    assert (trained[6:] == 0).all()


def test_the_prefix_is_that_of_the_order():
    order = jnp.arange(20)[::-1]
    trained = seen(counting_trainer(), size=4, num_steps=1, order=order)
    assert set(np.flatnonzero(trained)) == {16, 17, 18, 19}


def test_a_traced_number_of_steps_does_the_same():
    trainer = counting_trainer()
    traced = jax.jit(lambda steps: seen_parameters(trainer, steps))(jnp.int32(3))
    np.testing.assert_array_equal(traced, seen(trainer, size=12, num_steps=3))


def seen_parameters(trainer, steps):
    plan = Plan(jax.random.key(0), jnp.arange(20), jnp.int32(12), jnp.zeros(20, jnp.int32))
    return training.train_epoch(trainer, training.start(trainer, plan.key), jnp.eye(20), plan, steps).parameters


def test_early_stopping_keeps_the_best_parameters():
    trainer = counting_trainer(patience=2, max_epochs=8)
    learner = training.start(trainer, jax.random.key(0))
    history = [0.3, 0.5, 0.5, 0.4, 0.9]  # an equal accuracy is not a better one
    for epoch, accuracy in enumerate(history, start=1):
        if not training.is_training(trainer, learner):
            break
        learner = learner._replace(parameters=jnp.full(20, float(epoch)))
        learner = training.end_epoch(learner, jnp.float32(accuracy))
    assert int(learner.epoch) == 4
    assert int(learner.best_epoch) == 2
    assert float(learner.best_accuracy) == 0.5
    assert (np.asarray(learner.best_parameters) == 2).all()


def test_training_ends_at_max_epochs():
    trainer = counting_trainer(patience=100, max_epochs=3)
    learner = training.start(trainer, jax.random.key(0))._replace(epoch=jnp.int32(3))
    assert not training.is_training(trainer, learner)


@pytest.mark.parametrize("num_inputs", [3, training.ANSWER_BLOCK, 2 * training.ANSWER_BLOCK + 5])
def test_predictions_in_blocks_equal_predictions_at_once(num_inputs):
    network = networks.build("mlp", TASK, width=8)
    parameters = network.init(jax.random.key(0))
    inputs = jnp.asarray(np.resize(TASK.train.inputs, (num_inputs, 8, 8, 1)))
    np.testing.assert_array_equal(
        training.predict(network, parameters, inputs), network.logits(parameters, inputs).argmax(-1)
    )


@pytest.fixture(scope="module")
def small_crowd():
    trainer = Trainer(networks.build("mlp", TASK, width=16), optax.adam(5e-3), batch_size=32, patience=2, max_epochs=12)
    members = crowd.sample_members(6, 1197, seed=0, min_subset=20, max_corruption=0.6)
    return trainer, crowd.plan_members(members, TASK.train.labels, TASK.num_classes), training.to_device(TASK)


@pytest.mark.parametrize("num_devices", [1, 2, 4])
def test_a_member_of_a_crowd_is_what_it_would_be_alone(small_crowd, num_devices):
    trainer, plans, data = small_crowd
    together = training.train_networks(trainer, plans, data, 20, mesh=mesh_of(num_devices))
    assert together.epoch.shape == (6,)
    assert np.ptp(together.epoch) > 0, "all stopped at once: the test would not see a member that waits for others"
    alone = jax.jit(lambda plan: training.train_one(trainer, plan, data, 20))
    for member in range(6):
        one = alone(jax.tree.map(lambda leaf, at=member: leaf[at], plans))
        assert int(one.epoch) == int(together.epoch[member])
        assert int(one.best_epoch) == int(together.best_epoch[member])
        for ours, theirs in zip(
            jax.tree.leaves(together.best_parameters), jax.tree.leaves(one.best_parameters), strict=True
        ):
            np.testing.assert_allclose(ours[member], theirs, atol=2e-5)


def test_a_crowd_is_spread_over_the_devices(small_crowd):
    trainer, plans, data = small_crowd
    eight = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf[:2]]), plans)
    learners = training.train_networks(trainer, eight, data, 5, mesh=mesh_of(4))
    assert {shard.data.shape for shard in learners.epoch.addressable_shards} == {(2,)}


@pytest.mark.parametrize("num_devices", [1, 4])
def test_epochs_are_compiled_once(small_crowd, num_devices):
    trainer, plans, data = small_crowd
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compilations.append(name) if "backend_compile" in name else None
    )
    after = []
    training.train_networks(
        trainer, plans, data, 7, mesh=mesh_of(num_devices), on_epoch=lambda *_: after.append(len(compilations))
    )
    assert after[0] > 0
    assert len(after) > 2
    assert set(after[1:]) == {after[0]}


def test_training_learns():
    trainer = Trainer(networks.build("mlp", TASK, width=32), optax.adam(5e-3), batch_size=32, patience=5, max_epochs=15)
    everything = Plan(jax.random.key(0), jnp.arange(1197), jnp.int32(1197), jnp.asarray(TASK.train.labels))
    data = training.to_device(TASK)
    learner = jax.jit(lambda plan: training.train_one(trainer, plan, data, 37))(everything)
    assert training.accuracy(trainer.network, learner.best_parameters, data.test) > 0.94


def test_accuracy_by_hand():
    trainer = counting_trainer()
    # logit 0 is positive for the first ten examples: class 0 there, class 0 again on the tie of 0 and 0
    examples = Examples(jnp.eye(20), jnp.array([0] * 10 + [1] * 10))
    parameters = jnp.concatenate([jnp.ones(10), -jnp.ones(10)])
    assert training.accuracy(trainer.network, parameters, examples) == 1
    assert training.accuracy(trainer.network, -parameters, examples) == 0


def test_data_are_put_on_the_device_as_they_are():
    data = training.to_device(TASK)
    assert isinstance(data, Data)
    assert data.train.inputs.dtype == jnp.uint8
    np.testing.assert_array_equal(data.test.labels, TASK.test.labels)
