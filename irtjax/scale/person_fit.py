"""Does a subject answer as its ability says? The standardised log-likelihood of its responses, lz and lz*."""

from typing import NamedTuple

import numpy as np

from irtjax.scale.response_curves import CategoryCurves
from irtjax.types import Float, Int, Shaped

LEAST_SPREAD = 1e-6  # nats: with less, responses could hardly be other than they are


class PersonFit(NamedTuple):
    """Of J subjects, NaN where the responses could not be other than they are, as with a single one.

    Attributes:
        lz: (J,) at abilities that are taken as known.
        lz_star: (J,) corrected for their estimation.
    """

    lz: Float[np.ndarray, " J"]
    lz_star: Float[np.ndarray, " J"]


class Terms(NamedTuple):
    """What responses add to lz: l = log p(y | θ) and s = ∂ l / ∂θ, at the abilities of their subjects; or sums.

    Attributes:
        residual: l - E l.
        score: s, whose expectation is 0.
        variance: Var l.
        both: Cov(l, s).
        information: Var s.
    """

    residual: Float[np.ndarray, "..."]
    score: Float[np.ndarray, "..."]
    variance: Float[np.ndarray, "..."]
    both: Float[np.ndarray, "..."]
    information: Float[np.ndarray, "..."]


def of_categories(values: Int[np.ndarray, "J I"], at: CategoryCurves) -> Terms:
    """Those of categories, from the items at the ability of each subject; whatever is finite where they are missing."""
    log_p, score, p = np.where(np.isfinite(at.log_p), at.log_p, 0.0), at.by_theta, at.p
    chosen = np.maximum(values, 0)[:, :, None]
    centred = log_p - (p * log_p).sum(axis=2)[:, :, None]
    of_chosen = (np.take_along_axis(part, chosen, axis=2)[:, :, 0] for part in (centred, score))
    return Terms(*of_chosen, *((p * part).sum(axis=2) for part in (centred**2, centred * score, score**2)))


def standardised_log_likelihoods(values: Shaped[np.ndarray, "J I"], curves: CategoryCurves) -> PersonFit:
    """As `standardised`, of all responses to items that have categories.

    Args:
        values: categories, negative where missing.
        curves: of the items at the ability of each subject.
    """
    seen = values >= 0
    return standardised(Terms(*(np.where(seen, part, 0.0).sum(axis=1) for part in of_categories(values, curves))))


def standardised(sums: Terms) -> PersonFit:
    """The statistics lz (Drasgow, Levine and Williams 1985) and lz* (Snijders 2001; of categories Sinharay 2016).

        lz = Σ_i (l_i - E l_i) / sqrt(Σ_i Var l_i),     l_i = log p_i(y_i | θ)

    At an estimated ability its variance is too small: the estimate follows the responses. lz* takes away what goes with
    the score s_i = ∂ l_i / ∂θ, so that the error of the ability has no part in it to first order:

        lz* = Σ_i (l_i - E l_i - c s_i) / sqrt(Σ_i Var(l_i - c s_i)),     c = Σ_i Cov(l_i, s_i) / Σ_i Var s_i.

    Where the ability solves Σ s_i + r_0 = 0, as the maximum of the likelihood (r_0 = 0), the posterior mode
    (r_0 = -(θ - mean) / sd²) and the weighted likelihood estimate (r_0 = J / (2 I)) do, Σ (-c s_i) is Snijders' c r_0.
    Under the model lz* is about standard normal.

    Args:
        sums: (J,) over the responses of each subject.
    """
    residual, slope, variance, both, information = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        c = both / information
        spread, of_star = np.sqrt(variance), np.sqrt(np.maximum(variance - c * both, 0.0))
        return PersonFit(
            np.where(spread > LEAST_SPREAD, residual / spread, np.nan),
            np.where(of_star > LEAST_SPREAD, (residual - c * slope) / of_star, np.nan),
        )
