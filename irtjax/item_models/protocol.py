"""What an engine asks of a model of items.

Every model is an exponential family in its response, given the ability θ and the parameters φ of the item,

    log p(y | θ, φ) = Σ_s T_s(y) η_s(θ, φ) - n A(θ, φ) + log h(y),

where n is 1, or the number of trials of the cell. So the E-step asks two linear maps of the responses and nothing else:
at Q nodes Σ T_s η_s - n A, the log-likelihood of a subject, and Σ w T_s and Σ w n, what the posteriors w expect at each
node. The score of any parameter is Σ (T_s - n E T_s) ∂η_s. An engine sees the statistics of all items side by side, M
columns, each of one item.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray, Float, Int


class Natural(NamedTuple):
    """The family at Q nodes.

    Attributes:
        eta: (Q, M) natural parameters η.
        log_normalizer: (Q, I) A, in nats.
    """

    eta: Float[AnyArray, "Q M"]
    log_normalizer: Float[AnyArray, "Q I"]


class Moments(NamedTuple):
    """The statistics of one trial at Q nodes, of models with one statistic per item (M = I).

    The score of a parameter is (T - n `mean`) times the derivative of η by it, and its expected information is
    n `variance` times that squared. Slopes and intercept enter η by their predictor, slope·θ + intercept.

    Attributes:
        mean: (Q, I) E T.
        variance: (Q, I) Var T.
        by_predictor: (Q, I) ∂η by the predictor; None where it is η.
        by_others: (Q, I, K - D - 1) ∂η by the parameters after the intercept; None where there are none.
    """

    mean: Float[AnyArray, "Q I"]
    variance: Float[AnyArray, "Q I"]
    by_predictor: Float[AnyArray, "Q I"] | None = None
    by_others: Float[AnyArray, "Q I others"] | None = None


@runtime_checkable
class ItemModel(Protocol):
    """A model of items, without state: two of one name are the same. Methods take NumPy arrays or JAX's alike."""

    @property
    def name(self) -> str:
        """As users write it."""

    def statistics(self, values: Int[AnyArray, "J I"]) -> Float[AnyArray, "J M"]:
        """T of responses, 0 where they are missing (negative)."""

    def log_base(
        self, values: Int[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """Σ log h over the responses of each subject, in nats."""

    def natural(self, items: ItemParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Natural:
        """η and A at abilities, finite wherever the parameters are; `asymptotes`: whether any item has one."""

    def moments(self, items: ItemParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Moments:
        """Means, variances and derivatives; without `asymptotes` those by lower and upper are left out."""

    def second_derivatives(self, items: ItemParameters, theta: Float[AnyArray, "Q D"]) -> Float[AnyArray, "Q I L L"]:
        """∂²η by L coordinates: the predictor, and the item's parameters after the intercept; where η is another."""
