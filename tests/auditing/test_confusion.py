"""Probabilities of labels by confusion matrices: Bayes' rule where models are independent, and what weak models are."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import irtjax
from irtjax.auditing.confusion import label_probability


def predictions(rng, labels, matrices):
    """Independent predictions by the confusion matrix of each model."""
    return np.stack([[rng.choice(len(row), p=row) for row in matrix[labels]] for matrix in matrices])


def test_independent_models_give_the_posterior_of_bayes_rule():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 6000, p=[0.5, 0.3, 0.2])
    matrices = rng.dirichlet(np.ones(3), (4, 3))
    classes = predictions(rng, labels, matrices)
    joint = np.array([0.5, 0.3, 0.2]) * np.prod(
        [matrix[:, own].T for matrix, own in zip(matrices, classes, strict=True)], 0
    )
    expected = (joint / joint.sum(axis=1, keepdims=True))[np.arange(6000), labels]
    found = label_probability(classes, labels, 3)
    assert found.temper == pytest.approx(1, abs=0.05)
    assert np.abs(found.label - expected).mean() < 0.015  # the rarest row of a matrix is estimated from 1,200 examples
    wrong = np.where(np.arange(3) == labels[:, None], -1, joint).argmax(axis=1)
    assert (found.instead == wrong).mean() > 0.97


def test_the_same_model_many_times_tells_no_more_than_once():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 3000)
    classes = predictions(rng, labels, rng.dirichlet(np.ones(3), (2, 3)))
    once, often = label_probability(classes, labels, 3), label_probability(np.repeat(classes, 10, axis=0), labels, 3)
    assert often.temper == pytest.approx(once.temper / 10, rel=0.02)
    np.testing.assert_allclose(often.label, once.label, atol=0.002)


def test_models_that_tell_nothing_leave_the_shares_of_the_labels():
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1], [700, 300])
    classes = np.stack([np.zeros(1000, int), rng.integers(0, 2, 1000), np.full(1000, -1)])
    found = label_probability(classes, labels, 2)
    np.testing.assert_allclose(found.label, np.where(labels == 0, 0.7, 0.3), atol=0.05)
    assert label_probability(np.zeros((2, 5), int), np.zeros(5, int), 2).instead.tolist() == [-1] * 5


def test_models_that_favour_a_class_do_not_make_suspects_of_the_others():
    """Weak networks predict few of the classes: votes and evidence then point at all examples of the others."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 4, 2000)
    wrong = rng.random(2000) < 0.05
    labels = np.where(wrong, (true + rng.integers(1, 4, 2000)) % 4, true)
    favour = np.array([0.1, 0.5, 0.1, 0.3])
    matrices = [share * np.eye(4) + (1 - share) * favour for share in np.linspace(0, 0.4, 20)]
    table = irtjax.difficulty(predictions(rng, true, matrices), labels)
    assert table.suspects().label_probability.is_monotonic_increasing
    auc = {
        name: roc_auc_score(wrong, sign * table.table[name])
        for name, sign in (("label_probability", -1), ("evidence", 1))
    }
    assert auc["label_probability"] > auc["evidence"] + 0.04
