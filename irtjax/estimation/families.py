"""Marginal maximum likelihood of items that are not right or wrong: the fit, from responses to estimates."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation import dispersion, driver, empirical_priors, family_integration
from irtjax.estimation.binomial_curves import fit_curves
from irtjax.estimation.category_unit import in_units_of_population, with_wide_slopes
from irtjax.estimation.covariates import latent_design, with_predictors
from irtjax.estimation.driver import Estimate, Problem, run
from irtjax.estimation.family_anchors import anchors_of, with_error_of_the_mean
from irtjax.estimation.grouping import in_groups, membership
from irtjax.estimation.mml import check_limits, in_logits, oriented, report, way
from irtjax.estimation.mml_fit import fit_of
from irtjax.estimation.normal.family_engine import FamilyPosteriors
from irtjax.estimation.priors import Prior, auto_or_none
from irtjax.estimation.problem import num_parameters
from irtjax.estimation.quadrature import engine as fixed_nodes
from irtjax.estimation.quadrature.engine import TOLERANCE, QuadratureEngine
from irtjax.estimation.specify import check_dims
from irtjax.estimation.specify_families import FamilyPlan, plan_families, with_item_priors
from irtjax.fits.result import Fit
from irtjax.item_models.coded_counts import Coded, coded
from irtjax.item_models.listing import CATEGORICAL, MODELS, WITH_ASYMPTOTES, columns
from irtjax.item_models.nominal_dimensions import of_categories
from irtjax.populations.normal import Population
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.types import Int

MOST_DIMS = 3  # in which subjects share nodes


def oriented_by_categories(estimate: Estimate, models: Sequence[str]) -> Estimate:
    """Turned around where all items are nominal and higher categories go with lower abilities: no slope says so."""
    if set(models) != {"nominal"}:
        return estimate
    others, top, dims = estimate.items.others, int(estimate.items.top.max()), estimate.items.slope.shape[1]
    slopes, _ = of_categories(others, top, dims)
    sign = np.where((slopes @ np.arange(top + 1)).sum(axis=0) >= 0, 1.0, -1.0)
    if (sign > 0).all():
        return estimate
    of_all, width = np.ones(estimate.covariances.shape[1]), others.shape[1] // (dims + 1)
    of_all[dims + 1 : dims + 1 + dims * width] = np.repeat(sign, width)
    population = estimate.population
    if not isinstance(population, Population):
        population = population._replace(mean=population.mean * sign)
    return estimate._replace(
        population=population,
        items=estimate.items._replace(others=others * of_all[dims + 1 :]),
        ability=estimate.ability * sign,
        covariances=estimate.covariances * of_all[:, None] * of_all[None, :],
        joint=None if estimate.joint is None else estimate.joint.turned(of_all),
    )


@checks_types
def fit_families(
    responses: OnScales,
    model: str | Sequence[str],
    *,
    dims: int = 1,
    groups: Any = None,
    covariates: Any = None,
    anchors: pd.DataFrame | None = None,
    priors: str | None = "auto",
    slope_prior: Prior = None,
    intercept_prior: Prior = None,
    integration: str = "auto",
    num_nodes: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = 3000,
    standard_errors: bool = True,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits items with grades or categories by marginal maximum likelihood (Bock and Aitkin 1981).

    Arguments are those of `irtjax.estimation.mml.fit_mml`; `priors` as `specify_families.plan_families` has them,
    `anchors` as `family_anchors.anchors_of`, and `integration` as `family_integration.choose`. A `slope_prior`, which
    is one of asinh slope, and an `intercept_prior` are `ItemPriors`, in one dimension.

    Raises:
        InputError: responses or models that cannot be fitted, or a test so long that nodes would not fit into memory.
    """
    models = _models_of(model, responses.num_items)
    check_dims(dims, responses.num_items)
    if dims > MOST_DIMS:
        raise InputError(f"`dims` {dims}: grades and categories have up to {MOST_DIMS} dimensions")
    check_limits(max_iterations, tolerance)
    integration = way(responses, integration, dims)
    priors = auto_or_none(priors)
    if set(models) & set(WITH_ASYMPTOTES):
        if integration not in ("auto", "nodes"):
            raise InputError(f"`integration` {integration!r}: counts with asymptotes have 'nodes' that subjects share")
        return fit_curves(
            responses,
            model,
            dims=dims,
            groups=groups,
            covariates=covariates,
            anchors=anchors,
            priors=priors,
            num_nodes=num_nodes,
            tolerance=tolerance,
            max_iterations=max_iterations,
            standard_errors=standard_errors,
            on_iteration=on_iteration,
        )
    held = None
    if anchors is not None:
        responses, held = anchors_of(responses, models, anchors, dims)
    plan = plan_families(responses, models, dims, priors, held, whole_scales=intercept_prior is not None)
    given_priors = {"slope": slope_prior, "intercept": intercept_prior}
    if any(prior is not None for prior in given_priors.values()):
        plan = plan._replace(specification=with_item_priors(plan.specification, given_priors))
    found, specification, member = None, plan.specification, None
    if groups is not None:
        found = membership(groups, plan.responses.subject_ids)
        anchored = None if held is None else held.held
        member, specification, start = in_groups(found, plan.responses.values, specification, plan.items, anchored)
        plan = plan._replace(items=start)
    design = None
    if covariates is not None:
        design = latent_design(covariates, groups, plan.responses.subject_ids, with_mean=held is not None)
        specification = with_predictors(specification, design)
    several = found is not None or design is not None
    if several and set(models) == {"nominal"}:
        specification = with_wide_slopes(specification)
    nodes_only = several or "beta_binomial" in models or (dims > 1 and "nominal" in models)
    rule = family_integration.choose(integration, num_nodes, plan, dims, nodes_only=nodes_only)
    engine: QuadratureEngine | FamilyPosteriors
    if rule is None:
        engine = FamilyPosteriors(tolerance, standard_errors)
    else:
        precision = TOLERANCE if tolerance is None else tolerance
        engine = QuadratureEngine(rule, num_nodes is None, precision, standard_errors=standard_errors)
    top = np.asarray(plan.items.top)
    given = _coded(plan, top)
    items = plan.items._replace(top=given.top)
    estimate, outcome = run(
        engine,
        Problem(
            given.values,
            items,
            specification,
            given.model,
            given.trials,
            member,
            None if design is None else design.columns,
        ),
        max_iterations=max_iterations,
        patience=driver.PATIENCE if rule is None else fixed_nodes.PATIENCE,
        on_iteration=None if on_iteration is None else functools.partial(report, on_iteration),
    )
    estimate = estimate._replace(items=estimate.items._replace(top=plan.items.top))
    estimate = oriented_by_categories(oriented(estimate), models)
    by_nodes = dims == 1 and not several and rule is not None  # normal posteriors are in these units
    if by_nodes and set(models) == {"nominal"} and empirical_priors.has_any(estimate.specification):
        estimate = in_units_of_population(estimate, plan.model, plan.responses)
    number = num_parameters(estimate.specification)
    if plan.in_logits:
        estimate = in_logits(estimate)
    if held is not None and design is None:
        estimate = with_error_of_the_mean(estimate, held, plan.responses)
    details: dict[str, Any] = {
        "models": list(models),
        "grades": [None if scale.labels is None else list(scale.labels) for scale in plan.responses.scales],
    }
    ratio = dispersion.of_counts(plan.responses, models, estimate.items, estimate.ability)
    if ratio is not None:
        details["dispersion"] = ratio
    return fit_of(
        plan.responses,
        model,
        estimate,
        outcome,
        item_columns=columns(plan.model, estimate.items, estimate.covariances),
        num_parameters=number,
        groups=found,
        design=design,
        in_logits=plan.in_logits,
        others="step" if set(models) <= set(CATEGORICAL) else "other",
        details=details,
    )


def _coded(plan: FamilyPlan, top: Int[np.ndarray, " I"]) -> Coded:
    """The responses as the engine takes them."""
    responses = plan.responses
    if not isinstance(responses, SparseResponses):
        return coded(plan.model, np.asarray(responses.values), responses.trials, top)
    given = coded(plan.model, responses.answers, responses.trials, top, responses.items)
    return given._replace(values=dataclasses.replace(responses, answers=given.values).values)


def _models_of(model: str | Sequence[str], num_items: int) -> tuple[str, ...]:
    """The model of each item.

    Raises:
        InputError: an unknown one, or a wrong number of them.
    """
    models = (model,) * num_items if isinstance(model, str) else tuple(model)
    unknown = sorted(set(models) - set(MODELS))
    if unknown:
        raise InputError(f"unknown model {unknown[0]!r}, expected one of {', '.join(MODELS)}")
    if len(models) != num_items:
        raise InputError(f"{len(models)} models for {num_items} items")
    return models
