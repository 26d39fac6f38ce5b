"""Marginal maximum likelihood: the fit, from responses to estimates with standard errors."""

import functools
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.inference import squarem
from irtjax.inference.fixed_nodes import Answers, State, em_step, posterior
from irtjax.inference.observed_information import item_covariances, num_parameters
from irtjax.inference.quadrature import rectangular
from irtjax.inference.result import Fit, item_columns
from irtjax.inference.specification import (
    GUESSING_PRIOR,
    UPPER_PRIOR,
    NormalPrior,
    item_types,
    specify,
    start_items,
    without_asymptotes,
)
from irtjax.models import ItemParameters, from_table
from irtjax.responses import ResponseMatrix, counts, require_estimable

EXTREME_PRIOR = NormalPrior(0.0, 3.0)  # on the intercept of an item that everyone or no one answered right
MOST_PARAMETERS = 3000  # the standard errors invert a dense matrix of this size
EXPANDED = 150  # most EM steps with an expanded population
SMALLEST_GAIN = 1e-8  # nats in three EM steps
NODES_PER_DIMENSION = {1: 61, 2: 31, 3: 15}


def fit_mml(
    responses: ResponseMatrix,
    model: str | Sequence[str] = "2pl",
    *,
    dims: int = 1,
    anchors: pd.DataFrame | None = None,
    guessing_prior: NormalPrior | None = GUESSING_PRIOR,
    upper_prior: NormalPrior | None = UPPER_PRIOR,
    slope_prior: NormalPrior | None = None,
    extremes: str = "refuse",
    num_nodes: int | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 3000,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits item parameters by marginal maximum likelihood (Bock and Aitkin 1981), abilities integrated out.

    EM over fixed nodes in float64, its population expanded (`item_step.fold_population`) and its steps extrapolated
    (`squarem.cycle`). Abilities are expected a posteriori (EAP), with the posterior standard deviation.

    Args:
        responses: at least one observed response of each subject and item.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl", or a sequence of one type an item.
        dims: D; with D > 1 the compensatory model, whose first D items fix the rotation (slopes above the diagonal 0).
        anchors: rows of an `items.csv` whose parameters are held; the population's mean and variance are then free.
        guessing_prior: normal, on logit c of 3PL and 4PL items; None for none.
        upper_prior: likewise on logit d of 4PL items.
        slope_prior: likewise on slopes.
        extremes: what to do about items that everyone or no one answered right, whose likelihood has no maximum:
            "refuse", or "keep" them with slope 1, no asymptotes and a N(0, 3²) prior on the intercept.
        num_nodes: nodes a dimension in [-6, 6]; None for 61, 31 and 15 in one, two and three.
        tolerance: largest change of any parameter in an EM step at which the fit has converged; it also has where the
            objective gains less than 1e-8 nats in each of three rounds, as on the way of an asymptote to 0.
        max_iterations: EM steps after which it ends in any case.
        on_iteration: called with the number of EM steps and the objective after every three.

    Raises:
        InputError: responses, model or anchors that cannot be fitted.
    """
    require_estimable(responses)
    began = time.perf_counter()
    types = item_types(model, responses.num_items)
    right, observed = counts(responses.values, axis=0)
    extreme = (right == 0) | (right == observed)
    anchored = np.zeros(responses.num_items, bool)
    if anchors is not None:
        anchored = np.isin(responses.item_ids, anchors["item_id"].astype(str))
        if not anchored.any():
            raise InputError("no anchor item is among the items of the responses: compare the item ids")
    extreme &= ~anchored
    _check_extremes(responses, extreme, extremes)

    specification = specify(
        types,
        dims=dims,
        anchored=anchored,
        slope_prior=slope_prior,
        guessing_prior=guessing_prior,
        upper_prior=upper_prior,
        extreme=extreme,
        extreme_prior=EXTREME_PRIOR,
    )
    size = num_parameters(specification)
    if size > MOST_PARAMETERS:
        raise InputError(
            f"{size:,} free parameters, more than {MOST_PARAMETERS:,}: fixed nodes suit tests of some hundred items; "
            "fit fewer items, or the 1pl with estimator svi"
        )
    items = start_items(specification, right, observed)
    if anchors is not None:
        items = _place_anchors(items, anchors, responses.item_ids, anchored)
    if num_nodes is not None and num_nodes < 3:
        raise InputError(f"num_nodes {num_nodes}, expected at least 3")
    per_dimension = num_nodes or NODES_PER_DIMENSION.get(dims, 9)
    quadrature = rectangular(per_dimension, dims=dims)
    spacing = float(quadrature.nodes[1, -1] - quadrature.nodes[0, -1])

    with jax.enable_x64(True):
        state = State(jax.tree.map(jnp.asarray, items), jnp.zeros(dims), jnp.ones(dims))
        answers = Answers(jnp.asarray(responses.values == 1, float), jnp.asarray(responses.values == 0, float))
        iterations, soon = 0, min(EXPANDED, max_iterations)
        climb = functools.partial(_climb, answers=answers, quadrature=quadrature, on_iteration=on_iteration)
        if np.asarray(specification.free)[:, dims + 1 :].any():
            # the likelihood of asymptotes has several maxima: they are let go where a fit without them has ended
            bare, bare_specification = without_asymptotes(state.items, specification)
            reached, iterations, _ = climb(state._replace(items=bare), bare_specification, True, iterations, soon, 1e-3)
            state = reached._replace(items=reached.items._replace(lower=state.items.lower, upper=state.items.upper))
        # expanded to come near the maximum fast, then plainly to that of the nodes and priors exactly
        state, iterations, _ = climb(
            state, specification, True, iterations, min(iterations + soon, max_iterations), 1e-4
        )
        state, iterations, converged = climb(state, specification, False, iterations, max_iterations, tolerance)
        nodes, weights, marginal = map(np.asarray, _posterior(state, answers, quadrature))
        covariances = item_covariances(state, answers, quadrature, specification)
        state = jax.tree.map(np.asarray, state)
    ability = weights @ nodes
    variance = np.maximum(weights @ nodes**2 - ability**2, 0)
    return Fit(
        responses=responses,
        model=model if isinstance(model, str) else "mixed",
        estimator="mml",
        parameters=state.items,
        item_columns=item_columns(state.items, covariances),
        ability=ability.squeeze(1) if dims == 1 else ability,
        ability_se=np.sqrt(variance).squeeze(1) if dims == 1 else np.sqrt(variance),
        log_likelihood=float(marginal.sum()),
        num_parameters=size,
        iterations=iterations,
        converged=converged,
        seconds=time.perf_counter() - began,
        details={
            "population_mean": state.mean.tolist(),
            "population_sd": state.sd.tolist(),
            "nodes": len(nodes),
            "node_spacing": spacing * float(state.sd.max()),
        },
    )


_em_step, _posterior = jax.jit(em_step), jax.jit(posterior)


def _climb(state, specification, expand, iterations, limit, tolerance, *, answers, quadrature, on_iteration):
    """EM until the largest change in a step is below the tolerance, the objective stands still, or the limit is met.

    Returns:
        The state, the EM steps made so far, and whether it has converged.
    """
    step = functools.partial(
        _em_step, answers=answers, quadrature=quadrature, specification=specification, expand=expand
    )
    last, stalled, converged = -np.inf, 0, False
    while iterations < limit and not converged:
        state, change, objective = squarem.cycle(step, state)
        iterations += 3
        stalled = stalled + 1 if objective - last < SMALLEST_GAIN else 0
        last = objective
        converged = bool(change < tolerance) or stalled == 3
        if on_iteration is not None:
            on_iteration(iterations, float(objective))
    return state, iterations, converged


def _check_extremes(responses: ResponseMatrix, extreme: np.ndarray, choice: str) -> None:
    if choice not in ("refuse", "keep"):
        raise InputError(f"unknown choice {choice!r} for extreme items, expected refuse or keep")
    if choice == "refuse" and extreme.any():
        names = ", ".join(f"'{item}'" for item in responses.item_ids[extreme][:5])
        more = f" and {extreme.sum() - 5} more" if extreme.sum() > 5 else ""
        raise InputError(
            f"everyone or no one answered {names}{more} right, so their difficulty has no finite maximum: "
            "remove them, or keep them under a prior (extremes=keep)"
        )


def _place_anchors(
    items: ItemParameters, anchors: pd.DataFrame, item_ids: np.ndarray, anchored: np.ndarray
) -> ItemParameters:
    """Writes the anchors' parameters over the starting values."""
    table = anchors.assign(item_id=anchors["item_id"].astype(str)).set_index("item_id").loc[item_ids[anchored]]
    held = from_table(table)
    if held.slope.shape[1] > 1:
        raise InputError("anchor items need one discrimination and a difficulty")
    placed = ItemParameters(*(np.array(leaf, float) for leaf in items))
    for leaf, values in zip(placed, held, strict=True):
        leaf[anchored] = values
    return placed
