"""Comparisons of two models fitted to the same responses."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.estimation.result import Fit
from irtjax.responses.stored import StoredResponses


class LikelihoodRatio(NamedTuple):
    """Twice the difference of log-likelihoods, its degrees of freedom, and the p-value by χ²."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def likelihood_ratio_test(restricted: Fit, full: Fit) -> LikelihoodRatio:
    """Tests a model against a wider one that contains it, both fitted by MML to the same responses.

    Responses to items that everyone or no one answered right have no part in it (`Fit.without_extremes`): every model
    can make them as likely as it wants, and where they are placed is a rule and no estimate.

    Where priors had a say in the wider model the statistic is too small, and the p-value too large: fit both with
    `priors=None` for a test. The χ² distribution does not hold where the restriction lies on a boundary, as c = 0
    does: the p-value for 2PL against 3PL is then too large.

    Raises:
        InputError: fits that cannot be compared.

    Warns:
        FitWarning: priors had a say in the wider model.
    """
    if restricted.estimator != "mml" or full.estimator != "mml":
        raise InputError("a likelihood-ratio test needs two fits by marginal maximum likelihood (estimator mml)")
    one, other = restricted.responses, full.responses
    in_files = isinstance(one, StoredResponses) or isinstance(other, StoredResponses)
    if (one != other) if in_files else not np.array_equal(np.asarray(one.values), np.asarray(other.values)):
        raise InputError("a likelihood-ratio test needs two fits of the same responses")
    (of_restricted, fewer), (of_full, more) = restricted.without_extremes(), full.without_extremes()
    degrees = more - fewer
    if degrees <= 0:
        raise InputError(
            f"the full model has {more} parameters, the restricted one {fewer}: give the restricted model first"
        )
    if full.details.get("priors"):
        warnings.warn(
            f"the wider model was fitted under priors ({', '.join(full.details['priors'])}), so that its likelihood is "
            "not the largest and the p-value is too large: fit both with `priors=None`",
            FitWarning,
            stacklevel=2,
        )
    statistic = 2 * (of_full - of_restricted)
    return LikelihoodRatio(statistic, degrees, float(chi2.sf(statistic, degrees)))
