"""Difficulties by a network's own answers: against a fit of the package, and what they are learned from."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import sentences

import irtjax
from irtjax import tasks
from irtjax.joint import own_answers
from irtjax.joint.own_answers import MOST_SPREAD, Answered, own_difficulties
from irtjax.joint.train import Difficulties, train_jointly
from irtjax.training.recipe import Recipe

RECIPE = Recipe(width=16, max_epochs=6, patience=1, batch_size=32)
ITEMS, EPOCHS, MOST = 1500, 8, 11


@pytest.fixture(scope="module")
def right():
    """(N, E) answers of a network that learns, to items of standard deviation 1.5."""
    rng = np.random.default_rng(0)
    ability, difficulty = np.linspace(-1, 2, EPOCHS), 1.5 * rng.normal(size=(ITEMS, 1))
    return (rng.random((ITEMS, EPOCHS)) < 1 / (1 + np.exp(difficulty - ability))).astype(np.int32)


def learned(items, epochs, forgotten, seed=0):
    """(N, E) answers to items that stay right once they are, but for a share of the answers."""
    rng = np.random.default_rng(seed)
    known = np.arange(1, epochs + 1) >= rng.geometric(0.3, (items, 1))
    return (known ^ (rng.random(known.shape) < forgotten)).astype(np.int32)


def answered(right, most=MOST):
    by_epoch = np.zeros(most, np.float32)
    by_epoch[: right.shape[1]] = right.sum(0)
    return Answered(jnp.asarray(right.sum(1)), jnp.asarray(by_epoch))


def test_posteriors_are_those_of_a_rasch_fit(right, monkeypatch):
    """Of the package's own, with items for subjects and epochs for items, which has no prior of the spread."""
    monkeypatch.setattr(own_answers, "PRIOR_OF_LOG_SPREAD", 1e3)
    for answers in (right, learned(ITEMS, EPOCHS, 0.02)):
        found = own_difficulties(answered(answers))
        fit = irtjax.fit(answers, model="rasch")
        np.testing.assert_allclose(found.spread, fit.population.sd[0], rtol=1e-3)
        np.testing.assert_allclose(found.mean, -np.ravel(fit.ability), atol=3e-3)
        np.testing.assert_allclose(found.sd, np.ravel(fit.ability_se), atol=3e-3)


@pytest.mark.parametrize(("items", "epochs"), [(20, 100), (300, 100), (5, 40)])
def test_items_that_are_never_forgotten(items, epochs):
    """Their order is all that is known: the spread is bounded, and difficulties stay around 0."""
    answers = learned(items, epochs, 0)
    found = own_difficulties(answered(answers, 100))
    assert 0.2 < found.spread <= MOST_SPREAD
    in_units = np.asarray(found.mean / found.spread)
    assert abs(in_units.mean()) < 0.01
    assert (np.abs(in_units) < 4).all()
    assert (np.diff(in_units[np.argsort(answers.sum(1))]) <= 1e-6).all()


def test_before_the_first_answers_there_is_the_prior():
    found = own_difficulties(Answered(jnp.zeros(5, jnp.int32), jnp.zeros(MOST)))
    np.testing.assert_allclose(found.mean, 0, atol=1e-6)
    np.testing.assert_allclose(found.sd, 1, atol=1e-5)
    assert float(found.spread) == pytest.approx(1)


@pytest.mark.parametrize("value", [0, 1])
def test_epochs_that_tell_no_item_from_another_say_nothing(right, value):
    found = own_difficulties(answered(np.full((40, 3), value)))
    np.testing.assert_allclose(found.mean, 0, atol=1e-6)
    np.testing.assert_allclose(found.sd, 1, atol=1e-5)
    more = np.concatenate([right, np.full((ITEMS, 3), value)], axis=1)
    found, less = own_difficulties(answered(more)), own_difficulties(answered(right))
    np.testing.assert_allclose(found.mean, less.mean, atol=1e-5)
    np.testing.assert_allclose(found.sd, less.sd, atol=1e-5)


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
    own, said = trained[1].memory, trained[1].answers
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
    assert alone.memory is None


def test_networks_learn_from_their_own_answers_only(wrong, trained):
    """One network alone has the difficulties that it has beside another, which goes on for longer."""
    task, _ = wrong
    assert trained[1].best_epoch[0] != trained[1].best_epoch[1]
    for at in range(2):
        one = train_jointly(task, None, 0.5, recipe=RECIPE, asked={}, num_seeds=1, first_seed=at)
        assert one.best_epoch[0] == trained[1].best_epoch[at]
        np.testing.assert_allclose(one.memory.mean[0], trained[1].memory.mean[at], atol=1e-3)


@pytest.mark.slow
def test_texts_have_difficulties_too():
    task = sentences([3, 5])
    recipe = Recipe("lstm", width=4, max_epochs=2, batch_size=8)
    found = train_jointly(task, None, 0.5, recipe=recipe, asked={"test": task.test}, num_seeds=1)
    assert found.memory.mean.shape == (1, len(task.train.labels))
    assert np.isfinite(found.answers["test"].difficulty).all()
