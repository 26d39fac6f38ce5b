"""What the engines of marginal maximum likelihood come to."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.estimation.problem import Specification
from irtjax.item_models.protocol import Items
from irtjax.populations.normal import Population


class Estimate(NamedTuple):
    """An estimate, with its errors and the check of its likelihood.

    Attributes:
        items: of I items.
        population: mean and standard deviation (D,).
        covariances: (I, K, K) of each item's parameters, NaN where they are not known.
        ability: (J, D) posterior means.
        ability_se: (J, D) posterior standard deviations.
        log_likelihoods: (J,) marginal, of each subject, by the rule of the fit, in nats.
        log_likelihood: of all, by a finer rule where one was tried.
        log_likelihood_error: what that rule changed, in nats: of the sum, or √Σ change² over the subjects where that is
            more; NaN where none was tried.
        distance: from the maximum, √(gradient' covariance gradient) by the observed information: no parameter is more
            standard errors away; NaN where that is not known.
        integration: "nodes" that all subjects share, "around" each posterior, or "normal" posteriors.
        unbounded: (I,) items whose likelihood has no finite maximum; as far as is known.
        identified: whether the others have one, and not a ridge; as far as is known.
        specification: priors as estimated.
        details: further entries of `fit.json`.
    """

    items: Items
    population: Population
    covariances: np.ndarray
    ability: np.ndarray
    ability_se: np.ndarray
    log_likelihoods: np.ndarray
    log_likelihood: float
    log_likelihood_error: float
    distance: float
    integration: str
    unbounded: np.ndarray
    identified: bool
    specification: Specification
    details: dict[str, Any]


def oriented(estimate: Estimate) -> Estimate:
    """Turns around the dimensions whose slopes have a negative sum, where nothing says which way is up.

    The likelihood is the same for abilities and slopes of the other sign, unless a slope is held or has a prior.
    """
    slope, specification = np.asarray(estimate.items.slope), estimate.specification
    dims = specification.dims
    free = np.asarray(specification.free)[:, :dims] & (np.asarray(specification.prior_precision)[:, :dims] == 0)
    sign = np.where((free | (slope == 0)).all(axis=0) & (slope.sum(axis=0) < 0), -1.0, 1.0)
    if not specification.mean_fixed or (sign > 0).all():
        return estimate
    of_parameters = np.concatenate([sign, np.ones(estimate.covariances.shape[1] - dims)])
    return estimate._replace(
        items=estimate.items._replace(slope=slope * sign),
        ability=estimate.ability * sign,
        covariances=estimate.covariances * of_parameters[:, None] * of_parameters[None, :],
    )


def in_logits(estimate: Estimate) -> Estimate:
    """The estimate of a 1PL as one of the Rasch model: slopes are 1, and the population has the spread.

    With the common slope a, a θ is the ability, a the standard deviation of the population, and intercepts stay.
    """
    unit = float(np.asarray(estimate.items.slope)[0, 0])
    covariances = np.array(estimate.covariances)
    known = np.isfinite(covariances)
    covariances[:, 0], covariances[:, :, 0] = np.where(known[:, 0], 0.0, np.nan), np.where(known[:, :, 0], 0.0, np.nan)
    return estimate._replace(
        items=estimate.items._replace(slope=np.ones_like(estimate.items.slope)),
        population=Population(unit * np.asarray(estimate.population.mean), unit * np.asarray(estimate.population.sd)),
        covariances=covariances,
        ability=unit * estimate.ability,
        ability_se=unit * estimate.ability_se,
    )
