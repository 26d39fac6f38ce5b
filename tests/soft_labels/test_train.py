"""Training on soft labels, by the definitions of the methods."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import sentences
from scipy.special import log_softmax, softmax

from irtjax import InputError, tasks
from irtjax.soft_labels.choices import METHODS
from irtjax.soft_labels.items import take_out, without
from irtjax.soft_labels.labels import soft_labels
from irtjax.soft_labels.methods import epochs_of, loss_of, schedule, soft_cross_entropy, squared_error
from irtjax.soft_labels.train import SoftItems, _streams, train_method
from irtjax.tasks.task import select
from irtjax.training.recipe import Recipe
from irtjax.training.step import cross_entropy

RECIPE = Recipe(width=8, max_epochs=3, patience=3, batch_size=32)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    """Digits without 64 of its training examples, and these, with 20 answers that are mostly right."""
    task, split = take_out(tasks.load("digits"), np.arange(5, 69))
    counts = np.stack([RNG.multinomial(20, 0.04 + 0.6 * np.eye(10)[label]) for label in split.labels])
    return task, SoftItems(split, soft_labels(counts), counts)


def test_losses_by_definition():
    logits = RNG.normal(size=(6, 4)).astype(np.float32)
    shares = RNG.dirichlet(np.ones(4), 6).astype(np.float32)
    cce = -(shares * log_softmax(logits, axis=1)).sum(1).mean()
    mse = ((softmax(logits, axis=1) - shares) ** 2).sum(1).mean()
    assert float(soft_cross_entropy(jnp.asarray(logits), jnp.asarray(shares))) == pytest.approx(cce, rel=1e-5)
    assert float(squared_error(jnp.asarray(logits), jnp.asarray(shares))) == pytest.approx(mse, rel=1e-5)
    labels = np.array([0, 1, 2, 3, 0, 1])
    hard = cross_entropy(jnp.asarray(logits), jnp.asarray(labels))
    one_hot = soft_cross_entropy(jnp.asarray(logits), jnp.eye(4)[labels])
    assert float(hard) == pytest.approx(float(one_hot), rel=1e-5)


def test_schedules():
    for method in ("B0", "B1", "B2", "B3"):
        when = schedule(method, 4, 2)
        assert when.hard.all()
        assert not when.soft.any()
    assert schedule("I-CCE", 4, 2).hard.all()
    assert schedule("I-CCE", 4, 2).soft.all()
    when = schedule("S-MSE", 7, 2)
    assert when.hard.tolist() == [True, True, False, False, True, True, False]
    assert (when.hard != when.soft).all()
    assert [loss_of(method) for method in METHODS] == ["CCE"] * 4 + ["CCE", "MSE", "CCE", "MSE"]
    with pytest.raises(InputError, match="unknown method 'B9'"):
        schedule("B9", 4, 2)
    with pytest.raises(InputError, match="0 epochs in a row"):
        schedule("S-CCE", 4, 0)


def test_equal_passes_over_the_training_data():
    """In turns of e, a method has as many hard passes as the others; it ends on soft ones if E is a multiple of e."""
    for passes in (1, 3, 4, 7, 12):
        for row in (1, 2, 3, 5):
            when = schedule("S-CCE", epochs_of("S-CCE", passes, row), row)
            assert (when.hard.sum(), when.soft.sum()) == (passes, passes - passes % row)
            assert when.soft[-1] == (passes % row == 0)
            assert epochs_of("I-CCE", passes, row) == epochs_of("B1", passes, row) == passes


def test_what_is_passed_over(digits):
    task, items = digits
    count, num_items = len(task.train.labels), len(items.split.labels)
    for method in METHODS:
        further = select(task.test, np.arange(7))
        joined, hard, soft = _streams(task, items, method, 32, further)
        shown = joined.train.ids[hard.order], hard.labels[hard.order]
        extra = {"B1": num_items, "B2": num_items + 7, "B3": items.counts.sum()}.get(method, 0)
        assert hard.order.size == count + extra
        np.testing.assert_array_equal(shown[0][:count], task.train.ids)
        np.testing.assert_array_equal(shown[1][:count], task.train.labels)
        if method in ("B1", "B2"):
            np.testing.assert_array_equal(shown[0][count : count + num_items], items.split.ids)
            np.testing.assert_array_equal(shown[1][count : count + num_items], items.split.labels)
        if method == "B2":
            np.testing.assert_array_equal(shown[0][count + num_items :], further.ids)
            np.testing.assert_array_equal(shown[1][count + num_items :], further.labels)
        if method == "B3":
            answers = np.zeros_like(items.counts)
            at = {name: row for row, name in enumerate(items.split.ids)}
            for name, label in zip(*(column[count:] for column in shown), strict=True):
                answers[at[name], label] += 1
            np.testing.assert_array_equal(answers, items.counts)
        np.testing.assert_array_equal(joined.train.ids[soft.order], items.split.ids)
        np.testing.assert_allclose(soft.labels[soft.order], items.shares, rtol=1e-6)
        assert hard.steps == hard.order.size // 32
        assert soft.steps == 2


@pytest.mark.slow
def test_methods_train_and_differ(digits):
    """S-CCE of e at least the number of epochs never comes to the soft data: it is B0."""
    task, items = digits

    def train(method, **options):
        return train_method(task, items, method, recipe=RECIPE, num_seeds=2, **options)

    b0, interleaved = train("B0"), train("I-CCE")
    assert b0.answers["test"].shape == (2, len(task.test.labels))
    assert ((b0.best_epoch >= 1) & (b0.best_epoch <= 3)).all()
    for trained in (b0, interleaved):
        assert ((trained.answers["test"] == task.test.labels).mean(1) > 0.6).all()
    assert (b0.answers["test"] != interleaved.answers["test"]).any()
    never = train("S-CCE", epochs_in_a_row=3)
    np.testing.assert_array_equal(never.answers["test"], b0.answers["test"])
    alone = train_method(task, items, "B0", recipe=RECIPE, num_seeds=1, first_seed=1, mesh=one_device())
    np.testing.assert_array_equal(alone.answers["test"][0], b0.answers["test"][1])


def one_device():
    return jax.make_mesh((1,), ("network",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:1])


@pytest.mark.slow
def test_probabilities_of_what_is_held_out(digits):
    """They change nothing else, and their largest is the class that a network predicts."""
    task, items = digits
    plain, other = (
        train_method(task, items, "I-CCE", recipe=RECIPE, num_seeds=2, held_out=held)
        for held in (None, select(task.test, np.arange(40)))
    )
    np.testing.assert_array_equal(plain.answers["test"], other.answers["test"])
    assert other.answers["held_out"].shape == (2, 40, 10)
    np.testing.assert_allclose(np.exp(other.answers["held_out"]).sum(-1), 1, rtol=1e-5)
    np.testing.assert_array_equal(other.answers["held_out"].argmax(-1), plain.answers["test"][:, :40])


@pytest.mark.slow
def test_soft_passes_teach_soft_labels(digits):
    """Soft labels say that a 3 is mostly an 8, hard ones nothing about 3."""
    task, items = digits
    threes = items.split.labels == 3
    counts = np.where(threes[:, None], np.eye(10, dtype=int)[8] * 90 + np.eye(10, dtype=int)[3], items.counts)
    some = SoftItems(items.split, soft_labels(counts))
    few = dataclasses.replace(task, train=select(task.train, np.flatnonzero(task.train.labels != 3)))
    recipe = dataclasses.replace(RECIPE, max_epochs=12, patience=12)
    eights = {}
    for method in ("B0", "I-CCE"):
        trained = train_method(few, some, method, recipe=recipe, num_seeds=2)
        eights[method] = (trained.answers["test"][:, task.test.labels == 3] == 8).mean()
    assert eights["I-CCE"] > eights["B0"] + 0.15


def test_items_are_taken_out_by_their_text():
    task = sentences(np.full(20, 3))
    texts = np.array([f"Phrase {at} ." for at in range(20)], object)
    later = np.array([f"Phrase {at} ." for at in range(15, 35)], object)
    parts = {"train": texts, "validation": later, "test": later[5:]}
    splits = {name: select(task.train, np.arange(len(some)))._replace(texts=some) for name, some in parts.items()}
    task = dataclasses.replace(task, **splits)
    items = select(splits["train"], np.array([2, 16]))._replace(texts=np.array(["phrase 2", "Phrase  16!"], object))
    left, removed = without(task, items)
    assert removed == {"train": 2, "validation": 1, "test": 0}
    assert set(texts) - set(left.train.texts) == {"Phrase 2 .", "Phrase 16 ."}
    assert len(left.validation.labels) == 19
    with pytest.raises(InputError, match="none of the 2 items is an example"):
        without(task, items._replace(texts=np.array(["no such text", "nor this"], object)))
    with pytest.raises(InputError, match="all examples of the train split of toy are among the items"):
        without(task, splits["train"])
    with pytest.raises(InputError, match="have no texts"):
        without(tasks.load("digits"), items)


def test_all_examples_may_have_soft_labels(digits):
    """SLMG-I is then distillation alone."""
    task, items = digits
    whole, split = take_out(task, np.arange(len(task.train.labels)))
    assert whole.train.labels.size == 0
    _, hard, soft = _streams(whole, items, "I-CCE", 32)
    assert hard.steps == 0
    assert soft.steps == 2
    with pytest.raises(InputError, match="S-CCE needs training examples beside the items with soft labels"):
        train_method(whole, items, "S-CCE", recipe=RECIPE)
    everything = SoftItems(split, np.eye(10)[split.labels])
    trained = train_method(whole, everything, "I-CCE", recipe=RECIPE, num_seeds=2)
    assert ((trained.answers["test"] == task.test.labels).mean(1) > 0.6).all()


def test_bad_items(digits):
    task, items = digits
    with pytest.raises(InputError, match=f"item {items.split.ids[0]}: its soft labels sum to 2, expected 1"):
        SoftItems(items.split, np.where(np.arange(64)[:, None] == 0, 0.2, items.shares))
    with pytest.raises(InputError, match="B2 trains on further data, and there are none"):
        train_method(task, items, "B2", recipe=RECIPE)
    with pytest.raises(InputError, match="B3 trains on every answer, and only their shares are known"):
        train_method(task, SoftItems(items.split, items.shares), "B3", recipe=RECIPE)
