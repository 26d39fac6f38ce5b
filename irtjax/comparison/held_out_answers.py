"""As `held_out`, where each subject answered few of the items: fitted and predicted answer by answer."""

from collections.abc import Callable, Iterator

import numpy as np

from irtjax.choices import of_each
from irtjax.comparison import choices
from irtjax.comparison.calibration import calibrate_by_answer
from irtjax.comparison.held_out import HeldOut
from irtjax.comparison.item_rates import ItemRates
from irtjax.fits.result import Fit
from irtjax.integration.prediction import log_likelihood_of_subjects, posterior_moments, predict_answers
from irtjax.kernels.models import ItemParameters
from irtjax.responses.folds import folds_of, folds_of_answers
from irtjax.responses.sparse import SparseResponses
from irtjax.types import Bool

Estimator = Callable[[SparseResponses], Fit | ItemRates]


def cells(responses: SparseResponses, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random responses, each predicted from the subject's other ones."""
    fold_of = folds_of_answers(responses, folds, seed)
    for fold in range(folds):
        held = fold_of == fold
        train, asked = responses.choose_answers(~held), responses.choose_answers(held)
        found = fit(train)
        probability = predict_answers(found.parameters, train.values, asked, *found.population)
        yield HeldOut(asked.answers, probability, None, found.converged)


def subjects(responses: SparseResponses, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random subjects, whose responses play no part in the fit of the items."""
    fold_of, part_of = folds_of(responses.num_subjects, folds, seed), folds_of_answers(responses, folds, seed)
    for fold in range(folds):
        held = fold_of == fold
        train, known = _answered(responses, ~held, np.ones(responses.num_items, bool))
        found = fit(train)
        items, population = found.parameters, found.population
        test = responses.choose_subjects(held).choose_items(known)
        parts = part_of[held[responses.subjects] & known[responses.items]]
        log_likelihood = log_likelihood_of_subjects(items, test.values, *population).sum()
        right, probability = [], []
        for part in range(folds):
            asked = test.choose_answers(parts == part)
            right.append(asked.answers)
            rest = test.choose_answers(parts != part).values
            probability.append(predict_answers(items, rest, asked, *population))
        yield HeldOut(
            right=np.concatenate(right),
            probability=np.concatenate(probability),
            log_loss=float(-log_likelihood / test.num_answers) if test.num_answers else np.nan,
            converged=found.converged,
        )


def items(responses: SparseResponses, fit: Estimator, folds: int, seed: int) -> Iterator[HeldOut]:
    """Random items, calibrated on half of the subjects and predicted for the other half."""
    fold_of = folds_of(responses.num_items, folds, seed)
    calibrating = folds_of(responses.num_subjects, 2, seed) == 0
    one, other = responses.choose_subjects(calibrating), responses.choose_subjects(~calibrating)
    for fold in range(folds):
        train, known = _answered(responses, np.ones(responses.num_subjects, bool), fold_of != fold)
        found = fit(train)
        population = found.population
        new = (fold_of == fold) & (one.counts(axis=0)[1] > 0)
        moments = posterior_moments(found.parameters, one.choose_items(known).values, *population)
        of_new = calibrate_by_answer(one.choose_items(new), *moments, found.parameters)
        both = ItemParameters(*map(np.concatenate, zip(found.parameters, of_new, strict=True)))
        of_both = other.choose_items(np.concatenate([np.flatnonzero(known), np.flatnonzero(new)]))
        is_new = of_both.items >= known.sum()
        asked = of_both.choose_answers(is_new)
        probability = predict_answers(both, of_both.choose_answers(~is_new).values, asked, *population)
        yield HeldOut(asked.answers, probability, None, found.converged)


WAYS = of_each(choices.WAYS, {"cells": cells, "subjects": subjects, "items": items})


def _answered(
    responses: SparseResponses, chosen_subjects: Bool[np.ndarray, " J"], chosen_items: Bool[np.ndarray, " I"]
) -> tuple[SparseResponses, Bool[np.ndarray, " I"]]:
    """The responses of some subjects to some items, without those that have none, and which items are left."""
    by_them = chosen_subjects[responses.subjects]
    known = chosen_items & (np.bincount(responses.items[by_them], minlength=responses.num_items) > 0)
    there = np.bincount(responses.subjects[known[responses.items]], minlength=responses.num_subjects) > 0
    return responses.choose_subjects(chosen_subjects & there).choose_items(known), known
