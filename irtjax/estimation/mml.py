"""Marginal maximum likelihood: the fit, from responses to estimates with standard errors."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax import processes
from irtjax.arguments import checks_types, not_negative, whole_number
from irtjax.errors import InputError
from irtjax.estimation import driver
from irtjax.estimation.covariates import Design, latent_design, with_predictors
from irtjax.estimation.driver import Estimate, Info, Problem, run
from irtjax.estimation.extreme_items import log_likelihood_without, place_extremes
from irtjax.estimation.grouping import Membership, in_groups, membership, nodes_for_groups
from irtjax.estimation.mml_fit import fit_of
from irtjax.estimation.normal.engine import NormalPosteriors
from irtjax.estimation.plan import Plan, check_extremes, plan_of
from irtjax.estimation.priors import Prior, as_given
from irtjax.estimation.problem import num_parameters
from irtjax.estimation.quadrature import engine as fixed_nodes
from irtjax.estimation.quadrature.engine import TOLERANCE, QuadratureEngine
from irtjax.estimation.special_items import mark_unbounded, set_aside, with_error_of_the_mean
from irtjax.estimation.specify import check_dims
from irtjax.fits.result import Fit
from irtjax.integration.node_rule import NodeRule
from irtjax.integration.rules import MOST_SHARED, Totals, choose_rule
from irtjax.item_models import tables
from irtjax.kernels.sharding import SUBJECTS
from irtjax.populations.normal import Population
from irtjax.responses.matrix import require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import Responses, Values, keep
from irtjax.types import Int


@checks_types
@processes.collective
def fit_mml(
    responses: Responses,
    model: str | Sequence[str] = "2pl",
    *,
    dims: int = 1,
    groups: Any = None,
    covariates: Any = None,
    anchors: pd.DataFrame | None = None,
    guessing: float | Sequence[float] | np.ndarray | None = None,
    priors: str | None = "auto",
    slope_prior: Prior = "auto",
    intercept_prior: Prior = "auto",
    guessing_prior: Prior = "auto",
    upper_prior: Prior = "auto",
    extremes: str = "keep",
    integration: str = "auto",
    num_nodes: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = 3000,
    standard_errors: bool = True,
    mesh: jax.sharding.Mesh | None = None,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits item parameters by marginal maximum likelihood (Bock and Aitkin 1981), abilities integrated out.

    How they are integrated out depends on the width of their posteriors, unless `integration` says it. Where it is
    expected to be above 0.1, as on tests of up to some 500 items per dimension: nodes that all subjects share, in
    float64, their spacing halved until that changes the log-likelihood by less than 1e-5 nats per subject
    (`estimation.quadrature`). On longer tests: a normal posterior for each subject, in float32 (`estimation.normal`).

    The log-likelihood of the result is computed by a rule finer than that of the fit, and its error by the difference
    of the two: on nodes for all subjects, with normal posteriors for a sample of them (D = 1).

    Args:
        responses: at least one observed response of each subject and item.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl", or a sequence of types, one per item.
        dims: D; with D > 1 the compensatory model, whose first D items fix the rotation (slopes above the diagonal 0).
        groups: which group each subject is in: a dictionary or a Series by subject id, or labels in the order of the
            subjects (`grouping.membership`). Each group has a normal population. That of the first, in the order in
            which they occur, is standard normal (with anchors it is free); means and standard deviations of the others
            are estimated, and the items are the same for all (Bock and Zimowski 1997). Up to three dimensions.
        covariates: what is known of each subject: a table by subject id, or columns in the order of the subjects
            (`estimation.covariates.as_predictors`). The mean of ability depends on them, θ = x'β + ε with ε ~ N(0, 1)
            (latent regression, Mislevy 1984); with anchors there is an intercept, and the variance of ε is free.
            Numbers count from their mean, and categories from the first, so that the scale is that of subjects there.
            Up to three dimensions, and not beside groups, of which membership can be a covariate.
        anchors: rows of an `items.csv` whose parameters are held; the population's mean and variance are then free.
            Where the variance comes out as 0, as of a single subject, errors of abilities are those of the mean.
        guessing: lower asymptotes that are held, such as 1/4 for items of four choices: one for all items, or one per
            item, NaN where the model decides. A 2PL then is P = c + (1 - c) σ(a (θ - b)) with c known; a 3PL estimates
            those that are not held. Extreme items without a prior have none, anchors keep their own.
        priors: "auto", or None for plain maximum likelihood: priors below are then None where they are not given.
        slope_prior: normal, on slopes: a `NormalPrior` or any pair (mean, sd); None for none. "auto" (D = 1) is one of
            asinh slope (`estimation.priors`), whose mean and standard deviation are estimated from the items
            (`estimation.empirical_priors`); it has no say in the unit of ability. On short tests the 2PL goes without
            where responses determine slopes (by more than 90%, on average) and intercepts. Fewer than 50 items of
            which any has asymptotes have none on short tests, but N(1, 1) on asinh slope with the 4PL. With D > 1, none
            on short tests, on long ones estimated from 50 items on, else N(1, 2²).
            `ItemPriors` are on asinh slope of each item (D = 1, all with slopes of their own).
        intercept_prior: normal, on the intercept -a b, or on that of each item; extreme items are then as others.
            "auto" is estimated (D = 1), with a mean that is a line in the slope, and has no say in the origin of
            ability. There is none where the logits of percent correct tell more than 90% of the variance of intercepts,
            nor where slopes have none to begin with, nor on long tests with items of the 3PL or 4PL.
        guessing_prior: normal, on logit c of 3PL and 4PL items; "auto" is estimated, or N(-1.4, 1) with fewer than 50
            such items.
        upper_prior: normal, on logit d of 4PL items; "auto" is estimated, or N(3, 1) with fewer than 50.
        extremes: what to do about items that everyone or no one answered right, whose likelihood has no maximum:
            "keep" them or "refuse". Where intercepts have a prior, those that are kept are as others. Else they have no
            part in the fit, and are placed afterwards as if 0.3 of an answer had been of the other kind, with the slope
            of the others and without asymptotes (`estimation.extreme_items`).
        integration: "nodes" that all subjects share, nodes "around" each subject's posterior, "normal" posteriors, or
            "auto", which chooses (`integration.rules`).
        num_nodes: nodes per dimension in [-6, 6], that all subjects share, used however long the test; None to choose.
        tolerance: where the fit has converged, in standard errors. On nodes the length √(g'Hg) of the next step, 1e-4
            if None; no parameter is further from the maximum. With normal posteriors the largest change of ability or
            item (but one in a thousand), 0.01 (D > 1: 0.001; with asymptotes 0.02) if None.
        max_iterations: steps after which it ends in any case.
        standard_errors: False leaves them out (NaN) on short tests. There they come from the observed information of
            all parameters or, beyond 3,000 of them, of each item by itself (`quadrature.observed_information`).
        mesh: devices to spread a long test over, with axes "subjects" and "items" (`irtjax.kernels.sharding.mesh_of`).
            If they are of several processes, these work on the fit together, on short tests each on subjects of its
            own; all must call this function.
        on_iteration: called with the number of steps and the change that `tolerance` is compared with.

    Raises:
        InputError: responses, model or anchors that cannot be fitted.
    """
    require_estimable(responses)
    check_dims(dims, responses.num_items)
    check_limits(max_iterations, tolerance)
    found = None if groups is None else membership(groups, responses.subject_ids)
    totals = Totals(*responses.counts(axis=0), responses.num_subjects)
    rule = choose_rule(way(responses, integration, dims), num_nodes, totals, dims)
    if found is not None or covariates is not None:
        rule = nodes_for_groups(rule, integration, totals, dims, "covariates" if found is None else "groups")
    asked = as_given(priors, dims, slope_prior, intercept_prior, guessing_prior, upper_prior)
    plan = plan_of(responses, model, dims, anchors, guessing, asked, totals, long=rule is None)
    check_extremes(responses, plan.extreme, extremes)
    if rule is None:
        engine: QuadratureEngine | NormalPosteriors = NormalPosteriors(tolerance, mesh)
    else:
        precision = TOLERANCE if tolerance is None else tolerance
        engine = QuadratureEngine(rule, num_nodes is None, precision, standard_errors=standard_errors)
    design = None
    if covariates is not None:
        design = latent_design(covariates, groups, responses.subject_ids, with_mean=bool(plan.anchored.any()))
    problem = _problem(plan, found, design, _values_here(responses, rule, mesh), responses.num_subjects, totals.right)
    own = rule is not None and rule.moves_with_posterior
    with processes.alone() if own else contextlib.nullcontext():  # where nodes are own, all processes do all of it
        estimate, outcome = run(
            engine,
            problem,
            max_iterations=max_iterations,
            patience=driver.PATIENCE if rule is None else fixed_nodes.PATIENCE,
            on_iteration=None if on_iteration is None else functools.partial(report, on_iteration),
        )
        estimate = oriented(estimate if plan.held is None else mark_unbounded(estimate, plan.held))
        estimate, number, of_extremes = _with_extremes(
            estimate, plan, problem, totals.right, by_subject=rule is not None
        )
    if plan.as_1pl:
        estimate = in_logits(estimate)
    if plan.anchored.any() and design is None:
        estimate = with_error_of_the_mean(estimate, plan.anchored, totals.observed)
    return fit_of(
        responses,
        model,
        estimate,
        outcome,
        item_columns=tables.columns(estimate.items, estimate.covariances),
        num_parameters=number,
        groups=found,
        design=design,
        in_logits=plan.as_1pl,
        others=None,
        details=of_extremes,
    )


