"""Answers that are held out of a fit, fold by fold, and their predicted probabilities."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from irtjax.choices import of_each
from irtjax.comparison import choices
from irtjax.comparison.calibration import calibrate
from irtjax.comparison.item_rates import ItemRates
from irtjax.fits.result import Fit
from irtjax.integration.prediction import log_likelihood_of_subjects, posterior_moments, predict
from irtjax.kernels.models import ItemParameters
from irtjax.responses.folds import folds_of, folds_of_cells
from irtjax.responses.matrix import MISSING, ResponseMatrix

Estimator = Callable[[ResponseMatrix], Fit | ItemRates]


class HeldOut(NamedTuple):
    """Answers of one fold that were held out.

    Attributes:
        right: (N,) 1 or 0.
        probability: (N,) predicted, of a right answer.
        log_loss: of the fold, in nats per response, where it is another one than that of `probability`; else None.
        converged: whether the fit to the other answers did.
    """

    right: np.ndarray
    probability: np.ndarray
    log_loss: float | None
    converged: bool


def cells(responses: ResponseMatrix, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random responses, each predicted from the subject's other ones; see `irtjax.compare`."""
    fold_of = folds_of_cells(responses.values, folds, seed)
    for fold in range(folds):
        held = fold_of == fold
        values = _hidden(responses.values, held)
        found = fit(ResponseMatrix(values, responses.subject_ids, responses.item_ids))
        probability = predict(found.parameters, values, *found.population)
        yield HeldOut(responses.values[held], probability[held], None, found.converged)


def subjects(responses: ResponseMatrix, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random subjects, whose responses play no part in the fit of the items; see `irtjax.compare`."""
    fold_of, part_of = folds_of(responses.num_subjects, folds, seed), folds_of_cells(responses.values, folds, seed)
    for fold in range(folds):
        held = fold_of == fold
        train, known = _answered(responses, ~held, np.ones(responses.num_items, bool))
        found = fit(train)
        population = found.population
        values, parts = responses.values[held][:, known], part_of[held][:, known]
        number = (values != MISSING).sum()
        log_likelihood = log_likelihood_of_subjects(found.parameters, values, *population).sum()
        right, probability = [], []
        for part in range(folds):
            hidden = parts == part
            right.append(values[hidden])
            probability.append(predict(found.parameters, _hidden(values, hidden), *population)[hidden])
        yield HeldOut(
            right=np.concatenate(right),
            probability=np.concatenate(probability),
            log_loss=float(-log_likelihood / number) if number else np.nan,
            converged=found.converged,
        )


def items(responses: ResponseMatrix, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random items, calibrated on half of the subjects and predicted for the other half; see `irtjax.compare`."""
    fold_of = folds_of(responses.num_items, folds, seed)
    calibrating = folds_of(responses.num_subjects, 2, seed) == 0
    for fold in range(folds):
        train, known = _answered(responses, np.ones(responses.num_subjects, bool), fold_of != fold)
        found = fit(train)
        population = found.population
        one, other = responses.values[calibrating], responses.values[~calibrating]
        new = (fold_of == fold) & (one != MISSING).any(axis=0)
        moments = posterior_moments(found.parameters, one[:, known], *population)
        of_new = calibrate(one[:, new], *moments, found.parameters)
        both = ItemParameters(*map(np.concatenate, zip(found.parameters, of_new, strict=True)))
        answers = other[:, new]
        hidden = np.concatenate([other[:, known], np.full_like(answers, MISSING)], axis=1)
        probability = predict(both, hidden, *population)[:, known.sum() :]
        observed = answers != MISSING
        yield HeldOut(answers[observed], probability[observed], None, found.converged)


WAYS = of_each(choices.WAYS, {"cells": cells, "subjects": subjects, "items": items})


def _hidden(values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    return np.where(hidden, np.int8(MISSING), values)


def _answered(
    responses: ResponseMatrix, chosen_subjects: np.ndarray, chosen_items: np.ndarray
) -> tuple[ResponseMatrix, np.ndarray]:
    """The responses of some subjects to some items, without those that have none, and which items are left."""
    known = chosen_items & (responses.values[chosen_subjects] != MISSING).any(axis=0)
    there = chosen_subjects & (responses.values[:, known] != MISSING).any(axis=1)
    values = responses.values[np.ix_(there, known)]
    return ResponseMatrix(values, responses.subject_ids[there], responses.item_ids[known]), known
