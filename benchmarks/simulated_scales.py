"""Items with grades, categories, counts or shares that are known, and responses to them."""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, softmax

from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.scaled import ScaledResponses

TOP, TRIALS = 3, 10
RASCH = "pcm", "rsm"  # whose slopes are 1
GRADES = "graded", "gpcm", *RASCH
Columns = dict[str, np.ndarray]


def truth_of(model: str, num_items: int, rng: np.random.Generator) -> Columns:
    """Columns of `items.csv` (I,) to draw responses with."""
    if model == "nominal":
        found: Columns = {}
        for name, middle in (("slope", np.linspace(-1.2, 1.2, TOP + 1)), ("intercept", np.zeros(TOP + 1))):
            each = rng.normal(middle, 0.5, (num_items, TOP + 1))
            each -= each.mean(axis=1, keepdims=True)
            found |= {f"{name}_{k}": each[:, k] for k in range(TOP + 1)}
        return found
    place = rng.normal(0, 0.7, (num_items, 1))
    if model in GRADES:
        steps = np.sort(rng.normal(np.linspace(-1, 1, TOP), 0.3, (num_items, TOP)))
        b = place + (np.linspace(-1, 1, TOP) if model == "rsm" else steps)
        thresholds = {f"threshold_{k + 1}": b[:, k] for k in range(TOP)}
        return thresholds if model in RASCH else {"discrimination": rng.lognormal(0, 0.3, num_items)} | thresholds
    found = {"discrimination": rng.lognormal(0, 0.3, num_items), "difficulty": place[:, 0]}
    if model in ("beta", "ordered_beta"):
        found["precision"] = rng.lognormal(2, 0.3, num_items)
    if model == "ordered_beta":
        found |= {"cut_0": rng.normal(-2, 0.3, num_items), "cut_1": rng.normal(2, 0.3, num_items)}
    return found


def respond(model: str, truth: Columns, theta: np.ndarray, rng: np.random.Generator) -> ScaledResponses:
    """Responses (J, I) to items: grades or categories 0 … 3, successes of ten trials, or shares."""
    number = len(next(iter(truth.values())))
    ids = [f"s{k}" for k in range(len(theta))], [f"i{k}" for k in range(number)]
    if model in (*GRADES, "nominal"):
        p = _CATEGORIES[model](truth, theta)
        values = (rng.random((*p.shape[:2], 1)) > p.cumsum(axis=2)[:, :, :-1]).sum(axis=2)
        return of_grades(values.astype(float), *ids, list(range(TOP + 1)))
    x = _predictor(truth, theta)
    if model == "binomial":
        return of_counts(rng.binomial(TRIALS, expit(x)), TRIALS, *ids)
    phi = truth["precision"]
    shares = np.clip(rng.beta(expit(x) * phi, expit(-x) * phi), 1e-9, 1 - 1e-9)
    if model == "ordered_beta":
        drawn = rng.random(x.shape)
        low, high = expit(truth["cut_0"] - x), expit(truth["cut_1"] - x)
        shares = np.where(drawn < low, 0.0, np.where(drawn > high, 1.0, shares))
    return of_shares(shares, *ids)


def _predictor(truth: Columns, theta: np.ndarray) -> np.ndarray:
    return truth["discrimination"] * (theta[:, None] - truth["difficulty"])


def _nominal(truth: Columns, theta: np.ndarray) -> np.ndarray:
    slope, intercept = (
        np.stack([truth[f"{name}_{k}"] for k in range(TOP + 1)], axis=1) for name in ("slope", "intercept")
    )
    return softmax(theta[:, None, None] * slope + intercept, axis=2)


def _steps(truth: Columns, theta: np.ndarray) -> np.ndarray:
    b = np.stack([truth[f"threshold_{k + 1}"] for k in range(TOP)], axis=1)
    return truth.get("discrimination", np.ones(len(b)))[:, None] * (theta[:, None, None] - b)


def _graded(truth: Columns, theta: np.ndarray) -> np.ndarray:
    return -np.diff(expit(_steps(truth, theta)), axis=2, prepend=1.0, append=0.0)


def _partial_credit(truth: Columns, theta: np.ndarray) -> np.ndarray:
    return softmax(np.pad(np.cumsum(_steps(truth, theta), axis=2), ((0, 0), (0, 0), (1, 0))), axis=2)


_CATEGORIES: dict[str, Callable[[Columns, np.ndarray], np.ndarray]] = {
    "graded": _graded,
    **dict.fromkeys(("gpcm", *RASCH), _partial_credit),
    "nominal": _nominal,
}
