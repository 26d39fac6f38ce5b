"""Predictions of the score on a whole benchmark from the answers to a form.

Each function here takes a calibrated bank and a form, learns what it needs from the subjects of the calibration, and
returns a `Predictor`: answers (J, K), 1 right, 0 wrong and -1 missing, or `ScaledResponses`, to scores and their
standard deviations, each (J,), in the unit of the bank. The standard deviations need to be right up to one factor,
which `irtjax.evaluation.prediction` estimates.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import SplineTransformer

from irtjax.choices import of_each
from irtjax.evaluation import choices
from irtjax.evaluation.answer_regression import answer_moments, regress
from irtjax.evaluation.bank import Bank, asked
from irtjax.evaluation.forms import Form
from irtjax.evaluation.score_posterior import ScorePosterior, score_posterior
from irtjax.integration.prediction import predict
from irtjax.integration.sparse_grid import BLAS
from irtjax.responses.matrix import MISSING
from irtjax.types import Float

Predictor = Callable[[Any], tuple[np.ndarray, np.ndarray]]
PENALTIES = np.logspace(-1, 4, 21)  # of ridge regressions, chosen by leaving out one subject at a time
KNOTS = 5
ENOUGH_TO_BEND = 100  # subjects; with fewer the splines cost more than they gain
SPLINE_PENALTIES = np.logspace(-3, 6, 28)


def mean(bank: Bank, form: Form) -> Predictor:
    """The weighted mean of the answers; where the bank is a part of the benchmark, by a straight line."""
    x = bank.unit.of(bank.answers[:, form.items] @ form.weights)
    line = np.array([0.0, 1.0]) if bank.whole else _line(x, bank.scores)
    return _evenly(lambda values: line[0] + line[1] * bank.unit.of(filled(bank, form, values) @ form.weights))


def spline(bank: Bank, form: Form) -> Predictor:
    """A penalised cubic spline of the weighted mean of the answers."""
    curve = _smooth(bank.answers[:, form.items] @ form.weights, bank.scores)
    return _evenly(lambda values: curve(filled(bank, form, values) @ form.weights))


def ridge(bank: Bank, form: Form) -> Predictor:
    """Ridge regression of the score on the answers."""
    model = _ridge(PENALTIES, bank.answers[:, form.items], bank.scores)
    return _evenly(lambda values: model.predict(filled(bank, form, values)))


def p_irt(bank: Bank, form: Form) -> Predictor:
    """p-IRT: right answers, and probabilities of the unseen ones at the EAP ability (Maia Polo et al. 2024)."""

    def of(values: Any) -> tuple[np.ndarray, np.ndarray]:
        found = moments(bank, form, values)
        return bank.linked(bank.unit.of(found.at_ability)), bank.unit.size * found.sd

    return of


def gp_irt(bank: Bank, form: Form) -> Predictor:
    """gp-IRT: λ times the form's mean and 1 - λ times p-IRT (Maia Polo et al. 2024, eq. 5).

        λ = b² / (v / (4 K) + b²)

    v is the mean variance of a subject's answers within the bank, and b the mean absolute error of the expected share
    right on every second item, from the ability on the others, as in the code of tinyBenchmarks.
    """
    p = p_irt(bank, form)
    b, v = _error_of_half(bank), bank.answers.var(axis=1).mean()
    share = b**2 / (v / (4 * form.items.size) + b**2)

    def of(values: Any) -> tuple[np.ndarray, np.ndarray]:
        by_model, deviation = p(values)
        by_form = bank.linked(bank.unit.of(filled(bank, form, values) @ form.weights))
        return share * by_form + (1 - share) * by_model, deviation

    return of


def posterior(bank: Bank, form: Form) -> Predictor:
    """The posterior predictive mean: ability integrated out, with the noise of unseen answers and errors of items."""

    def of(values: Any) -> tuple[np.ndarray, np.ndarray]:
        found = moments(bank, form, values)
        return bank.linked(bank.unit.of(found.mean)), bank.unit.size * found.sd

    return of


def calibrated(bank: Bank, form: Form) -> Predictor:
    """Regression on the answers with the item response model as its prior, bent to fit.

    The linear prediction (`irtjax.evaluation.answer_regression`) is a straight line where the truth bends near no and
    all answers right. With 100 subjects or more, what it leaves is therefore regressed on splines of three scores: its
    own, the posterior predictive mean and the form's mean. The penalty is chosen by leaving out one subject at a time.
    """
    linear = regress(answer_moments(bank), form.items)
    if len(bank.scores) < ENOUGH_TO_BEND:
        return _evenly(lambda values: linear.predict(filled(bank, form, values)))
    own = moments(bank, form, asked(bank.responses, form.items))
    mean_of_form = bank.unit.of(bank.answers[:, form.items] @ form.weights)
    inputs = np.column_stack([linear.left_out, bank.linked(bank.unit.of(own.mean)), mean_of_form])
    bend = _smooth(inputs, bank.scores - linear.left_out, intercept=False)

    def of(values: Any) -> np.ndarray:
        answers, found = filled(bank, form, values), moments(bank, form, values)
        straight = linear.predict(answers)
        x = np.column_stack([straight, bank.linked(bank.unit.of(found.mean)), bank.unit.of(answers @ form.weights)])
        return straight + bend(x)

    return _evenly(of)


@functools.lru_cache(maxsize=8)
def _error_of_half(bank: Bank) -> float:
    """Mean absolute error of the expected share right on every second item, from the ability on the others."""
    even = np.arange(bank.num_items) % 2 == 0
    half = Form(np.flatnonzero(even), np.full(even.sum(), 1 / even.sum()))
    expected = bank.at(moments(bank, half, asked(bank.responses, half.items)).ability).mean
    return float(np.abs(expected[:, ~even].mean(axis=1) - bank.answers[:, ~even].mean(axis=1)).mean())


PREDICTORS: dict[str, Callable[[Bank, Form], Predictor]] = of_each(
    choices.PREDICTORS,
    {
        "mean": mean,
        "spline": spline,
        "ridge": ridge,
        "p-irt": p_irt,
        "gp-irt": gp_irt,
        "posterior": posterior,
        "calibrated": calibrated,
    },
)
BASELINES = ("mean", "spline", "ridge")


def moments(bank: Bank, form: Form, values: Any) -> ScorePosterior:
    """Moments of the score on the bank, given the answers to a form."""
    if bank.scaled is not None:
        return bank.scaled.score_posterior(values, form.items)
    answers = np.ascontiguousarray(values, np.int8)
    return _moments(bank, tuple(form.items.tolist()), answers.tobytes())


@functools.lru_cache(maxsize=2)  # of those to predict and of the calibration: several predictors take the same
def _moments(bank: Bank, items: tuple[int, ...], answers: bytes) -> ScorePosterior:
    """As `moments`, of answers as bytes, subject by subject."""
    values = np.frombuffer(answers, np.int8).reshape(-1, len(items))
    whole = np.full((len(values), bank.num_items), MISSING, np.int8)
    whole[:, list(items)] = values
    return score_posterior(bank.fit, whole)


def filled(bank: Bank, form: Form, values: Any) -> Float[np.ndarray, "J K"]:
    """The answers to a form, 1 right and 0 wrong, or shares; the posterior expectation where one is missing."""
    if bank.scaled is not None:
        return bank.scaled.filled(values, form.items)
    missing = values == MISSING
    if not missing.any():
        return values.astype(float)
    taken = bank.fit.parameters.take(form.items)
    mean, sd = (np.atleast_1d(np.asarray(x, float)) for x in bank.fit.one_population)
    return np.where(missing, predict(taken, values, mean, sd), values)


def _evenly(points: Callable[[Any], np.ndarray]) -> Predictor:
    """A predictor that is as sure of every subject."""

    def of(values: Any) -> tuple[np.ndarray, np.ndarray]:
        found = points(values)
        return found, np.ones_like(found)

    return of


def _line(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Intercept and slope by least squares."""
    slope = np.cov(x, y)[0, 1] / x.var(ddof=1) if np.ptp(x) else 0.0
    return np.array([y.mean() - slope * x.mean(), slope])


@BLAS.wrap(limits=1, user_api="blas")  # threads of so few columns wait for each other
def _ridge(penalties: np.ndarray, x: np.ndarray, y: np.ndarray, intercept: bool = True) -> RidgeCV:
    """A ridge regression, by one decomposition for all penalties."""
    return RidgeCV(penalties, fit_intercept=intercept, gcv_mode="svd").fit(x, y)


def _smooth(x: np.ndarray, y: np.ndarray, intercept: bool = True) -> Callable[[np.ndarray], np.ndarray]:
    """Penalised cubic splines of the columns of x, which add up; constant beyond the values that were seen.

    Constant columns are left out.
    """
    columns = x.reshape(len(y), -1)
    varied = np.ptp(columns, axis=0) > 0
    if not varied.any():
        return lambda new: np.full(len(new), y.mean() if intercept else 0.0)
    basis = SplineTransformer(KNOTS, degree=3, knots="quantile", extrapolation="constant").fit(columns[:, varied])
    model = _ridge(SPLINE_PENALTIES, basis.transform(columns[:, varied]), y, intercept)
    return lambda new: model.predict(basis.transform(new.reshape(len(new), -1)[:, varied]))
