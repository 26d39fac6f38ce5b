"""Items that are answered right or wrong, by curves of one to four parameters.

With x = slope·θ + intercept, c = σ(lower), d = σ(upper) and s = σ(x), P = c + (d - c) s (`kernels.models`) and

    log p(y | θ) = y η - A,     η = log P - log(1 - P),     A = -log(1 - P),     E y = P,     Var y = P (1 - P),
    ∂η = ∂P / (P (1 - P)),      ∂P/∂x = (d - c) s (1 - s),  ∂P/∂lower = c (1 - c) (1 - s),  ∂P/∂upper = d (1 - d) s.

Without asymptotes η is x. Everything is computed from logarithms of sums of what is positive: of a curve as steep as a
wall the logarithms of both answers are finite, and the ratios as well.
"""

import dataclasses

import numpy as np

from irtjax.item_models.protocol import Moments, Natural
from irtjax.kernels.models import ItemParameters, log_answers, log_sigmoids
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float, Int


@dataclasses.dataclass(frozen=True)
class Binary:
    """The 1PL to 4PL in D dimensions, as an item model."""

    name: str = "binary"

    def take(self, items: Int[np.ndarray, " I"]) -> "Binary":
        """Itself: all items are alike."""
        del items
        return self

    def statistics(self, values: Int[AnyArray, "J I"]) -> Float[AnyArray, "J I"]:
        """1 where an answer is right, else 0."""
        return (values == 1).astype(float)

    def log_base(
        self, values: Int[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """0."""
        return np.zeros(len(values))

    @in_full_precision
    def natural(self, items: ItemParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Natural:
        """The logit of P, and -log(1 - P)."""
        x = theta @ items.slope.T + items.intercept[None, :]
        if not asymptotes:
            xp = x.__array_namespace__()
            return Natural(x, xp.maximum(x, 0) + xp.log(1 + xp.exp(-xp.abs(x))))
        log_p, log_q = log_answers(items, x)
        return Natural(log_p - log_q, -log_q)

    @in_full_precision
    def moments(self, items: ItemParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Moments:
        """P, P (1 - P), and derivatives of the logit of P."""
        x = theta @ items.slope.T + items.intercept[None, :]
        xp = x.__array_namespace__()
        if not asymptotes:
            small = xp.exp(-xp.abs(x))
            large = 1 / (1 + small)
            return Moments(xp.where(x >= 0, large, small * large), small * large * large)
        (log_s, log_not_s), (log_p, log_q) = log_sigmoids(x), log_answers(items, x)
        (c, not_c), (d, not_d) = (log_sigmoids(end[None, :]) for end in (items.lower, items.upper))
        span = d + xp.log1p(-xp.exp(c - d))
        of_both = log_p + log_q
        by_x, *by_others = (
            xp.exp(part - of_both) for part in (span + log_s + log_not_s, c + not_c + log_not_s, d + not_d + log_s)
        )
        return Moments(xp.exp(log_p), xp.exp(of_both), by_x, xp.stack(by_others, axis=2))

    def curvature(
        self, items: ItemParameters, theta: Float[AnyArray, "Q D"], residual: Float[AnyArray, "Q I"]
    ) -> Float[AnyArray, "Q I 3 3"]:
        """Residuals times ∂² of the logit of P by x, lower and upper: ∂²P / (P (1 - P)) - (1 - 2 P) ∂η ∂η'.

        ∂²P/∂x² = ∂P/∂x (1 - 2 s), ∂²P/∂lower² = ∂P/∂lower (1 - 2 c), ∂²P/∂lower ∂x = -∂P/∂lower s, and ∂²P/∂upper ∂x
        = ∂P/∂upper (1 - s).
        """
        found = self.moments(items, theta, asymptotes=True)
        p, by_x, by_others = found.mean, found.by_predictor, found.by_others
        assert by_x is not None
        assert by_others is not None
        xp = p.__array_namespace__()
        s, not_s = (xp.exp(leaf) for leaf in log_sigmoids(theta @ items.slope.T + items.intercept[None, :]))
        c, d = (xp.tanh(-0.5 * end)[None, :] for end in (items.lower, items.upper))  # 1 - 2 σ
        x, (lower, upper) = by_x, (by_others[:, :, k] for k in range(2))
        by = xp.stack([x, lower, upper], axis=2)
        none = xp.zeros_like(x)
        rows = (
            (x * (not_s - s), -lower * s, upper * not_s),
            (-lower * s, lower * c, none),
            (upper * not_s, none, upper * d),
        )
        own = xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)
        second = own - (1 - 2 * p)[:, :, None, None] * by[:, :, :, None] * by[:, :, None, :]
        return residual[:, :, None, None] * second


BINARY = Binary()
