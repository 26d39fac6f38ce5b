"""Which model of grades or categories? Candidates compared by the cells that they predict."""

import itertools
from collections.abc import Callable, Collection
from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax.arguments import LARGEST_SEED, checks_types, names, whole_number
from irtjax.comparison.candidates import RATES, Candidate
from irtjax.comparison.grades_by_answer import predicted_grades
from irtjax.comparison.result import Comparison
from irtjax.comparison.summary import keeping, summary
from irtjax.errors import InputError
from irtjax.estimation.families import fit_families
from irtjax.fits.result import Fit
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import moments, place_nodes
from irtjax.integration.prediction import LEAST_PREDICTED
from irtjax.integration.reach import reaching
from irtjax.item_models.listing import CATEGORICAL, model_of
from irtjax.responses.folds import folds_of_answers, folds_of_cells
from irtjax.responses.scaled import MISSING, ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.types import Float, Int

METRICS = ("log_loss", "rps")
Predicted = tuple[np.ndarray, np.ndarray, bool]  # categories (N,), their probabilities (N, C); whether it converged
WEIGHT_OF_ALL = 2.0  # responses to an item, that the frequencies of all items are worth in the baseline


@checks_types
def compare_grades(
    responses: OnScales,
    models: str | Collection[str] = ("graded", "gpcm", "pcm"),
    *,
    folds: int = 5,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Compares models of grades or categories by cross-validation of random cells (`irtjax.compare`).

    Each response is predicted from the subject's other ones, with the ability integrated out. The last row is no model:
    the item rates, the frequencies of the categories of each item, drawn to those of all items as if by two responses.

    Args:
        responses: of items with categories, on one scale; `SparseResponses` go answer by answer, in the same folds.
        models: some of `item_models.listing.CATEGORICAL`.
        folds: number of parts.
        seed: of the random parts.
        on_progress: called with the number of fits done, of all fits, and what is fitted next.

    Returns:
        A `Comparison`, whose scores are `log_loss` (nats) and `rps`, the ranked probability score
        Σ_k (P(y ≤ k) - [y ≤ k])² / K (Epstein 1969), which counts how far off a prediction is. It has no calibration.

    Raises:
        InputError: unknown models, items on several scales, or more folds than subjects or items.
    """
    models = names(models)
    for name in models:
        if name not in CATEGORICAL:
            raise InputError(f"unknown model {name!r}, expected some of {', '.join(CATEGORICAL)}")
    if len(set(responses.scales)) > 1 or responses.scales[0].labels is None:
        raise InputError("models of grades are compared where all items have the categories of one scale")
    most = min(responses.num_subjects, responses.num_items)
    if not 2 <= whole_number("folds", folds) <= most:
        raise InputError(f"`folds`={folds}, expected 2 to {most}: no more than there are subjects, and items")
    whole_number("seed", seed, 0, LARGEST_SEED)
    chosen, done = [*(Candidate(name) for name in models), Candidate(RATES)], itertools.count()
    total = len(models) * (1 + folds)
    if isinstance(responses, SparseResponses):
        fold_of = folds_of_answers(responses, folds, seed)
    else:
        fold_of = folds_of_cells(np.asarray(responses.values), folds, seed)
    of_folds: list[dict[str, Any]] = []
    of_fits: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    for candidate in chosen:
        where = {"by": "cells", **candidate._asdict()}
        if candidate.model != RATES:
            _report(on_progress, next(done), total, f"{candidate}, all responses")
            with keeping({**candidate._asdict(), "by": "", "fold": 0}, said):
                of_fits.append({**candidate._asdict(), **_of_all(_fit(responses, candidate))})
        for fold in range(1, folds + 1):
            if candidate.model != RATES:
                _report(on_progress, next(done), total, f"{candidate}, cells {fold} of {folds}")
            with keeping({**where, "fold": fold}, said):
                found = _held_out(responses, candidate, fold_of == fold - 1)
            of_folds.append({**where, "fold": fold, **found})
    _report(on_progress, total, total, "done")
    per_fold = pd.DataFrame(of_folds)
    return Comparison(
        table=summary(per_fold, METRICS).merge(pd.DataFrame(of_fits), on=list(Candidate._fields), how="left"),
        folds=per_fold,
        calibration=pd.DataFrame(columns=["by", *Candidate._fields, "number", "predicted", "observed"]),
        warnings=pd.DataFrame(said, columns=[*Candidate._fields, "by", "fold", "message"]),
    )


def _report(on_progress: Callable[[int, int, str], None] | None, done: int, total: int, what: str) -> None:
    if on_progress is not None:
        on_progress(done, total, what)


def _fit(responses: OnScales, candidate: Candidate) -> Fit:
    return fit_families(responses, candidate.model, standard_errors=False)


def _of_all(found: Fit) -> dict[str, Any]:
    criteria = found.information_criteria() if found.maximum_likelihood else {"aic": np.nan, "bic": np.nan}
    return {
        "log_likelihood": found.log_likelihood,
        "priors": not found.maximum_likelihood,
        "num_parameters": found.num_parameters,
        "aic": criteria["aic"],
        "bic": criteria["bic"],
        "converged": found.converged,
        "seconds": found.seconds,
    }


def _held_out(responses: OnScales, candidate: Candidate, held: np.ndarray) -> dict[str, Any]:
    """Scores of the predictions of the responses that are held out of a fit."""
    if isinstance(responses, SparseResponses):
        category, probability, converged = _of_answers(responses, candidate, held)
    else:
        category, probability, converged = _of_cells(responses, candidate, held)
    return {**scores(category.astype(int), probability), "num_predicted": len(category), "converged": converged}


def _of_cells(responses: ScaledResponses, candidate: Candidate, held: np.ndarray) -> Predicted:
    values = np.asarray(responses.values)
    train = ScaledResponses(
        np.where(held, MISSING, values), responses.subject_ids, responses.item_ids, responses.scales
    )
    if candidate.model == RATES:
        probability, converged = np.broadcast_to(_rates(train), (*values.shape, responses.scales[0].top + 1)), True
    else:
        found = _fit(train, candidate)
        probability, converged = _in_scale(probabilities(found), found, responses), found.converged
    at = held & responses.observed
    return values[at], probability[at], converged


def _of_answers(responses: SparseResponses, candidate: Candidate, held: np.ndarray) -> Predicted:
    train, asked = responses.choose_answers(~held), responses.choose_answers(held)
    if candidate.model == RATES:
        return asked.answers, _rates(train)[asked.items], True
    found = _fit(train, candidate)
    return asked.answers, predicted_grades(found, asked), found.converged


def scores(category: Int[np.ndarray, " N"], probability: Float[np.ndarray, "N C"]) -> dict[str, float]:
    """Log-loss and ranked probability score of N predictions, by the names of `METRICS`."""
    happened = np.take_along_axis(probability, category[:, None], axis=1)[:, 0]
    below = np.cumsum(probability, axis=1)[:, :-1] - (category[:, None] <= np.arange(probability.shape[1] - 1))
    return {
        "log_loss": float(-np.log(np.maximum(happened, LEAST_PREDICTED)).mean()),
        "rps": float((below**2).mean()),
    }


def probabilities(found: Fit) -> Float[np.ndarray, "J I C"]:
    """Of each category, for each subject and item of a fit in one dimension, the ability integrated out."""
    responses: ScaledResponses = found.responses
    model = model_of(found.item_models, np.array([scale.top for scale in responses.scales]))
    grid = reaching(found.ability, found.ability_se, found.one_population)
    with jax.enable_x64(True):
        answers = to_answers(np.asarray(responses.values), model)
        weights = np.asarray(e_step(found.parameters, found.one_population, answers, grid, weights=True).weights)[0]
        at_nodes = moments(model, found.parameters, place_nodes(found.one_population, grid.nodes), asymptotes=True).mean
    expected = (weights @ np.asarray(at_nodes)).reshape(*responses.values.shape, -1)
    lowest = np.maximum(1 - expected.sum(axis=2, keepdims=True), 0.0)
    return np.concatenate([lowest, expected], axis=2)


def _in_scale(probability: Float[np.ndarray, "J I C"], found: Fit, responses: ScaledResponses) -> np.ndarray:
    """Probabilities by the categories of the whole scale, 0 for those that the fit has not seen of an item."""
    labels = responses.scales[0].labels or ()
    whole = np.zeros((*probability.shape[:2], len(labels)))
    for i, scale in enumerate(found.responses.scales):
        for k, label in enumerate(scale.labels or ()):
            whole[:, i, labels.index(label)] = probability[:, i, k]
    return whole


def _rates(responses: OnScales) -> Float[np.ndarray, "I C"]:
    """Frequencies of the categories of each item."""
    counts = responses.frequencies()
    of_all = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * counts.shape[1])
    return (counts + WEIGHT_OF_ALL * of_all) / (counts.sum(axis=1, keepdims=True) + WEIGHT_OF_ALL)
