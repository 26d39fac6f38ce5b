"""What an engine asks of a model of items.

Every model is an exponential family in its response, given the ability θ and the parameters φ of the item,

    log p(y | θ, φ) = Σ_s T_s(y) η_s(θ, φ) - n A(θ, φ) + log h(y),

where n is 1, or the number of trials of the cell. So the E-step asks two linear maps of the responses and nothing else:
at Q nodes Σ T_s η_s - n A, the log-likelihood of a subject, and Σ w T_s and Σ w n, what the posteriors w expect at each
node. The score of any parameter is Σ (T_s - n E T_s) ∂η_s. An engine sees the statistics of all items side by side, M
columns, each of one item.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from irtjax.types import AnyArray, Float, Int, Shaped


class PredictorParameters(NamedTuple):
    """Parameters of I items in D dimensions whose responses depend on ability by a predictor, slope·θ + intercept.

    Attributes:
        slope: (I, D).
        intercept: (I,).
        others: (I, L) what else their models have; 0 where an item has fewer.
        top: (I,) the highest category of an item, 0 being the lowest; 1 where there are none.
    """

    slope: AnyArray
    intercept: AnyArray
    others: AnyArray
    top: AnyArray

    def take(self, items: AnyArray | slice) -> "PredictorParameters":
        """Those of some of the items, by their positions, a mask or a slice."""
        return PredictorParameters(*(leaf[items] for leaf in self))

    def has_others(self) -> bool:
        """Whether any item may have more than slopes and an intercept."""
        return True


Items: TypeAlias = Any  # `ItemParameters` of right/wrong items, `PredictorParameters` of others


class Natural(NamedTuple):
    """The family at Q nodes.

    Attributes:
        eta: (Q, M) natural parameters η.
        log_normalizer: (Q, I) A, in nats.
    """

    eta: Float[AnyArray, "Q M"]
    log_normalizer: Float[AnyArray, "Q I"]


class Moments(NamedTuple):
    """The statistics of one trial at Q nodes, S of each of I items: M = I S columns, those of an item side by side.

    Slopes and intercept of an item enter its η by the predictor, slope·θ + intercept; the L parameters after them, such
    as asymptotes or thresholds, on their own.

    Attributes:
        mean: (Q, M) E T.
        covariance: (Q, I, S, S) Cov T; (Q, I) Var T where items have one statistic; (Q, I, S) E T of indicators, whose
            Cov T is diag(E T) - E T E T'.
        by_predictor: (Q, M) ∂η by the predictor; None where it is η.
        by_others: (Q, M, L) ∂η by the other parameters; None where there are none.
    """

    mean: Float[AnyArray, "Q M"]
    covariance: Float[AnyArray, "Q I ..."]
    by_predictor: Float[AnyArray, "Q M"] | None = None
    by_others: Float[AnyArray, "Q M L"] | None = None

    @property
    def per_item(self) -> int:
        """S."""
        return self.mean.shape[1] // self.covariance.shape[1]

    def residual(self, statistics: Float[AnyArray, "Q M"], observed: Float[AnyArray, "Q I"]) -> Float[AnyArray, "Q M"]:
        """T - n E T of statistics that sum over trials, `observed` of each item."""
        return statistics - per_statistic(observed, self.per_item) * self.mean

    def derivatives(self) -> list[AnyArray | None]:
        """∂η by the predictor and by each of the others, (Q, M); None where it is 1."""
        others = [] if self.by_others is None else [self.by_others[:, :, k] for k in range(self.by_others.shape[2])]
        return [self.by_predictor, *others]

    def scores(self, residual: Float[AnyArray, "Q M"]) -> list[Float[AnyArray, "Q I"]]:
        """Σ_s (T_s - n E T_s) ∂η_s, by the predictor and by each of the others."""
        found = [residual if by is None else residual * by for by in self.derivatives()]
        return found if self.per_item == 1 else [one.reshape(len(one), -1, self.per_item).sum(axis=2) for one in found]

    def weights(self, observed: Float[AnyArray, "Q I"]) -> list[list[Float[AnyArray, "Q I"]]]:
        """Expected information n ∂η' Cov T ∂η of predictor and others; rows up to the diagonal."""
        derivatives = self.derivatives()
        if self.per_item == 1:
            weight = observed * self.covariance
            first = weight if derivatives[0] is None else weight * derivatives[0]
            of_rows = [first, *(weight * by for by in derivatives[1:] if by is not None)]
        else:
            xp, shape = self.mean.__array_namespace__(), (*self.covariance.shape[:3], 1)
            of_rows = [observed[:, :, None] * self.spread(xp.reshape(by, shape))[..., 0] for by in derivatives]
        return [
            [self._times(of_rows[0], derivatives[k]), *(self._times(of_rows[k], by) for by in derivatives[1 : k + 1])]
            for k in range(len(derivatives))
        ]

    def spread(self, by: Float[AnyArray, "Q I S K"]) -> Float[AnyArray, "Q I S K"]:
        """Cov T times ∂η."""
        if self.covariance.ndim == 2:
            return self.covariance[:, :, None, None] * by
        if self.covariance.ndim == 4:
            return self.covariance @ by
        p = self.covariance[..., None]
        return p * (by - p.swapaxes(2, 3) @ by)

    def _times(self, row: AnyArray, by: AnyArray | None) -> Float[AnyArray, "Q I"]:
        """Σ_s row_s ∂η_s."""
        if by is None:
            return row
        return row * by if self.per_item == 1 else (row * by.reshape(row.shape)).sum(axis=2)


def per_statistic(of_items: Float[AnyArray, "Q I"], per_item: int) -> Float[AnyArray, "Q M"]:
    """What there is of each item, for each of its S statistics."""
    return of_items if per_item == 1 else of_items.__array_namespace__().repeat(of_items, per_item, axis=1)


@runtime_checkable
class ItemModel(Protocol):
    """A model of items, without state: two of one name are the same. Methods take NumPy arrays or JAX's alike."""

    @property
    def name(self) -> str:
        """As users write it."""

    def take(self, items: Int[np.ndarray, " I"]) -> "ItemModel":
        """The model of some of the items."""

    def statistics(self, values: Shaped[AnyArray, "J I"]) -> Float[AnyArray, "J M"]:
        """T of responses, 0 where they are missing (negative)."""

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """Σ log h over the responses of each subject, in nats."""

    def natural(self, items: Items, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Natural:
        """η and A at abilities, finite wherever the parameters are; `asymptotes`: whether any item has one."""

    def moments(self, items: Items, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Moments:
        """Means, variances and derivatives; without `asymptotes` those by lower and upper are left out."""

    def curvature(
        self, items: Items, theta: Float[AnyArray, "Q D"], residual: Float[AnyArray, "Q M"]
    ) -> Float[AnyArray, "Q I L+1 L+1"]:
        """Σ_s residual_s ∂²η_s by the predictor and the others; asked for where η is not the predictor alone."""
