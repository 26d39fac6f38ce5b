"""The probe: ability from a sample of items, against the ability from all of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import BUCKETS, data_of, sentences

from irtjax.kernels.scoring import Population, ability_1pl
from irtjax.networks import Network
from irtjax.selection.curriculum import Window, hard, ready, tolerable, train_curriculum
from irtjax.selection.probe import PILOT, ask, draw, score, size_for
from irtjax.training.data import classify, to_device
from irtjax.training.trainer import Trainer

NUM_ITEMS, ABILITY, ERROR, SHARE_ERROR = 20_000, 0.7, 0.05, 0.01
RNG = np.random.default_rng(0)
DIFFICULTY = np.sort(RNG.normal(-0.5, 1.5, NUM_ITEMS)).astype(np.float32)
RIGHT = RNG.random(NUM_ITEMS) < 1 / (1 + np.exp(DIFFICULTY - ABILITY))
SHUFFLE = RNG.permutation(NUM_ITEMS)  # example i is item SHUFFLE[i] in the order of difficulty

# Answers class 0, the gold label, where the input is positive.
SIGN = Network(
    init=lambda key, width: jnp.float32(0),
    logits=lambda parameter, embeddings, inputs, key: jnp.stack(
        [inputs[:, 0] + parameter, jnp.zeros(inputs.shape[0])], axis=1
    ),
)
STILL = optax.GradientTransformation(lambda parameters: (), lambda gradient, state, parameters=None: (0.0, state))
TRAINER = Trainer(SIGN, STILL, batch_size=16, patience=9, max_epochs=3)


def full_ability(population=None):
    return ability_1pl(jnp.asarray(RIGHT, jnp.int8), jnp.asarray(DIFFICULTY), population)


@functools.cache
def data():
    signs = np.where(RIGHT, 1.0, -1.0).astype(np.float32)[SHUFFLE]
    return data_of(signs[:, None], np.zeros(NUM_ITEMS))


def asked(last, num=150, error=ERROR, population=None):
    """Abilities of the same network from `num` samples."""
    keys = jax.vmap(jax.random.key)(jnp.arange(num, dtype=jnp.uint32))
    order = jnp.asarray(np.argsort(SHUFFLE), jnp.int32)
    arguments = (jnp.zeros(num), data(), order, jnp.asarray(DIFFICULTY), jnp.full(num, last, jnp.float32), population)
    return jax.jit(ask, static_argnums=(0, 1))(TRAINER, within(error), keys, *arguments)


@functools.cache
def within(error):
    """The same standard error wherever the ability is."""
    return lambda ability: error


@pytest.mark.parametrize("last", [ABILITY, -3.0, np.inf])
def test_a_sample_gives_the_ability_of_all_items_with_the_error_asked_for(last):
    full = full_ability().ability
    estimate, count = asked(last)
    apart = np.asarray(estimate.ability - full)
    # the best items have information 0.25: 1,600 of them, and the pilot
    assert ((count > 1600 + PILOT) & (count < 4000)).all()
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)
    assert 0.8 * ERROR < apart.std() < 1.2 * ERROR
    # the answers tell the error, too: it is 5% of samples that lie beyond two of them
    assert np.asarray(estimate.standard_error) == pytest.approx(ERROR, rel=0.25)
    assert (np.abs(apart) > 1.96 * estimate.standard_error).mean() < 0.1


def test_a_smaller_error_takes_more_items():
    sizes = [float(size_for(jnp.asarray(DIFFICULTY), ABILITY, error)) for error in (0.1, 0.05, 0.0)]
    assert 3.5 < sizes[1] / sizes[0] < 4  # four times as many, but for what is left of the items to ask
    assert sizes[2] > NUM_ITEMS  # those that matter, many times over
    _, few = asked(ABILITY, num=2, error=0.1)
    assert np.asarray(few) == pytest.approx(sizes[0] + PILOT, rel=0.2)


@pytest.mark.parametrize("asked_share", [0.1, 0.5, 0.95])
def test_the_error_is_right_however_much_is_asked(asked_share):
    difficulty, count = jnp.asarray(DIFFICULTY), int(asked_share * NUM_ITEMS)
    full = full_ability().ability

    def one(key):
        sample = draw(key, difficulty, full, count, count)
        return score(sample, jnp.asarray(RIGHT)[sample.places], difficulty, full, None)

    keys = jax.vmap(jax.random.key)(jnp.arange(300, dtype=jnp.uint32))
    estimate = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    apart = np.asarray(estimate.ability - full)
    assert np.sqrt((apart**2).mean()) == pytest.approx(float(estimate.standard_error.mean()), rel=0.12)


def test_all_are_asked_where_a_sample_would_be_most_of_them():
    estimate, count = asked(ABILITY, num=2, error=0.005)
    assert (count == NUM_ITEMS + PILOT).all()
    np.testing.assert_allclose(estimate.ability, full_ability().ability, atol=1e-4)
    assert (estimate.standard_error == 0).all()


def test_a_network_that_has_everything_right_is_infinitely_able():
    always = jnp.full(2, 2.0)  # added to every input, so that all are positive
    keys = jax.vmap(jax.random.key)(jnp.arange(2, dtype=jnp.uint32))
    order = jnp.asarray(np.argsort(SHUFFLE), jnp.int32)
    estimate, _ = ask(TRAINER, within(0.5), keys, always, data(), order, jnp.asarray(DIFFICULTY), jnp.zeros(2))
    assert (estimate.ability == np.inf).all()
    assert (estimate.standard_error == np.inf).all()


def test_the_population_draws_as_it_draws_answers_to_all_items():
    population = Population(-4.0, 0.01)
    full = float(full_ability(population).ability)
    assert full < 0  # not the 0.7 of the answers alone
    estimate, count = asked(full, population=population)
    apart = np.asarray(estimate.ability) - full
    assert apart.mean() == pytest.approx(0, abs=0.02)
    # it leaves little to be asked, and the standard error knows; where the answers are not what it expects, as here, it
    # is on the safe side, for they are alike within a stratum
    assert (count <= 2 * PILOT).all()
    rms, told = np.sqrt((apart**2).mean()), float(estimate.standard_error.mean())
    assert rms < 1.1 * told < 2.5 * rms


def test_weights_of_a_sample_add_up_to_the_items_everywhere():
    def weight_by_place(key):
        sample = draw(key, jnp.asarray(DIFFICULTY), 0.0, 2000, 2048)
        return jnp.zeros(NUM_ITEMS).at[sample.places].add(sample.weights)

    keys = jax.vmap(jax.random.key)(jnp.arange(500, dtype=jnp.uint32))
    weights = np.asarray(jax.lax.map(weight_by_place, keys).mean(axis=0))
    np.testing.assert_allclose(weights.reshape(20, -1).mean(axis=1), 1, atol=0.05)


@pytest.mark.parametrize(("rule", "ends"), [(ready, 1), (hard, 1), (Window(0.5), 2)])
def test_the_error_that_a_rule_tolerates_moves_its_share(rule, ends):
    ascending = jnp.linspace(-5, 5, 100_001)  # a tenth of the items a logit
    wanted = tolerable(rule, ascending, 0.004, jnp.float32(0.0))
    assert float(wanted) == pytest.approx(0.04 / ends, rel=0.01)
    assert tolerable(rule, ascending, 0.004, jnp.float32(np.inf)) <= 0.5


def test_where_no_item_is_near_little_is_asked():
    ascending = jnp.concatenate([jnp.linspace(-3, -2, 5000), jnp.linspace(2, 3, 5000)])
    assert tolerable(ready, ascending, 0.004, jnp.float32(0.0)) == 0.5


def test_texts_of_a_sample_are_answered_as_all_texts_are():
    lengths = RNG.integers(1, 10, NUM_ITEMS)
    task = sentences(lengths)

    def logits(parameter, embeddings, inputs, key):
        ((words,),) = (inputs,)  # right where the words are an odd number
        odd = (words > 0).sum(axis=1) % 2
        return jnp.stack([odd.astype(jnp.float32), jnp.full(odd.shape, 0.5) + parameter], axis=1)

    network = Network(lambda key, width: jnp.float32(0), logits)
    trainer = Trainer(network, STILL, batch_size=16, patience=9, max_epochs=1, buckets=BUCKETS)
    on_device = to_device(task)
    right = np.asarray(classify(network, jnp.float32(0), on_device.embeddings, on_device.train)) == 0
    np.testing.assert_array_equal(right, lengths % 2)
    difficulty = jnp.asarray(DIFFICULTY)
    full = ability_1pl(jnp.asarray(right, jnp.int8), difficulty).ability
    keys = jax.vmap(jax.random.key)(jnp.arange(50, dtype=jnp.uint32))
    order = jnp.arange(NUM_ITEMS, dtype=jnp.int32)
    estimate, _ = jax.jit(ask, static_argnums=(0, 1))(
        trainer, within(ERROR), keys, jnp.zeros(50), on_device, order, difficulty, jnp.full(50, full)
    )
    apart = np.asarray(estimate.ability - full)
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)
    assert apart.std() < 1.4 * ERROR  # answers that do not follow the model, half right at every difficulty


def test_little_data_are_asked_in_full():
    run = functools.partial(
        train_curriculum, TRAINER, jax.random.key(0)[None], learning_rate=1.0, width=1, selection=ready
    )
    few = data_of(np.where(RIGHT, 1.0, -1.0).astype(np.float32)[:1000, None], np.zeros(1000))
    history = run(few, DIFFICULTY[:1000], probe=SHARE_ERROR)
    assert (history.items_asked == 1000).all()
    np.testing.assert_array_equal(history.ability, run(few, DIFFICULTY[:1000]).ability)


@pytest.mark.parametrize("rule", [ready, hard, Window(0.5)])
def test_a_curriculum_with_the_probe_follows_that_of_the_full_pass(rule):
    run = functools.partial(train_curriculum, TRAINER, jax.random.key(0)[None], data(), DIFFICULTY[SHUFFLE], rule)
    full = run(learning_rate=1.0, width=1)
    probed = run(learning_rate=1.0, width=1, probe=SHARE_ERROR)
    assert (full.items_asked == NUM_ITEMS).all()
    assert (probed.items_asked < NUM_ITEMS).all()
    assert len(set(np.asarray(probed.ability[0]))) == 3  # a sample anew each epoch
    np.testing.assert_allclose(probed.share, full.share, atol=4 * SHARE_ERROR)
