"""Items with a few responses: what are features worth, in responses?"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from irtjax.explanatory.new_items import Answers, no_features, regression, rmse_of, with_features
from irtjax.fits.item_features import ItemFeatures
from irtjax.fits.result import Fit
from irtjax.responses.folds import folds_of
from irtjax.responses.matrix import MISSING
from irtjax.types import Float


def by_number(
    responses: Answers,
    features: ItemFeatures,
    numbers: Sequence[int],
    reference: Fit,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] = lambda *_: None,
) -> pd.DataFrame:
    """How far difficulties of new items are off that have a few responses, with features and without.

    A fifth of the items are new. Of each, so many responses are kept, at random; all those to the other items are.

    Args:
        responses: of all items.
        features: of all items.
        numbers: of responses per new item, ascending; 0 for none.
        reference: `without_features` of all responses, from which errors are counted.
        seed: of what is kept.
        on_progress: called with the number of fits done, that of all, and what is done now.

    Returns:
        One row per number and `features` (True or False): `responses`, `rmse` in logits and `spearman` (NaN where all
        have one difficulty) over the new items.
    """
    new = folds_of(responses.num_items, 5, seed) == 0
    order = np.random.default_rng(seed).random(responses.values.shape)
    order[np.asarray(responses.values) == MISSING] = 2  # after all that are there
    rank = order.argsort(0).argsort(0)
    plain = no_features(responses.num_items)
    rows: list[dict[str, float]] = []
    for number in numbers:
        for given, x in ((False, plain), (True, features)):
            words = f"{number} responses, {'with' if given else 'without'} features"
            on_progress(len(rows), 2 * len(numbers), words)
            difficulty = _with_few(responses, x, new, rank < number if number else None)
            same = np.ptp(difficulty) == 0
            rows.append(
                {
                    "responses": number,
                    "features": given,
                    "rmse": rmse_of(reference.difficulty[new], difficulty),
                    "spearman": np.nan if same else float(spearmanr(reference.difficulty[new], difficulty).statistic),
                }
            )
    on_progress(len(rows), len(rows), "done")
    return pd.DataFrame(rows)


def _with_few(
    responses: Any, features: ItemFeatures, new: np.ndarray, kept: np.ndarray | None
) -> Float[np.ndarray, " N"]:
    """Difficulties of new items of whose responses some are kept, or none."""
    if kept is None:
        fit = with_features(responses.choose_items(~new), features.choose(~new))
        return regression(fit).predict(features.values[new])[0]
    values = np.where(new & ~kept, MISSING, responses.values).astype(np.asarray(responses.values).dtype)
    fit = with_features(dataclasses.replace(responses, values=values), features)
    return fit.difficulty[new]


def worth(curve: pd.DataFrame) -> pd.Series:
    """How many responses without features do what each number does with them, by the error of `by_number`.

    Interpolated in the logarithms of error and 1 + number. Infinite beyond the largest number, and NaN where even no
    response does as well.
    """
    without, given = (curve[curve.features == which].set_index("responses").rmse for which in (False, True))
    error, number = np.log(without.to_numpy())[::-1], np.log1p(without.index.to_numpy(float))[::-1]
    found = np.expm1(np.interp(np.log(given), error, number, left=np.inf, right=np.nan))
    return pd.Series(found, given.index)
