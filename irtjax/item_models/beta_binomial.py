"""Items that are tried several times, where trials of a response agree more than chance.

    P(k | θ) = C(n, k) B(k + α, n - k + β) / B(α, β),     α = P φ,  β = (1 - P) φ,  P = σ(a θ + intercept)

The share of successes of a response is itself drawn, from a Beta distribution with mean P and precision φ (Skellam
1948). Two trials of a response correlate by 1 / (1 + φ); as φ grows it is the binomial. The one other is log φ.

The model is no exponential family in k with few statistics, but one in the indicators of the categories (n, k). Those
of one item are numbered from n to n. Which n occur is known beforehand (`coded_counts`), and not what is modelled:
with η = log P(k | n) the score of a response is its ∂η, whatever the shares of the n are. They weigh the expected
information.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.binomial import BINOMIAL
from irtjax.item_models.categories import Coordinates, Indicators, one_place, restored_place
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import log_sigmoids
from irtjax.types import AnyArray, Float, Int, Shaped

START = 2.0  # log φ
LARGEST = 600.0  # log φ


@dataclasses.dataclass(frozen=True)
class BetaBinomial(Indicators):
    """The family.

    Attributes:
        trials: numbers n of trials that responses of the test have, ascending.
        designs: shares of these n, of items that have the same; `top` of an item says which row.
    """

    trials: tuple[int, ...] = ()
    designs: tuple[tuple[float, ...], ...] = ()
    name: str = "beta_binomial"

    def num_statistics(self, top: int) -> int:
        """One for each pair of n and k but the first."""
        return max(sum(n + 1 for n in self.trials) - 1, 1)

    def num_others(self, top: int) -> int:
        """The logarithm of φ."""
        return 1

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, "J I"]:
        """Log C(n, k) of counts; 0 of categories (n, k), whose η have it."""
        return np.zeros(values.shape) if self.trials else BINOMIAL.log_base(values, trials)

    def present(self, top: AnyArray, num_statistics: int) -> Float[AnyArray, "I S"]:
        """Shares of the n of each category."""
        own = np.array(self.designs)[:, self.pairs()[2]]
        wide = np.pad(own[:, 1:], ((0, 0), (0, num_statistics + 1 - own.shape[1])))
        return top.__array_namespace__().asarray(wide)[top]

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η less that of the first category, and minus this."""
        xp, (k, n, _) = at.x.__array_namespace__(), self.pairs()
        right, wrong, all_trials = self._parts(at, _logarithms)
        choose = xp.asarray(BINOMIAL.log_base(k[None], n[None])[0])
        eta = right + wrong - all_trials + choose[None, None]
        return self._wide(eta[:, :, 1:] - eta[:, :, :1], num_statistics), -eta[:, :, 0]

    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """By x and log φ, through log α and log β."""
        xp, (p, q) = at.x.__array_namespace__(), _chances(at)
        right, wrong, all_trials = self._parts(at, _shares)
        found = [
            self._wide(by[:, :, 1:] - by[:, :, :1], num_statistics)
            for by in (right * q - wrong * p, right + wrong - all_trials)
        ]
        return found[0], xp.pad(found[1][..., None], ((0, 0),) * 3 + ((0, at.others.shape[1] - 1),))

    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """Of the first category it is minus the sum of those of the others."""
        xp, (p, q) = at.x.__array_namespace__(), _chances(at)
        once, twice = self._parts(at, _shares), self._parts(at, _spreads)
        own = residual[:, :, : self.num_statistics(0)]
        weight = xp.concatenate([-own.sum(axis=2)[:, :, None], own], axis=2)

        def total(terms: AnyArray) -> AnyArray:
            return (weight * terms).sum(axis=2)

        by_both = total(twice[0] * q - twice[1] * p)
        by_x = total(twice[0] * q**2 + twice[1] * p**2 - (once[0] + once[1]) * p * q)
        by_phi = total(twice[0] + twice[1] - twice[2])
        square = xp.stack([xp.stack([by_x, by_both], axis=2), xp.stack([by_both, by_phi], axis=2)], axis=3)
        more = at.others.shape[1] - 1
        return xp.pad(square, ((0, 0), (0, 0), (0, more), (0, more)))

    def correlation(self, others: Float[AnyArray, "I L"]) -> Float[AnyArray, " I"]:
        """ρ = 1 / (1 + φ), of two trials of a response."""
        return 1 / (1 + others.__array_namespace__().exp(others[:, 0]))

    def of_trials(self, number: int) -> "BetaBinomial":
        """The family where every response has so many trials: its categories are the numbers of successes."""
        return dataclasses.replace(self, trials=(number,), designs=((1.0,),))

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """P and P (1 - P) of a single trial, whatever the precision is."""
        return BINOMIAL.worth(at, of_categories)

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """As of the binomial, and a usual precision."""
        intercept, others = BINOMIAL.start(values, trials, top, num_others)
        others[:, 0] = START
        return intercept, others

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, discrimination and precision φ."""
        return one_place(slope, intercept) | {"precision": others.__array_namespace__().exp(others[0])}

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these."""
        return restored_place(columns, np.log(columns["precision"])[:, None], top)

    def pairs(self) -> tuple[Int[np.ndarray, " C"], Int[np.ndarray, " C"], Int[np.ndarray, " C"]]:
        """K, n, and the place of n, of each category.

        Raises:
            InputError: what asks has not numbered them (`coded`).
        """
        if not self.trials:
            raise InputError("the beta_binomial needs trials of responses, which are not there: take the binomial here")
        k = np.concatenate([np.arange(n + 1) for n in self.trials])
        which = np.repeat(np.arange(len(self.trials)), np.array(self.trials) + 1)
        return k, np.array(self.trials)[which], which

    def _parts(self, at: Coordinates, terms: Callable[[Any, Any], Any]) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Σ_{j < k} of terms in α and j; Σ_{j < n - k} of β; and Σ_{j < n} of φ."""
        k, n, _ = self.pairs()
        log_phi, (log_right, log_wrong) = at.others[None, :, 0], log_sigmoids(at.x)
        return tuple(  # type: ignore[return-value]
            _sums_of(terms, one, max(self.trials))[:, :, number]
            for one, number in ((log_right + log_phi, k), (log_wrong + log_phi, n - k), (log_phi, n))
        )

    def _wide(self, array: Float[AnyArray, "Q I C"], number: int) -> Float[AnyArray, "Q I S"]:
        """With zeros for categories that items of other families have."""
        more = number - array.shape[2]
        return array.__array_namespace__().pad(array, ((0, 0), (0, 0), (0, more)))


def _chances(at: Coordinates) -> tuple[Float[AnyArray, "Q I 1"], Float[AnyArray, "Q I 1"]]:
    """P and 1 - P."""
    xp = at.x.__array_namespace__()
    right, wrong = (xp.exp(one)[:, :, None] for one in log_sigmoids(at.x))
    return right, wrong


def _sums_of(terms: Callable[[Any, Any], Any], log_alpha: Float[AnyArray, "Q I"], most: int) -> AnyArray:
    """Sums (Q, I, most + 1) of the terms of j < 0, j < 1 and so on."""
    xp = log_alpha.__array_namespace__()
    first, others = terms(xp.minimum(log_alpha, LARGEST)[:, :, None], xp.arange(1.0, most)[None, None])
    return xp.cumulative_sum(xp.concatenate([xp.zeros_like(first), first, others], axis=2), axis=2)


def _logarithms(log_alpha: AnyArray, j: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Log(α + j) for j = 0, where α may be very small, and above."""
    xp = log_alpha.__array_namespace__()
    return log_alpha, xp.log(xp.exp(log_alpha) + j)


def _shares(log_alpha: AnyArray, j: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Their derivatives by log α, α / (α + j)."""
    xp = log_alpha.__array_namespace__()
    alpha = xp.exp(log_alpha)
    return xp.ones_like(alpha), alpha / (alpha + j)


def _spreads(log_alpha: AnyArray, j: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Their second derivatives, α j / (α + j)²."""
    first, share = _shares(log_alpha, j)
    return first - 1, share * (1 - share)


BETA_BINOMIAL = BetaBinomial()
