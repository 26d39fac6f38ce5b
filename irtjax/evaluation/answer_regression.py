"""The score of a benchmark as a linear function of answers, by moments that an item response model and data share.

Of n calibrated subjects the answers y (I,) and the score t have empirical moments. An item response model has moments
of its own: a subject like one of these, of ability θ, answers right with probabilities P(θ), independently. Here both
count, the model as ν subjects:

    C = (n C_data + ν C_model) / (n + ν),  c = (n c_data + ν c_model) / (n + ν)

C the covariances of answers, c those of answers with the score. This is ridge regression whose prior is the item
response model: with few subjects the IRT prior decides, with many the data correct it (a second
dimension, guessing). The best linear prediction from answers to S is E[t] + c_S' C_SS⁻¹ (y_S - E[y_S]).

With W the (2n, I) rows of scaled deviations, C = W'W + diag(noise): a form is chosen without ever making the (I, I)
matrix.
"""

from typing import NamedTuple

import numpy as np

from irtjax.evaluation.bank import Bank
from irtjax.types import Float, Int

MODEL_SUBJECTS = 30.0  # ν; on ARC and GSM8K 10 to 100 do about as well (docs/results/small_benchmark.md)
LEAST_VARIANCE = 1e-6  # of an answer


class AnswerMoments(NamedTuple):
    """Moments of answers and score.

    Attributes:
        deviations: (R, I) rows whose products are covariances: of the n subjects, then of their expected answers.
        noise: (I,) variances that are no one else's: of the model's answers around their probabilities.
        scores: (R,) deviations of the scores, on the same scale.
        own: (I,) covariance of each answer's noise with the score, of which it is a part.
        mean: (I,) of the answers.
        mean_score: in points.
        scale: by which deviations of the subjects are multiplied, √(1 / (n + ν)).
    """

    deviations: Float[np.ndarray, "R I"]
    noise: Float[np.ndarray, " I"]
    scores: Float[np.ndarray, " R"]
    own: Float[np.ndarray, " I"]
    mean: Float[np.ndarray, " I"]
    mean_score: float
    scale: float

    @property
    def with_score(self) -> Float[np.ndarray, " I"]:
        """c, the covariances of answers with the score."""
        return self.deviations.T @ self.scores + self.own


def answer_moments(bank: Bank, model_subjects: float = MODEL_SUBJECTS) -> AnswerMoments:
    """The moments of a bank.

    Args:
        bank: calibrated.
        model_subjects: ν, as many subjects as the model counts for.
    """
    n, p = len(bank.scores), bank.expected
    total = n + model_subjects
    of_data, of_model = np.sqrt(1 / total), np.sqrt(model_subjects / (n * total))
    model_scores = bank.linked(bank.unit.of(p.mean(axis=1)))
    noise = model_subjects / total * bank.noise.mean(axis=0)
    return AnswerMoments(
        deviations=np.concatenate(
            [of_data * (bank.answers - bank.answers.mean(axis=0)), of_model * (p - p.mean(axis=0))]
        ),
        noise=noise + LEAST_VARIANCE,
        scores=np.concatenate(
            [of_data * (bank.scores - bank.scores.mean()), of_model * (model_scores - model_scores.mean())]
        ),
        own=noise * bank.link[1] * bank.unit.size / bank.num_items,
        mean=bank.answers.mean(axis=0),
        mean_score=float(bank.scores.mean()),
        scale=float(of_data),
    )


def most_telling(
    moments: AnswerMoments, groups: Int[np.ndarray, " I"], number: Int[np.ndarray, " G"]
) -> Int[np.ndarray, " K"]:
    """Items that leave the least variance of the score, one after the other.

    The next is the one with the greatest c_i² / C_ii, where C and c are conditional on the answers chosen so far: a
    Cholesky factorisation whose pivots go by what is told about the score.

    Args:
        moments: of the bank.
        groups: of the items, numbers from 0.
        number: of items to choose of each group.
    """
    w, left = moments.deviations, number.copy()
    variance, covariance = (w**2).sum(axis=0) + moments.noise, moments.with_score.copy()
    factor = np.zeros((int(number.sum()), len(variance)))
    chosen: list[int] = []
    free = np.ones(len(variance), bool)
    for k in range(len(factor)):
        allowed = free & (left[groups] > 0)
        told = np.where(allowed, covariance**2 / np.maximum(variance, LEAST_VARIANCE), -1.0)
        item = int(told.argmax())
        column = w.T @ w[:, item] - factor[:k].T @ factor[:k, item]
        column[item] += moments.noise[item]
        root = np.sqrt(max(column[item], LEAST_VARIANCE))
        factor[k] = column / root
        covariance -= factor[k] * (covariance[item] / root)
        variance -= factor[k] ** 2
        chosen.append(item)
        free[item], left[groups[item]] = False, left[groups[item]] - 1
    return np.array(chosen)


class AnswerRegression(NamedTuple):
    """The best linear prediction of the score from the answers to some items.

    Attributes:
        constant: in points.
        points: (K,) for a right answer to each item.
        left_out: (n,) predictions of the calibrated subjects, each without its own answers.
    """

    constant: float
    points: Float[np.ndarray, " K"]
    left_out: Float[np.ndarray, " n"]

    def predict(self, answers: Float[np.ndarray, "J K"]) -> Float[np.ndarray, " J"]:
        """Points for answers, 1 right and 0 wrong."""
        return self.constant + answers @ self.points


def regress(moments: AnswerMoments, items: Int[np.ndarray, " K"]) -> AnswerRegression:
    """The regression on the answers to some items of the bank."""
    w = moments.deviations[:, items]
    gram = w.T @ w + np.diag(moments.noise[items])
    inverse = np.linalg.inv(gram)
    points = inverse @ moments.with_score[items]
    n = len(w) // 2
    leverage = np.minimum(np.einsum("rk,kl,rl->r", w[:n], inverse, w[:n]), 1 - 1e-9)
    residual = (moments.scores[:n] - w[:n] @ points) / (1 - leverage)
    return AnswerRegression(
        constant=float(moments.mean_score - moments.mean[items] @ points),
        points=points,
        left_out=moments.mean_score + (moments.scores[:n] - residual) / moments.scale,
    )
