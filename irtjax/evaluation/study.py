"""Which small form, and which prediction from it? Scores of subjects that were held out of everything."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.evaluation.bank import (
    FEWEST_SUBJECTS,
    as_bank_responses,
    asked,
    calibrate,
    of_subjects,
    unit_of,
)
from irtjax.evaluation.choices import HELD_OUT, SIZES
from irtjax.evaluation.forms import WAYS
from irtjax.evaluation.prediction import FOLDS, LEVEL, cross, scorers
from irtjax.evaluation.predictors import PREDICTORS
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.types import Float, Shaped


class Method(NamedTuple):
    """A way to choose items and a way to predict from them."""

    form: str
    predictor: str

    def __str__(self) -> str:
        return f"{self.form} {self.predictor}"


PREFERRED = Method("variance", "calibrated")  # on ARC and GSM8K the best at every size


@checks_types
def hold_out(
    responses: Any,
    scores: Any = None,
    *,
    num_items: Sequence[int] = SIZES,
    seeds: int = 5,
    held_out: float = HELD_OUT,
    calibration: Sequence[int] = (0,),
    model: str = "2pl",
    forms: Sequence[str] = tuple(WAYS),
    predictors: Sequence[str] = tuple(PREDICTORS),
    categories: Shaped[np.ndarray, " I"] | None = None,
    on_progress: Callable[[int, int, str], None] = lambda *_: None,
    on_predicted: Callable[[dict[str, Any], pd.DataFrame], None] = lambda *_: None,
) -> pd.DataFrame:
    """Predicts the scores of subjects that had no part in calibration, choice of items, or intervals.

    Args:
        responses: of all subjects to the items of the bank; whatever `irtjax.fit` takes.
        scores: on the whole benchmark, in points; by default the bank is it (`irtjax.evaluation.bank.calibrate`).
        num_items: sizes of forms.
        seeds: numbers of splits, and of random forms.
        held_out: share of the subjects that is predicted.
        calibration: numbers of subjects that calibrate, drawn from the others; 0 for all of these.
        model: of the item response functions.
        forms: ways to choose items (`irtjax.evaluation.forms.choose_form`).
        predictors: ways to predict (`irtjax.evaluation.predictors`).
        categories: of the items.
        on_progress: called with the number of forms done, that of all, and what is done now.
        on_predicted: called with each row of the result, and with the predictions that it is about: `score`, `low` and
            `high` of the held-out subjects, and `truth`, in points.

    Returns:
        One row per form, predictor, number of items, number of calibration subjects and seed: `method` (form and
        predictor), `num_items`, `seed`, `mae` and `rmse` in points, `coverage_90` and `width_90`, share and mean width
        of the 90% intervals, `form`, `predictor`, `calibration` and `predicted`, numbers of subjects.

    Raises:
        InputError: too few subjects, more items than there are, or an unknown name.
    """
    matrix = as_bank_responses(responses, model)
    known = None if scores is None else of_subjects(scores, matrix)
    for argument, given, names in (("forms", forms, WAYS), ("predictors", predictors, PREDICTORS)):
        for name in given:
            if name not in names:
                raise InputError(f"`{argument}` {name!r:.100}, expected names of {', '.join(names)}")
    for size in num_items:
        whole_number("num_items", size, 1, matrix.num_items)
    whole_number("seeds", seeds, 1)
    num_held = round(held_out * matrix.num_subjects)
    rest = matrix.num_subjects - num_held
    least = -(-FEWEST_SUBJECTS * FOLDS // (FOLDS - 1))
    if num_held < 1 or rest < least:
        raise InputError(
            f"{matrix.num_subjects} subjects, `held_out` {held_out}: {num_held} to predict and {rest} to calibrate, "
            f"expected at least 1 and {least}"
        )
    for number in calibration:
        if number and not least <= number <= rest:
            raise InputError(f"`calibration` {number}, expected {least} to {rest} subjects, or all")
    total, done, rows = seeds * len(calibration) * len(num_items) * len(forms), 0, []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(matrix.num_subjects)
        held = order[:num_held]
        for number in calibration:
            own = order[num_held:][: number or rest]
            on_progress(done, total, f"seed {seed}, {own.size:,} subjects: calibrating")
            some = matrix.choose_subjects(own)
            bank = calibrate(
                some, None if known is None else known[own], model=model, categories=categories, quiet=True
            )
            crossed = cross(bank, seed=seed)
            of_held = matrix.choose_subjects(held)
            truth = known[held] if known is not None else unit_of(matrix).of(_share(of_held))
            for size in num_items:
                for form in forms:
                    on_progress(done, total, f"seed {seed}, {own.size:,} subjects: {form}, {size} items")
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # k-means of fewer points than clusters, and the like
                        found = scorers(crossed, size, form, predictors, seed)
                    for name, scorer in found.items():
                        predicted = scorer.predict(asked(of_held, scorer.form.items), LEVEL)
                        about = {"form": form, "predictor": name, "calibration": own.size, "predicted": held.size}
                        key = {"method": f"{form} {name}", "num_items": size, "seed": seed}
                        rows.append(key | _errors(predicted, truth) | about)
                        on_predicted(rows[-1], predicted.assign(truth=truth))
                    done += 1
    on_progress(total, total, "done")
    return pd.DataFrame(rows)


def of_all(errors: pd.DataFrame) -> pd.DataFrame:
    """The rows of the most calibration subjects."""
    return errors[errors.calibration == errors.calibration.max()]


def best_method(errors: pd.DataFrame) -> Method:
    """The method of the least mean absolute error, relative to the least at each size and split.

    With few models or splits the least is partly luck. So `PREFERRED` is taken where it is there and no more than one
    standard error of the difference, over the splits, behind; or where there is only one split.
    """
    rows = of_all(errors)
    relative = rows.mae / rows.groupby(["num_items", "seed"]).mae.transform("min")
    table = rows.assign(relative=relative).pivot_table(index="seed", columns="method", values="relative")
    name = table.mean().idxmin()
    if str(PREFERRED) in table:
        behind = table[str(PREFERRED)] - table[name]
        if len(behind) == 1 or behind.mean() <= behind.std(ddof=1) / np.sqrt(len(behind)):
            return PREFERRED
    return Method(*errors[errors.method == name].iloc[0][["form", "predictor"]])


def _share(responses: ResponseMatrix | ScaledResponses) -> Float[np.ndarray, " J"]:
    """Share right of the answers that are there, or mean share of the way from the lowest to the highest."""
    total, observed = responses.counts(axis=1)
    return total / np.maximum(observed, 1)


def _errors(predicted: pd.DataFrame, truth: np.ndarray) -> dict[str, float]:
    error = predicted["score"].to_numpy() - truth
    inside = (predicted["low"] <= truth) & (truth <= predicted["high"])
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "coverage_90": float(inside.mean()),
        "width_90": float((predicted["high"] - predicted["low"]).mean()),
    }
