"""Item response functions: the probability of a right answer, its derivatives and its information.

Notation: ability θ (theta), difficulty b, all in logits; `p` is the probability of a right answer.
"""

from typing import NamedTuple

import jax
import numpy as np

from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float


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

    slope: AnyArray
    intercept: AnyArray
    lower: AnyArray
    upper: AnyArray

    def take(self, items: AnyArray | slice) -> "ItemParameters":
        """Those of some of the items, by their positions, a mask or a slice."""
        return ItemParameters(*(leaf[items] for leaf in self))

    def has_others(self) -> bool:
        """Whether any item has an asymptote, and so more than slopes and an intercept."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())


class Curve(NamedTuple):
    """Item response functions P = c + (d - c) s at logits x, s = σ(x), as the parts that derivatives are made of.

    In the logit, ∂P = (d - c) s (1 - s) and ∂²P = ∂P (1 - 2 s); in the asymptotes, which are logits too, c' = c (1 - c)
    and c'' = c' (1 - 2 c), and d alike. Every 1 - x is computed without cancellation.

    Attributes:
        s: (Q, I) σ(x).
        not_s: (Q, I) 1 - s.
        c: (1, I) lower asymptotes.
        not_c: (1, I) 1 - c.
        d: (1, I) upper asymptotes.
        not_d: (1, I) 1 - d.
    """

    s: AnyArray
    not_s: AnyArray
    c: AnyArray
    not_c: AnyArray
    d: AnyArray
    not_d: AnyArray

    def right(self) -> AnyArray:
        """P."""
        return self.c + (self.d - self.c) * self.s

    def wrong(self) -> AnyArray:
        """1 - P."""
        return self.not_d + (self.d - self.c) * self.not_s

    def by_logit(self) -> AnyArray:
        """∂P/∂x."""
        return (self.d - self.c) * self.s * self.not_s

    def by_lower(self) -> AnyArray:
        """∂P/∂lower."""
        return self.c * self.not_c * self.not_s

    def by_upper(self) -> AnyArray:
        """∂P/∂upper."""
        return self.d * self.not_d * self.s


@in_full_precision
def curve(items: ItemParameters, theta: Float[AnyArray, "Q D"]) -> Curve:
    """The response functions of I items at Q abilities; NumPy arrays where the arguments are."""
    logit = theta @ items.slope.T + items.intercept[None, :]
    return Curve(*sigmoids(logit), *sigmoids(items.lower[None, :]), *sigmoids(items.upper[None, :]))


def probabilities(
    items: ItemParameters, theta: Float[AnyArray, "Q D"]
) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Probabilities of a right and of a wrong answer, each computed without cancellation.

    Args:
        items: of I items.
        theta: (Q, D) abilities.

    Returns:
        P and 1 - P, each (Q, I); NumPy arrays where the arguments are.
    """
    of_items = curve(items, theta)
    return of_items.right(), of_items.wrong()


@in_full_precision
def log_probabilities(
    items: ItemParameters, theta: Float[AnyArray, "Q D"]
) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Logarithms of P, of 1 - P and of ∂P by the logit, finite wherever the parameters of curves are.

    Twice the work of `probabilities`, which are 0 or 1 from some hundreds of logits on. NumPy arrays where the
    arguments are.
    """
    x = theta @ items.slope.T + items.intercept[None, :]
    xp = x.__array_namespace__()
    (c, _), (d, _) = (log_sigmoids(end[None, :]) for end in (items.lower, items.upper))
    return *log_answers(items, x), sum(log_sigmoids(x)) + d + xp.log1p(-xp.exp(c - d))


def log_answers(
    items: ItemParameters, x: Float[AnyArray, "Q I"]
) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Log P and log(1 - P) at logits x, by one exponential and three logarithms.

    With r = exp(-|x|), P = (c + d r) / (1 + r) where x < 0, and (d + c r) / (1 + r) elsewhere. Without c the first is
    d r, whose logarithm is known however small it is; so is 1 - P without 1 - d.
    """
    xp = x.__array_namespace__()
    r, (c, not_c), (d, not_d) = xp.exp(-xp.abs(x)), *(sigmoids(end[None, :]) for end in (items.lower, items.upper))

    def log_sum(large: AnyArray, small: AnyArray, in_tail: AnyArray, logit: AnyArray) -> AnyArray:
        """Of large + small r, and in the tail small + large r."""
        if isinstance(small, np.ndarray) and not small.any():  # no asymptotes at this end: nothing to add up
            return xp.where(in_tail, logit, 0.0) + xp.log(large)
        alone = in_tail & (small == 0)
        total = xp.where(in_tail, small + large * r, large + small * r)
        return xp.where(alone, logit, 0.0) + xp.log(xp.where(alone, large, total))

    bend = xp.log(1 + r)
    return log_sum(d, c, x < 0, x) - bend, log_sum(not_c, not_d, x >= 0, -x) - bend


