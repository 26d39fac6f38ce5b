"""The probe: ability from a sample of items, against the ability from all of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import BUCKETS, data_of, sentences

from irtjax.kernels.ability_modes import ability_1pl
from irtjax.networks import Network
from irtjax.populations.normal import Population
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.probe import CAPACITIES, PILOT_SIZE, Subjects, estimate_ability, rank_items
from irtjax.selection.rules import Window, beyond_ability, required_se, up_to_ability
from irtjax.selection.sampling import draw, score, size_for
from irtjax.training import loop
from irtjax.training.data import classify, to_device
from irtjax.training.step import Trainer

NUM_ITEMS, ABILITY, ERROR, SHARE_ERROR = 20_000, 0.7, 0.05, 0.01
RNG = np.random.default_rng(0)
DIFFICULTY = np.sort(RNG.normal(-0.5, 1.5, NUM_ITEMS)).astype(np.float32)
UNIFORM = RNG.random(NUM_ITEMS)
RIGHT = 1 / (1 + np.exp(DIFFICULTY - ABILITY)) > UNIFORM
SHUFFLE = RNG.permutation(NUM_ITEMS)  # example i is item SHUFFLE[i] in the order of difficulty

# Answers class 0, the gold label, where the input is positive, its parameter added.
SIGN = Network(
    init=lambda key, width, weights: jax.random.uniform(key, (), jnp.float32, -0.9, 0.9),
    logits=lambda parameter, embeddings, inputs, key: jnp.stack(
        [inputs[:, 0] + parameter, jnp.zeros(inputs.shape[0])], axis=1
    ),
)
STILL = optax.GradientTransformation(lambda parameters: (), lambda gradient, state, parameters=None: (0.0, state))
KEY = jax.random.key(0)[None]
TRAINER = Trainer(SIGN, STILL, batch_size=16, patience=9, max_epochs=3)


def full_ability(population=None):
    return ability_1pl(jnp.asarray(RIGHT, jnp.int8), jnp.asarray(DIFFICULTY), population)


@functools.cache
def data():
    """Items that `SIGN` answers alike whatever its parameter, as long as that is below 1."""
    signs = np.where(RIGHT, 1.0, -1.0).astype(np.float32)[SHUFFLE]
    return data_of(signs[:, None], np.zeros(NUM_ITEMS))


@functools.cache
def data_of_unequal_networks():
    """The same items; `SIGN` with parameter p has the ability `ABILITY` + 5 p."""
    margin = ABILITY - DIFFICULTY - np.log(UNIFORM / (1 - UNIFORM))  # of a logistic variable
    return data_of((margin / 5).astype(np.float32)[SHUFFLE, None], np.zeros(NUM_ITEMS))


NUM_SAMPLES = 150


@functools.partial(jax.jit, static_argnums=0)
def estimate(trainer, error, parameters, data, difficulty, previous, population=None, stopped=0):
    """Estimates from samples of as many networks as there are parameters, the error the same at every ability.

    The first `stopped` networks are no longer in training.
    """
    keys = jax.vmap(jax.random.key)(jnp.arange(parameters.size, dtype=jnp.uint32))
    active = jnp.arange(parameters.size) >= stopped
    subjects = Subjects(keys, parameters, jnp.full(parameters.shape, previous, jnp.float32), active)
    return estimate_ability(trainer, lambda ability: error, subjects, data, rank_items(difficulty), population)


def asked(previous, error=ERROR, parameter=0.0, population=None, stopped=0):
    """Abilities of the same network from `NUM_SAMPLES` samples."""
    parameters = jnp.full(NUM_SAMPLES, parameter)
    return estimate(TRAINER, jnp.float32(error), parameters, data(), DIFFICULTY[SHUFFLE], previous, population, stopped)


@pytest.mark.parametrize("previous", [ABILITY, -3.0, np.inf])
def test_a_sample_gives_the_ability_of_all_items_with_the_required_error(previous):
    full = full_ability().ability
    estimate = asked(previous)
    count, apart = estimate.items_asked, np.asarray(estimate.ability - full)
    # the best items have information 0.25: 1,600 of them, and the pilot
    assert ((count > 1600 + PILOT_SIZE) & (count < 4000)).all()
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)
    assert 0.8 * ERROR < apart.std() < 1.2 * ERROR
    # the answers tell the error, too: it is 5% of samples that lie beyond two of them
    assert np.asarray(estimate.standard_error) == pytest.approx(ERROR, rel=0.25)
    assert (np.abs(apart) > 1.96 * estimate.standard_error).mean() < 0.1


def test_a_smaller_error_takes_more_items():
    sizes = [float(size_for(jnp.asarray(DIFFICULTY), ABILITY, error)) for error in (0.1, 0.05, 0.0)]
    assert 3.5 < sizes[1] / sizes[0] < 4  # four times as many, but for what is left of the items to ask
    assert sizes[2] > NUM_ITEMS  # those that matter, many times over
    assert np.asarray(asked(ABILITY, error=0.1).items_asked[:2]) == pytest.approx(sizes[0] + PILOT_SIZE, rel=0.2)


MOST_ASKED = 0.95


@jax.jit
def scored_samples(num_drawn, difficulty, right, ability):
    """Abilities from 300 samples of `num_drawn` items."""

    def one(key):
        sample = draw(key, difficulty, ability, num_drawn, int(MOST_ASKED * NUM_ITEMS))
        return score(sample, right[sample.places], difficulty, ability, None)

    return jax.lax.map(one, jax.vmap(jax.random.key)(jnp.arange(300, dtype=jnp.uint32)))


@pytest.mark.parametrize("asked_share", [0.1, 0.5, MOST_ASKED])
def test_the_error_is_right_however_much_is_asked(asked_share):
    full = full_ability().ability
    estimate = scored_samples(jnp.int32(int(asked_share * NUM_ITEMS)), DIFFICULTY, RIGHT.astype(np.int8), full)
    apart = np.asarray(estimate.ability - full)
    assert np.sqrt((apart**2).mean()) == pytest.approx(float(estimate.standard_error.mean()), rel=0.12)


def test_all_are_asked_where_a_sample_would_be_most_of_them():
    estimate = asked(ABILITY, error=0.005)
    assert (estimate.items_asked == NUM_ITEMS).all()
    np.testing.assert_allclose(estimate.ability, full_ability().ability, atol=1e-4)
    assert (estimate.standard_error == 0).all()


@pytest.mark.slow
def test_what_a_network_is_asked_does_not_depend_on_those_beside_it():
    parameters = np.linspace(-0.9, 0.9, NUM_SAMPLES, dtype=np.float32)
    beside = np.where(np.arange(NUM_SAMPLES) % 2, parameters, 0.0).astype(np.float32)  # others in half of the places
    run = functools.partial(estimate, TRAINER, jnp.float32(0.06), data=data_of_unequal_networks())
    first, second = (
        jax.tree.map(np.asarray, run(parameters=jnp.asarray(values), difficulty=DIFFICULTY[SHUFFLE], previous=0.0))
        for values in (parameters, beside)
    )
    asked, other = first.items_asked, second.items_asked[::2]
    # small and large samples and all items, of which the second batch has fewer
    small = CAPACITIES[0] + PILOT_SIZE
    assert (asked < small).any()
    assert ((asked > small) & (asked < NUM_ITEMS)).any()
    assert asked.max() == NUM_ITEMS
    assert (other < small).all()
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one[1::2], two[1::2])


def test_networks_that_have_stopped_are_asked_no_more_than_the_pilot():
    items_asked = asked(ABILITY, error=0.005, stopped=3).items_asked
    assert (items_asked[:3] == PILOT_SIZE).all()
    assert (items_asked[3:] == NUM_ITEMS).all()


def test_a_network_that_has_everything_right_is_infinitely_able():
    estimate = asked(0.0, error=0.5, parameter=2.0)  # added to every input, so that all are positive
    assert (estimate.ability == np.inf).all()
    assert (estimate.standard_error == np.inf).all()


@pytest.mark.slow
def test_the_population_draws_as_it_draws_answers_to_all_items():
    population = Population(-4.0, 0.01)
    full = float(full_ability(population).ability)
    assert full < 0  # not the 0.7 of the answers alone
    estimate = asked(full, population=population)
    apart = np.asarray(estimate.ability) - full
    assert apart.mean() == pytest.approx(0, abs=0.02)
    # it leaves little to be asked, and the standard error shows that; where the answers are not what it expects, as
    # here, the error is on the safe side, as answers are alike within a stratum
    assert (estimate.items_asked <= 2 * PILOT_SIZE).all()
    rms, told = np.sqrt((apart**2).mean()), float(estimate.standard_error.mean())
    assert rms < 1.1 * told < 2.5 * rms


def test_weights_of_a_sample_add_up_to_the_items_everywhere():
    def weight_by_place(key):
        sample = draw(key, jnp.asarray(DIFFICULTY), 0.0, 2000, 2048)
        return jnp.zeros(NUM_ITEMS).at[sample.places].add(sample.weights)

    keys = jax.vmap(jax.random.key)(jnp.arange(500, dtype=jnp.uint32))
    weights = np.asarray(jax.jit(lambda keys: jax.lax.map(weight_by_place, keys).mean(axis=0))(keys))
    np.testing.assert_allclose(weights.reshape(20, -1).mean(axis=1), 1, atol=0.05)


@pytest.mark.parametrize(("rule", "ends"), [(up_to_ability, 1), (beyond_ability, 1), (Window(0.5), 2)])
def test_the_required_error_moves_the_share(rule, ends):
    ascending = jnp.linspace(-5, 5, 100_001)  # a tenth of the items a logit
    wanted = required_se(rule, ascending, 0.004, jnp.float32(0.0))
    assert float(wanted) == pytest.approx(0.04 / ends, rel=0.01)
    assert required_se(rule, ascending, 0.004, jnp.float32(np.inf)) <= 0.5


def test_where_no_item_is_near_little_is_asked():
    ascending = jnp.concatenate([jnp.linspace(-3, -2, 5000), jnp.linspace(2, 3, 5000)])
    assert required_se(up_to_ability, ascending, 0.004, jnp.float32(0.0)) == 0.5


@pytest.mark.slow
def test_texts_of_a_sample_are_answered_as_all_texts_are():
    lengths = RNG.integers(1, 10, NUM_ITEMS)
    task = sentences(lengths)

    def logits(parameter, embeddings, inputs, key):
        ((words,),) = (inputs,)  # right where the words are an odd number
        odd = (words > 0).sum(axis=1) % 2
        return jnp.stack([odd.astype(jnp.float32), jnp.full(odd.shape, 0.5) + parameter], axis=1)

    network = Network(lambda key, width, weights: jnp.float32(0), logits)
    trainer = Trainer(network, STILL, batch_size=16, patience=9, max_epochs=1, buckets=BUCKETS)
    on_device = to_device(task)
    right = np.asarray(classify(network, jnp.float32(0), on_device.embeddings, on_device.train)) == 0
    np.testing.assert_array_equal(right, lengths % 2)
    full = ability_1pl(jnp.asarray(right, jnp.int8), jnp.asarray(DIFFICULTY)).ability
    found = estimate(trainer, jnp.float32(ERROR), jnp.zeros(50), on_device, DIFFICULTY, full)
    apart = np.asarray(found.ability - full)
    assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(apart.size)
    assert apart.std() < 1.4 * ERROR  # answers that do not follow the model, half right at every difficulty


@pytest.mark.slow
def test_little_data_are_asked_in_full():
    run = functools.partial(train_curriculum, TRAINER, KEY, learning_rate=1.0, selection=up_to_ability)
    few = data_of(np.where(RIGHT, 1.0, -1.0).astype(np.float32)[:1000, None], np.zeros(1000))
    history = run(few, DIFFICULTY[:1000], probe_error=SHARE_ERROR)
    assert (history.items_asked == 1000).all()
    np.testing.assert_array_equal(history.ability, run(few, DIFFICULTY[:1000]).ability)


@pytest.mark.parametrize("rule", [up_to_ability, beyond_ability, Window(0.5)])
def test_samples_select_what_all_answers_would(rule):
    difficulty, full = jnp.asarray(DIFFICULTY), full_ability().ability
    error = required_se(rule, difficulty, SHARE_ERROR, full)
    found = asked(0.0, error=error)
    assert (found.items_asked < NUM_ITEMS).all()
    shares = jax.vmap(rule, (None, 0))(difficulty, found.ability).num_examples / NUM_ITEMS
    share = rule(difficulty, full).num_examples / NUM_ITEMS
    np.testing.assert_allclose(shares, np.full(NUM_SAMPLES, share), atol=4 * SHARE_ERROR)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(up_to_ability, marks=pytest.mark.slow),
        pytest.param(beyond_ability, marks=pytest.mark.slow),
        pytest.param(Window(0.5), marks=pytest.mark.slow),
    ],
)
def test_a_curriculum_with_the_probe_follows_that_of_the_full_pass(rule):
    run = functools.partial(train_curriculum, TRAINER, KEY, data(), DIFFICULTY[SHUFFLE], rule)
    full = run(learning_rate=1.0)
    probed = run(learning_rate=1.0, probe_error=SHARE_ERROR)
    assert (full.items_asked == NUM_ITEMS).all()
    np.testing.assert_allclose(full.ability, np.full((1, 3), full_ability().ability), atol=1e-4)
    assert (probed.items_asked < NUM_ITEMS).all()
    assert len(set(np.asarray(probed.ability[0]))) == 3  # a sample anew each epoch
    np.testing.assert_allclose(probed.share, full.share, atol=4 * SHARE_ERROR)


@pytest.mark.slow
def test_another_error_is_not_compiled_for():
    run = functools.partial(train_curriculum, TRAINER, KEY, data(), DIFFICULTY[SHUFFLE], up_to_ability)
    precise = run(learning_rate=1.0, probe_error=SHARE_ERROR)
    programs = loop._train._cache_size()
    rough = run(learning_rate=1.0, probe_error=4 * SHARE_ERROR)
    assert loop._train._cache_size() == programs
    assert (rough.items_asked < precise.items_asked).all()


@pytest.mark.slow
def test_a_curriculum_with_the_probe_is_the_same_alone_and_among_others():
    keys = jax.vmap(jax.random.key)(jnp.arange(3, dtype=jnp.uint32))
    run = functools.partial(train_curriculum, TRAINER, learning_rate=1.0, probe_error=0.0015)
    items = data_of_unequal_networks(), DIFFICULTY[SHUFFLE], up_to_ability
    together = jax.tree.map(np.asarray, run(keys, *items))
    assert (together.items_asked[0] == PILOT_SIZE).all()  # able enough for nearly all items
    assert together.items_asked[2].max() == NUM_ITEMS
    for seed in range(3):
        alone = run(keys[seed : seed + 1], *items)
        for name in ("share", "items_asked", "examples_used", "test_accuracy"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(together, name)[seed], err_msg=name)
        # sums of so many terms, over arrays of another shape, are rounded otherwise
        rtol = np.finfo(np.float32).eps * np.sqrt(NUM_ITEMS)
        for name in ("ability", "ability_se"):
            np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[seed], rtol=rtol, err_msg=name)
