"""Training: which examples are seen, when it stops, and how text is cut."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import BUCKETS, data_of, sentences

from irtjax.networks import Network
from irtjax.tasks import Split, load
from irtjax.tasks.task import Task, TextFormat
from irtjax.training import loop as training
from irtjax.training.data import ANSWER_BLOCK, Data, accuracy, classify, evaluation_split, take, to_device
from irtjax.training.loop import Plan
from irtjax.training.step import Place, Trainer

# A "network" whose parameters count how often each of 20 examples was seen: plain SGD, gradient -1 for each time.
# Inputs are one-hot; two equal logits, so that d loss / d parameters is the mean over the batch of ± x / 2. The label
# pushes logit 0 up; the sign of the gradient marks the example as seen, its size how often.
COUNTING = Network(
    init=lambda key, width, weights: jnp.zeros(20),
    logits=lambda parameters, _, inputs, key: jnp.stack([inputs @ parameters, jnp.zeros(inputs.shape[0])], axis=1),
)
SGD = optax.sgd(1.0)
# one whose loss falls by 1 with its only parameter, so that the parameter sums the rates
STEADY = Network(init=lambda key, width, weights: jnp.zeros(()), logits=lambda parameters, _, inputs, key: parameters)
TRAINER = Trainer(COUNTING, SGD, batch_size=4, patience=2, max_epochs=8)


DATA = data_of(np.eye(20, dtype=np.float32), np.zeros(20))


def plan(size, order=None, rate=1.0):
    order = jnp.arange(20) if order is None else order
    plan = Plan(jax.random.key(0), order, jnp.int32(size), jnp.zeros(20, jnp.int32), jnp.float32(rate), jnp.int32(1))
    return jax.tree.map(lambda leaf: leaf[None], plan)


@functools.partial(jax.jit, static_argnums=0)
def started(trainer, plans, given=(None, None)):
    return jax.vmap(lambda plan: training.start(trainer, plan, given))(plans)


train_epoch = jax.jit(training.train_epoch, static_argnums=0)


def seen(size, num_steps, epoch=0, order=None, rate=1.0):
    plans = plan(size, order, rate)
    learners = started(TRAINER, plans)._replace(epoch=jnp.array([epoch]))
    return np.asarray(train_epoch(TRAINER, learners, plans, DATA, num_steps).parameters[0])


def test_an_epoch_sees_each_example_of_the_prefix_once():
    trained = seen(size=12, num_steps=3)
    assert (trained[:12] > 0).all()
    assert (trained[12:] == 0).all()
    np.testing.assert_allclose(trained[:12], trained[0], rtol=1e-6)  # once each: equal steps


def test_a_short_epoch_sees_a_random_part_without_repeats():
    first, second = (seen(size=20, num_steps=2, epoch=epoch) for epoch in (0, 1))
    for trained in (first, second):
        assert (trained > 0).sum() == 8
        np.testing.assert_allclose(trained[trained > 0], trained.max(), rtol=1e-6)
    assert ((first > 0) != (second > 0)).any()


def test_a_long_epoch_starts_again_from_the_beginning_of_the_prefix():
    trained = seen(size=6, num_steps=3)  # 12 places for 6 examples
    assert (trained[:6] > 0).all()
    assert (trained[6:] == 0).all()


def test_the_prefix_is_that_of_the_order():
    order = jnp.arange(20)[::-1]
    trained = seen(size=4, num_steps=1, order=order)
    assert set(np.flatnonzero(trained)) == {16, 17, 18, 19}


def test_a_traced_number_of_steps_does_the_same():
    plans = plan(12)
    learners = training.train_epoch(TRAINER, started(TRAINER, plans), plans, DATA, 3)
    np.testing.assert_array_equal(learners.parameters[0], seen(size=12, num_steps=3))


def test_networks_with_fewer_steps_wait():
    plans = jax.tree.map(lambda leaf: jnp.repeat(leaf, 3, axis=0), plan(12))
    learners = train_epoch(TRAINER, started(TRAINER, plans), plans, DATA, jnp.array([0, 1, 3]))
    for parameters, steps in zip(learners.parameters, (0, 1, 3), strict=True):
        np.testing.assert_array_equal(parameters, seen(size=12, num_steps=steps))


def test_a_rate_falls_with_the_progress_of_the_training():
    """By epochs, and within one by minibatches, whatever part of it is trained at a time."""
    trainer = dataclasses.replace(TRAINER, network=STEADY, warmup=0.25, loss=lambda output, labels: output)
    plans = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, axis=0), plan(12))

    def rates(epoch, num_steps, place=None):
        learners = started(trainer, plans)._replace(epoch=jnp.full(2, epoch))
        return -np.asarray(train_epoch(trainer, learners, plans, DATA, num_steps, place=place).parameters)

    def expected(epoch, steps, at):
        step, total = epoch * steps + at, 8 * steps
        return min((step + 1) / (0.25 * total), (total - step) / (0.75 * total))

    whole = [rates(epoch, jnp.array([3, 2])) for epoch in range(8)]
    by_hand = [[sum(expected(epoch, steps, at) for at in range(steps)) for steps in (3, 2)] for epoch in range(8)]
    np.testing.assert_allclose(whole, by_hand, rtol=1e-5)
    parts = [rates(5, count, Place(begun, 3)) for begun, count in ((0, 1), (1, 2))]
    np.testing.assert_allclose(sum(parts), rates(5, 3), rtol=1e-5)


def test_the_learning_rate_is_the_plans():
    np.testing.assert_allclose(seen(4, 1, rate=0.25), 0.25 * seen(4, 1))


end_epoch = jax.jit(training.end_epoch)


def test_early_stopping_keeps_the_best_parameters():
    learner = started(TRAINER, plan(20))
    history = [0.3, 0.5, 0.5, 0.4, 0.9]  # an equal accuracy is not a better one
    for epoch, right in enumerate(history, start=1):
        if not training.is_training(TRAINER, learner):
            break
        learner = learner._replace(parameters=jnp.full((1, 20), float(epoch)))
        learner = end_epoch(learner, jnp.float32([right]))
    assert learner.epoch == 4
    assert learner.best_epoch == 2
    assert learner.best_accuracy == 0.5
    assert (np.asarray(learner.best_parameters) == 2).all()


def test_training_ends_at_max_epochs():
    trainer = dataclasses.replace(TRAINER, patience=100, max_epochs=3)
    learner = started(TRAINER, plan(20))._replace(epoch=jnp.array([3]))
    assert not training.is_training(trainer, learner)


def text_trainer(widths, batch_size):
    """Parameters count how often each word of the vocabulary was read; `widths` collects the compiled lengths."""

    def logits(parameters, embeddings, inputs, key):
        widths.add(inputs[0].shape[1])
        return jnp.stack([embeddings[inputs[0]].sum(1) @ parameters, jnp.zeros(inputs[0].shape[0])], axis=1)

    network = Network(init=lambda key, width, weights: jnp.zeros(9), logits=logits)
    return Trainer(network, optax.sgd(1.0), batch_size, patience=2, max_epochs=2, buckets=BUCKETS)


def test_every_sentence_is_read_once_an_epoch_and_cut_to_a_bucket():
    lengths = np.random.default_rng(0).integers(1, 10, 96)
    task, widths = sentences(lengths), set()
    trainer = text_trainer(widths, batch_size=4)
    data = to_device(task)
    order = jnp.arange(96)
    plans = Plan(jax.random.key(1), order, jnp.int32(96), jnp.zeros(96, jnp.int32), jnp.float32(1e-6), jnp.int32(1))
    plans = jax.tree.map(lambda leaf: leaf[None], plans)
    learners = train_epoch(trainer, started(trainer, plans), plans, data, 24)
    assert widths == {2, 5, 9}
    # at a tiny rate the gradient is linear: half of each word's count over the batch of 4
    counts = np.bincount(np.asarray(task.train.inputs[0]).ravel(), minlength=9)
    counts[0] = (np.asarray(learners.parameters[0])[0] / (0.5e-6 / 4)).round()  # padding is read too, as much as cut
    np.testing.assert_allclose(learners.parameters[0] / (0.5e-6 / 4), counts, rtol=1e-3)
    assert 0 < counts[0] < 0.5 * (96 * 9 - lengths.sum())  # far less than if all were padded to the longest


@pytest.mark.slow
def test_windows_of_unequal_size_read_their_own_examples_once():
    # sentence i has only the word 1 + i, so that parameters tell which sentences were read, and how often
    count = 600
    lengths = np.random.default_rng(0).integers(1, 10, count)
    words = np.where(np.arange(9) < lengths[:, None], np.arange(1, count + 1)[:, None], 0).astype(np.uint16)
    split = Split((words,), np.zeros(count, np.int32), np.arange(count).astype(str))
    vocabulary = TextFormat(("",) * (count + 1), np.eye(count + 1, dtype=np.float32), BUCKETS)
    task = Task("toy", split, split, split, ("a", "b"), vocabulary)
    trainer = text_trainer(set(), batch_size=4)
    trainer = dataclasses.replace(
        trainer, network=trainer.network._replace(init=lambda key, width, weights: jnp.zeros(601))
    )
    sizes = np.array([600, 300, 41])  # epochs of 150, 75 and 10 steps: of three windows, two and one
    plans = Plan(
        jax.random.split(jax.random.key(1), 3),
        jnp.tile(jnp.arange(count), (3, 1)),
        jnp.asarray(sizes, jnp.int32),
        jnp.zeros((3, count), jnp.int32),
        jnp.full(3, 1e-6),
        jnp.ones(3, jnp.int32),
    )
    begun, data = started(trainer, plans), to_device(task)
    whole = train_epoch(trainer, begun, plans, data, jnp.asarray(sizes // 4))
    read = np.asarray(whole.parameters)[:, 1:] / (0.5e-6 / 4) / lengths
    np.testing.assert_allclose(read.sum(1), 4 * (sizes // 4), rtol=1e-3)
    np.testing.assert_allclose(read, read > 0.5, atol=1e-2)
    # in parts, each network beside others that are elsewhere in their epochs
    part = train_epoch(trainer, begun, plans, data, jnp.array([64, 64, 10]), None, jnp.zeros(3, jnp.int32))
    again = train_epoch(trainer, part, plans, data, jnp.array([64, 11, 0]), None, jnp.array([1, 1, 0]))
    again = train_epoch(trainer, again, plans, data, jnp.array([22, 0, 0]), None, jnp.array([2, 0, 0]))
    np.testing.assert_allclose(again.parameters, whole.parameters, rtol=1e-5, atol=1e-12)


def test_every_size_of_window_has_its_minibatches_in_a_similar_order():
    turns = training.LENGTH_ORDER
    for count in range(1, training.WINDOW + 1):
        assert sorted(turns[count, :count]) == list(range(count))
    whole = turns[training.WINDOW] / (training.WINDOW - 1)
    half = turns[32, :32] / 31
    assert np.corrcoef(whole[:32], half)[0, 1] > 0.95


def test_networks_that_do_not_matter_pad_nobody():
    # else a pool that goes on from a checkpoint, whose empty slots hold something else, would round otherwise
    task = sentences([1] * 8 + [9] * 8)
    network = Network(
        init=lambda key, width, weights: jnp.zeros(()),
        logits=lambda parameter, _, inputs, key: jnp.stack(
            [jnp.full(inputs[0].shape[0], inputs[0].shape[1] * parameter), jnp.zeros(inputs[0].shape[0])], axis=1
        ),
    )
    trainer = Trainer(network, optax.sgd(1.0), 4, patience=2, max_epochs=2, buckets=BUCKETS)
    short = Plan(
        jax.random.key(1), jnp.arange(16), jnp.int32(8), jnp.zeros(16, jnp.int32), jnp.float32(1.0), jnp.int32(1)
    )
    long = short._replace(order=jnp.arange(16)[::-1])
    plans = jax.tree.map(lambda *leaves: jnp.stack(leaves), short, long)

    def cut(live):  # the gradient at 0 is half of the length that the minibatch was cut to
        learners = train_epoch(trainer, started(trainer, plans), plans, to_device(task), 1, live)
        return 2 * float(learners.parameters[0])

    assert cut(jnp.array([True, False])) == 2
    assert cut(jnp.array([True, True])) == cut(None) == 9


def test_splits_of_text_are_answered_in_their_order():
    task = sentences(np.random.default_rng(1).integers(1, 10, 300))
    network = Network(None, lambda parameters, embeddings, inputs, key: jax.nn.one_hot(inputs[0][:, 0], 9))
    answers = classify(network, None, None, to_device(task).test)
    np.testing.assert_array_equal(answers, task.test.inputs[0][:, 0])


def test_take_cuts_each_sentence():
    first, second = jnp.arange(20).reshape(4, 5), 100 + jnp.arange(12).reshape(4, 3)
    a, b = take((first, second), jnp.array([2, 0]), (3, 1))
    np.testing.assert_array_equal(a, first[jnp.array([2, 0]), :3])
    np.testing.assert_array_equal(b, second[jnp.array([2, 0]), :1])


@pytest.mark.parametrize("num_inputs", [3, ANSWER_BLOCK, 2 * ANSWER_BLOCK + 5])
def test_answers_in_blocks_equal_answers_at_once(num_inputs):
    inputs = np.random.default_rng(0).normal(size=(num_inputs, 4)).astype(np.float32)
    network = Network(None, lambda parameters, embeddings, inputs, key: inputs @ parameters)
    parameters = jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)), jnp.float32)
    split = Split(inputs, np.zeros(num_inputs, np.int32), None)
    np.testing.assert_array_equal(
        classify(network, parameters, None, evaluation_split(split)), (inputs @ parameters).argmax(1)
    )


def test_accuracy_by_hand():
    # logit 0 is positive for the first ten examples: class 0 there, class 0 again on the tie of 0 and 0
    data = data_of(np.eye(20, dtype=np.float32), [0] * 10 + [1] * 10)
    parameters = jnp.concatenate([jnp.ones(10), -jnp.ones(10)])
    right = jax.jit(accuracy, static_argnums=0)
    assert right(COUNTING, parameters, None, data.test) == 1
    assert right(COUNTING, -parameters, None, data.test) == 0


def test_images_are_put_on_the_device_as_they_are():
    task = load("digits")
    data = to_device(task)
    assert isinstance(data, Data)
    assert data.inputs.dtype == jnp.uint8
    assert data.embeddings is None
    np.testing.assert_array_equal(data.test.labels, task.test.labels)


def test_only_the_words_of_the_minibatches_are_trained():
    task = sentences([3, 1, 2, 4])  # words 2 to 5
    widths = set()
    trainer = dataclasses.replace(text_trainer(widths, batch_size=2), own_embeddings=True)
    data = to_device(task)
    trainer = dataclasses.replace(
        trainer,
        network=trainer.network._replace(init=lambda key, width, weights: jnp.ones(9)),
        optimizer=optax.sgd(0.1),
    )
    plans = Plan(
        jax.random.key(1), jnp.arange(4), jnp.int32(4), jnp.zeros(4, jnp.int32), jnp.float32(0.1), jnp.int32(1)
    )
    plans = jax.tree.map(lambda leaf: leaf[None], plans)
    learners = started(trainer, plans, data.initial)
    after = train_epoch(trainer, learners, plans, data, 2).parameters.embeddings[0]
    changed = (np.asarray(after) != np.eye(9)).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed[1:]) + 1, [2, 3, 4, 5])
