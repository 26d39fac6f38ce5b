"""Responses drawn from item response models.

P(right) = c + (d - c) σ(a'θ + e), with abilities θ, slopes a, intercept e, and asymptotes c and d. Of one dimension
e = -a b, with difficulty b. A response is 1 where a uniform number is below P(right), else 0; -1 is a missing one.
"""

import numpy as np
import pandas as pd
from conftest import matrix
from scipy.special import expit

from irtjax import ResponseMatrix
from irtjax.kernels.models import ItemParameters


def probability(items: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """P(right) (J, I) at abilities (J, D), or (J,) of one dimension."""
    slope, intercept, lower, upper = (np.asarray(leaf, float) for leaf in items)
    c, d = expit(lower), expit(upper)
    return c + (d - c) * expit(np.reshape(np.asarray(theta, float), (-1, slope.shape[1])) @ slope.T + intercept)


def by_difficulty(
    theta: np.ndarray,
    a: np.ndarray | float,
    b: np.ndarray,
    c: np.ndarray | float = 0.0,
    d: np.ndarray | float = 1.0,
) -> np.ndarray:
    """P(right) (J, I) of one dimension, from abilities (J,), and slopes, difficulties and asymptotes (I,) of items."""
    return c + (d - c) * expit(a * (theta[:, None] - b))


def draw(rng: np.random.Generator, p: np.ndarray, missing: float = 0.0) -> np.ndarray:
    """Responses (J, I), int8, from P(right) (J, I); a share of them is missing."""
    values = (rng.random(p.shape) < p).astype(np.int8)
    if missing:
        values[rng.random(p.shape) < missing] = -1
    return values


def simulate(
    num_subjects: int, num_items: int, seed: int = 0, missing: float = 0.0
) -> tuple[ResponseMatrix, np.ndarray, np.ndarray]:
    """Responses by the 1PL, the abilities from N(0, 1.5²), and the difficulties from N(-0.5, 1.2²)."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 1.5, num_subjects), rng.normal(-0.5, 1.2, num_items)
    return matrix(draw(rng, by_difficulty(theta, 1.0, b), missing)), theta, b


def simulate_model(
    model: str,
    num_subjects: int,
    num_items: int,
    seed: int = 0,
    missing: float = 0.0,
    mean: float = 0.0,
    sd: float = 1.0,
) -> tuple[ResponseMatrix, np.ndarray, pd.DataFrame]:
    """Responses by a model of one dimension, the abilities from N(mean, sd²), and the items.

    Difficulties b are from N(0, 1), slopes a log-normal with median 1 (1.2 of the 1PL), lower asymptotes c between 0.1
    and 0.3, upper ones d between 0.9 and 0.98. The table of items has the columns item_id, a, b, c, d.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(mean, sd, num_subjects)
    a = rng.lognormal(0, 0.3, num_items) if model != "1pl" else np.full(num_items, 1.2)
    b = rng.normal(0, 1, num_items)
    c = rng.uniform(0.1, 0.3, num_items) if model in ("3pl", "4pl") else np.zeros(num_items)
    d = rng.uniform(0.9, 0.98, num_items) if model == "4pl" else np.ones(num_items)
    values = draw(rng, by_difficulty(theta, a, b, c, d), missing)
    items = pd.DataFrame({"item_id": [f"i{i}" for i in range(num_items)], "a": a, "b": b, "c": c, "d": d})
    return matrix(values), theta, items


def simulate_grades(
    num_subjects: int, num_items: int, seed: int = 0, top: int = 3
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Grades 1 to `top` + 1 by the graded model, the abilities from N(0, 1), and the items.

    The table of items has the columns of `items.csv`: item_id, model, grades, discrimination, threshold_1 and so on.
    """
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(size=num_subjects), rng.lognormal(0.3, 0.3, num_items)
    b = np.sort(
        rng.normal(0, 1, num_items)[:, None] + np.linspace(-1.2, 1.2, top) + rng.normal(0, 0.2, (num_items, top))
    )
    above = expit(a[:, None] * (theta[:, None, None] - b))
    grades = 1 + (rng.random((num_subjects, num_items, 1)) < above).sum(axis=2)
    ids = [f"i{i}" for i in range(num_items)]
    items = pd.DataFrame({"item_id": ids, "model": "graded", "grades": "|".join(map(str, range(1, top + 2)))})
    items["discrimination"] = a
    for k in range(top):
        items[f"threshold_{k + 1}"] = b[:, k]
    return pd.DataFrame(grades, [f"s{j}" for j in range(num_subjects)], ids), theta, items
