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

from irtjax.groups.matching import Graded, scores
from irtjax.types import AnyArray, Bool, Float, Int

ITERATIONS = 100  # of Newton's method
SHORTER = 0.5  # of a step that leads down
SETTLED = 1e-14  # gain of a step, per response, that is none
LEAST_GAP = 1e-12  # between two thresholds on their way past each other
RIDGE = 1e-9  # per response, on what no response tells: a group that is always right has no finite γ
ENTRIES = 2**22  # responses times predictors of a block of items
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
        data: responses, whose grades count by their order alone, and groups.
        anchors: (I,) whose responses make the score.
    """
    base = scores(data.y, anchors)
    codes = np.stack([_codes(column) for column in data.y.T], axis=1)
    score = np.where(anchors, base[:, None], base[:, None] + np.nan_to_num(data.y))
    groups = (data.member[:, None] == np.arange(1, data.num_groups)).astype(float)
    fits = _fits(codes, score, groups)
    null = _null_log_likelihoods(codes)
    heights = fits[0]
    number = (codes >= 0).sum(axis=0)[:, None]
    with np.errstate(all="ignore"):
        cox_snell = -np.expm1(-2 * (heights - null[:, None]) / number)
        nagelkerke = cox_snell / -np.expm1(2 * null[:, None] / number)
    ratios = np.maximum(2 * np.diff(heights, axis=1), 0.0)
    log_odds = fits[1][:, UNIFORM, 1 : 1 + groups.shape[1]]
    return ScoreRegression(ratios[:, 0], ratios[:, 1], ratios.sum(axis=1), nagelkerke, cox_snell, log_odds)


def _codes(column: Float[np.ndarray, " J"]) -> Int[np.ndarray, " J"]:
    """Numbers 0 … K of the grades that were given, -1 where missing."""
    known = ~np.isnan(column)
    found = np.full(len(column), -1)
    found[known] = np.unique(column[known], return_inverse=True)[1]
    return found


def _null_log_likelihoods(codes: Int[np.ndarray, "J I"]) -> Float[np.ndarray, " I"]:
    """Of the frequencies of the categories alone."""
    found = []
    for column in codes.T:
        n = np.bincount(column[column >= 0])
        found.append(float((n[n > 0] * np.log(n[n > 0] / n.sum())).sum()))
    return np.array(found)


def _fits(
    codes: Int[np.ndarray, "J I"], score: Float[np.ndarray, "J I"], groups: Float[np.ndarray, "J H"]
) -> tuple[Float[np.ndarray, "I 3"], Float[np.ndarray, "I 3 P"]]:
    """Log-likelihoods and coefficients of the models, items of one number of categories at a time."""
    num_subjects, num_items = codes.shape
    top = codes.max(axis=0)
    width = 1 + BOTH * groups.shape[1]
    heights, coefficients = np.zeros((num_items, BOTH + 1)), np.zeros((num_items, BOTH + 1, width))
    for highest in np.unique(top[top > 0]):
        chosen = np.flatnonzero(top == highest)
        size = min(len(chosen), max(1, ENTRIES // (num_subjects * (width + int(highest)))))
        for at in range(0, len(chosen), size):
            items = np.resize(chosen[at : at + size], size)  # the last block has items twice: one shape for all
            for model in range(BOTH + 1):
                free = np.arange(int(highest) + width) < int(highest) + 1 + model * groups.shape[1]
                with jax.enable_x64(True):
                    height, beta = _newton(int(highest), free, codes[:, items], score[:, items], groups)
                heights[items, model], coefficients[items, model] = height, np.asarray(beta)[:, int(highest) :]
    return heights, coefficients


@functools.partial(jax.jit, static_argnums=0)
def _newton(
    top: int,
    free: Bool[AnyArray, " P"],
    codes: Int[AnyArray, "J I"],
    score: Float[AnyArray, "J I"],
    groups: Float[AnyArray, "J H"],
) -> tuple[Float[AnyArray, " I"], Float[AnyArray, "I P"]]:
    """Newton's method for each item: thresholds and then β, γ, δ, in units of standardised scores; 0 if not free."""

    def of_item(codes: AnyArray, score: AnyArray) -> tuple[AnyArray, AnyArray]:
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

    return jax.vmap(of_item, in_axes=1)(codes, score)
