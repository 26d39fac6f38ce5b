"""How likely is a sum of products of two items' residuals, if these are independent given the abilities?"""

import numpy as np
from scipy.stats import norm

from irtjax.types import Float, Shaped

ROUNDS = 60  # of the search for the saddlepoint
SETTLED = 1e-9  # of the standard deviation
NEAR = 1e-3  # standard deviations from the mean, where the formula divides 0 by 0


def product_p_values(
    one: Float[np.ndarray, "J N"],
    other: Float[np.ndarray, "J N"],
    seen: Shaped[np.ndarray, "J N"],
    total: Float[np.ndarray, " N"],
) -> Float[np.ndarray, " N"]:
    """Two-sided p-values of Σ_j (y_ji - p_ji)(y_jk - p_jk), of right and wrong answers, by saddlepoint approximation.

    With K the cumulant generating function of the sum and K'(t) = x the point x, w = sign(t) √(2 (t x - K(t))) and
    u = t √K''(t), P(X ≥ x) = 1 - Φ(w) + φ(w) (1/u - 1/w) (Lugannani and Rice 1980); twice the smaller tail. Where the
    answers of few subjects decide, the products are so skewed that a normal distribution is wrong in the tails by
    orders of magnitude.

    Args:
        one: probabilities of right answers to item i of each of N pairs.
        other: to item k.
        seen: 1 where there are both answers, else 0.
        total: the sums.
    """
    value = np.stack([(1 - one) * (1 - other), -(1 - one) * other, -one * (1 - other), one * other])
    weight = np.stack([one * other, one * (1 - other), (1 - one) * other, (1 - one) * (1 - other)])
    value, weight = value * seen, weight  # an answer that is missing adds 0
    spread = np.sqrt(np.maximum((weight * value**2).sum(axis=(0, 1)), 1e-300))
    x = np.clip(total, value.min(axis=0).sum(axis=0) + 1e-9 * spread, value.max(axis=0).sum(axis=0) - 1e-9 * spread)
    t = np.zeros(len(total))
    low, high = np.full(len(total), -np.inf), np.full(len(total), np.inf)
    for _ in range(ROUNDS):
        height, slope, curvature = _cumulants(value, weight, t)
        gap = x - slope
        if (np.abs(gap) < SETTLED * spread).all():
            break
        low, high = np.where(gap > 0, t, low), np.where(gap < 0, t, high)
        step = np.clip(gap / np.maximum(curvature, 1e-300), -4 / spread - np.abs(t), 4 / spread + np.abs(t))
        middle = np.where(np.isfinite(low) & np.isfinite(high), (low + high) / 2, t + step)
        t = np.where((t + step > low) & (t + step < high), t + step, middle)
    height, _, curvature = _cumulants(value, weight, t)
    w = np.sign(t) * np.sqrt(2 * np.maximum(t * x - height, 0.0))
    u = t * np.sqrt(curvature)
    near = np.abs(w) < NEAR
    safe_w, safe_u = np.where(near, 1.0, w), np.where(near, 1.0, u)
    above = np.where(near, 0.5, norm.sf(w) + norm.pdf(w) * (1 / safe_u - 1 / safe_w))
    below = np.where(near, 0.5, norm.cdf(w) - norm.pdf(w) * (1 / safe_u - 1 / safe_w))
    return np.clip(2 * np.minimum(above, below), 0.0, 1.0)


def _cumulants(
    value: Float[np.ndarray, "four J N"], weight: Float[np.ndarray, "four J N"], t: Float[np.ndarray, " N"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K, K' and K'' of the sums."""
    exponent = t * value
    most = exponent.max(axis=0)
    moved = weight * np.exp(exponent - most)
    mass = moved.sum(axis=0)
    mean = (moved * value).sum(axis=0) / mass
    square = (moved * value**2).sum(axis=0) / mass
    return (np.log(mass) + most).sum(axis=0), mean.sum(axis=0), (square - mean**2).sum(axis=0)
