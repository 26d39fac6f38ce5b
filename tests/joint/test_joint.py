"""Networks with a head for difficulty: the loss by its definition, what is learned, and inputs out of distribution."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import sentences
from scipy.integrate import quad
from scipy.special import log_softmax, softmax
from scipy.stats import norm, spearmanr

from irtjax import InputError, tasks
from irtjax.joint.model import joint_loss, predicted_difficulty
from irtjax.joint.outside import auc, outside_images, outside_texts
from irtjax.joint.train import Difficulties, _predicted, train_jointly
from irtjax.tasks.item_texts import ItemTexts
from irtjax.training.recipe import Recipe

RECIPE = Recipe(width=16, max_epochs=6, patience=6, batch_size=32)
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def digits():
    """Digits, and difficulties that can be read from an image: the more ink on the left, the harder."""
    task = tasks.load("digits")
    ink = {name: task.split(name).inputs[:, :, :4].mean((1, 2, 3)) / 4 - 1 for name in task.splits}
    return task, ink


@pytest.fixture(scope="module")
def trained(digits):
    task, ink = digits
    known = Difficulties(ink["train"], np.full(ink["train"].shape, 0.05))
    asked = {"test": task.test, **outside_images(task)}
    return [train_jointly(task, known, weight, recipe=RECIPE, asked=asked, num_seeds=2) for weight in (0.0, 1.0)]


def test_the_loss_is_the_expectation_that_it_stands_for():
    outputs = RNG.normal(size=(5, 6)).astype(np.float32)
    labels, m, s = RNG.integers(0, 4, 5), RNG.normal(size=5), RNG.uniform(0.1, 1, 5)
    targets = np.stack([labels, m, s, np.full(5, 0.7)], axis=1).astype(np.float32)
    f, tau = (np.asarray(part) for part in predicted_difficulty(jnp.asarray(outputs), 4))
    entropy = -log_softmax(outputs[:, :4], axis=1)[np.arange(5), labels]

    def surprise(at):
        """E_q[-log N(b; f, τ²)] without its constant, by quadrature."""
        q, p = norm(m[at], s[at]), norm(f[at], tau[at])
        return quad(lambda b: -q.pdf(b) * p.logpdf(b), m[at] - 9 * s[at], m[at] + 9 * s[at])[0] - np.log(2 * np.pi) / 2

    expected = (entropy + 0.7 * np.array([surprise(at) for at in range(5)])).mean()
    assert float(joint_loss(4)(jnp.asarray(outputs), jnp.asarray(targets))) == pytest.approx(expected, rel=1e-5)


def test_the_standard_deviation_is_least_where_the_loss_is():
    """For one item, the best τ² is (m - f)² + s²."""
    m, s, f = 1.3, 0.4, 0.2
    raw = jnp.linspace(-2, 2, 4001)
    outputs = jnp.stack([jnp.zeros_like(raw), jnp.full_like(raw, f), raw], axis=1)
    target = jnp.array([[0, m, s, 1.0]])
    losses = jax.vmap(lambda row: joint_loss(1)(row[None], target))(outputs)
    tau = predicted_difficulty(outputs, 1)[1]
    assert float(tau[losses.argmin()]) == pytest.approx(np.hypot(m - f, s), rel=2e-3)


def test_difficulties_are_learned_and_the_task_too(digits, trained):
    task, ink = digits
    joint = trained[1]
    for found in trained:
        assert ((found.answers["test"].classes == task.test.labels).mean(1) > 0.8).all()
    said = joint.answers["test"]
    for row in said.difficulty:
        assert spearmanr(row, ink["test"]).statistic > 0.9
    off = np.abs(said.difficulty - ink["test"])
    assert (off.mean(1) < 0.5 * np.abs(ink["test"] - ink["train"].mean()).mean()).all()
    assert 0.85 < (off < 1.96 * np.hypot(said.difficulty_sd, 0.05)).mean() < 1


def test_without_weight_difficulties_have_no_part_in_training(digits, trained):
    task, ink = digits
    other = Difficulties(RNG.normal(size=ink["train"].size), np.ones(ink["train"].size))
    again = train_jointly(task, other, 0.0, recipe=RECIPE, asked={"test": task.test}, num_seeds=2)
    np.testing.assert_array_equal(again.answers["test"].classes, trained[0].answers["test"].classes)
    np.testing.assert_array_equal(again.validation_accuracy, trained[0].validation_accuracy)


def test_confidence_is_the_largest_probability(trained):
    outputs = RNG.normal(size=(6, 5)).astype(np.float32)
    classes, confidence, f, tau = _predicted(3)(jnp.asarray(outputs))
    np.testing.assert_array_equal(classes, outputs[:, :3].argmax(1))
    np.testing.assert_allclose(confidence, softmax(outputs[:, :3], axis=1).max(1), rtol=1e-5)
    np.testing.assert_array_equal(f, outputs[:, 3])
    np.testing.assert_allclose(tau, np.exp(3 * np.tanh(outputs[:, 4] / 3)), rtol=1e-5)
    assert trained[0].answers.keys() == {"test", "rotated", "noise"}


def test_examples_of_no_class(digits):
    task, _ = digits
    found = outside_images(task, seed=1)
    assert found.keys() == {"rotated", "noise"}
    np.testing.assert_array_equal(found["rotated"].inputs[7, :, 0, 0], task.test.inputs[7, 0, ::-1, 0])
    noise = found["noise"].inputs
    assert noise.dtype == task.test.inputs.dtype
    assert (noise.min(), noise.max()) == (0, 16)
    large = np.zeros((6, 28, 28, 1), np.uint8)
    split = task.test._replace(inputs=large, labels=task.test.labels[:6], ids=task.test.ids[:6])
    mnist = dataclasses.replace(
        task, train=split, validation=split, test=split, format=dataclasses.replace(task.format, scale=255.0)
    )
    drawn = outside_images(mnist)["digits"].inputs
    assert drawn.shape == (1797, 28, 28, 1)
    assert drawn.max() == 255
    assert not drawn[:, :4].any()
    with pytest.raises(InputError, match="digits has no texts"):
        outside_texts(task, ItemTexts(np.array(["a"]), (["x"],), None))


def test_texts_of_no_class():
    task = sentences([3, 5])
    words = ("", "?", "an", "old", "film", "about", "two", "small", "dogs")
    task = dataclasses.replace(task, format=dataclasses.replace(task.format, vocabulary=words))
    found = outside_texts(task, ItemTexts(np.array(["a", "b"]), (["About two small ...", "nowhere"],), None))
    assert found.inputs[0][0, :3].tolist() == [5, 6, 7]
    assert found.inputs[0][1, 0] == 1  # unknown
    with pytest.raises(InputError, match="2 sentences per item, those of"):
        outside_texts(task, ItemTexts(np.array(["a"]), (["x"], ["y"]), None))
    with pytest.raises(InputError, match="has no images"):
        outside_images(task)


def test_auc_by_pairs():
    inside, outside = RNG.integers(0, 5, 30), RNG.integers(1, 6, 20)
    pairs = outside[:, None] - inside
    assert auc(inside, outside) == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_bad_input(digits):
    task, ink = digits
    good = Difficulties(ink["train"], np.ones(ink["train"].size))
    for known, weight, message in (
        (Difficulties(ink["test"], ink["test"]), 1, "300 difficulties for 1197 training examples"),
        (good._replace(sd=-good.sd), 1, r"training example .*: difficulty .* with standard deviation -1, expected"),
        (good._replace(mean=np.full(1197, np.nan)), 1, "difficulty nan with standard deviation 1, expected"),
        (good._replace(mean=np.full(1197, 0.1)), 1, "equally difficult"),
        (good, np.inf, "`weight`=inf: expected a finite number"),
        (good, -1, "`weight`=-1: expected a finite number, 0 or more"),
        (None, -1, "`weight`=-1: expected a finite number, 0 or more"),
    ):
        with pytest.raises(InputError, match=message):
            train_jointly(task, known, weight, recipe=RECIPE, asked={})
    for step in (-0.1, 2.0, np.nan):
        with pytest.raises(InputError, match=f"`attack`={step}: expected a share of the range of pixels"):
            train_jointly(task, good, 1, recipe=RECIPE, asked={}, attack=step)
    with pytest.raises(InputError, match="'adversarial' is the name of the images that are attacked"):
        train_jointly(task, good, 1, recipe=RECIPE, asked={"adversarial": task.test}, attack=0.1)
    rows = tasks.from_arrays(RNG.normal(size=(60, 4)), np.arange(60) % 2)
    with pytest.raises(InputError, match="arrays has no images whose pixels could be moved"):
        train_jointly(rows, None, 1, recipe=RECIPE, asked={}, attack=0.1)
    with pytest.raises(InputError, match="arrays has no images"):
        outside_images(rows)
    texts = sentences([3, 5])
    with pytest.raises(InputError, match=f"`attack`=0.1: {texts.name} has no images whose pixels could be moved"):
        train_jointly(texts, None, 1, recipe=dataclasses.replace(RECIPE, network="lstm"), asked={}, attack=0.1)
