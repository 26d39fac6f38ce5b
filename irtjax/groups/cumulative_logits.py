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
        x: (N, W) predictors.
        top: K.
    """

    starts: Int[np.ndarray, " ends"]
    x: Float[np.ndarray, "N W"]
    top: int

    @property
    def number(self) -> Int[np.ndarray, " I"]:
        """Responses to each item."""
        return np.diff(self.starts[:: self.top + 1])

    def take(self, items: Int[np.ndarray, " n"]) -> "Ordered":
        """Those to some items."""
        cells = (items[:, None] * (self.top + 1) + np.arange(self.top + 1)).ravel()
        starts, at = rows_of(self.starts, cells)
        return self._replace(starts=starts, x=self.x[at])


class _Terms(NamedTuple):
    """Of each item: log-likelihood less the ridge, its gradient, and minus its second derivatives."""

    height: Float[np.ndarray, " I"]
    gradient: Float[np.ndarray, "I P"]
    information: Float[np.ndarray, "I P P"]


def fit_ordered(data: Ordered) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I P"]]:
    """Log-likelihoods, and t_1 … t_K with the W coefficients β.

    Begins with the thresholds of the frequencies, and β = 0.
    """
    number, top = data.number.astype(float), data.top
    above = 1 - np.cumsum(np.diff(data.starts).reshape(-1, top + 1), axis=1)[:, :-1] / number[:, None]
    beta = np.concatenate([np.log((1 - above) / above), np.zeros((len(number), data.x.shape[1]))], axis=1)
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
    """At these parameters.

    A response in category k has P = σ(u) - σ(v), u = x'β - t_k and v = x'β - t_(k+1): no u in the lowest category, no v
    in the highest.
    """
    top, x, (num_items, size) = data.top, data.x, beta.shape
    in_cells, width = np.diff(data.starts), x.shape[1]
    eta = np.einsum("nw,nw->n", x, np.repeat(beta[:, top:], data.number, axis=0))
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
    slope = ((p - q) * x.T, of_u * x.T, of_v * x.T, (of_u + of_v) * (x[:, upper[0]] * x[:, upper[1]]).T)
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
