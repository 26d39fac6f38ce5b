r"""Judges differ: severities beside difficulties, by marginal maximum likelihood (many-facet models, Linacre 1989).

    P(y_jir = k | θ_j) is that of the item with θ_j - s_r for θ_j,    Σ_r s_r = 0

With slopes of 1, s_r is in logits beside b_i: the many-facet Rasch model θ_j - b_i - s_r - τ_k. The predictor of item i
and judge r is a_i (θ - s_r) + intercept_i, so that each pair is an item of its own whose parameters are functions of
fewer ones, ψ. The likelihood of ψ is climbed by quasi-Newton steps, and then by Newton's, whose last gives the standard
errors by the observed information (differences of exact gradients).
"""

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation import empirical_priors
from irtjax.estimation.facet_likelihood import AT_REST, Found, climb
from irtjax.estimation.priors import auto_or_none
from irtjax.estimation.specify_families import FamilyPlan, plan_families
from irtjax.fits.result import Fit
from irtjax.fits.status import Status
from irtjax.item_models.listing import CATEGORICAL, WITH_ASYMPTOTES, columns
from irtjax.item_models.protocol import PredictorParameters
from irtjax.populations.normal import Population
from irtjax.responses.judged import Judged, pooled, require_comparable, without_common_subjects


@checks_types
def fit_facets(
    judged: Judged,
    model: str | Sequence[str],
    facet: str,
    *,
    priors: str | None = "auto",
    max_iterations: int = 500,
) -> Fit:
    """Fits items and judges by marginal maximum likelihood.

    Args:
        judged: the responses.
        model: of the items, by the names of `irtjax.item_models.listing.MODELS`; not nominal.
        facet: what judges are called.
        priors: None, or "auto": those of `plan_families` before they are estimated. Severities have none.
        max_iterations: quasi-Newton steps.

    Returns:
        A fit of the items under a judge of severity 0, whose responses are those of all judges together; its
        `details["facet"]` has the judges. Abilities are EAPs that take the severity of each judge into account.

    Raises:
        InputError: judges that cannot be compared, a model without order, or what `plan_families` refuses.
    """
    began = time.perf_counter()
    models = (model,) * judged.of_rows.num_items if isinstance(model, str) else tuple(model)
    if "nominal" in models:
        raise InputError("categories without order have no severity: take graded, gpcm, pcm or rsm beside a facet")
    if curved := set(models) & set(WITH_ASYMPTOTES):
        raise InputError(f"the {min(curved)} has no facet: take the binomial")
    require_comparable(judged)
    plan = plan_families(judged.of_rows, models, 1, auto_or_none(priors))
    judged = judged._replace(of_rows=plan.responses)
    with jax.enable_x64(True):
        found = climb(judged, plan, max_iterations)
    return _fit(judged, plan, models, facet, found, time.perf_counter() - began)


def _fit(judged: Judged, plan: FamilyPlan, models: tuple[str, ...], facet: str, found: Found, seconds: float) -> Fit:
    """The result, in the terms of others."""
    layout, specification = found.layout, plan.specification
    array = np.where(layout.places >= 0, found.psi[np.maximum(layout.places, 0)], layout.held)
    known = (layout.places >= 0)[:, :, None] & (layout.places >= 0)[:, None, :]
    places = np.maximum(layout.places, 0)
    covariances = np.where(known, found.covariance[places[:, :, None], places[:, None, :]], 0.0)
    unit = float(array[0, 0]) if plan.in_logits else 1.0
    if plan.in_logits:
        array[:, 0], covariances[:, 0], covariances[:, :, 0] = 1.0, 0.0, 0.0
    items = PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], np.asarray(plan.items.top))
    responses = pooled(judged, plan.responses)
    at_rest = found.distance < 100 * AT_REST
    details = {
        "models": list(models),
        "grades": [None if scale.labels is None else list(scale.labels) for scale in responses.scales],
        "without_maximum": [],
        "distance_from_maximum": None if not np.isfinite(found.distance) else found.distance,
        "maximum_likelihood": not empirical_priors.has_any(specification),
        "priors": empirical_priors.summary(specification, "step" if set(models) <= set(CATEGORICAL) else "other"),
        "nodes": found.nodes,
        "facet": _of_judges(judged, found, facet),
    }
    return Fit(
        responses=responses,
        model=models[0] if len(set(models)) == 1 else "mixed",
        estimator="mml",
        parameters=items,
        population=Population(np.zeros(1), np.array([abs(unit)])),
        item_columns=columns(plan.model, items, covariances),
        ability=unit * found.ability,
        ability_se=abs(unit) * found.ability_se,
        log_likelihood=found.log_likelihood,
        log_likelihood_error=found.error,
        num_parameters=len(found.psi),
        iterations=found.iterations,
        status=Status.CONVERGED if at_rest else Status.SHORT,
        integration="nodes",
        unbounded=np.zeros(responses.num_items, bool),
        seconds=seconds,
        details=details,
    )


def _of_judges(judged: Judged, found: Found, facet: str) -> dict[str, Any]:
    """Severities with standard errors, and what each judge gave."""
    size = found.layout.num_judges
    contrast = np.concatenate([np.eye(size - 1), -np.ones((1, size - 1))]) if size > 1 else np.zeros((1, 0))
    free = slice(found.layout.num_items, None)
    number, mean = judged.means()
    variance = np.einsum("rk,kl,rl->r", contrast, found.covariance[free, free], contrast)
    return {
        "name": facet,
        "ids": judged.judge_ids.tolist(),
        "severity": (contrast @ found.psi[free]).tolist(),
        "severity_se": np.sqrt(np.maximum(variance, 0.0)).tolist(),
        "num_responses": number.tolist(),
        "mean_response": mean.tolist(),
        "no_common_subjects": without_common_subjects(judged),
    }
