"""DIF by regression of each item on score and group (Swaminathan and Rogers 1990; Zumbo 1999 for grades).

Of an item with categories 0 … K, P(y >= k) = σ(x - t_k), of which right/wrong is the case K = 1, and for a subject of
score s in group g

    x = β s        x = β s + γ_g        x = β s + γ_g + δ_g s,

without DIF, with DIF that is uniform over scores, and with DIF that is not.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.groups.matching import Graded, matched_on
from irtjax.responses.compressed_rows import grouped
from irtjax.types import AnyArray, Bool, Float, Int

ITERATIONS = 100  # of Newton's method
SHORTER = 0.5  # of a step that leads down
SETTLED = 1e-14  # gain of a step, per response, that is none
LEAST_GAP = 1e-12  # between two thresholds on their way past each other
RIDGE = 1e-9  # per response, on what no response tells: a group that is always right has no finite γ
ENTRIES = 2**22  # responses times predictors of a block of items
SHORTEST = 64  # responses of a column
NONE, UNIFORM, BOTH = range(3)  # models: without DIF, uniform, both


class _Climb(NamedTuple):
    """Where Newton's method is: parameters, log-likelihood, the next step, its share to try, and what it promises."""

    beta: AnyArray
    height: AnyArray
    move: AnyArray
    share: AnyArray
    gain: AnyArray
    iterations: AnyArray


class ScoreRegression(NamedTuple):
    """Of each item, (I,); chi-squares of likelihood ratios.

    Attributes:
        uniform: of γ, with G - 1 degrees of freedom.
        nonuniform: of δ beside γ, G - 1.
        both: of γ and δ, 2 (G - 1).
        nagelkerke: (I, 3) R² of the three models (Nagelkerke 1991).
        cox_snell: (I, 3) R² as 1 - exp(-2 (l - l₀) / n).
        log_odds: (I, G - 1) γ without δ, of a higher response in the group than in the first.
    """

    uniform: Float[np.ndarray, " I"]
    nonuniform: Float[np.ndarray, " I"]
    both: Float[np.ndarray, " I"]
    nagelkerke: Float[np.ndarray, "I 3"]
    cox_snell: Float[np.ndarray, "I 3"]
    log_odds: Float[np.ndarray, "I H"]


def score_regression(data: Graded, anchors: Bool[np.ndarray, " I"]) -> ScoreRegression:
    """Regressions of all items on the score on the anchors and the item itself, and the group.

    Args:
        data: responses, whose grades count by their order alone, and groups; subjects who answered no anchor are left
            out.
        anchors: (I,) whose responses make the score.
    """
    data, score = matched_on(data, anchors)
    codes, null = _codes(data)
    number = np.bincount(data.items, minlength=data.num_items)[:, None]
    heights, coefficients = _fits(data, codes, score)
    with np.errstate(all="ignore"):
        cox_snell = -np.expm1(-2 * (heights - null[:, None]) / number)
        nagelkerke = cox_snell / -np.expm1(2 * null[:, None] / number)
    ratios = np.maximum(2 * np.diff(heights, axis=1), 0.0)
    log_odds = coefficients[:, UNIFORM, 1 : data.num_groups]
    return ScoreRegression(ratios[:, 0], ratios[:, 1], ratios.sum(axis=1), nagelkerke, cox_snell, log_odds)


def _codes(data: Graded) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, " I"]]:
    """Numbers 0 … K of the grades that were given to each item, and log-likelihoods of their frequencies alone."""
    grades, rank = np.unique(data.y, return_inverse=True)
    cells = data.items.astype(np.int64) * len(grades) + rank
    used, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    items = used // len(grades)
    number = np.bincount(data.items, minlength=data.num_items)
    null = np.bincount(items, counts * np.log(counts / number[items]), data.num_items)
    return place - np.searchsorted(items, np.arange(data.num_items))[data.items], null


