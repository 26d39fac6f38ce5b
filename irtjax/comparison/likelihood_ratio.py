"""Comparisons of two models fitted to the same responses."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.responses.stored import StoredResponses

LEAST_SLACK = 1e-3  # nats by which a fit that has converged may be below the maximum
RELATIVE_SLACK = 1e-6  # of a log-likelihood in float32


class LikelihoodRatio(NamedTuple):
    """Twice the difference of log-likelihoods, its degrees of freedom, and the p-value by χ²."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


@checks_types
def likelihood_ratio_test(restricted: Fit, full: Fit) -> LikelihoodRatio:
    """Tests a model against a wider one that contains it, both fitted by MML to the same responses.

    Responses to items that everyone or no one answered right have no part in it (`Fit.without_extremes`): every model
    can make them as likely as it wants, and where they are placed is a rule and no estimate.

    The statistic is a likelihood ratio only at the maxima of both likelihoods, so that fits under priors are refused
    (`Fit.maximum_likelihood`): fit both with `priors=None`. The χ² distribution does not hold where the restriction
    lies on a boundary, as c = 0 does: the p-value for 2PL against 3PL is then too large.

    Returns:
        The test. A statistic that is below 0 by no more than the rounding of the two log-likelihoods is 0.

    Raises:
        InputError: fits that cannot be compared: one is not by MML, or under priors, they are not of the same
            responses, the restricted model does not come first, or the likelihood of the wider one is the lower, so
            that it cannot be at its maximum.
    """
    require_same_responses(restricted, full)
    for name, fit in (("restricted", restricted), ("full", full)):
        if not fit.maximum_likelihood:
            raise InputError(
                f"the {name} model was fitted under priors{_named(fit)}, so that its likelihood is not at its maximum "
                "and there is no likelihood ratio: fit both models with `priors=None`, or use `irtjax.compare`"
            )
    found = ratio(restricted, full)
    if found.statistic >= 0:
        return found
    slack = sum(_slack(fit) for fit in (restricted, full))
    if -found.statistic > 2 * slack:
        raise InputError(
            f"the log-likelihood of the full model is {-found.statistic / 2:.4g} nats below that of the restricted "
            f"one, so that it is not at its maximum ({full.status.value}), or does not contain the restricted model: "
            "give it more `max_iterations`, or take a narrower model"
        )
    return found._replace(statistic=0.0, p_value=1.0)


def ratio(restricted: Fit, full: Fit) -> LikelihoodRatio:
    """Twice the difference of log-likelihoods, whatever was maximised: under priors it may be below 0.

    Raises:
        InputError: the full model does not have more parameters.
    """
    (of_restricted, fewer), (of_full, more) = restricted.without_extremes(), full.without_extremes()
    degrees = more - fewer
    if degrees <= 0:
        raise InputError(
            f"the full model has {more} parameters, the restricted one {fewer}: give the restricted model first"
        )
    statistic = 2 * (of_full - of_restricted)
    return LikelihoodRatio(statistic, degrees, float(chdtrc(degrees, statistic)))


def require_same_responses(restricted: Fit, full: Fit) -> None:
    """Refuses fits whose likelihoods are of different kinds or of different responses.

    Raises:
        InputError: says which.
    """
    if restricted.estimator != "mml" or full.estimator != "mml":
        raise InputError("a likelihood-ratio test needs two fits by marginal maximum likelihood (estimator mml)")
    one, other = restricted.responses, full.responses
    in_files = isinstance(one, StoredResponses) or isinstance(other, StoredResponses)
    if (one != other) if in_files else not _same_answers(one, other):
        raise InputError("a likelihood-ratio test needs two fits of the same responses")


def _same_answers(one: Any, other: Any) -> bool:
    """Whether responses are the same, whatever subjects and items are called, in a matrix or answer by answer."""
    if not (isinstance(one, SparseResponses) or isinstance(other, SparseResponses)):
        return np.array_equal(np.asarray(one.values), np.asarray(other.values))
    rows = [each if isinstance(each, SparseResponses) else of_matrix(each) for each in (one, other)]
    if rows[0].values.shape != rows[1].values.shape:
        return False
    return all(np.array_equal(*(getattr(each, name) for each in rows)) for name in ("starts", "items", "answers"))


def _named(fit: Fit) -> str:
    """The priors of all items, in brackets; nothing where each has its own, or the fit is of an earlier version."""
    names = ", ".join(fit.details.get("priors", ()))
    return f" ({names})" if names else ""


def _slack(fit: Fit) -> float:
    """Nats by which a log-likelihood may differ from its maximum without anything being wrong."""
    return float(np.nan_to_num(fit.log_likelihood_error)) + RELATIVE_SLACK * abs(fit.log_likelihood) + LEAST_SLACK
