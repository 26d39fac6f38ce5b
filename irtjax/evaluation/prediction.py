"""Scores on a whole benchmark from the answers to a small form, with calibrated intervals."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from irtjax.arguments import LARGEST_SEED, checks_types, whole_number
from irtjax.errors import InputError
from irtjax.evaluation.bank import Bank, asked, calibrate
from irtjax.evaluation.forms import Form, choose_form
from irtjax.evaluation.predictors import PREDICTORS, Predictor
from irtjax.responses.folds import folds_of
from irtjax.types import Float, Int

FOLDS = 5
LEVEL = 0.9


@dataclasses.dataclass(frozen=True, eq=False)
class Crossed:
    """A bank, and the banks of its subjects without a fold of them at a time.

    Attributes:
        bank: of all subjects.
        parts: for each fold, the bank of the others and the positions of its own subjects.
    """

    bank: Bank
    parts: tuple[tuple[Bank, Int[np.ndarray, " held"]], ...]


@checks_types
def cross(bank: Bank, folds: int = FOLDS, seed: int = 0) -> Crossed:
    """Calibrates a bank again without each fold of its subjects.

    Raises:
        InputError: fewer than two folds, or too few subjects, or responses to an item, to calibrate without one.
    """
    whole_number("folds", folds, 2, len(bank.scores))
    whole_number("seed", seed, 0, LARGEST_SEED)
    fold = folds_of(len(bank.scores), folds, seed)
    return Crossed(bank, tuple((_of_some(bank, fold != k), np.flatnonzero(fold == k)) for k in range(folds)))


def _of_some(bank: Bank, kept: np.ndarray) -> Bank:
    some = bank.responses.choose_subjects(kept)
    unknown = some.counts(axis=0)[1] == 0
    if unknown.any():
        raise InputError(
            f"item '{some.item_ids[unknown][0]}' (1 of {unknown.sum():,} such) has responses of too few subjects: "
            "without a fold of these it has none; leave it out"
        )
    scores = None if bank.whole else bank.scores[kept]
    return calibrate(some, scores, model=_model(bank), categories=bank.categories, quiet=True)


def _model(bank: Bank) -> str:
    """Of a calibration like that of a bank; items of several kinds go by what they are, whatever it is."""
    return "2pl" if bank.fit.model == "mixed" else bank.fit.model


@dataclasses.dataclass(frozen=True, eq=False)
class Scorer:
    """Predicts scores from the answers to a form.

    Attributes:
        bank: calibrated.
        form: the items to ask.
        predictor: of points and relative standard deviations.
        residuals: (n,) what the predictions of calibrated subjects were off, in those standard deviations. Each was
            predicted by a bank, a form and a predictor in which it had no part.
    """

    bank: Bank
    form: Form
    predictor: Predictor
    residuals: Float[np.ndarray, " n"]

    @checks_types
    def predict(self, values: Any, level: float = LEVEL) -> pd.DataFrame:
        """Scores of subjects.

        Args:
            values: answers to the items of the form, in its order: 1 right, 0 wrong, -1 missing; `ScaledResponses` of
                grades, counts or shares, on the scales of the bank.
            level: of the intervals.

        Returns:
            One row per subject: `score` in the unit of the bank, `score_se`, and `low` and `high`, the ends of the
            interval.
        """
        points, deviation = self.predictor(values)
        half, (least, most, _) = deviation * self.multiplier(level), self.bank.unit
        return pd.DataFrame(
            {
                "score": np.clip(points, least, most),
                "score_se": deviation * np.sqrt((self.residuals**2).mean()),
                "low": np.clip(points - half, least, most),
                "high": np.clip(points + half, least, most),
            }
        )

    @checks_types
    def multiplier(self, level: float = LEVEL) -> float:
        """Standard deviations on either side of a prediction, of an interval of a level.

        The ⌈(n + 1) level⌉-th smallest absolute residual holds the level for subjects like those of the calibration,
        whatever the distribution (split conformal prediction: Vovk et al. 2005). With too few subjects for that rank it
        is Student's t times their root mean square.
        """
        sizes, n = np.sort(np.abs(self.residuals)), self.residuals.size
        rank = math.ceil((n + 1) * level)
        if rank <= n:
            return float(sizes[rank - 1])
        return float(student.ppf((1 + level) / 2, n) * np.sqrt((sizes**2).mean()))


@checks_types
def scorers(
    crossed: Crossed,
    num_items: int,
    form: str = "variance",
    predictors: Sequence[str] = ("calibrated",),
    seed: int = 0,
) -> dict[str, Scorer]:
    """Chooses a form, and learns to predict scores from it in one way or several.

    Args:
        crossed: a bank and its folds.
        num_items: of the form.
        form: a way of `irtjax.evaluation.forms.choose_form`.
        predictors: names of `PREDICTORS`.
        seed: of the form.

    Raises:
        InputError: an unknown form or predictor, or more items than there are.
    """
    chosen = choose_form(crossed.bank, num_items, form, seed)
    in_parts = [choose_form(part, num_items, form, seed) for part, _ in crossed.parts]
    return of_forms(crossed, chosen, in_parts, predictors)


def of_form(crossed: Crossed, form: Form, predictor: str = "calibrated") -> Scorer:
    """A scorer for a form that is given, such as the items that new subjects happen to have answered.

    Raises:
        InputError: an unknown predictor.
    """
    return of_forms(crossed, form, [form] * len(crossed.parts), (predictor,))[predictor]


def of_forms(crossed: Crossed, form: Form, in_parts: Sequence[Form], predictors: Sequence[str]) -> dict[str, Scorer]:
    """Scorers for a form, whose residuals are of the forms that each fold would have had."""
    bank, responses = crossed.bank, crossed.bank.responses
    for name in predictors:
        if name not in PREDICTORS:
            raise InputError(f"`predictors` {name!r:.100}, expected names of {', '.join(PREDICTORS)}")
    residuals = {name: np.empty(len(bank.scores)) for name in predictors}
    for (part, held), own in zip(crossed.parts, in_parts, strict=True):
        answers = asked(responses.choose_subjects(held), own.items)
        for name in predictors:  # one after the other, as they share posteriors
            points, deviation = PREDICTORS[name](part, own)(answers)
            residuals[name][held] = (bank.scores[held] - points) / deviation
    return {name: Scorer(bank, form, PREDICTORS[name](bank, form), residuals[name]) for name in predictors}
