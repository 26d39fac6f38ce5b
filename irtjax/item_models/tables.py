"""Parameters of right/wrong items as the columns of `items.csv`, and back."""

import difflib
import re

import numpy as np
import pandas as pd
from scipy.special import expit

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters
from irtjax.types import Float

MOST = 1e9  # logits: a slope or an intercept that is no mistake
LEAST_SPREAD = 1e-6  # logits: difficulties that spread less are equal
ALIKE = 0.85  # of two names, from which on one may be the other misspelt
WITHOUT_EFFECT = {"discrimination": 1.0, "guessing": 0.0, "upper": 1.0}
OTHER_NAMES = {  # of parameters that a table may leave out, in other programs
    "discrimination": ("a", "slope", "alpha", "disc", "discr"),
    "guessing": ("c", "g", "guess", "lower", "lowerasymptote", "pseudoguessing", "chance"),
    "upper": ("upperasymptote", "slip", "slipping", "inattention", "feasibility"),
}
SCALING = "D"  # the name of the scaling constant everywhere
OURS = re.compile(r"(discrimination(_\d+)?|guessing|upper)(_se)?|discriminates")


def columns(parameters: ItemParameters, covariances: Float[np.ndarray, "I K K"]) -> dict[str, Float[np.ndarray, " I"]]:
    """Estimates and standard errors in the terms of `items.csv`.

    Args:
        parameters: of I items in D dimensions.
        covariances: (I, K, K) of slopes, intercept, lower and upper, the last two where there are any. Standard errors
            of b = -intercept/slope, c and d follow by the delta method; that of a parameter that was held is 0.
    """
    slope, intercept, lower, upper = (np.asarray(leaf) for leaf in parameters)
    dims = slope.shape[1]
    variance = np.einsum("ikk->ik", covariances)
    columns: dict[str, np.ndarray] = {}
    if dims == 1:
        a = np.where(slope[:, 0] == 0, np.nan, slope[:, 0])  # a flat item has no difficulty
        b = -intercept / a
        of_b = variance[:, 1] + b**2 * variance[:, 0] + 2 * b * covariances[:, 0, 1]
        columns |= {"difficulty": b, "difficulty_se": np.sqrt(of_b) / np.abs(a)}
        columns |= {"discrimination": slope[:, 0], "discrimination_se": np.sqrt(variance[:, 0])}
    else:
        for k in range(dims):
            columns |= {f"discrimination_{k + 1}": slope[:, k], f"discrimination_{k + 1}_se": np.sqrt(variance[:, k])}
        columns |= {"intercept": intercept, "intercept_se": np.sqrt(variance[:, dims])}
    for name, logit, column in (("guessing", lower, dims + 1), ("upper", upper, dims + 2)):
        if np.isfinite(logit).any():
            value = expit(logit)
            columns |= {name: value, f"{name}_se": value * (1 - value) * np.sqrt(variance[:, column])}
    return columns


def from_columns(table: pd.DataFrame) -> ItemParameters:
    """Item parameters from the columns of `items.csv`; an absent column takes the value that has no effect.

    With D = 1: difficulty, and where they exist discrimination (else 1), guessing (else 0) and upper (else 1). With
    D > 1: discrimination_1 … discrimination_D and intercept.

    Tables of other programs may have a column `D`, the constant that scales the logit, such as 1.7: their curves are
    P = c + (d - c) σ(D a (θ - b)), and so the slope here is D a.

    Raises:
        InputError: neither set of columns is there, one is there twice or under another name, or a parameter is
            missing, infinite or out of range; a scaling constant that is no number above 0, or that comes with an
            intercept, which may or may not be scaled by it.
    """
    num_items = len(table)
    _require_names(table)

    def column(name: str, default: float | None = None) -> np.ndarray:
        if name not in table:
            if default is None:
                raise InputError(f"no column {name}, expected difficulty, or discrimination_1 … and intercept")
            return np.full(num_items, default)
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(float)
        bad = ~np.isfinite(values)
        if bad.any():
            what = "no number" if np.isnan(values[bad][0]) else "an infinite number"
            raise InputError(f"column {name}: {what} for item '{table.index[bad][0]}': fix it, or leave the item out")
        return values

    scaling = pd.to_numeric(table[SCALING], errors="coerce").to_numpy(float) if SCALING in table else np.ones(num_items)
    bad = ~((scaling > 0) & (scaling < np.inf))
    if bad.any():
        raise InputError(
            f"column {SCALING}: item '{table.index[bad][0]}' has no number above 0, which the scaling constant of the "
            "logit is: fix it, or call the column something else"
        )
    slopes = [name for name in map(str, table.columns) if re.fullmatch(r"discrimination_\d+", name)]
    if slopes:
        expected = [f"discrimination_{k}" for k in range(1, len(slopes) + 1)]
        if set(slopes) != set(expected):
            raise InputError(f"columns {', '.join(slopes)}, expected {', '.join(expected)}")
        if (scaling != 1).any():
            raise InputError(
                f"column {SCALING} with an intercept, which may be scaled or not: multiply the discriminations by it, "
                "and the intercept if need be, and take the column out"
            )
        slope = np.stack([column(name) for name in expected], axis=1)
        intercept = column("intercept")
    else:
        difficulty = column("difficulty")
        discrimination = scaling * column("discrimination", WITHOUT_EFFECT["discrimination"])
        slope, intercept = discrimination[:, None], -discrimination * difficulty
    guessing, upper = (column(name, WITHOUT_EFFECT[name]) for name in ("guessing", "upper"))
    crossed, steep = (guessing < 0) | (upper > 1) | (guessing >= upper), ~(np.abs(slope).max(axis=1) < MOST)
    for bad, what in (
        (crossed, "asymptotes are expected to satisfy 0 <= guessing < upper <= 1"),
        (steep | ~(np.abs(intercept) < MOST), f"a slope and an intercept below {MOST:,.0f} logits are expected"),
    ):
        if bad.any():
            raise InputError(f"item '{table.index[bad][0]}': {what}")
    with np.errstate(divide="ignore"):  # an asymptote of 0 or 1 is infinite on the logit scale
        lower, upper = (np.log(x) - np.log1p(-x) for x in (guessing, upper))
    return ItemParameters(slope, intercept, lower, upper)


def _require_names(table: pd.DataFrame) -> None:
    """Refuses columns that are there twice, and parameters that would be overlooked."""
    names = [str(name) for name in table.columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"column '{name}' is there twice")
    absent = {parameter: others for parameter, others in OTHER_NAMES.items() if parameter not in names}
    for name in names:
        letters = re.sub("[^a-z]", "", name.lower())
        for parameter, others in absent.items():
            alike = difflib.SequenceMatcher(None, letters, parameter).ratio() > ALIKE
            suspect = (alike or letters in others) and not OURS.fullmatch(name)
            if suspect and (pd.to_numeric(table[name], errors="coerce") != WITHOUT_EFFECT[parameter]).any():
                raise InputError(f"column '{name}' is not read: call it {parameter}, or take it out")
