"""Marginal maximum likelihood: the fit, from responses to estimates with standard errors."""

import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.mml import empirical_priors, fixed_nodes, item_errors, normal_posteriors, observed_information
from irtjax.estimation.mml.special_items import anchored_items, check_extremes, place_anchors
from irtjax.estimation.parameterization import Specification, item_types, specify, start_items
from irtjax.estimation.priors import GUESSING_PRIOR, UPPER_PRIOR, NormalPrior
from irtjax.estimation.result import Fit, item_columns
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import nodes_per_dimension, rectangular, spacing
from irtjax.responses.matrix import ResponseMatrix, counts, require_estimable

EXTREME_PRIOR = NormalPrior(0.0, 3.0)  # on the intercept of an item that everyone or no one answered right
SLOPE_PRIOR = NormalPrior(1.0, 2.0)  # on long tests, where its estimate starts
SHORT_PRIORS = {"slope": None, "guessing": GUESSING_PRIOR, "upper": UPPER_PRIOR}
MOST_PARAMETERS = 3000  # free ones whose standard errors come from a dense matrix of all
NARROW = 0.1  # standard deviation below which a posterior is treated as normal, in any number of dimensions
TOLERANCE, TOLERANCE_LONG, TOLERANCE_LONG_ASYMPTOTES = 1e-6, 0.01, 0.02


class _Estimate(NamedTuple):
    """What either engine comes to: abilities (J, D), and covariances (I, K, K) of the items."""

    items: ItemParameters
    covariances: np.ndarray
    ability: np.ndarray
    ability_se: np.ndarray
    log_likelihood: float
    mean: np.ndarray
    sd: np.ndarray
    iterations: int
    converged: bool
    details: dict


