"""Probabilities of labels by confusion matrices: Bayes' rule where models are independent, and what weak models are."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2, rankdata

import irtjax
from irtjax.auditing.confusion import label_probability

PRIOR = np.array([0.5, 0.3, 0.2])
MATRICES = np.array(  # of three models: a row for each class, the probabilities of what is predicted
    [
        [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]],
        [[0.4, 0.4, 0.2], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]],
        [[0.1, 0.8, 0.1], [0.2, 0.6, 0.2], [0.3, 0.6, 0.1]],
    ]
)


def predictions(rng, labels, matrices):
    """Independent predictions by the confusion matrix of each model."""
    below = [matrix.cumsum(axis=1)[labels, :-1] for matrix in matrices]
    return np.stack([(rng.random((len(labels), 1)) > limits).sum(axis=1) for limits in below])


def posterior(prior, matrices, classes):
    """Bayes' rule for independent models whose confusion matrices are known."""
    joint = prior * np.prod([matrix[:, own].T for matrix, own in zip(matrices, classes, strict=True)], axis=0)
    return joint / joint.sum(axis=1, keepdims=True)


def placements(wrong, score):
    """How far up each wrong label is among the right ones, and each right one among the wrong ones, as shares."""
    rank, number = rankdata(score), wrong.sum()
    of_wrong = (rank[wrong] - rankdata(score[wrong])) / (len(wrong) - number)
    return of_wrong, 1 - (rank[~wrong] - rankdata(score[~wrong])) / number


def auc_and_error(wrong, score, other=None):
    """The AUC, or its difference from that of another score; and its standard error (DeLong et al. 1988, eq. 5)."""
    parts = placements(wrong, score)
    if other is not None:
        parts = [one - two for one, two in zip(parts, placements(wrong, other), strict=True)]
    return parts[0].mean(), sum(part.var(ddof=1) / part.size for part in parts) ** 0.5


def test_independent_models_give_the_posterior_of_bayes_rule():
    """Every pattern of predictions as often as it is to be expected: confusion matrices are exact."""
    labels, *classes = np.array(list(itertools.product(range(3), repeat=4))).T
    expected = PRIOR[labels] * np.prod([MATRICES[model][labels, classes[model]] for model in range(3)], axis=0)
    times = np.rint(100_000 * expected).astype(int)
    labels, classes = np.repeat(labels, times), np.repeat(classes, times, axis=1)
    truth = posterior(PRIOR, MATRICES, classes)
    at = np.arange(labels.size)
    found = label_probability(classes, labels, 3)
    # A cell of a matrix counts 2,000 examples or more. The prior adds 3 counts at most, and the example itself is
    # left out: log P is off by 4 / 2,000 at most, the log odds, of three models and two classes, by 0.012, and a
    # probability by a quarter of that. A temper that is off by as much, as it may, adds at most p (1 - p) |log odds| =
    # 0.22 times 0.012.
    assert found.temper == pytest.approx(1, abs=0.012)
    np.testing.assert_allclose(found.label, truth[at, labels], atol=0.006)
    truth[at, labels] = -1
    np.testing.assert_allclose(truth[at, found.instead], truth.max(axis=1), rtol=1e-9)  # of two that tie, either


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


def test_an_example_does_not_vouch_for_its_own_label():
    """200 models that guess: 30 examples are few enough for each to be seen in the matrices it is judged by."""
    labels = np.repeat([0, 1, 2], 10)
    found = label_probability(np.random.default_rng(4).integers(0, 3, (200, 30)), labels, 3)
    gain = np.log(found.label).sum() - 30 * np.log(1 / 3)
    assert gain < chi2.ppf(0.999, 1) / 2  # what one parameter gains by chance (Wilks 1938)


def test_models_that_favour_a_class_do_not_make_suspects_of_the_others():
    """Weak networks predict few of the classes: votes and evidence then point at all examples of the others."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 4, 2000)
    wrong = rng.random(2000) < 0.05
    labels = np.where(wrong, (true + rng.integers(1, 4, 2000)) % 4, true)
    favour = np.array([0.1, 0.5, 0.1, 0.3])
    matrices = [share * np.eye(4) + (1 - share) * favour for share in np.linspace(0, 0.4, 20)]
    classes = predictions(rng, true, matrices)
    table = irtjax.difficulty(classes, labels)
    assert table.suspects().label_probability.is_monotonic_increasing
    doubt, evidence = -table.table.label_probability.to_numpy(), table.table.evidence.to_numpy()
    gain, error = auc_and_error(wrong, doubt, evidence)
    assert gain > 3 * error
    best = -posterior(np.full(4, 0.25), matrices, classes)[np.arange(2000), labels]
    auc, error = auc_and_error(wrong, best)
    assert auc_and_error(wrong, doubt)[0] > auc - error  # estimated matrices lose less than 100 wrong labels could show
