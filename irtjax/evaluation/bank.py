"""A benchmark whose items are calibrated: the answers and the scores of some subjects, and the model that fits them."""

import dataclasses
import functools
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.evaluation.choices import ONE_DIMENSION
from irtjax.evaluation.scaled_test import ScaledTest, alike, ends_of, shares_of
from irtjax.fits.reading import AUTO, is_scaled, read
from irtjax.fits.result import Fit
from irtjax.fitting import fit
from irtjax.kernels.models import information, probabilities
from irtjax.responses.convert import as_responses
from irtjax.responses.matrix import MISSING, ResponseMatrix, require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import on_scales, whole
from irtjax.scoring.family_worth import Worth
from irtjax.types import Float, Int, Shaped

POINTS = 100.0  # of a subject who has all items right
FEWEST_SUBJECTS = 10  # of a calibration


class Unit(NamedTuple):
    """What scores are in.

    Attributes:
        low: the score of a subject with the lowest response to every item.
        high: that with the highest.
        name: of the unit, in the plural.
    """

    low: float
    high: float
    name: str

    @property
    def size(self) -> float:
        """How far the highest score is from the lowest."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The unit and its range."""
        return f"{self.name}, {self.low:g} to {self.high:g}"

    def of(self, share: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The score for a share of the way from the lowest to the highest."""
        return self.low + self.size * share


OF_100 = Unit(0.0, POINTS, "points")


def unit_of(responses: Any) -> Unit:
    """Points from 0 to 100; of grades on one scale of numbers the grades themselves."""
    if not isinstance(responses, ScaledResponses):
        return OF_100
    grades = all(scale.labels is not None for scale in responses.scales)
    numbers = all(isinstance(label, int | float) for scale in responses.scales for label in scale.labels or ())
    low, high = ends_of(responses.scales)
    alone = grades and numbers and np.ptp(low) == 0 and np.ptp(high) == 0
    return Unit(float(low[0]), float(high[0]), "grades") if alone else OF_100


@dataclasses.dataclass(frozen=True, eq=False)
class Bank:
    """Items of a benchmark, calibrated on subjects whose scores on the whole benchmark are known.

    Responses to some items are an array, 1 right, 0 wrong and -1 missing, or `ScaledResponses` where the items have
    grades, counts or shares.

    Attributes:
        fit: of the answers of these subjects, in one dimension.
        scores: (J,) in the `unit`.
        link: (2,) the line, intercept and slope, from the score on the bank to that on the whole benchmark; (0, 1)
            where the bank is all of it.
        whole: whether the bank is all of the benchmark.
        categories: (I,) of the items, or None.
        given: the responses on the scales that they can have; None where they are right or wrong.
    """

    fit: Fit
    scores: Float[np.ndarray, " J"]
    link: Float[np.ndarray, " 2"]
    whole: bool
    categories: Shaped[np.ndarray, " I"] | None = None
    given: ScaledResponses | None = None

    @property
    def num_items(self) -> int:
        """I."""
        return self.responses.num_items

    @property
    def responses(self) -> ResponseMatrix | ScaledResponses:
        """Of the subjects that it was calibrated on."""
        return self.fit.responses.read() if self.given is None else self.given

    @property
    def unit(self) -> Unit:
        """Of the scores."""
        return unit_of(self.given)

    @functools.cached_property
    def scaled(self) -> ScaledTest | None:
        """The test, where its items are not right or wrong."""
        return None if self.given is None else ScaledTest(self.fit, self.given)

    @functools.cached_property
    def expected(self) -> Float[np.ndarray, "J I"]:
        """Probabilities of right answers of these subjects, at their estimated abilities; or expected shares."""
        return self.at(self.fit.ability).mean

    @functools.cached_property
    def noise(self) -> Float[np.ndarray, "J I"]:
        """Variances of their answers there."""
        return self.at(self.fit.ability).variance

    @functools.cached_property
    def answers(self) -> Float[np.ndarray, "J I"]:
        """Their answers, 1 right and 0 wrong, or shares; the expected one where an answer is missing."""
        if self.given is not None:
            shares = shares_of(self.given)
            return np.where(np.isnan(shares), self.expected, shares)
        values = self.fit.responses.read().values
        return np.where(values == MISSING, self.expected, values)

    def at(self, theta: Float[np.ndarray, " Q"]) -> Worth:
        """Mean and variance of the answer to each item at abilities."""
        if self.scaled is not None:
            return self.scaled.at(theta)
        p, q = map(np.asarray, probabilities(self.fit.parameters, theta[:, None]))
        return Worth(p, p * q)

    def information(self, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
        """Fisher information of an answer to each item."""
        if self.scaled is not None:
            return self.scaled.information(theta)
        return np.nan_to_num(np.asarray(information(self.fit.parameters, theta[:, None])))

    def items(self) -> pd.DataFrame:
        """The table of the fit, NaN for items that all calibrated subjects answered alike."""
        table = self.fit.items()
        if self.given is None or len(table) == self.num_items:
            return table
        return table.set_index("item_id").reindex(self.given.item_ids).rename_axis("item_id").reset_index()

    def linked(self, score_on_bank: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """The score on the whole benchmark for a score on the bank, by the line."""
        return self.link[0] + self.link[1] * score_on_bank


def asked(responses: ResponseMatrix | ScaledResponses, items: Int[np.ndarray, " K"]) -> Any:
    """The responses to some items, as a bank takes them."""
    return responses.choose_items(items) if isinstance(responses, ScaledResponses) else responses.values[:, items]


@checks_types
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
        scores: of the subjects on the whole benchmark, in points from 0 to 100 or in grades: a series of pandas by
            subject id, or an array in the order of the subjects. By default the bank is the whole: its share of right
            answers or mean grade, in which the model's expectation stands for a missing answer.
        model: of one dimension. `ScaledResponses` go by what they are where it is one of right and wrong answers.
        categories: of the items, whose shares small forms keep.
        quiet: whether warnings of the fit are kept back.

    Raises:
        InputError: fewer than 10 subjects, a score is missing or out of range, or another model.
    """
    matrix = as_bank_responses(responses, model)
    if matrix.num_subjects < FEWEST_SUBJECTS:
        raise InputError(f"{matrix.num_subjects} subjects, expected {FEWEST_SUBJECTS} or more to calibrate a benchmark")
    if categories is not None and len(categories) != matrix.num_items:
        raise InputError(f"`categories` of {len(categories)} items, expected one for each of {matrix.num_items}")
    known = None if scores is None else of_subjects(scores, matrix)
    start = np.zeros(matrix.num_subjects), np.array([0.0, 1.0])
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", FitWarning)
        if isinstance(matrix, ScaledResponses):
            usual = model if is_scaled(model) else AUTO
            found = fit(matrix.choose_items(~alike(matrix)), usual)
            bank = Bank(found, *start, known is None, categories, matrix)
        else:
            bank = Bank(fit(matrix, model), *start, known is None, categories)
    on_bank = bank.unit.of(bank.answers.mean(axis=1))
    if known is None:
        return dataclasses.replace(bank, scores=on_bank)
    slope, intercept = np.polyfit(on_bank, known, 1) if np.ptp(on_bank) else (0.0, known.mean())
    return dataclasses.replace(bank, scores=known, link=np.array([intercept, slope]))


def as_bank_responses(responses: Any, model: str) -> ResponseMatrix | ScaledResponses:
    """The responses of a bank, right and wrong or as the model has them.

    Raises:
        InputError: another model, or responses that cannot be read or fitted.
    """
    if model not in ONE_DIMENSION:
        raise InputError(f"`model` {model!r:.100}, expected one of {', '.join(ONE_DIMENSION)}")
    if on_scales(responses) or is_scaled(model):
        matrix: Any = whole(read(responses, model if is_scaled(model) else AUTO)[0])
    else:
        matrix = as_responses(responses)
    require_estimable(matrix)
    return matrix


def of_subjects(scores: Any, responses: ResponseMatrix | ScaledResponses) -> Float[np.ndarray, " J"]:
    """Scores in points or grades, in the order of the subjects of responses.

    Raises:
        InputError: a subject has none or several, or one is out of range; or no points are above 1.
    """
    unit = unit_of(responses)
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
        series = series.loc[responses.subject_ids]
        values = pd.to_numeric(series, errors="coerce").to_numpy(float)
        words = np.isnan(values) & series.notna().to_numpy()
        if words.any():
            raise InputError(
                f"scores: subject '{responses.subject_ids[words][0]}' has {series[words].iloc[0]!r}, no number: "
                f"expected {unit.text}"
            )
    else:
        values = np.asarray(scores, float)
        if values.shape != (responses.num_subjects,):
            raise InputError(
                f"scores of shape {values.shape}, expected one for each of {responses.num_subjects} subjects"
            )
    wrong = ~((values >= unit.low) & (values <= unit.high))
    if wrong.any():
        raise InputError(
            f"scores: subject '{responses.subject_ids[wrong][0]}' has {values[wrong][0]:g}, expected {unit.text}"
        )
    if unit == OF_100 and values.max() <= 1:
        raise InputError("scores: none is above 1, expected points from 0 to 100: multiply shares by 100")
    return values