def way(responses: Responses | ScaledResponses, integration: str, dims: int) -> str:
    """How abilities are integrated out, which sparse responses are on nodes that subjects share.

    Raises:
        InputError: another way is asked for, or there are too many dimensions for it.
    """
    if not isinstance(responses, SparseResponses):
        return integration
    if integration not in ("auto", "nodes") or dims > MOST_SHARED:
        raise InputError(
            "sparse responses are integrated out on shared nodes (`integration` 'nodes'), in up to three dimensions: "
            "give the whole matrix for another way (`sparse=False`)"
        )
    return "nodes"


def check_limits(max_iterations: int, tolerance: float | None) -> None:
    """Refuses limits of a fit that nothing can meet.

    Raises:
        InputError: no iterations, or a negative tolerance.
    """
    whole_number("max_iterations", max_iterations, 1)
    if tolerance is not None:
        not_negative("tolerance", tolerance)


def _problem(
    plan: Plan,
    groups: Membership | None,
    design: Design | None,
    values: Values,
    num_subjects: int,
    right: Int[np.ndarray, " I"],
) -> Problem:
    """What is estimated: without the items that are placed afterwards, and each subject in its population."""
    items, specification, member = plan.items, plan.specification, None
    if plan.aside.any():
        items, specification = set_aside(items, specification, plan.aside, right)
    if groups is not None:
        mine = processes.share(num_subjects)
        member, specification, items = in_groups(groups, values, specification, items, plan.anchored, mine)
    predictors = None
    if design is not None:
        specification = with_predictors(specification, design)
        predictors = design.columns[processes.share(num_subjects)]
    return Problem(values, items, specification, member=member, predictors=predictors)


