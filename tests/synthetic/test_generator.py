"""The generator of images: what it learns, its bound against quadrature, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from irtjax import InputError, tasks
from irtjax.synthetic.generator import Settings, _trainer, conditions_of, generate, train_generator

SMALL = Settings(latent=1, hidden=32, max_epochs=150, patience=30, batch_size=32)


@pytest.fixture(scope="module")
def task():
    """Two classes, a dark left or right half; the harder an image, the lighter."""
    rng = np.random.default_rng(0)
    labels, difficulty = rng.integers(0, 2, 400), rng.normal(0.5, 2, 400)
    ink = 200 / (1 + np.exp(difficulty)) + 30
    images = np.zeros((400, 4, 4), np.uint8)
    for image, label, value in zip(images, labels, ink, strict=True):
        image[:, 2 * label : 2 * label + 2] = value + rng.integers(-10, 10, (4, 2))
    made = tasks.from_arrays(images, labels, name="halves")
    at = np.array([int(name.split("_")[-1]) for name in made.train.ids])
    return made, difficulty[at]


@pytest.fixture(scope="module")
def generator(task):
    return train_generator(*task, SMALL)


def test_images_have_the_class_and_the_difficulty_asked_for(generator, task):
    asked = np.linspace(-2, 3, 11)
    for label in (0, 1):
        images = generate(generator, np.full(220, label), np.repeat(asked, 20))
        assert images.shape == (220, 4, 4, 1)
        assert images.dtype == np.uint8
        halves = images[..., 0].astype(float).reshape(11, 20, 4, 2, 2).mean((1, 2, 4))
        assert (halves[:, label] > 3 * halves[:, 1 - label]).all()
        ink = 200 / (1 + np.exp(asked)) + 30
        np.testing.assert_allclose(halves[:, label], ink, atol=20)
        assert (np.diff(halves[:, label]) < 0).all()


def test_the_bound_is_below_the_likelihood(generator, task):
    """By quadrature over the one number that an image is drawn from."""
    made, difficulty = task
    rows = slice(0, 30)
    x = jnp.asarray(made.train.inputs[rows].reshape(30, 16) / 255, jnp.float32)
    conditions = conditions_of(generator, made.train.labels[rows], difficulty[rows])
    trainer = _trainer(16, 3, SMALL)
    nodes, weights = hermegauss(80)
    by_node = []
    for node in nodes:
        share = np.asarray(
            trainer.decode(generator.parameters, jnp.full((30, 1), node, jnp.float32), conditions), float
        )
        by_node.append((np.asarray(x) * np.log(share) + (1 - np.asarray(x)) * np.log(1 - share)).sum(1))
    log_likelihood = np.log((weights / weights.sum()) @ np.exp(by_node)).mean()
    bounds = [float(trainer.bound(generator.parameters, x, conditions, jax.random.key(seed))) for seed in range(200)]
    assert np.mean(bounds) < log_likelihood + 4 * np.std(bounds) / np.sqrt(200)
    assert np.mean(bounds) > log_likelihood - 0.5
    assert log_likelihood < 0


def test_training_keeps_the_best_epoch(generator):
    assert len(generator.bounds) - 1 - generator.bounds.argmax() <= SMALL.patience
    assert generator.bounds.max() > generator.bounds[0] + 1


def test_the_same_seed_draws_the_same_images(generator):
    one, same, other = (generate(generator, [0, 1], [0.0, 1.0], seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made, b: (made, b[1:]), "difficulties for 280 training images"),
        (lambda made, b: (made, np.full_like(b, 2.0)), "equally difficult"),
        (
            lambda made, b: (made, np.where(np.arange(b.size) == 3, np.nan, b)),
            "difficulty nan, expected a finite number",
        ),
        (
            lambda made, b: (
                tasks.from_arrays(np.arange(80, dtype=np.uint8).reshape(20, 2, 2), [0, 1] * 10, name="few"),
                b[:14],
            ),
            "14 training",
        ),
        (
            lambda made, b: (tasks.from_arrays(["a b", "c d"] * 20, [0, 1] * 20, name="words"), b[:28]),
            "words has no images",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(task, change, message):
    with pytest.raises(InputError, match=message):
        train_generator(*change(*task), SMALL)


@pytest.mark.parametrize(
    ("labels", "difficulty", "message"),
    [
        ([0, 1], [0.0], "for 2 labels"),
        ([0], [np.inf], "finite"),
        ([0], [1e39], "finite"),
        ([2], [0.0], r"labels \[2\], expected integers from 0 to 1"),
        ([0.5], [0.0], "expected integers"),
        ([True], [0.0], "expected integers"),
        (["a"], [0.0], "expected integers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(generator, labels, difficulty, message):
    with pytest.raises(InputError, match=message):
        generate(generator, np.array(labels), np.array(difficulty))


def test_bad_seeds_are_named(task, generator):
    for seed in (-1, 2**70):
        with pytest.raises(InputError, match="seed"):
            generate(generator, [0], [0.0], seed=seed)
        with pytest.raises(InputError, match="seed"):
            train_generator(*task, SMALL, seed=seed)


def test_bad_settings_are_named():
    with pytest.raises(InputError, match="latent"):
        Settings(latent=0)
