"""Item response functions: the probability of a right answer, its derivatives and its information.

Notation: ability θ (theta), difficulty b, all in logits; `p` is the probability of a right answer.
"""

from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.errors import InputError


class ItemParameters(NamedTuple):
    """Parameters of I items in D dimensions, in slope-intercept form; asymptotes on the logit scale.

        P = c + (d - c) σ(Σ_k slope_k θ_k + intercept),   c = σ(lower),  d = σ(upper)

    With D = 1 the discrimination is a = slope and the difficulty b = -intercept / slope (Birnbaum 1968; Barton and
    Lord 1981 for d). The 1PL and 2PL have lower = -inf and upper = +inf; D > 1 is the compensatory model of Reckase
    (1985).

    Attributes:
        slope: (I, D).
        intercept: (I,).
        lower: (I,) logit of guessing.
        upper: (I,) logit of the upper asymptote.
    """

    slope: jax.Array
    intercept: jax.Array
    lower: jax.Array
    upper: jax.Array


def from_table(table: pd.DataFrame) -> ItemParameters:
    """Item parameters from the columns of `items.csv`; what is missing takes the value that has no effect.

    With D = 1: difficulty, and where they exist discrimination (else 1), guessing (else 0) and upper (else 1). With
    D > 1: discrimination_1 … discrimination_D and intercept.

    Raises:
        InputError: neither set of columns is there, or a parameter is missing or out of range.
    """
    num_items = len(table)

    def column(name: str, default: float | None = None) -> np.ndarray:
        if name not in table:
            if default is None:
                raise InputError(f"no column {name}, expected difficulty, or discrimination_1 … and intercept")
            return np.full(num_items, default)
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(float)
        if np.isnan(values).any():
            raise InputError(f"column {name}: no number for item '{table.index[np.isnan(values)][0]}'")
        return values

    dims = sum(f"discrimination_{k}" in table for k in range(1, num_items + 1))
    if dims:
        slope = np.stack([column(f"discrimination_{k}") for k in range(1, dims + 1)], axis=1)
        intercept = column("intercept")
    else:
        difficulty, discrimination = column("difficulty"), column("discrimination", 1.0)
        slope, intercept = discrimination[:, None], -discrimination * difficulty
    guessing, upper = column("guessing", 0.0), column("upper", 1.0)
    if (guessing < 0).any() or (upper > 1).any() or (guessing >= upper).any():
        raise InputError("asymptotes are expected to satisfy 0 <= guessing < upper <= 1")
    with np.errstate(divide="ignore"):  # an asymptote of 0 or 1 is infinite on the logit scale
        lower, upper = (np.log(x) - np.log1p(-x) for x in (guessing, upper))
    return ItemParameters(slope, intercept, lower, upper)


def probabilities(items: ItemParameters, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Probabilities of a right and of a wrong answer, each computed without cancellation.

    Args:
        items: of I items.
        theta: (Q, D) abilities.

    Returns:
        P and 1 - P, each (Q, I); NumPy arrays where the arguments are.
    """
    s, not_s = sigmoids(theta @ items.slope.T + items.intercept[None, :])
    (c, _), (d, not_d) = sigmoids(items.lower[None, :]), sigmoids(items.upper[None, :])
    return c + (d - c) * s, not_d + (d - c) * not_s


def derivatives(items: ItemParameters, theta: jax.Array) -> jax.Array:
    """Derivatives of P with respect to slope_1 … slope_D, intercept, lower and upper: (Q, I, D + 3).

    A NumPy array where the arguments are.
    """
    s, not_s = sigmoids(theta @ items.slope.T + items.intercept[None, :])
    (c, not_c), (d, not_d) = sigmoids(items.lower[None, :]), sigmoids(items.upper[None, :])
    by_intercept = (d - c) * s * not_s
    xp = by_intercept.__array_namespace__()
    by_slope = by_intercept[:, :, None] * theta[:, None, :]
    return xp.concatenate([by_slope, xp.stack([by_intercept, c * not_c * not_s, d * not_d * s], axis=-1)], axis=-1)


def sigmoids(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """σ(x) and σ(-x), NumPy arrays where x is one."""
    if not isinstance(x, np.ndarray):
        return jax.nn.sigmoid(x), jax.nn.sigmoid(-x)
    small = np.exp(-np.abs(x))  # one exponential for both, and none that overflows
    large = 1 / (1 + small)
    small *= large
    positive = x >= 0
    return np.where(positive, large, small), np.where(positive, small, large)


def information(items: ItemParameters, theta: jax.Array) -> jax.Array:
    """Fisher information of one response to each item about θ, D = 1: (∂P/∂θ)² / (P (1 - P)), (Q, I).

    For the 2PL this is a² P (1 - P) (Birnbaum 1968).

    Args:
        items: of I items with one slope each.
        theta: (Q, 1) abilities.
    """
    p, q = probabilities(items, theta)
    by_theta = derivatives(items, theta)[:, :, 1] * items.slope[None, :, 0]
    return by_theta**2 / (p * q)


def probability_1pl(theta: jax.Array, difficulty: jax.Array) -> jax.Array:
    """Probability of a right answer in the one-parameter logistic model (Rasch 1960).

        p = σ(θ - b)

    Args:
        theta: abilities in logits, any shape that broadcasts against `difficulty`.
        difficulty: difficulties in logits.

    Returns:
        Probabilities, of the broadcast shape.
    """
    return jax.nn.sigmoid(theta - difficulty)


def information_1pl(theta: jax.Array, difficulty: jax.Array) -> jax.Array:
    """Fisher information of one response about θ in the 1PL: p (1 - p); shapes as in `probability_1pl`."""
    p = probability_1pl(theta, difficulty)
    return p * (1 - p)
