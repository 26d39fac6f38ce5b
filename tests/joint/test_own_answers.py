"""Difficulties by a network's own answers: against a fit of the package, and what they are learned from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irtjax
from irtjax import tasks
from irtjax.joint.own_answers import Answered, own_difficulties
from irtjax.joint.train import Difficulties, train_jointly
from irtjax.training.recipe import Recipe

RECIPE = Recipe(width=16, max_epochs=6, patience=6, batch_size=32)
ITEMS, EPOCHS, MOST = 1500, 8, 11


@pytest.fixture(scope="module")
def right():
    """(N, E) answers of a network that learns, to items of standard deviation 1.5."""
    rng = np.random.default_rng(0)
    ability, difficulty = np.linspace(-1, 2, EPOCHS), 1.5 * rng.normal(size=(ITEMS, 1))
    return (rng.random((ITEMS, EPOCHS)) < 1 / (1 + np.exp(difficulty - ability))).astype(np.int32)


def answered(right):
    by_epoch = np.zeros(MOST, np.float32)
    by_epoch[: right.shape[1]] = right.sum(0)
    return Answered(jnp.asarray(right.sum(1)), jnp.asarray(by_epoch), jnp.int32(right.shape[1]))


def test_posteriors_are_those_of_a_rasch_fit(right):
    """Of the package's own, with items for subjects and epochs for items."""
    found = own_difficulties(answered(right))
    fit = irtjax.fit(right, model="rasch")
    np.testing.assert_allclose(found.mean, -np.ravel(fit.ability), atol=5e-3)  # the spread has a prior here
    np.testing.assert_allclose(found.sd, np.ravel(fit.ability_se), atol=2e-3)
    np.testing.assert_allclose(found.spread, fit.population.sd[0], atol=5e-3)


def test_before_the_first_answers_there_is_the_prior():
    found = own_difficulties(Answered(jnp.zeros(5, jnp.int32), jnp.zeros(MOST), jnp.int32(0)))
    np.testing.assert_allclose(found.mean, 0, atol=1e-6)
    np.testing.assert_allclose(found.sd, 1, atol=1e-5)
    assert float(found.spread) == pytest.approx(1)


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("value", [0, 1])
def test_epochs_that_tell_no_item_from_another(epochs, value):
    found = own_difficulties(answered(np.full((40, epochs), value)))
    assert np.isfinite(found.mean).all()
    assert np.ptp(found.mean) == 0
    assert (found.sd > 0).all()


def test_each_epoch_more_that_is_right_is_easier(right):
    found, score = own_difficulties(answered(right)), right.sum(1)
    means = np.array([found.mean[score == number].mean() for number in np.unique(score)])
    assert (np.diff(means) < 0).all()
    shuffled = own_difficulties(answered(right[::-1]))
    np.testing.assert_array_equal(np.asarray(shuffled.mean)[::-1], found.mean)


@pytest.fixture(scope="module")
def wrong():
    """Digits of which some training labels are wrong, and which."""
    task, rng = tasks.load("digits"), np.random.default_rng(1)
    labels = task.train.labels.copy()
    bad = rng.random(labels.size) < 0.05
    labels[bad] = (labels[bad] + rng.integers(1, 10, bad.sum())) % 10
    return dataclasses.replace(task, train=task.train._replace(labels=labels)), bad


@pytest.fixture(scope="module")
def trained(wrong):
    task, _ = wrong
    asked = {"train": task.train, "test": task.test}
    return [train_jointly(task, None, weight, recipe=RECIPE, asked=asked, num_seeds=2) for weight in (0.0, 0.5)]


def test_wrong_labels_are_hard_for_the_network_that_learns_them(wrong, trained):
    task, bad = wrong
    own, said = trained[1].left, trained[1].answers
    assert own.mean.shape == own.sd.shape == (2, bad.size)
    for mean, predicted in zip(own.mean, said["train"].difficulty, strict=True):
        assert mean[bad].mean() > mean[~bad].mean() + 2
        assert np.corrcoef(mean[~bad], predicted[~bad])[0, 1] > 0.3
    assert ((said["test"].classes == task.test.labels).mean(1) > 0.8).all()


def test_without_weight_the_task_alone_is_learned(wrong, trained):
    """To the same bits as beside a crowd's difficulties: seeds are paired."""
    task, bad = wrong
    known = Difficulties(np.linspace(-1, 1, bad.size), np.ones(bad.size))
    alone = train_jointly(task, known, 0.0, recipe=RECIPE, asked={"test": task.test}, num_seeds=2)
    np.testing.assert_array_equal(alone.answers["test"].classes, trained[0].answers["test"].classes)
    np.testing.assert_array_equal(alone.answers["test"].confidence, trained[0].answers["test"].confidence)
    assert alone.left is None


def test_networks_learn_from_their_own_answers_only(wrong, trained):
    """One network alone has the difficulties that it has beside another."""
    task, _ = wrong
    one = train_jointly(
        task, None, 0.5, recipe=RECIPE, asked={}, num_seeds=1, first_seed=1, mesh=jax.make_mesh((1,), ("network",))
    )
    assert (np.abs(one.left.mean[0] - trained[1].left.mean[1]) < 0.05).mean() > 0.98
