"""Marginal maximum likelihood of counts by curves with asymptotes: the fit of right/wrong items, of several trials."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation import dispersion, kinds_of_responses
from irtjax.estimation.covariates import latent_design, with_predictors
from irtjax.estimation.driver import Problem, run
from irtjax.estimation.grouping import in_groups, membership
from irtjax.estimation.mml import oriented, report
from irtjax.estimation.mml_fit import fit_of
from irtjax.estimation.plan import Plan, plan_of
from irtjax.estimation.priors import as_given
from irtjax.estimation.problem import num_parameters
from irtjax.estimation.quadrature import engine as fixed_nodes
from irtjax.estimation.quadrature.engine import TOLERANCE, QuadratureEngine
from irtjax.estimation.special_items import with_error_of_the_mean
from irtjax.fits.result import Fit
from irtjax.integration.rules import SharedNodes, Totals
from irtjax.item_models import tables
from irtjax.item_models.binomial_curves import TRIALS, as_predictors
from irtjax.item_models.listing import CURVES_OF_COUNTS
from irtjax.kernels.quadrature import nodes_per_dimension
from irtjax.responses.values import OnScales


def fit_curves(
    responses: OnScales,
    model: str | Sequence[str],
    *,
    dims: int,
    groups: Any,
    covariates: Any,
    anchors: pd.DataFrame | None,
    priors: str | None,
    num_nodes: int | None,
    tolerance: float | None,
    max_iterations: int,
    standard_errors: bool,
    on_iteration: Callable[[int, float], None] | None,
) -> Fit:
    """Fits counts of which an item or more have asymptotes, with the priors of the 3PL and 4PL (`estimation.priors`).

    Arguments are those of `estimation.families.fit_families`.

    Raises:
        InputError: a model of other responses, responses that are no counts, or an item without finite maximum.
    """
    models = (model,) * responses.num_items if isinstance(model, str) else tuple(model)
    plan, totals = _plan(responses, models, dims, anchors, priors)
    values, specification, member = responses.values, plan.specification, None
    found = None if groups is None else membership(groups, responses.subject_ids)
    if found is not None:
        member, specification, items = in_groups(found, values, specification, plan.items, plan.anchored)
        plan = plan._replace(items=items)
    design = None
    if covariates is not None:
        design = latent_design(covariates, groups, responses.subject_ids, with_mean=bool(plan.anchored.any()))
        specification = with_predictors(specification, design)
    predictors = None if design is None else design.columns
    rule = SharedNodes(nodes_per_dimension(dims) if num_nodes is None else num_nodes, dims)
    precision = TOLERANCE if tolerance is None else tolerance
    estimate, outcome = run(
        QuadratureEngine(rule, num_nodes is None, precision, standard_errors=standard_errors),
        Problem(values, plan.items, specification, TRIALS, np.asarray(responses.trials), member, predictors),
        max_iterations=max_iterations,
        patience=fixed_nodes.PATIENCE,
        on_iteration=None if on_iteration is None else functools.partial(report, on_iteration),
    )
    estimate = oriented(estimate)
    if plan.anchored.any() and design is None:
        estimate = with_error_of_the_mean(estimate, plan.anchored, totals.observed)
    columns, items = tables.columns(estimate.items, estimate.covariances), as_predictors(estimate.items)
    details: dict[str, Any] = {"models": list(models), "grades": [None] * responses.num_items}
    ratio = dispersion.of_counts(responses, models, items, estimate.ability)
    return fit_of(
        responses,
        model,
        estimate._replace(items=items),
        outcome,
        item_columns=columns,
        num_parameters=num_parameters(estimate.specification),
        groups=found,
        design=design,
        in_logits=False,
        others=None,
        details=details if ratio is None else details | {"dispersion": ratio},
    )


def _plan(
    responses: OnScales, models: Sequence[str], dims: int, anchors: pd.DataFrame | None, priors: str | None
) -> tuple[Plan, Totals]:
    """What is free of the items, as of right/wrong ones with so many answers."""
    other = next((name for name in models if name not in CURVES_OF_COUNTS), None)
    if other is not None:
        of_curves = ", ".join(CURVES_OF_COUNTS)
        raise InputError(f"counts with asymptotes are fitted beside {of_curves}, and not beside {other}")
    kinds_of_responses.check_models(responses, models)
    named = set() if anchors is None or "model" not in anchors else set(anchors["model"].astype(str))
    if named - set(CURVES_OF_COUNTS):
        raise InputError(f"anchor items of the {min(named - set(CURVES_OF_COUNTS))} beside counts with asymptotes")
    assert responses.trials is not None
    given = responses.answered()
    right, trials = (np.bincount(given.items, of, len(models)).astype(int) for of in (given.values, given.trials))
    totals = Totals(right, trials, responses.num_subjects)
    types = [CURVES_OF_COUNTS[name] for name in models]
    asked = as_given(priors, dims, "auto", "auto", "auto", "auto")
    plan = plan_of(responses, types, dims, anchors, None, asked, totals, long=False)
    if plan.aside.any():
        raise InputError(kinds_of_responses.explain(responses, models, plan.aside, dims))
    return plan, totals