def _values_here(responses: Responses, rule: NodeRule | None, mesh: jax.sharding.Mesh | None) -> Values:
    """The responses that this process works on: all, where they are read as the fit goes; else its own subjects'.

    Where nodes are each subject's own, too, few subjects are all on every process.

    Raises:
        InputError: processes that cannot share them.
    """
    values: Values = responses.values
    if rule is None:
        if processes.number() > 1 and mesh is not None and mesh.shape[SUBJECTS] > 1:
            raise InputError("a mesh over several processes splits the items of a long test: expected `mesh_of(1, n)`")
        return values
    if responses.num_subjects < processes.number():
        raise InputError(f"{processes.number()} processes for {responses.num_subjects} subjects")
    subjects = slice(None) if rule.moves_with_posterior else processes.share(responses.num_subjects)
    if isinstance(responses, SparseResponses):
        return values if processes.number() == 1 else responses.choose_subjects(subjects).values
    keep(values, subjects)
    return np.asarray(values[subjects, :])


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
    population = estimate.population
    if not isinstance(population, Population):
        population = population._replace(mean=population.mean * sign)
    return estimate._replace(
        population=population,
        items=estimate.items._replace(slope=slope * sign),
        ability=estimate.ability * sign,
        covariances=estimate.covariances * of_parameters[:, None] * of_parameters[None, :],
        joint=None if estimate.joint is None else estimate.joint.turned(of_parameters),
    )


def _with_extremes(
    estimate: Estimate,
    plan: Plan,
    problem: Problem,
    right: Int[np.ndarray, " I"],
    *,
    by_subject: bool,
) -> tuple[Estimate, int, dict[str, Any]]:
    """The estimate with extreme items placed, the number of parameters, and what `fit.json` says of them."""
    number, values = num_parameters(estimate.specification), problem.values
    of_subjects = problem.member if problem.predictors is None else problem.predictors
    if not plan.extreme.any():
        return estimate, number, {}
    # as they had no prior, or lost it
    aside = plan.extreme & ~np.asarray(estimate.specification.free)[:, plan.specification.dims]
    if aside.any():
        estimate, log_likelihood = place_extremes(
            estimate, plan.specification, values, aside, right, by_subject, of_subjects
        )
    else:
        log_likelihood = log_likelihood_without(estimate, values, plan.extreme, right, by_subject, of_subjects)
    of_others = num_parameters(set_aside(plan.items, estimate.specification, plan.extreme, right)[1])
    return (
        estimate,
        number + int(aside.sum()),
        {
            "extremes": "placed" if aside.any() else "prior",
            "without_extremes": {"log_likelihood": log_likelihood, "num_parameters": of_others},
        },
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
        population=estimate.population._replace(
            mean=unit * np.asarray(estimate.population.mean), sd=unit * np.asarray(estimate.population.sd)
        ),
        covariances=covariances,
        joint=None if estimate.joint is None else estimate.joint.without(0),
        ability=unit * estimate.ability,
        ability_se=unit * estimate.ability_se,
    )


def report(on_iteration: Callable[[int, float], None], iterations: int, info: Info) -> None:
    """Tells a caller the number of steps and the change."""
    on_iteration(iterations, info.change)