def _fits(
    data: Graded, codes: Int[np.ndarray, " N"], score: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "I 3"], Float[np.ndarray, "I 3 P"]]:
    """Log-likelihoods and coefficients of the models, items of one number of categories at a time.

    Responses to an item are a column; items with about as many are taken together.
    """
    starts, order = grouped(data.items, data.num_items)
    begin, number, top = starts[:-1], np.diff(starts), np.zeros(data.num_items, int)
    np.maximum.at(top, data.items, codes)
    lengths = np.full(data.num_items, len(data.member))
    if lengths.sum() > 4 * ENTRIES:
        lengths = np.minimum(2 ** np.ceil(np.log2(np.maximum(number, SHORTEST))).astype(int), lengths)
    others = data.num_groups - 1
    width = 1 + BOTH * others
    heights, coefficients = np.zeros((data.num_items, BOTH + 1)), np.zeros((data.num_items, BOTH + 1, width))
    for highest, length in np.unique(np.stack([top, lengths], axis=1)[top > 0], axis=0).tolist():
        chosen = np.flatnonzero((top == highest) & (lengths == length))
        size = min(len(chosen), max(1, ENTRIES // (length * (width + highest))))
        for at in range(0, len(chosen), size):
            items = np.resize(chosen[at : at + size], size)  # the last block has items twice: one shape for all
            nth = np.arange(length)[:, None]
            there = nth < number[items]
            rows = order[np.where(there, begin[items] + nth, 0)]
            groups = data.member[data.subjects[rows]][..., None] == np.arange(1, data.num_groups)
            columns = np.where(there, codes[rows], -1), score[rows], groups.astype(float)
            for model in range(BOTH + 1):
                free = np.arange(highest + width) < highest + 1 + model * others
                with jax.enable_x64(True):
                    height, beta = _newton(highest, free, *columns)
                heights[items, model], coefficients[items, model] = height, np.asarray(beta)[:, highest:]
    return heights, coefficients


@functools.partial(jax.jit, static_argnums=0)
def _newton(
    top: int,
    free: Bool[AnyArray, " P"],
    codes: Int[AnyArray, "L I"],
    score: Float[AnyArray, "L I"],
    groups: Float[AnyArray, "L I H"],
) -> tuple[Float[AnyArray, " I"], Float[AnyArray, "I P"]]:
    """Newton's method for each item: thresholds and then β, γ, δ, in units of standardised scores; 0 if not free."""

    def of_item(codes: AnyArray, score: AnyArray, groups: AnyArray) -> tuple[AnyArray, AnyArray]:
        seen = codes >= 0
        number = seen.sum()
        mean = jnp.where(seen, score, 0.0).sum() / number
        spread = jnp.sqrt(jnp.where(seen, (score - mean) ** 2, 0.0).sum() / number)
        z = (score - mean) / jnp.where(spread > 0, spread, 1.0)
        x = jnp.concatenate([z[:, None], groups, groups * z[:, None]], axis=1)
        thresholds = jnp.arange(top)[None, :]
        # P(y) = σ(u) - σ(v), where u and v are linear in all parameters; no u below the lowest category, no v above
        by_u, by_v = (
            jnp.concatenate([-(codes[:, None] - below == thresholds).astype(x.dtype), x], axis=1) for below in (1, 0)
        )
        has_u, has_v = seen & (codes > 0), seen & (codes < top)

        def terms(beta: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
            u, v = by_u @ beta, by_v @ beta
            both = has_u & has_v
            gap = jnp.where(both, jnp.maximum(u - v, LEAST_GAP), 1.0)
            r = jnp.where(both, 1 / jnp.expm1(gap), 0.0)
            p, q = jnp.where(has_u, jax.nn.sigmoid(-u), 0.0), jnp.where(has_v, jax.nn.sigmoid(v), 0.0)
            height = jnp.where(has_u, jax.nn.log_sigmoid(u), 0.0) + jnp.where(has_v, jax.nn.log_sigmoid(-v), 0.0)
            height = (height + jnp.where(both, jnp.log(-jnp.expm1(-gap)), 0.0)).sum()
            curved, crossed = r * (1 + r), (by_u * (r * (1 + r))[:, None]).T @ by_v
            gradient = (p + r) @ by_u - (q + r) @ by_v
            hessian = (by_u * (p * (1 - p) + curved)[:, None]).T @ by_u - crossed - crossed.T
            hessian += (by_v * (q * (1 - q) + curved)[:, None]).T @ by_v
            ridge = RIDGE * number
            identity = jnp.eye(len(beta))
            return (
                height - ridge * (beta**2).sum(),
                jnp.where(free, gradient - 2 * ridge * beta, 0.0),
                jnp.where(free[:, None] & free[None, :], hessian + 2 * ridge * identity, identity),
            )

        above = jnp.stack([jnp.where(seen, codes > k, False).sum() / number for k in range(top)])
        start = jnp.concatenate([jnp.log((1 - above) / above), jnp.zeros(x.shape[1])])
        height, gradient, information = terms(start)
        move = jnp.linalg.solve(information, gradient)

        def climbing(carry: _Climb) -> AnyArray:
            return (carry.gain > SETTLED * number) & (carry.iterations < ITERATIONS)

        def climb(carry: _Climb) -> _Climb:
            tried = carry.beta + carry.share * carry.move
            height, gradient, information = terms(tried)
            move = jnp.linalg.solve(information, gradient)
            better = height >= carry.height
            there = _Climb(tried, height, move, jnp.ones(()), gradient @ move, carry.iterations + 1)
            shorter = carry._replace(share=carry.share * SHORTER, iterations=carry.iterations + 1)
            return jax.tree.map(lambda new, old: jnp.where(better, new, old), there, shorter)

        begin = _Climb(start, height, move, jnp.ones(()), gradient @ move, jnp.zeros((), int))
        found = jax.lax.while_loop(climbing, climb, begin)
        return found.height + RIDGE * number * (found.beta**2).sum(), found.beta

    return jax.vmap(of_item, in_axes=1)(codes, score, groups)
