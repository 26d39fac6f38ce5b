"""Curricula: schedules by formula, DDaCLAE by what it must select, and the cases where selection degenerates."""

import dataclasses
import functools
import itertools
import math
import re
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import data_of, mesh_of

from irtjax import networks, tasks
from irtjax.errors import InputError
from irtjax.networks import Network
from irtjax.populations.normal import Population
from irtjax.selection import Curriculum, CurriculumOptions, ddaclae
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.probe import rank_items
from irtjax.selection.rules import Range, Window, beyond_ability, up_to_ability, widen
from irtjax.selection.schedules import examples_in_epochs, full_share, linear_share, root_share
from irtjax.training.data import to_device
from irtjax.training.loop import Learner
from irtjax.training.step import Trainer

TASK = tasks.load("digits")
KEYS = jax.vmap(jax.random.key)(jnp.arange(2, dtype=jnp.uint32))
SIZE = 64


def test_schedules_by_hand():
    np.testing.assert_array_equal(full_share(3), [1, 1, 1])
    np.testing.assert_allclose(linear_share(6, length=4, c0=0.2), [0.2, 0.4, 0.6, 0.8, 1, 1])
    np.testing.assert_allclose(
        root_share(6, length=4, c0=0.2), [0.2, np.sqrt(0.28), np.sqrt(0.52), np.sqrt(0.76), 1, 1]
    )


def test_shares_are_rounded_up_but_not_for_their_rounding():
    """Decimal and whole shares of many numbers of examples, beside exact fractions."""
    percent = np.arange(1, 101)
    naive = 0
    for dtype, size in itertools.product((np.float32, np.float64), (*range(1, 400), 1797, 4096, 18_000, 20_000)):
        exact = [max(1, math.ceil(Fraction(int(k), 100) * size)) for k in percent]
        shares = (percent / 100).astype(dtype)
        np.testing.assert_array_equal(examples_in_epochs(shares, 100, size), exact)
        naive += (np.ceil(shares * dtype(size)) != exact).sum()
        whole = np.arange(1, size + 1)
        np.testing.assert_array_equal(examples_in_epochs((whole / size).astype(dtype), size, size), whole)
    assert naive > 100  # that a product alone would round up
    np.testing.assert_array_equal(examples_in_epochs(linear_share(11, 10, 0.1), 11, 1000), range(100, 1001, 90))
    np.testing.assert_array_equal(examples_in_epochs(np.array([0, 1e-9, 0.5]), 3, 50_000), [1, 1, 25_000])


# One trainer for all synthetic data, whose programs the tests share. An example is `SIZE` features and a threshold; it
# is of class 0 where the product of its features with the parameters exceeds the threshold. Each minibatch raises by
# the learning rate, or lowers, the parameters whose features are in it.
THRESHOLDS = Network(
    init=lambda key, width, weights: jnp.zeros(SIZE),
    logits=lambda parameters, embeddings, inputs, key: jnp.stack([inputs[:, :-1] @ parameters, inputs[:, -1]], axis=1),
)
STEPS = optax.GradientTransformation(
    init=lambda parameters: (), update=lambda gradient, state, parameters=None: (-jnp.sign(gradient), state)
)
TRAINER = Trainer(THRESHOLDS, STEPS, batch_size=4, patience=100, max_epochs=6)

train = functools.partial(train_curriculum, TRAINER, KEYS)
# the network stays as it is
train_still = functools.partial(train, learning_rate=0.0)
# epochs that programs of schedules have reported; one function for all of them, as another would be compiled for
REPORTED: list[int] = []


def report(epochs, best):
    REPORTED.append(int(epochs.max()))


def ladder(num_right, num_examples=SIZE):
    """Gold label 0 everywhere, one parameter, and rising thresholds: the first `num_right` are right."""
    inputs = np.zeros((num_examples, SIZE + 1), np.float32)
    inputs[:, 0], inputs[:, -1] = 1, np.arange(num_examples) - num_right + 0.5
    return data_of(inputs, np.zeros(num_examples))


def one_parameter_each(right):
    """Each example has a parameter of its own; those that are not right at first are right once trained on."""
    thresholds = np.where(right, -1, 1)
    return data_of(np.column_stack([np.eye(SIZE), thresholds]).astype(np.float32), np.zeros(SIZE))


def expected_ability(num_right, difficulty):
    from scipy.optimize import brentq
    from scipy.special import expit

    return brentq(lambda theta: num_right - expit(theta - difficulty).sum(), -50, 50)


