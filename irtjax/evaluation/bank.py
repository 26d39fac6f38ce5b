"""A benchmark whose items are calibrated: the answers and the scores of some subjects, and the model that fits them."""

import dataclasses
import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.estimation.result import Fit
from irtjax.fitting import fit
from irtjax.kernels.models import probabilities
from irtjax.responses.convert import as_responses
from irtjax.responses.matrix import MISSING, ResponseMatrix, require_estimable
from irtjax.types import Float, Shaped

POINTS = 100.0  # of a subject who has all items right
FEWEST_SUBJECTS = 10  # of a calibration
ONE_DIMENSION = ("rasch", "1pl", "2pl", "3pl", "4pl")


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """Items of a benchmark, calibrated on subjects whose scores on the whole benchmark are known.

    Attributes:
        fit: of the answers of these subjects, in one dimension.
        scores: (J,) in points, 0 to 100.
        link: (2,) the line, intercept and slope, from the score on the bank to that on the whole benchmark; (0, 1)
            where the bank is all of it.
        whole: whether the bank is all of the benchmark.
        categories: (I,) of the items, or None.
    """

    fit: Fit
    scores: Float[np.ndarray, " J"]
    link: Float[np.ndarray, " 2"]
    whole: bool
    categories: Shaped[np.ndarray, " I"] | None = None

    @property
    def num_items(self) -> int:
        """I."""
        return self.fit.responses.num_items

    @property
    def responses(self) -> ResponseMatrix:
        """Of the subjects that it was calibrated on."""
        return self.fit.responses.read()

    @functools.cached_property
    def expected(self) -> Float[np.ndarray, "J I"]:
        """Probabilities of right answers of these subjects, at their estimated abilities."""
        return np.asarray(probabilities(self.fit.parameters, self.fit.ability[:, None])[0])

    @functools.cached_property
    def answers(self) -> Float[np.ndarray, "J I"]:
        """Their answers, 1 right and 0 wrong; the expected one where an answer is missing."""
        values = self.responses.values
        return np.where(values == MISSING, self.expected, values)

    def linked(self, score_on_bank: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Points on the whole benchmark for points on the bank, by the line."""
        return self.link[0] + self.link[1] * score_on_bank


def calibrate(
    responses: Any,
    scores: Any = None,
    *,
    model: str = "2pl",
    categories: Shaped[np.ndarray, " I"] | None = None,
    quiet: bool = False,
) -> Bank:
    """Fits a model to the answers of subjects whose scores on a benchmark are known.

    Args:
        responses: whatever `irtjax.fit` takes: the items of the bank, which may be a part of the benchmark.
        scores: of the subjects on the whole benchmark, in points from 0 to 100: a series of pandas by subject id, or an
            array in the order of the subjects. By default the bank is the whole: its share of right answers, in which
            the model's expectation stands for a missing answer.
        model: of one dimension.
        categories: of the items, whose shares small forms keep.
        quiet: whether warnings of the fit are kept back.

    Raises:
        InputError: fewer than 10 subjects, a score is missing or out of range, or another model.
    """
    if model not in ONE_DIMENSION:
        raise InputError(f"`model` {model!r:.100}, expected one of {', '.join(ONE_DIMENSION)}")
    matrix = as_responses(responses)
    require_estimable(matrix)
    if matrix.num_subjects < FEWEST_SUBJECTS:
        raise InputError(f"{matrix.num_subjects} subjects, expected {FEWEST_SUBJECTS} or more to calibrate a benchmark")
    if categories is not None and len(categories) != matrix.num_items:
        raise InputError(f"`categories` of {len(categories)} items, expected one for each of {matrix.num_items}")
    known = None if scores is None else of_subjects(scores, matrix)
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", FitWarning)
        bank = Bank(fit(matrix, model), np.zeros(matrix.num_subjects), np.array([0.0, 1.0]), known is None, categories)
    on_bank = POINTS * bank.answers.mean(axis=1)
    if known is None:
        return dataclasses.replace(bank, scores=on_bank)
    slope, intercept = np.polyfit(on_bank, known, 1) if np.ptp(on_bank) else (0.0, known.mean())
    return dataclasses.replace(bank, scores=known, link=np.array([intercept, slope]))


def of_subjects(scores: Any, responses: ResponseMatrix) -> Float[np.ndarray, " J"]:
    """Scores in points, in the order of the subjects of a response matrix.

    Raises:
        InputError: a subject has none or several, or one is no number from 0 to 100; or all are 1 or less.
    """
    if isinstance(scores, pd.Series):
        series = scores.set_axis(scores.index.astype(str))
        if series.index.has_duplicates:
            raise InputError(f"scores: subject '{series.index[series.index.duplicated()][0]}' is there twice")
        absent = ~np.isin(responses.subject_ids, series.index)
        if absent.any():
            raise InputError(
                f"scores: none of subject '{responses.subject_ids[absent][0]}' (1 of {absent.sum()} such): add it, or "
                "leave the subject out of the responses"
            )
        values = pd.to_numeric(series.loc[responses.subject_ids], errors="coerce").to_numpy(float)
    else:
        values = np.asarray(scores, float)
        if values.shape != (responses.num_subjects,):
            raise InputError(
                f"scores of shape {values.shape}, expected one for each of {responses.num_subjects} subjects"
            )
    wrong = ~((values >= 0) & (values <= POINTS))
    if wrong.any():
        raise InputError(
            f"scores: subject '{responses.subject_ids[wrong][0]}' has {values[wrong][0]:g}, expected points, 0 to 100"
        )
    if values.max() <= 1:
        raise InputError("scores: none is above 1, expected points from 0 to 100: multiply shares by 100")
    return values
