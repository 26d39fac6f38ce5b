"""Regressions of ordered responses, one of each item: P(y >= k) = σ(x'β - t_k) (McCullagh 1980).

Newton's method climbs all items of one number of categories at once. What a step needs are sums over the responses in
each category of an item, which lie side by side: each response is read once, and items at rest no more.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from irtjax.responses.compressed_rows import rows_of
from irtjax.types import Float, Int

ITERATIONS = 100
SHORTER = 0.5  # of a step that leads down
SETTLED = 1e-14  # gain of a step, per response, that is none
LEAST_GAP = 1e-12  # between two thresholds on their way past each other
RIDGE = 1e-9  # per response, on what no response tells: a group that is always right has no finite coefficient


class Ordered(NamedTuple):
    """Responses to I items of K + 1 categories, all of which are there, sorted by item and category.

    Attributes:
        starts: (I (K + 1) + 1,) where those of each category of each item begin.
        x: (W, N) predictors.
        top: K.
    """

    starts: Int[np.ndarray, " ends"]
    x: Float[np.ndarray, "W N"]
    top: int

    @property
    def number(self) -> Int[np.ndarray, " I"]:
        """Responses to each item."""
        return np.diff(self.starts[:: self.top + 1])

    def take(self, items: Int[np.ndarray, " n"]) -> "Ordered":
        """Those to some items."""
        cells = (items[:, None] * (self.top + 1) + np.arange(self.top + 1)).ravel()
        starts, at = rows_of(self.starts, cells)
        return self._replace(starts=starts, x=self.x[:, at])


class _Terms(NamedTuple):
    """Of each item: log-likelihood less the ridge, its gradient, and minus its second derivatives."""

    height: Float[np.ndarray, " I"]
    gradient: Float[np.ndarray, "I P"]
    information: Float[np.ndarray, "I P P"]


def fit_ordered(
    data: Ordered, begin: Float[np.ndarray, "I B"] | None = None
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I P"]]:
    """Log-likelihoods, and t_1 … t_K with the W coefficients β.

    Args:
        data: the responses.
        begin: thresholds, and coefficients of the first predictors, to begin with; by default the thresholds of the
            frequencies. Other coefficients begin with 0.
    """
    number, top = data.number.astype(float), data.top
    if begin is None:
        above = 1 - np.cumsum(np.diff(data.starts).reshape(-1, top + 1), axis=1)[:, :-1] / number[:, None]
        begin = np.log((1 - above) / above)
    beta = np.pad(begin, ((0, 0), (0, top + len(data.x) - begin.shape[1])))
    found = _terms(data, beta)
    height, move = found.height, _newton_step(found)
    gain, share = (found.gradient * move).sum(axis=1), np.ones(len(number))
    part, of_part = data, np.arange(len(number))
    for _ in range(ITERATIONS):
        climbing = gain > SETTLED * number
        if not climbing.any():
            break
        if climbing[of_part].mean() < 0.75:  # others lie idle
            part = part.take(np.flatnonzero(climbing[of_part]))
            of_part = of_part[climbing[of_part]]
        tried = beta[of_part] + share[of_part, None] * move[of_part]
        found = _terms(part, tried)
        better = (found.height >= height[of_part]) & climbing[of_part]
        there, short = of_part[better], of_part[~better & climbing[of_part]]
        beta[there], height[there], share[there] = tried[better], found.height[better], 1.0
        share[short] *= SHORTER
        move[there] = _newton_step(_Terms(*(leaf[better] for leaf in found)))
        gain[there] = (found.gradient[better] * move[there]).sum(axis=1)
    return height + RIDGE * number * (beta**2).sum(axis=1), beta


def _newton_step(at: _Terms) -> Float[np.ndarray, "I P"]:
    return np.linalg.solve(at.information, at.gradient[:, :, None])[:, :, 0]


def _terms(data: Ordered, beta: Float[np.ndarray, "I P"]) -> _Terms:
    """At these parameters, of right/wrong items with one logarithm and one exponential of each response.

    A response in category k has P = σ(u) - σ(v), u = x'β - t_k and v = x'β - t_(k+1): no u in the lowest category, no v
    in the highest.
    """
    if data.top == 1:
        return _terms_of_two(data, beta)
    top, x, (num_items, size) = data.top, data.x, beta.shape
    in_cells, width = np.diff(data.starts), len(x)
    eta = _predicted(x, beta[:, top:], data.number)
    ends = np.full((num_items, top + 2), np.inf)  # thresholds, -∞ below the lowest category and ∞ above the highest
    ends[:, 0], ends[:, 1:-1] = -np.inf, beta[:, :top]
    u, v = (eta - np.repeat(each.ravel(), in_cells) for each in (ends[:, :-1], ends[:, 1:]))
    p, q, height = expit(-u), expit(v), log_expit(u) + log_expit(-v)
    r = np.zeros(len(eta))
    if top > 1:
        both = np.isfinite(u) & np.isfinite(v)
        gap = np.maximum(u[both] - v[both], LEAST_GAP)
        r[both] = 1 / np.expm1(gap)
        height[both] += np.log(-np.expm1(-gap))
    crossed = r * (1 + r)
    of_u, of_v = p * (1 - p), q * (1 - q)
    upper = np.triu_indices(width)
    columns = [height, p + r, q + r, of_u + crossed, of_v + crossed, crossed]
    slope = ((p - q) * x, of_u * x, of_v * x, (of_u + of_v) * (x[upper[0]] * x[upper[1]]))
    table = np.concatenate([np.stack(columns), *slope])
    sums = np.add.reduceat(table, data.starts[:-1], axis=1).reshape(len(table), num_items, top + 1)
    (height, by_u, by_v, uu, vv, uv), rest = sums[:6], sums[6:]
    by_x, ux, vx, xx = (part.transpose(1, 2, 0) for part in np.split(rest, np.cumsum([width] * 3)))
    ridge = RIDGE * data.number
    gradient = np.concatenate([by_v[:, :-1] - by_u[:, 1:], by_x.sum(axis=1)], axis=1)
    information = np.zeros((num_items, size, size))
    own, last = np.arange(top), slice(top, size)
    information[:, own, own] = uu[:, 1:] + vv[:, :-1]
    information[:, own[:-1], own[1:]] = information[:, own[1:], own[:-1]] = -uv[:, 1:-1]
    information[:, :top, last] = -(ux[:, 1:] + vx[:, :-1])
    information[:, last, :top] = information[:, :top, last].transpose(0, 2, 1)
    information[:, top + upper[0], top + upper[1]] = information[:, top + upper[1], top + upper[0]] = xx.sum(axis=1)
    information[:, range(size), range(size)] += 2 * ridge[:, None]
    return _Terms(height.sum(axis=1) - ridge * (beta**2).sum(axis=1), gradient - 2 * ridge[:, None] * beta, information)


def _terms_of_two(data: Ordered, beta: Float[np.ndarray, "I P"]) -> _Terms:
    """As `_terms`, with K = 1: P = σ(s (x'β - t)), where s is 1 of the higher category and -1 of the lower."""
    x, (num_items, size) = data.x, beta.shape
    higher = np.repeat(np.tile([-1.0, 1.0], num_items), np.diff(data.starts))
    z = higher * (_predicted(x, beta[:, 1:], data.number) - np.repeat(beta[:, 0], data.number))
    small = np.exp(-np.abs(z))
    other = np.where(z > 0, small, 1.0) / (1 + small)  # chance of the other category
    by, weight = higher * other, other * (1 - other)
    upper = np.triu_indices(size)
    table = np.empty((1 + size + len(upper[0]), len(z)))
    np.subtract(np.minimum(z, 0), np.log1p(small), out=table[0])
    table[1], table[1 + size] = -by, weight
    np.multiply(by, x, out=table[2 : 1 + size])
    weighted = weight * x
    np.negative(weighted, out=table[2 + size : 1 + 2 * size])
    for row, (one, two) in enumerate(zip(*upper, strict=True)):
        if one:
            np.multiply(weighted[one - 1], x[two - 1], out=table[1 + size + row])
    sums = np.add.reduceat(table, data.starts[:-1:2], axis=1)
    height, gradient, ridge = sums[0], sums[1 : 1 + size].T, RIDGE * data.number
    information = np.zeros((num_items, size, size))
    information[:, upper[0], upper[1]] = information[:, upper[1], upper[0]] = sums[1 + size :].T
    information[:, range(size), range(size)] += 2 * ridge[:, None]
    return _Terms(height - ridge * (beta**2).sum(axis=1), gradient - 2 * ridge[:, None] * beta, information)


def _predicted(
    x: Float[np.ndarray, "W N"], beta: Float[np.ndarray, "I W"], number: Int[np.ndarray, " I"]
) -> Float[np.ndarray, " N"]:
    """x'β of every response to each item."""
    eta = np.zeros(x.shape[1])
    for one, coefficient in zip(x, beta.T, strict=True):
        eta += one * np.repeat(coefficient, number)
    return eta
