"""The unit of ability of a fit of categories without order whose slopes have a prior that is estimated.

A prior of mean 0 would have all slopes flatter, and so abilities wider: by θ → cθ, s → s/c the likelihood loses
J (c² - 1)/2 - J log c nats, and the prior N(0, τ²) gains (1 - 1/c²) Σ s²/(2 τ²). With few subjects and many items the
prior wins. How slopes differ from each other is its business; how wide abilities are is that of the population.
"""

import dataclasses

import jax
import numpy as np

from irtjax.estimation.driver import Estimate
from irtjax.estimation.problem import Specification
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.reach import reaching
from irtjax.item_models.families import Families
from irtjax.populations.normal import Population
from irtjax.responses.values import OnScales

ROUNDS = 20
SETTLED = 1e-4  # of a standard deviation


def with_wide_slopes(specification: Specification) -> Specification:
    """Nominal items (D = 1) whose prior of slopes stays as wide as it begins: the spreads of groups have no convention.

    It still pulls at the unit of ability, less than an estimated one.
    """
    half = (specification.free.shape[1] - 2) // 2
    kept = tuple(group for group in specification.estimated if min(group) >= 2 + half)
    return dataclasses.replace(specification, estimated=kept)


def in_units_of_population(estimate: Estimate, model: Families, responses: OnScales) -> Estimate:
    """The estimate with abilities of mean 0 and mean square 1, posterior variances included.

    With θ = o + u z slopes become u s, intercepts c + o s, and their errors follow; the posteriors are those of the
    same responses by these items, in the population N(0, 1). Where no prior pulls, o is 0 and u is 1 already.

    Args:
        estimate: of nominal items in one dimension.
        model: of the items.
        responses: that it is of.
    """
    width = estimate.items.others.shape[1] // 2
    slopes, intercepts = slice(2, 2 + width), slice(2 + width, 2 + 2 * width)
    moved, posteriors = np.eye(estimate.covariances.shape[1]), (estimate.ability[:, 0], estimate.ability_se[:, 0])
    answers, population = to_answers(responses.values, model), Population(*estimate.population)
    base = answers.log_base()
    items, unit, population = estimate.items, 1.0, Population(estimate.population.mean, estimate.population.sd)
    for _ in range(ROUNDS):
        ability, error = posteriors
        origin = float(ability.mean())
        step = float(np.sqrt((ability**2 + error**2).mean() - origin**2))
        one = np.eye(len(moved))
        one[intercepts, slopes] = origin * np.eye(width)
        one[slopes, slopes] *= step
        moved, unit = one @ moved, unit * step
        items = items._replace(others=items.others @ one[2:, 2:].T)
        # the posteriors that were found, in the new unit, say where the next are
        grid = reaching((ability - origin) / step, error / step, population)
        with jax.enable_x64(True):
            found = e_step(items, population, answers, grid)
        posteriors = found.mean[:, 0], found.sd[:, 0]
        if max(abs(origin), abs(step - 1)) < SETTLED:
            break
    specification = estimate.specification
    mean, precision = np.array(specification.prior_mean), np.array(specification.prior_precision)
    mean[:, slopes], precision[:, slopes] = unit * mean[:, slopes], precision[:, slopes] / unit**2
    log_likelihoods = found.log_likelihoods + base
    return estimate._replace(
        items=items,
        covariances=moved @ estimate.covariances @ moved.T,
        joint=None,
        ability=posteriors[0][:, None],
        ability_se=posteriors[1][:, None],
        log_likelihoods=log_likelihoods,
        log_likelihood=float(log_likelihoods.sum()),
        specification=dataclasses.replace(specification, prior_mean=mean, prior_precision=precision),
    )
