"""How probable the label of each example is, by the classes that models predict and what each of them mixes up."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from irtjax.types import Float, Int

PRIOR = 1.0  # counts that each cell of a confusion matrix has in addition, on average


class LabelProbability(NamedTuple):
    """What is known of the labels of N examples.

    Attributes:
        label: (N,) probability of the label that is given.
        instead: (N,) the likeliest other class; -1 where there is one class only.
        temper: from 0 to 1, how much the models tell together, as a share of what as many independent ones would.
    """

    label: Float[np.ndarray, " N"]
    instead: Int[np.ndarray, " N"]
    temper: float


def label_probability(
    classes: Int[np.ndarray, "M N"], labels: Int[np.ndarray, " N"], num_classes: int
) -> LabelProbability:
    """The probability of each label given the predictions.

        log p(y = c | predictions) = log π_c + τ Σ_j log P_j(prediction of j | c) + constant

    P_j is the confusion matrix of model j (Dawid and Skene 1979), with the given labels in place of true ones, whose
    errors are few. A model that predicts one class whatever the example tells nothing, where a vote would count. Models
    of one kind err together, so that their likelihoods say too much: τ is the power of the likelihood that makes the
    given labels most probable. The probabilities are for ranking: on average they are those of labels that fit the
    predictions, and a low one is not the chance that the label is right.

    Args:
        classes: that M models predict, -1 for none.
        labels: given.
        num_classes: C.
    """
    at = np.arange(len(labels))
    shares = np.bincount(labels, minlength=num_classes) / len(labels)
    log_likelihood = np.zeros((len(labels), num_classes))
    for predicted in classes:
        known = predicted >= 0
        log_likelihood[known] += np.log(_likelihood(predicted[known], labels[known], num_classes))
    with np.errstate(divide="ignore"):
        log_shares = np.log(shares)  # a class that no example has is not probable either

    def posterior(temper: float) -> Float[np.ndarray, "N C"]:
        found = log_shares + temper * log_likelihood
        return found - logsumexp(found, axis=1, keepdims=True)

    temper = minimize_scalar(lambda temper: -posterior(temper)[at, labels].mean(), bounds=(0, 1), method="bounded").x
    found = posterior(temper)
    probability = np.exp(found[at, labels])
    found[at, labels] = -np.inf
    instead = found.argmax(axis=1) if (shares > 0).sum() > 1 else np.full(len(labels), -1)
    return LabelProbability(probability, instead, float(temper))


def _likelihood(
    predicted: Int[np.ndarray, " N"], labels: Int[np.ndarray, " N"], num_classes: int
) -> Float[np.ndarray, "N C"]:
    """The probability of a model's predictions by each class that could be the true one.

    The shares of its predictions at each label are drawn towards those at all labels together. The example itself does
    not count: its own label would speak for itself.
    """
    counts = np.zeros((num_classes, num_classes))  # labels, predictions
    np.add.at(counts, (labels, predicted), 1.0)
    prior = PRIOR * (counts.sum(axis=0) + 1) * num_classes / (counts.sum() + num_classes)
    totals = counts.sum(axis=1) + prior.sum()
    found = ((counts + prior) / totals[:, None])[:, predicted].T
    at = np.arange(len(labels))
    found[at, labels] = (counts[labels, predicted] - 1 + prior[predicted]) / (totals[labels] - 1)
    return found
