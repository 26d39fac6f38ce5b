"""Recipes: the usual one of a task, and the trainer that it makes."""

import dataclasses

import numpy as np
import pytest
from conftest import sentences

from irtjax import InputError, tasks
from irtjax.tasks.task import ImageFormat
from irtjax.training.augmentation import flip_and_shift
from irtjax.training.recipe import RECIPES, Recipe, default_recipe, epoch_lengths, longest_first, make_trainer

DIGITS = tasks.load("digits")
TEXT = sentences([3, 1, 2, 4])


def test_every_task_has_a_recipe_and_others_go_by_their_kind():
    assert set(RECIPES) == set(tasks.TASKS)
    assert default_recipe(DIGITS) == Recipe()
    shorter = {"max_epochs": 40, "patience": 5}
    mine = dataclasses.replace(RECIPES["mnist"], steps_per_epoch=1197 // 64, **shorter)
    assert default_recipe(dataclasses.replace(DIGITS, name="mine")) == mine
    assert default_recipe(dataclasses.replace(DIGITS, name="sst2")) == mine  # by no other task's recipe
    assert default_recipe(TEXT) == dataclasses.replace(RECIPES["sst2"], steps_per_epoch=10, **shorter)
    labels = np.arange(20_000) % 60
    features = tasks.from_arrays(np.arange(40_000.0).reshape(20_000, 2), labels)
    assert default_recipe(features) == Recipe(width=64, steps_per_epoch=200)
    assert default_recipe(tasks.from_arrays(np.zeros((9, 2, 2, 3)), labels[:9] % 2)).network == "lenet"


def test_a_network_may_need_a_rate_of_its_own():
    assert default_recipe(DIGITS, "lenet") == Recipe("lenet")
    assert default_recipe(DIGITS, "vgg16") == Recipe("vgg16", learning_rate=2e-4)


def test_equal_recipes_make_equal_trainers():  # else programs would be compiled for each
    trainer = make_trainer(Recipe(width=8), DIGITS)
    assert trainer == make_trainer(Recipe(width=8), DIGITS)
    assert hash(trainer) == hash(make_trainer(Recipe(width=8), DIGITS))
    assert (trainer.augment, trainer.buckets, trainer.own_embeddings) == (None, (), False)


def test_the_optimizer_has_a_rate_of_its_own():
    assert default_recipe(DIGITS, optimizer="sgd").learning_rate == 0.1
    assert default_recipe(DIGITS, "vgg16", "sgd", momentum=0.9).learning_rate == pytest.approx(0.01)


def test_an_epoch_is_so_many_steps_or_a_pass():
    sizes = np.array([1, 63, 64, 1000])
    np.testing.assert_array_equal(epoch_lengths(Recipe(batch_size=32), sizes), [37] * 4)
    np.testing.assert_array_equal(epoch_lengths(Recipe(batch_size=32, steps_per_epoch=None), sizes), [1, 1, 2, 31])
    np.testing.assert_array_equal(longest_first(np.array([2, 5, 2, 9])), [3, 1, 0, 2])


def test_the_format_decides_on_augmentation_and_buckets():
    flipping = dataclasses.replace(DIGITS, format=ImageFormat(16.0, flips=True))
    assert make_trainer(Recipe(width=8), flipping).augment is flip_and_shift
    trainer = make_trainer(Recipe("lstm", width=8, train_embeddings=True), TEXT)
    assert (trainer.augment, trainer.buckets, trainer.own_embeddings) == (None, TEXT.format.buckets, True)


def test_what_a_task_does_not_allow_is_named():
    with pytest.raises(InputError, match="word vectors cannot be trained: digits has no words"):
        make_trainer(Recipe(train_embeddings=True), DIGITS)
    with pytest.raises(InputError, match="network 'lstm' reads text"):
        make_trainer(Recipe("lstm"), DIGITS)
