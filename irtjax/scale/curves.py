"""Empirical item curves: the share of right answers at each ability, estimated without a model of the item."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm

from irtjax.fits.result import Fit
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import AnyAnswers, to_answers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import everywhere
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.listing import model_of
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import rectangular
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.values import whole
from irtjax.types import Float

FEWEST = 5.0  # subjects that a point of an empirical curve needs
MOST_GROUPS = 6
BOUNDS = ((-8.0, 8.0), (-12.0, 12.0))  # of the slope and the intercept of an item that is not in the scale


class EmpiricalCurves(NamedTuple):
    """Shares of right answers against ability.

    Attributes:
        theta: abilities.
        share: smoothed shares of right answers; NaN where there are fewer than `FEWEST` subjects.
        low: lower ends of 95% intervals.
        high: upper ends.
        model: parameters of the scale for its items; for other items the 2PL that maximizes their likelihood with the
            scale held. None of other responses than right and wrong.
    """

    theta: Float[np.ndarray, " Q"]
    share: Float[np.ndarray, "Q I"]
    low: Float[np.ndarray, "Q I"]
    high: Float[np.ndarray, "Q I"]
    model: Any


def empirical_curves(fit: Fit, responses: ResponseMatrix, grouped: bool = False) -> EmpiricalCurves:
    """Shares of right answers in which each subject counts at every ability by its posterior, so that they are smooth.

    With w_jq the posterior of subject j at node q, the share there is Σ_j w_jq y_j / Σ_j w_jq (as in EM: Bock and
    Aitkin 1981), with Wilson's interval (1927) for (Σ_j w_jq)² / Σ_j w_jq² subjects. The posterior is given the
    responses to the scale and to the item itself, for items in the scale and for others alike.

    Args:
        fit: of the scale.
        responses: of the same subjects to any items.
        grouped: the abilities are up to six ranges with about as many subjects each, in place of single nodes, where
            few subjects have too little weight: `theta` is the mean ability in a range.
    """
    theta, posterior = _posteriors(fit, to_answers(whole(fit.responses).values))
    members = _ranges(posterior.sum(axis=0)) if grouped else None
    in_scale = {item: at for at, item in enumerate(fit.responses.item_ids)}
    slope, intercept = np.zeros((responses.num_items, 1)), np.zeros(responses.num_items)
    lower, upper = np.full(responses.num_items, -np.inf), np.full(responses.num_items, np.inf)
    columns = []
    for at, (item, answers) in enumerate(zip(responses.item_ids, responses.values.T, strict=True)):
        observed = answers != MISSING
        weights, right = posterior[observed], answers[observed] == 1
        if item in in_scale:
            for parameter, fitted in zip((slope, intercept, lower, upper), fit.parameters, strict=True):
                parameter[at] = np.asarray(fitted)[in_scale[item]]
        else:
            slope[at, 0], intercept[at] = _most_likely(weights, right, theta)
            p = expit(slope[at, 0] * theta + intercept[at])
            weights = weights * np.where(right[:, None], p, 1 - p)
            weights /= weights.sum(axis=1, keepdims=True)
        columns.append(_shares(weights, right) if members is None else _shares(weights @ members, right, fewest=0.0))
    share, low, high = np.stack(columns, axis=-1)
    theta = _of_ranges(theta, posterior, members)
    return EmpiricalCurves(theta, share, low, high, ItemParameters(slope, intercept, lower, upper))


def empirical_means(
    fit: Fit, values: Float[np.ndarray, "J N"], ends: tuple[float, float], grouped: bool = False
) -> EmpiricalCurves:
    """The same of responses that are numbers, such as grades: means, with 95% intervals by the variance there.

    Args:
        fit: of other responses than right and wrong.
        values: (J, N) of the same subjects, NaN where missing.
        ends: of the scale of the values, beyond which no interval goes.
        grouped: as of `empirical_curves`.
    """
    responses = whole(fit.responses)
    model = model_of(fit.item_models, np.asarray(fit.parameters.top))
    given = coded(model, np.asarray(responses.values), responses.trials, np.asarray(fit.parameters.top))
    of_counts = dataclasses.replace(fit, parameters=fit.parameters._replace(top=given.top))
    theta, posterior = _posteriors(of_counts, to_answers(given.values, given.model, given.trials))
    members = _ranges(posterior.sum(axis=0)) if grouped else None
    columns = []
    for column in values.T:
        weights = posterior[np.isfinite(column)]
        weights, fewest = (weights, FEWEST) if members is None else (weights @ members, 0.0)
        columns.append(_means(weights, column[np.isfinite(column)], ends, fewest))
    mean, low, high = np.stack(columns, axis=-1)
    return EmpiricalCurves(_of_ranges(theta, posterior, members), mean, low, high, None)


def _posteriors(fit: Fit, answers: AnyAnswers) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, "J Q"]]:
    """Nodes of ability, and the posterior of each subject there."""
    quadrature = rectangular()
    with jax.enable_x64(True):
        found = e_step(fit.parameters, fit.one_population, answers, everywhere(quadrature), weights=True)
    return place_nodes(fit.one_population, quadrature)[:, 0], np.asarray(found.weights[0])


def _of_ranges(theta: np.ndarray, posterior: np.ndarray, members: np.ndarray | None) -> np.ndarray:
    """The mean ability in each range, where there are some; else the nodes."""
    if members is None:
        return theta
    mass = posterior.sum(axis=0)
    return (mass * theta) @ members / (mass @ members)


def _most_likely(weights: np.ndarray, right: np.ndarray, theta: np.ndarray) -> tuple[float, float]:
    """Slope and intercept of an item, given posteriors (J, Q) that leave it out: P(y_j = 1) = Σ_q w_jq P(θ_q)."""
    design = np.stack([theta, np.ones_like(theta)], axis=1)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        p = expit(design @ parameters)
        share = np.clip(weights @ p, 1e-12, 1 - 1e-12)
        gradient = np.where(right, -1 / share, 1 / (1 - share)) @ (weights @ ((p * (1 - p))[:, None] * design))
        return -np.log(np.where(right, share, 1 - share)).sum(), gradient

    start = np.array([1.0, logit((right.sum() + 0.5) / (right.size + 1))])
    slope, intercept = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=BOUNDS).x.tolist()
    return slope, intercept


def _ranges(mass: np.ndarray) -> np.ndarray:
    """(Q, G) 1 where a node is in a range of abilities; each range has about as many subjects, `FEWEST` or more."""
    number = int(np.clip(mass.sum() // FEWEST, 1, MOST_GROUPS))
    before = np.cumsum(mass) - mass / 2
    found = np.minimum((number * before / mass.sum()).astype(int), number - 1)
    return (found[:, None] == np.unique(found)).astype(float)


def _shares(weights: np.ndarray, right: np.ndarray, fewest: float = FEWEST) -> np.ndarray:
    """Shares of right answers at the nodes, and the lower and upper ends of their intervals: (3, Q)."""
    mass = weights.sum(axis=0)
    share = weights[right].sum(axis=0) / np.maximum(mass, 1e-300)
    subjects = mass**2 / np.maximum((weights**2).sum(axis=0), 1e-300)
    z = norm.ppf(0.975)
    with np.errstate(divide="ignore", invalid="ignore"):  # at abilities that nobody has
        centre = (share + z**2 / (2 * subjects)) / (1 + z**2 / subjects)
        half = z / (1 + z**2 / subjects) * np.sqrt(share * (1 - share) / subjects + z**2 / (4 * subjects**2))
    return np.where(mass >= fewest, np.stack([share, centre - half, centre + half]), np.nan)


def _means(weights: np.ndarray, values: np.ndarray, ends: tuple[float, float], fewest: float) -> np.ndarray:
    """Mean responses at the nodes, and the lower and upper ends of their intervals: (3, Q)."""
    mass = weights.sum(axis=0)
    total = np.maximum(mass, 1e-300)
    mean = values @ weights / total
    subjects = np.maximum(mass**2 / np.maximum((weights**2).sum(axis=0), 1e-300), 1.0 + 1e-9)
    variance = np.maximum(values**2 @ weights / total - mean**2, 0.0) * subjects / (subjects - 1)
    half = norm.ppf(0.975) * np.sqrt(variance / subjects)
    found = np.stack([mean, np.maximum(mean - half, ends[0]), np.minimum(mean + half, ends[1])])
    return np.where(mass >= fewest, found, np.nan)