def test_ddaclae_selects_up_to_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train_still(ladder(21), difficulty, up_to_ability)
    theta = expected_ability(21, difficulty)
    eligible = (difficulty <= theta).sum()
    assert 4 < eligible < 64
    np.testing.assert_allclose(history.ability, theta, atol=1e-4)
    np.testing.assert_allclose(history.share, eligible / 64)
    np.testing.assert_array_equal(history.examples_used, eligible // 4 * 4)
    np.testing.assert_allclose(history.dev_accuracy, 21 / 64)


def test_recalls_of_both_classes_count():
    """The network says class 0 of 21 examples and class 1 of the others, where half are of each."""
    data = data_of(ladder(21).inputs, np.arange(SIZE) >= 32)
    history = train_still(data, np.linspace(-3, 3, SIZE), full_share(6))
    np.testing.assert_allclose(history.test_accuracy, (21 + 32) / 64)
    np.testing.assert_allclose(history.test_geometric_mean, (21 / 32) ** 0.5, rtol=1e-6)


def test_ddaclae_by_map_is_drawn_to_the_population():
    difficulty = np.linspace(-3, 3, 64)
    ml = train_still(ladder(21), difficulty, up_to_ability).ability[0, 0]
    drawn = train_still(ladder(21), difficulty, up_to_ability, population=Population(2.0, 0.1)).ability[0, 0]
    assert ml < -0.5
    assert drawn > 1


def test_a_network_that_knows_everything_gets_everything():
    history = train_still(ladder(64), np.linspace(-3, 3, 64), up_to_ability)
    assert (history.ability == np.inf).all()
    assert (history.share == 1).all()
    assert (history.examples_used == 64).all()


def test_a_network_that_knows_nothing_still_gets_on():
    history = train_still(ladder(0), np.linspace(-3, 3, 64), up_to_ability)
    assert (history.ability == -np.inf).all()
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])  # doubling, from one minibatch


def test_without_a_floor_what_is_selected_is_all_there_is():
    """As in the study: nothing in an epoch that selects nothing, one minibatch of fewer examples than it has."""
    difficulty = np.linspace(-3, 3, SIZE)
    options = CurriculumOptions(floor=False)
    for num_right, count in ((0, 0), (9, 3), (12, 8), (SIZE, SIZE)):
        history = train(ladder(num_right), difficulty, up_to_ability, learning_rate=1e-9, floor=False)
        assert num_right in (0, SIZE) or count == (difficulty <= expected_ability(num_right, difficulty)).sum()
        np.testing.assert_allclose(history.share, count / SIZE)
        np.testing.assert_array_equal(history.examples_used, count and max(count // 4 * 4, 4))
        own = Curriculum(difficulty, batch_size=4, options=options)
        assert own.indices(0, np.arange(SIZE) < num_right).size == count


def test_the_share_falls_with_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train(ladder(51), difficulty, up_to_ability, learning_rate=-0.7)
    assert (np.diff(history.ability) < 0).all()
    assert (np.diff(history.share) < 0).all()


def test_an_epoch_leaves_the_memory_of_who_has_stopped():
    program = ddaclae._Curriculum(TRAINER, up_to_ability, True, 2)
    items = rank_items(jnp.linspace(-3, 3, 64))
    problem = ddaclae._Problem(ladder(0), items, items.order, jnp.float32(0), None, None, None, None)
    learners, memory = program.begin(problem, KEYS)
    _, _, after = jax.jit(program.epoch)(problem, learners, memory, jnp.array([True, False]))
    np.testing.assert_array_equal(after.ability, [-np.inf, 0])
    np.testing.assert_array_equal(after.min_examples, [8, 4])
    assert np.isnan(after.history.ability[1]).all()


def test_equal_difficulties_are_all_or_nothing():
    history = train_still(ladder(41), np.full(64, 0.3), up_to_ability)  # above the common difficulty
    assert (history.share == 1).all()
    history = train_still(ladder(21), np.full(64, 0.3), up_to_ability)
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_hard_examples_are_those_beyond_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train_still(ladder(21), difficulty, beyond_ability)
    theta = expected_ability(21, difficulty)
    np.testing.assert_allclose(history.share, (difficulty >= theta).sum() / 64)
    # nothing is beyond a network that knows everything: the hardest, and ever more of them
    history = train_still(ladder(64), difficulty, beyond_ability)
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_a_window_is_about_the_ability():
    difficulty = np.linspace(-3, 3, 64)
    history = train_still(ladder(21), difficulty, Window(0.8))
    theta = expected_ability(21, difficulty)
    np.testing.assert_allclose(history.share, (np.abs(difficulty - theta) <= 0.8).sum() / 64)
    history = train_still(ladder(21), 20 * difficulty, Window(0.8))  # one item in it, or none
    np.testing.assert_array_equal(history.examples_used[0], [4, 8, 16, 32, 64, 64])


def test_what_is_too_little_is_widened_about_its_middle():
    for first, count, expected in ((30, 2, 27), (0, 0, 0), (64, 0, 56), (62, 2, 56)):
        assert widen(Range(jnp.int32(first), jnp.int32(count)), jnp.int32(8), 64).first == expected


@pytest.mark.parametrize(("rule", "kept"), [(up_to_ability, slice(0, 32)), (beyond_ability, slice(32, 64))])
def test_what_a_rule_selects_is_trained_on(rule, kept):
    # half is right, so the ability is 0 where difficulties are symmetric about 0; the easiest are the last
    right, difficulty = np.arange(64) < 32, np.linspace(3, -3, 64)
    history = train(one_parameter_each(right), difficulty, rule, learning_rate=2.0)
    np.testing.assert_allclose(history.ability[:, 0], 0, atol=1e-4)
    assert (history.examples_used[:, 0] == 32).all()
    chosen = np.argsort(difficulty)[kept]
    np.testing.assert_allclose(history.test_accuracy[:, 0], 0.5 + (~right)[chosen].sum() / 64)


def test_a_class_that_is_never_selected(digits_runs):
    trainer, _, keys, _ = digits_runs
    nine = TASK.train.labels == 9
    difficulty = np.where(nine, 30.0, np.random.default_rng(0).normal(size=nine.size))
    history = train_curriculum(trainer, keys, to_device(TASK), difficulty, up_to_ability, learning_rate=5e-3)
    made = ~np.isnan(history.dev_accuracy)
    assert made.sum(axis=1).max() >= 8
    assert np.isfinite(history.ability[made]).all()
    assert (history.share[made] <= 1 - nine.mean() + 1e-6).all()
    last = np.asarray(history.test_accuracy)[np.arange(len(keys)), made.sum(axis=1) - 1]
    assert (last <= 1 - (TASK.test.labels == 9).mean()).all()
    assert last.max() > 0.6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"difficulty": np.zeros(63)},
            "`difficulty` has the shape (63,), expected (64,): one number for each",
        ),
        ({"selection": np.ones(5)}, "`selection` has the shape (5,), expected (6,): one share of the data for each ep"),
        ({"selection": np.array([0.5] * 5 + [np.nan])}, "`selection` has the share nan at epoch 5, expected 0 to 1"),
        ({"selection": np.array([50.0] + [100] * 5)}, "`selection` has the share 50.0 at epoch 0, expected 0 to 1"),
        ({"data": ladder(3)._replace(stop_on=ladder(3).test)}, "`data` has a split to stop on: curricula stop by the"),
        (
            {"trainer": dataclasses.replace(TRAINER, own_embeddings=True)},
            "`own_embeddings` is set, but the data have no word vectors to train: leave it out",
        ),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    arguments = {"trainer": TRAINER, "data": ladder(3), "difficulty": np.zeros(64), "selection": full_share(6)}
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        train_curriculum(keys=KEYS, learning_rate=0.0, **arguments | change)


