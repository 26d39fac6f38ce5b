"""The score on a whole bank, given some answers: its mean and standard deviation, abilities integrated out.

With answers y_i, i ∈ S, the score of a bank of I items is T = (Σ_{i ∈ S} y_i + Σ_{i ∉ S} Y_i) / I. Given the ability θ
the unseen answers Y_i are independent with probabilities P_i(θ), so that

    E[T | y] = (Σ_S y_i + E[Σ_U P_i(θ) | y]) / I
    Var[T | y] = (Var[Σ_U P_i(θ) | y] + E[Σ_U P_i (1 - P_i) | y] + Σ_U E[v_i(θ) | y]) / I²,

v_i the variance of P_i that comes from the errors of the item's estimated parameters.
"""

import functools
from typing import NamedTuple

import numpy as np

from irtjax.fits.result import Fit
from irtjax.integration.posteriors import posteriors
from irtjax.kernels.models import curve
from irtjax.responses.matrix import MISSING
from irtjax.types import Bool, Float, Int


class ScorePosterior(NamedTuple):
    """Of each subject; scores are shares of right answers in the bank, 0 to 1.

    Attributes:
        mean: (J,) posterior mean of the score.
        sd: (J,) posterior standard deviation.
        at_ability: (J,) right answers and the probabilities of the unseen ones at the EAP ability: p-IRT (Maia Polo et
            al. 2024, eq. 4).
        ability: (J,) EAP.
        ability_se: (J,) posterior standard deviation of the ability.
    """

    mean: np.ndarray
    sd: np.ndarray
    at_ability: np.ndarray
    ability: np.ndarray
    ability_se: np.ndarray


def score_posterior(fit: Fit, values: Int[np.ndarray, "J I"]) -> ScorePosterior:
    """Moments of the score on all items of a fit in one dimension.

    Args:
        fit: of the bank.
        values: answers to its items: 1 right, 0 wrong, -1 not seen.
    """
    seen = values != MISSING
    columns = seen.any(axis=0)
    items, population = fit.parameters, fit.one_population
    answered = items.take(columns)
    right, unseen = (values == 1).sum(axis=1), (~seen).astype(float)
    alike = bool((seen == seen[:1]).all())
    means, squares, noises = (np.empty(len(values)) for _ in range(3))
    ability, ability_se = (np.empty(len(values)) for _ in range(2))
    for found in posteriors(answered, np.ascontiguousarray(values[:, columns]), *_normal(population)):
        rows = found.rows
        ability[rows], ability_se[rows] = found.mean[:, 0], np.sqrt(found.covariance[:, 0, 0])
        masks = unseen[:1] if alike else unseen[rows]
        if found.nodes.ndim == 2:
            if alike:
                total, varied = _of_the_rest(fit, found.nodes[:, 0], columns)  # (Q, 1)
            else:
                p, noise = curves_at(fit, found.nodes[:, 0])
                total, varied = p @ masks.T, noise @ masks.T  # (Q, J)
            means[rows] = (found.weights * total.T).sum(axis=1)
            squares[rows] = (found.weights * total.T**2).sum(axis=1)
            noises[rows] = (found.weights * varied.T).sum(axis=1)
            continue
        for number, row in enumerate(rows):
            p, noise = curves_at(fit, found.nodes[number, :, 0])
            mask, weights = masks[0 if alike else number], found.weights[number]
            total = p @ mask
            means[row], squares[row], noises[row] = weights @ total, weights @ total**2, weights @ (noise @ mask)
    at_ability = np.empty(len(values))
    step = max(1, 2**22 // values.shape[1])
    for at in range(0, len(values), step):
        some = slice(at, at + step)
        at_ability[some] = (curves_at(fit, ability[some])[0] * unseen[some]).sum(axis=1)
    variance = np.maximum(squares - means**2, 0) + noises
    number_of_items = values.shape[1]
    means = np.clip(means, 0, (~seen).sum(axis=1))  # weights sum to 1 but for rounding
    return ScorePosterior(
        mean=(right + means) / number_of_items,
        sd=np.sqrt(variance) / number_of_items,
        at_ability=(right + at_ability) / number_of_items,
        ability=ability,
        ability_se=ability_se,
    )


def _of_the_rest(
    fit: Fit, theta: Float[np.ndarray, " Q"], seen: Bool[np.ndarray, " I"]
) -> tuple[Float[np.ndarray, "Q 1"], Float[np.ndarray, "Q 1"]]:
    """Sums of `curves_at` over the items that were not seen: those over all, which are kept, without the seen ones.

    Differences of sums are rounded; the sums are never below 0, or above the number of items.
    """
    of_seen = curves_at(fit, theta, np.flatnonzero(seen))
    return tuple(
        np.clip(whole - part.sum(axis=1), 0, (~seen).sum())[:, None]
        for whole, part in zip(_totals(fit, tuple(theta)), of_seen, strict=True)
    )  # type: ignore[return-value]


@functools.lru_cache(maxsize=16)
def _totals(fit: Fit, theta: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    p, noise = curves_at(fit, np.array(theta))
    return p.sum(axis=1), noise.sum(axis=1)


def curves_at(
    fit: Fit, theta: Float[np.ndarray, " Q"], some: Int[np.ndarray, " K"] | slice = slice(None)
) -> tuple[Float[np.ndarray, "Q K"], Float[np.ndarray, "Q K"]]:
    """P of right answers, and P (1 - P) with the variance that comes from errors of the item's parameters.

    In x = a (θ - b) errors have the variance (θ - b)² se_a² + a² se_b²: near its difficulty, where an item is
    informative, the two are nearly uncorrelated. The variance of P is at most P (1 - P).
    """
    of_items = curve(fit.parameters.take(some), theta[:, None])
    p, q, by_logit = (np.asarray(x) for x in (of_items.right(), of_items.wrong(), of_items.by_logit()))
    a, columns = np.asarray(fit.parameters.slope)[some, 0], fit.item_columns
    b, of_b = columns["difficulty"][some], columns["difficulty_se"][some]
    of_a = columns.get("discrimination_se", np.zeros(fit.responses.num_items))[some]
    with np.errstate(invalid="ignore", over="ignore"):
        logit_variance = np.nan_to_num((theta[:, None] - b) ** 2 * of_a**2 + (a * of_b) ** 2)
        of_errors = np.minimum(by_logit**2 * logit_variance, p * q)
    return p, p * q + of_errors


def _normal(population: tuple) -> tuple[np.ndarray, np.ndarray]:
    mean, sd = (np.atleast_1d(np.asarray(x, float)) for x in population)
    return mean, sd