def log_sigmoids(x: Float[AnyArray, "..."]) -> tuple[Float[AnyArray, "..."], Float[AnyArray, "..."]]:
    """Log σ(x) and log σ(-x)."""
    xp = x.__array_namespace__()
    bend = xp.log(1 + xp.exp(-xp.abs(x)))
    return xp.minimum(x, 0) - bend, xp.minimum(-x, 0) - bend


def derivatives(items: ItemParameters, theta: Float[AnyArray, "Q D"]) -> Float[AnyArray, "Q I K"]:
    """Derivatives of P with respect to slope_1 … slope_D, intercept, lower and upper: (Q, I, D + 3).

    A NumPy array where the arguments are.
    """
    of_items = curve(items, theta)
    by_intercept = of_items.by_logit()
    xp = by_intercept.__array_namespace__()
    by_slope = by_intercept[:, :, None] * theta[:, None, :]
    ends = xp.stack([by_intercept, of_items.by_lower(), of_items.by_upper()], axis=-1)
    return xp.concatenate([by_slope, ends], axis=-1)


def sigmoids(x: Float[AnyArray, "..."]) -> tuple[Float[AnyArray, "..."], Float[AnyArray, "..."]]:
    """σ(x) and σ(-x), NumPy arrays where x is one."""
    if not isinstance(x, np.ndarray):
        return jax.nn.sigmoid(x), jax.nn.sigmoid(-x)
    small = np.exp(-np.abs(x))  # one exponential for both, and none that overflows
    large = 1 / (1 + small)
    small *= large
    positive = x >= 0
    return np.where(positive, large, small), np.where(positive, small, large)


def information(items: ItemParameters, theta: Float[AnyArray, "Q 1"]) -> Float[AnyArray, "Q I"]:
    """Fisher information of one response to each item about θ, D = 1: (∂P/∂θ)² / (P (1 - P)), (Q, I).

    For the 2PL this is a² P (1 - P) (Birnbaum 1968).

    Args:
        items: of I items with one slope each.
        theta: (Q, 1) abilities.
    """
    p, q = probabilities(items, theta)
    by_theta = derivatives(items, theta)[:, :, 1] * items.slope[None, :, 0]
    return by_theta**2 / (p * q)


def probability_1pl(theta: Float[AnyArray, "..."], difficulty: Float[AnyArray, "..."]) -> Float[jax.Array, "..."]:
    """Probability of a right answer in the one-parameter logistic model (Rasch 1960).

        p = σ(θ - b)

    Args:
        theta: abilities in logits, any shape that broadcasts against `difficulty`.
        difficulty: difficulties in logits.

    Returns:
        Probabilities, of the broadcast shape.
    """
    return jax.nn.sigmoid(theta - difficulty)


def information_1pl(theta: Float[AnyArray, "..."], difficulty: Float[AnyArray, "..."]) -> Float[jax.Array, "..."]:
    """Fisher information of one response about θ in the 1PL: p (1 - p); shapes as in `probability_1pl`."""
    p = probability_1pl(theta, difficulty)
    return p * (1 - p)