def test_fewer_examples_than_a_minibatch():
    history = train_still(ladder(2, num_examples=3), np.zeros(3), up_to_ability)
    assert (history.share == 1).all()
    assert (history.examples_used == 4).all()  # one minibatch, filled by reading the three again


def test_a_schedule_selects_its_share_of_the_easiest():
    shares = linear_share(6, length=4, c0=0.25)
    history = train_still(ladder(21), np.linspace(3, -3, 64), shares, on_epoch=report)
    np.testing.assert_allclose(history.share[0], np.ceil(shares * 64) / 64)
    assert np.isnan(history.ability).all()


def test_a_schedule_below_one_minibatch_is_followed_too():
    shares = np.array([0.02, 0.02, 0.05, 0.02, 0.5, 1.0])
    history = train_still(ladder(21), np.linspace(3, -3, 64), shares, on_epoch=report)
    np.testing.assert_allclose(history.share[0], np.ceil(shares * 64) / 64)
    np.testing.assert_array_equal(history.examples_used[0], [4, 4, 4, 4, 32, 64])  # one minibatch at the least


def test_a_rate_falls_by_epochs():
    """Whatever the epochs select, a sixth of the fall is in each; each step raises the parameter by its rate."""
    falling = dataclasses.replace(TRAINER, warmup=0.0)
    shares = np.repeat([1.0, 0.25], 3)
    history = train_curriculum(falling, KEYS, ladder(0), -np.arange(64.0), shares, learning_rate=0.9)
    parameter, accuracies = 0.0, []
    for epoch, share in enumerate(shares):
        steps = round(16 * share)
        parameter += sum(0.9 * min(1, 1 - (epoch * steps + at - 1) / (6 * steps - 1)) for at in range(steps))
        accuracies.append((np.arange(64) + 0.5 < parameter).mean())
    assert np.ptp(accuracies[3:]) > 0
    np.testing.assert_allclose(history.dev_accuracy, [accuracies] * 2, atol=1.01 / 64)


