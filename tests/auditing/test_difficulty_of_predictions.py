"""From predictions to difficulty and suspects: planted wrong labels, other forms of the same, formulas by hand."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import irtjax
from irtjax import InputError
from irtjax.auditing.predicted import read_predictions
from irtjax.auditing.training_dynamics import cartography, forgetting_events

MODELS, EXAMPLES, CLASSES = 12, 400, 4


@pytest.fixture(scope="module")
def planted():
    """Logits of models, true labels, and labels of which a tenth are wrong."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, CLASSES, EXAMPLES)
    able, hard = rng.normal(1.5, 0.7, (MODELS, 1)), rng.normal(0, 1, EXAMPLES)
    chosen = np.where(
        rng.random((MODELS, EXAMPLES)) < expit(able - hard), true, rng.integers(0, CLASSES, (MODELS, EXAMPLES))
    )
    logits = 2 * np.eye(CLASSES)[chosen] + 0.3 * rng.random((MODELS, EXAMPLES, CLASSES))
    wrong = np.arange(EXAMPLES) % 10 == 0
    return logits, true, np.where(wrong, (true + 1) % CLASSES, true), wrong


@pytest.fixture(scope="module")
def found(planted):
    logits, _, labels, _ = planted
    return irtjax.difficulty(logits, labels, in_order=True)


def test_wrong_labels_are_found_with_what_they_should_be(planted, found):
    _, true, _, wrong = planted
    table = found.table
    assert roc_auc_score(wrong, table.evidence) > 0.99
    assert roc_auc_score(wrong, table.evidence) >= roc_auc_score(wrong, table.difficulty) > 0.95
    for by in (None, "evidence"):
        suspects = found.suspects(int(wrong.sum()), by)
        places = suspects.item_id.str.removeprefix("item_").astype(int) - 1
        assert wrong[places].mean() > 0.9
        assert (suspects.instead == true[places]).mean() > 0.9
        assert suspects.evidence.is_monotonic_decreasing if by else suspects.mean_confidence.is_monotonic_increasing
    assert found.suspects(by="forgetting_events").forgetting_events.is_monotonic_decreasing
    with pytest.raises(
        InputError, match="`by` 'margin': expected one of mean_confidence, label_probability, evidence, "
    ):
        found.suspects(by="margin")
    assert len(found.suspects()) == EXAMPLES
    np.testing.assert_array_equal(found.difficulty, found.fit.difficulty)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.table = None


def test_slopes_that_a_few_models_do_not_tell(planted):
    logits, _, labels, _ = planted
    with pytest.warns(irtjax.FitWarning, match=r"of 400 examples have a slope that cannot be told from 0"):
        irtjax.difficulty(logits, labels, model="2pl")


def test_classes_logits_and_probabilities_say_the_same(planted, found):
    logits, _, labels, _ = planted
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    logs, shares, classes = (read_predictions(one, labels) for one in (logits, list(probabilities), logits.argmax(2)))
    for one in (shares, classes):
        np.testing.assert_array_equal(one.classes, logs.classes)
    np.testing.assert_allclose(logs.confidence, shares.confidence, rtol=1e-6)
    assert classes.confidence is None
    by_hand = probabilities[:, np.arange(EXAMPLES), labels]
    np.testing.assert_allclose(found.table.mean_confidence, by_hand.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.table.variability, by_hand.std(axis=0), rtol=1e-4)
    np.testing.assert_allclose(found.table.share_right, (logits.argmax(2) == labels).mean(axis=0))


def test_what_was_not_predicted_does_not_count():
    labels = np.array([0, 1, 1])
    for given in ([[0, 1, -1], [1, 1, -1]], [[0, 1, np.nan], [1, 1, np.nan]]):
        np.testing.assert_array_equal(read_predictions(given, labels).right, [[1, 1, -1], [0, 1, -1]])
    logits = np.zeros((2, 3, 2))
    logits[0, 0] = np.nan
    read = read_predictions(logits, labels)
    np.testing.assert_array_equal(read.classes, [[-1, 0, 0], [0, 0, 0]])
    mean, spread = cartography(np.array([[0.2, np.nan], [0.6, np.nan], [np.nan, np.nan]]))
    np.testing.assert_allclose(mean, [0.4, np.nan])
    np.testing.assert_allclose(spread, [0.2, np.nan])


def test_forgetting_events_by_hand():
    right = np.array([[1, 0, 0, 1, 1], [0, 1, 0, 1, -1], [1, 1, 0, 1, 0], [0, 0, 0, 1, 1]])
    np.testing.assert_array_equal(forgetting_events(right), [2, 1, np.inf, 0, 1])


def test_bad_predictions_are_one_error(planted):
    logits, _, labels, _ = planted
    cases = {
        "of 1 model, expected at least 2": (logits[:1], labels),
        "are for 400 examples, `labels` 399": (logits, labels[1:]),
        r"model 1 have the shape \(399, 4\), those of the first \(400, 4\)": ([logits[0], logits[1, 1:]], labels),
        "`labels`: example 7 has class 4, `predictions` have 0 to 3": (
            logits,
            np.where(np.arange(400) == 7, 4, labels),
        ),
        "integers from 0": (logits, labels - 1),
        "label of example 0 is not an integer": (logits, labels + 0.5),
        "example 0 has 0.25, expected a class": (np.full((2, 400), 0.25), labels),
        "of no models": ([], labels),
        "a logit of inf": (np.full((2, 400, 4), np.inf), labels),
    }
    for message, given in cases.items():
        with pytest.raises(InputError, match=message):
            irtjax.difficulty(*given)
    with pytest.raises(InputError, match="`item_ids`: 1 ids, expected 400"):
        irtjax.difficulty(logits, labels, item_ids=["a"])