def fit_mml(
    responses: ResponseMatrix,
    model: str | Sequence[str] = "2pl",
    *,
    dims: int = 1,
    anchors: pd.DataFrame | None = None,
    slope_prior: NormalPrior | Literal["auto"] | None = "auto",
    guessing_prior: NormalPrior | Literal["auto"] | None = "auto",
    upper_prior: NormalPrior | Literal["auto"] | None = "auto",
    extremes: str = "refuse",
    num_nodes: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = 3000,
    standard_errors: bool = True,
    mesh: jax.sharding.Mesh | None = None,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits item parameters by marginal maximum likelihood (Bock and Aitkin 1981), abilities integrated out.

    How they are integrated out depends on the width of their posteriors. Short tests: EM over fixed nodes in float64,
    its population expanded (`item_step.fold_population`), its steps extrapolated (`squarem.cycle`). Long tests, where
    posteriors are narrower than 0.1 (from about 500 items per dimension on): a normal posterior for each subject, in
    float32 (`irtjax.estimation.mml.normal_posteriors`). A test that turns out to be long is fitted once more as such.

    Args:
        responses: at least one observed response of each subject and item.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl", or a sequence of types, one per item.
        dims: D; with D > 1 the compensatory model, whose first D items fix the rotation (slopes above the diagonal 0).
        anchors: rows of an `items.csv` whose parameters are held; the population's mean and variance are then free.
        slope_prior: normal, on slopes; None for none. "auto" is none on short tests, and on long ones the prior that is
            estimated from the items themselves (`mml.empirical_priors`), or N(1, 2²) where fewer than 50 have
            slopes of their own: the errors of thousands of slopes would bend the scale, and by chance some are always
            infinite.
        guessing_prior: likewise on logit c of 3PL and 4PL items; "auto" is N(-1.4, 1) on short tests or
            with fewer than 50 such items.
        upper_prior: likewise on logit d of 4PL items; "auto" is N(3, 1) on short tests.
        extremes: what to do about items that everyone or no one answered right, whose likelihood has no maximum:
            "refuse", or "keep" them with slope 1 (0 with D > 1), no asymptotes and a N(0, 3²) prior on the intercept.
        num_nodes: nodes per dimension in [-6, 6], used however long the test; None to choose.
        tolerance: where the fit has converged. On short tests the largest change of any parameter in an EM step, 1e-6
            if None; it also has where the objective gains less than 1e-8 nats in each of three rounds, as on the way of
            an asymptote to 0. On long ones the largest change of ability or item (but one in a thousand) in standard
            errors, 0.01 (with asymptotes 0.02) if None.
        max_iterations: EM steps after which it ends in any case.
        standard_errors: False leaves them out (NaN) on short tests. There they come from the observed information of
            all parameters or, beyond 3,000 of them, of each item by itself (`mml.observed_information`).
        mesh: devices to spread a long test over, with axes "subjects" and "items" (`irtjax.kernels.sharding.mesh_of`).
        on_iteration: called with the number of EM steps and the objective (short) or the largest change (long).

    Raises:
        InputError: responses, model or anchors that cannot be fitted.
    """
    require_estimable(responses)
    began = time.perf_counter()
    types = item_types(model, responses.num_items)
    right, observed = counts(responses.values, axis=0)
    extreme = (right == 0) | (right == observed)
    anchored = anchored_items(responses, anchors)
    extreme &= ~anchored
    check_extremes(responses, extreme, extremes)
    if num_nodes is not None and num_nodes < 3:
        raise InputError(f"num_nodes {num_nodes}, expected at least 3")

    given = {"slope": slope_prior, "guessing": guessing_prior, "upper": upper_prior}
    automatic = [name for name, prior in given.items() if prior == "auto"]
    chosen = {name: prior for name, prior in given.items() if prior is None or isinstance(prior, NormalPrior)}

    def specification_for(defaults: dict[str, NormalPrior | None], estimate: Sequence[str]) -> Specification:
        priors = defaults | chosen
        return specify(
            types,
            dims=dims,
            anchored=anchored,
            slope_prior=priors["slope"],
            guessing_prior=priors["guessing"],
            upper_prior=priors["upper"],
            extreme=extreme,
            extreme_prior=EXTREME_PRIOR,
            estimate=estimate,
        )

    def long_specification() -> Specification:
        return specification_for(SHORT_PRIORS | {"slope": SLOPE_PRIOR}, automatic)

    def long_test(items: ItemParameters) -> _Estimate:
        return _by_normal_posteriors(
            responses.values,
            items,
            long_specification(),
            tolerance=tolerance,
            max_iterations=max_iterations,
            mesh=mesh,
            on_iteration=on_iteration,
        )

    width = _expected_width(right, observed, responses.num_subjects, dims)
    long = num_nodes is None and width < NARROW
    specification = long_specification() if long else specification_for(SHORT_PRIORS, ())
    items = start_items(specification, right, observed)
    if anchors is not None:
        items = place_anchors(items, anchors, responses.item_ids, anchored)
    if long:
        estimate = long_test(items)
    else:
        per_dimension = nodes_per_dimension(dims)
        # in between, more nodes; three dimensions have too many already
        fine = 2 * per_dimension - 1 if width < spacing(per_dimension) and dims < 3 else per_dimension
        estimate = _by_fixed_nodes(
            responses.values,
            items,
            specification,
            num_nodes or fine,
            tolerance=TOLERANCE if tolerance is None else tolerance,
            standard_errors=standard_errors,
            max_iterations=max_iterations,
            on_iteration=on_iteration,
        )
        if num_nodes is None and np.median(estimate.ability_se) < NARROW * estimate.sd.max():
            estimate = long_test(estimate.items)
    squeeze = (lambda array: array.squeeze(1)) if dims == 1 else (lambda array: array)
    return Fit(
        responses=responses,
        model=model if isinstance(model, str) else "mixed",
        estimator="mml",
        parameters=estimate.items,
        item_columns=item_columns(estimate.items, estimate.covariances),
        ability=squeeze(estimate.ability),
        ability_se=squeeze(estimate.ability_se),
        log_likelihood=estimate.log_likelihood,
        num_parameters=observed_information.num_parameters(specification),
        iterations=estimate.iterations,
        converged=estimate.converged,
        seconds=time.perf_counter() - began,
        details={
            "population_mean": estimate.mean.tolist(),
            "population_sd": estimate.sd.tolist(),
            **estimate.details,
        },
    )


def _by_fixed_nodes(
    values: np.ndarray,
    items: ItemParameters,
    specification: Specification,
    num_nodes: int,
    *,
    tolerance: float,
    standard_errors: bool,
    max_iterations: int,
    on_iteration: Callable[[int, float], None] | None,
) -> _Estimate:
    quadrature = rectangular(num_nodes, dims=specification.dims)
    with jax.enable_x64(True):
        state, answers, iterations, converged = fixed_nodes.solve(
            values,
            items,
            specification,
            quadrature,
            tolerance=tolerance,
            max_iterations=max_iterations,
            on_iteration=on_iteration,
        )
        nodes = fixed_nodes.place_nodes(state, quadrature)
        found = fixed_nodes.expectation(state, answers, quadrature)
        weights, log_likelihood = np.asarray(found.weights), float(found.log_likelihood)
        details = {}
        covariances = np.full((values.shape[1], *2 * specification.free.shape[1:]), np.nan)
        if standard_errors:
            arguments = state, answers, found, quadrature, specification
            details["standard_errors"] = "all parameters"
            if observed_information.num_parameters(specification) <= MOST_PARAMETERS:
                covariances = observed_information.item_covariances(*arguments)
            if np.isnan(covariances).any():  # too many parameters, or one that ran off to infinity
                details["standard_errors"] = "each item"
                covariances = observed_information.each_item_covariances(*arguments)
    ability = weights @ nodes
    return _Estimate(
        items=state.items,
        covariances=covariances,
        ability=ability,
        ability_se=np.sqrt(np.maximum(weights @ nodes**2 - ability**2, 0)),
        log_likelihood=log_likelihood,
        mean=np.asarray(state.mean),
        sd=np.asarray(state.sd),
        iterations=iterations,
        converged=converged,
        details={
            "posteriors": "fixed nodes",
            "priors": empirical_priors.summary(specification),
            "nodes": len(nodes),
            "node_spacing": spacing(num_nodes) * float(state.sd.max()),
            **details,
        },
    )


def _by_normal_posteriors(
    values: np.ndarray,
    items: ItemParameters,
    specification: Specification,
    *,
    tolerance: float | None,
    max_iterations: int,
    mesh: jax.sharding.Mesh | None,
    on_iteration: Callable[[int, float], None] | None,
) -> _Estimate:
    asymptotes = np.asarray(specification.free)[:, specification.dims + 1 :].any()
    solution = normal_posteriors.solve(
        values,
        items,
        specification,
        tolerance=(TOLERANCE_LONG_ASYMPTOTES if asymptotes else TOLERANCE_LONG) if tolerance is None else tolerance,
        max_iterations=max_iterations,
        mesh=mesh,
        on_iteration=on_iteration,
    )
    state = solution.state
    covariances = item_errors.item_covariances(
        np.asarray(state.items.slope),
        solution.information,
        specification,
        np.asarray(state.sd),
        values.shape[0],
        solution.link,
    )
    return _Estimate(
        items=state.items,
        covariances=covariances,
        ability=np.asarray(state.posterior.mean),
        ability_se=np.sqrt(np.einsum("jkk->jk", state.posterior.covariance)),
        log_likelihood=solution.log_likelihood,
        mean=np.asarray(state.mean),
        sd=np.asarray(state.sd),
        iterations=solution.iterations,
        converged=solution.converged,
        details={"posteriors": "normal", "priors": empirical_priors.summary(solution.specification)},
    )


def _expected_width(right: np.ndarray, observed: np.ndarray, num_subjects: int, dims: int) -> float:
    """Posterior standard deviation of ability to expect of a subject with the mean number of responses, slopes of 1.

    The items' information is shared by the dimensions.
    """
    p = right / observed
    return float((1 + (observed * p * (1 - p)).sum() / (num_subjects * dims)) ** -0.5)
