"""Parameters of items that nobody has answered, from regressions on their features."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from irtjax.fits.item_features import new_items, require_same_names
from irtjax.fits.regression import Regression, require_finite

INVERSE = {"asinh": (np.sinh, np.cosh), "log": (np.exp, np.exp)}  # of a scale of slopes, with its derivative


def predict(
    regression: Regression,
    slope_regression: Regression | None,
    features: Any,
    *,
    names: Sequence[str],
    common_slope: float,
    slope_scale: Literal["asinh", "log"],
    least_slope: float,
) -> pd.DataFrame:
    """Difficulties and discriminations of new items, with standard deviations of the prediction.

    Args:
        regression: of difficulties.
        slope_regression: of discriminations on their scale; None where all items share one.
        features: of the new items.
        names: of the features that the regressions are on.
        common_slope: that all items share, without a regression.
        slope_scale: on which discriminations were regressed.
        least_slope: of flatter items the regression is that of the difficulty at this slope.

    Returns:
        A row per item, as `Fit.predict_items` has it; deviations of discriminations by the delta method.

    Raises:
        InputError: features that do not go with the regressions.
    """
    item_ids, given = new_items(features)
    require_same_names(given.names, names)
    x = given.values
    difficulty, difficulty_sd = regression.predict(x, item_ids)
    discrimination, discrimination_sd = np.full(len(x), common_slope), np.zeros(len(x))
    if slope_regression is not None:
        mean, sd = slope_regression.predict(x, item_ids)
        value, derivative = INVERSE[slope_scale]
        with np.errstate(over="ignore"):
            discrimination, discrimination_sd = value(mean), derivative(mean) * sd
        require_finite(item_ids, discrimination, discrimination_sd)
        steeper = np.maximum(1, least_slope / np.abs(discrimination))
        difficulty, difficulty_sd = steeper * difficulty, steeper * difficulty_sd
    return pd.DataFrame(
        {
            "item_id": item_ids,
            "difficulty": difficulty,
            "difficulty_sd": difficulty_sd,
            "discrimination": discrimination,
            "discrimination_sd": discrimination_sd,
        }
    )