def test_only_the_selected_examples_are_trained_on():
    # none is right before it was trained on; difficulty falls along the inputs, so the easiest are the last
    shares = np.array([0.25, 0.25, 0.5, 0.5, 0.5, 0.5])
    history = train(
        one_parameter_each(np.zeros(64, bool)), np.linspace(3, -3, 64), shares, learning_rate=2.0, on_epoch=report
    )
    np.testing.assert_array_equal(history.examples_used[0], 64 * shares)
    np.testing.assert_allclose(history.test_accuracy[0], shares)


@pytest.mark.parametrize(("by_class", "learned"), [(False, 32), (True, 16)])
def test_classes_keep_their_shares_of_what_is_selected(by_class, learned):
    # the easier half is one class, none of which is right before it was trained on; the other class always is
    data = data_of(np.column_stack([np.eye(64), np.ones(64)]).astype(np.float32), np.arange(64) >= 32)
    shares = np.full(6, 0.5)
    history = train(data, np.linspace(-3, 3, 64), shares, by_class=by_class, learning_rate=2.0, on_epoch=report)
    np.testing.assert_array_equal(history.examples_used[0], 32)
    np.testing.assert_allclose(history.test_accuracy[0], (32 + learned) / 64)


@pytest.fixture(scope="module")
def digits_runs():
    trainer = Trainer(networks.build("mlp", TASK, 16), optax.adam(1.0), batch_size=32, patience=4, max_epochs=25)
    difficulty = np.random.default_rng(0).normal(size=1197)
    keys = jax.vmap(jax.random.key)(jnp.arange(3, dtype=jnp.uint32))
    run = functools.partial(train_curriculum, trainer, learning_rate=5e-3)
    return trainer, difficulty, keys, run(keys, to_device(TASK), difficulty, up_to_ability)


@pytest.mark.slow
def test_seeds_run_together_are_what_they_are_alone(digits_runs):
    trainer, difficulty, keys, together = digits_runs
    alone = train_curriculum(trainer, keys[1:2], to_device(TASK), difficulty, up_to_ability, learning_rate=5e-3)
    np.testing.assert_allclose(alone.ability[0][:8], together.ability[1][:8], atol=1e-3)
    np.testing.assert_allclose(alone.share[0][:8], together.share[1][:8], atol=2e-3)
    np.testing.assert_allclose(alone.test_accuracy[0][:8], together.test_accuracy[1][:8], atol=0.011)


@pytest.mark.slow
def test_seeds_on_several_devices_are_what_they_are_on_one(digits_runs):
    trainer, difficulty, keys, together = digits_runs
    mesh = mesh_of(2)  # three seeds: one device has two of them
    data = to_device(TASK, mesh)
    spread = train_curriculum(trainer, keys, data, difficulty, up_to_ability, learning_rate=5e-3, mesh=mesh)
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


def test_epochs_that_are_reported_are_those_of_one_call():
    REPORTED.clear()
    alone = train_still(ladder(21), np.zeros(64), full_share(6))
    told = train_still(ladder(21), np.zeros(64), full_share(6), on_epoch=report)
    assert REPORTED == [1, 2, 3, 4, 5, 6]
    jax.tree.map(np.testing.assert_array_equal, told, alone)


def test_no_key_is_used_twice():
    """Those of samples, of the monitor, and of minibatches and dropout in any epoch."""
    epochs = jnp.arange(200)
    network = jax.random.key(3)
    unknown = dict.fromkeys(Learner._fields)
    learner = Learner(**unknown | {"key": jnp.repeat(network[None], 200), "epoch": epochs})
    minibatches = jax.vmap(jax.random.split)(jax.vmap(jax.random.fold_in, (None, 0))(network, epochs)).ravel()
    streams = [ddaclae._draws(learner, stream) for stream in (ddaclae.PROBE_STREAM, ddaclae.MONITOR_STREAM)]
    keys = np.concatenate([jax.random.key_data(keys) for keys in (minibatches, *streams)])
    assert len(np.unique(keys, axis=0)) == 800


@pytest.mark.parametrize("rule", [up_to_ability, beyond_ability])
def test_a_loop_of_ones_own_selects_what_the_library_does(rule):
    """`Curriculum` beside the program, on the same answers: too few selected, some, all."""
    difficulty = np.linspace(-3, 3, SIZE)[np.random.default_rng(0).permutation(SIZE)]
    name = {up_to_ability: "DDaCLAE", beyond_ability: "DDaCLAE-hard"}[rule]
    for num_right in (0, 1, 21, 63, SIZE):
        history = train_still(ladder(num_right), difficulty, rule)
        own = Curriculum(difficulty, name, batch_size=TRAINER.batch_size)
        for epoch in range(TRAINER.max_epochs):
            own.indices(epoch, np.arange(SIZE) < num_right)
        for column in ("share", "ability", "ability_se", "items_asked"):
            np.testing.assert_array_equal(own.table()[column].astype(np.float32), getattr(history, column)[0])
