"""The fit that an estimate by marginal maximum likelihood comes to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.estimation import empirical_priors
from irtjax.estimation.covariates import Design, fitted
from irtjax.estimation.driver import Estimate, Outcome
from irtjax.estimation.grouping import Membership, population_of
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.problem import as_array, layout
from irtjax.fits.own_parameters import OwnParameters
from irtjax.fits.result import Fit
from irtjax.fits.status import Status

FAR = 0.05  # standard errors from the maximum, by the observed information, beyond which a fit has not converged
FAR_ON_OWN = 0.3  # the same on nodes around each posterior, whose errors move the maximum by as much


def fit_of(
    responses: Any,
    model: str | Sequence[str],
    estimate: Estimate,
    outcome: Outcome,
    *,
    item_columns: dict[str, np.ndarray],
    num_parameters: int,
    groups: Membership | None,
    design: Design | None,
    in_logits: bool,
    others: str | None,
    details: dict[str, Any],
) -> Fit:
    """The fit of these responses.

    Args:
        responses: that were fitted.
        model: of all items, or of each.
        estimate: on the scale that is reported.
        outcome: how the estimation went.
        item_columns: of `items.csv`.
        num_parameters: free ones.
        groups: of subjects; None for one population.
        design: of covariates of the subjects; None for none.
        in_logits: whether slopes that all items share are reported as 1.
        others: what parameters after the intercept are called, as of `empirical_priors.summary`.
        details: further entries of `fit.json`.
    """
    population: Any = estimate.population
    if groups is not None:
        population = population_of(estimate, groups, in_logits=in_logits)
    if design is not None:
        population = fitted(estimate, design, in_logits=in_logits)
    one = estimate.ability.shape[1] == 1
    return Fit(
        responses=responses,
        model=model if isinstance(model, str) else "mixed",
        estimator="mml",
        parameters=estimate.items,
        population=population,
        item_columns=item_columns,
        ability=estimate.ability.squeeze(1) if one else estimate.ability,
        ability_se=estimate.ability_se.squeeze(1) if one else estimate.ability_se,
        log_likelihood=estimate.log_likelihood,
        log_likelihood_error=estimate.log_likelihood_error,
        num_parameters=num_parameters,
        iterations=outcome.iterations,
        status=status_of(outcome.status, estimate, FAR_ON_OWN if estimate.integration == "around" else FAR),
        integration=estimate.integration,
        unbounded=estimate.unbounded,
        covariance=estimate.joint,
        own_parameters=_own(estimate) if one and groups is None and design is None else None,
        seconds=outcome.seconds,
        details={
            **estimate.details,
            "without_maximum": responses.item_ids[estimate.unbounded].tolist(),
            "distance_from_maximum": None if np.isnan(estimate.distance) else estimate.distance,
            "priors": empirical_priors.summary(estimate.specification, others),
            "maximum_likelihood": not empirical_priors.has_any(estimate.specification),
            **details,
        },
    )


def _own(estimate: Estimate) -> OwnParameters:
    """What was estimated of each item by itself, on the scale that is reported."""
    free = layout(estimate.specification).own
    array = as_array(estimate.items)[:, : free.shape[1]]
    information = np.asarray(priors_of(array, estimate.specification).information)
    return OwnParameters(free, np.where(free, information, 0.0))


def status_of(status: Status, estimate: Estimate, far: float) -> Status:
    """How the fit ended, by what is known at the end; `far` from the maximum it has not converged."""
    if status not in (Status.CONVERGED, Status.STALLED):
        return status
    if estimate.unbounded.any():
        return Status.NO_MAXIMUM
    if not estimate.identified:
        return Status.NOT_IDENTIFIED
    return Status.SHORT if estimate.distance > far else status
