"""Marginal maximum likelihood of the linear factor model, by the engine of all other models."""

import functools
from collections.abc import Callable

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.driver import Problem, run
from irtjax.estimation.mml import check_limits, oriented, report
from irtjax.estimation.mml_fit import fit_of
from irtjax.estimation.problem import Specification, num_parameters
from irtjax.estimation.quadrature import engine as fixed_nodes
from irtjax.estimation.quadrature.engine import TOLERANCE, QuadratureEngine
from irtjax.estimation.specify import check_dims, start_slopes
from irtjax.fits.result import Fit
from irtjax.integration.rules import SharedNodes
from irtjax.item_models import listing
from irtjax.item_models.families import Families
from irtjax.item_models.normal import ABOVE, NORMAL
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.quadrature import BOUND, nodes_per_dimension
from irtjax.responses.formats.given import Given
from irtjax.responses.scaled import MISSING, Scale, ScaledResponses
from irtjax.types import Float

MOST_DIMS = 3
END = 8.0  # standard deviations, beyond which a normal population has no mass that float64 would see
FEWEST_ITEMS = 3  # of which two say only how they go together


@checks_types
def fit_factors(
    given: Given,
    *,
    dims: int = 1,
    num_nodes: int | None = None,
    tolerance: float | None = None,
    max_iterations: int = 3000,
    standard_errors: bool = True,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits y = Σ_d a_d θ_d + mean + e with e ~ N(0, s²) of each item, without priors, to numbers of any size.

    Args:
        given: the responses, one of each subject to an item at most.
        dims: D, up to three; the first items fix the rotation.
        num_nodes: nodes per dimension in [-8, 8]; None to choose.
        tolerance: as of `irtjax.estimation.mml.fit_mml`, as are those below.
        max_iterations: see there.
        standard_errors: see there.
        on_iteration: see there.

    Returns:
        A fit whose `items.csv` has loadings, means and standard deviations of errors in the unit of the data.

    Raises:
        InputError: texts, repeated responses, an item whose responses are all alike, or fewer than three items.
    """
    check_dims(dims, len(given.item_ids))
    if dims > MOST_DIMS:
        raise InputError(f"`dims` {dims}: the normal model has up to {MOST_DIMS} dimensions")
    check_limits(max_iterations, tolerance)
    responses = standardised(given)
    model, specification = Families((NORMAL,), (0,), 2), _specification(responses.num_items, dims)
    intercept, others = NORMAL.start(np.asarray(responses.values), None, np.ones(responses.num_items, int), 1)
    slope = np.sqrt(0.5) * start_slopes(np.asarray(specification.free), dims)
    number = round((nodes_per_dimension(dims) - 1) * END / BOUND) + 1 if num_nodes is None else num_nodes
    rule = SharedNodes(number, dims, END)
    precision = TOLERANCE if tolerance is None else tolerance
    estimate, outcome = run(
        QuadratureEngine(rule, num_nodes is None, precision, standard_errors=standard_errors),
        Problem(
            np.asarray(responses.values),
            PredictorParameters(slope, intercept, others, np.ones(responses.num_items, int)),
            specification,
            model,
        ),
        max_iterations=max_iterations,
        patience=fixed_nodes.PATIENCE,
        on_iteration=None if on_iteration is None else functools.partial(report, on_iteration),
    )
    estimate = oriented(estimate)
    units = np.array([scale.unit for scale in responses.scales])
    of_unit = float(responses.observed.sum(axis=0) @ np.log(units))  # densities of z, as densities of y
    columns = listing.columns(model, estimate.items, estimate.covariances)
    return fit_of(
        responses,
        "normal",
        estimate._replace(log_likelihood=estimate.log_likelihood - of_unit),
        outcome,
        item_columns=_in_units(columns, responses),
        num_parameters=num_parameters(estimate.specification),
        groups=None,
        design=None,
        in_logits=False,
        others="other",
        details={
            "models": ["normal"] * responses.num_items,
            "grades": [None] * responses.num_items,
            "read_as": "numbers",
        },
    )


def standardised(given: Given) -> ScaledResponses:
    """Numbers as what is stored of them, on the scales that lead back.

    Raises:
        InputError: see `fit_factors`.
    """
    shape = len(given.subject_ids), len(given.item_ids)
    numbers = given.cells.numbers()
    if np.isnan(numbers).any():
        at = int(np.argmax(np.isnan(numbers)))
        raise InputError(f"{given.place(at)}: {given.cells[at]!r:.100} is not a number: fix it, or leave it empty")
    if (twice := given.repeats()) > 1:
        raise InputError(f"a subject has {twice} responses to an item: the normal model takes one of each")
    if shape[1] < FEWEST_ITEMS:
        raise InputError(f"{shape[1]} items: the normal model needs {FEWEST_ITEMS} or more")
    table = np.full(shape, np.nan)
    table[given.subjects, given.items] = numbers
    mean, sd = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    if not (sd > 0).all():
        item = given.item_ids[int(np.argmin(sd > 0))]
        raise InputError(f"item {item!r}: all responses are alike, which tells no one from another: leave it out")
    values = np.where(np.isnan(table), MISSING, (table - mean) / sd + ABOVE)
    scales = tuple(Scale(None, float(m - ABOVE * s), float(s)) for m, s in zip(mean, sd, strict=True))
    return ScaledResponses(values, np.array(given.subject_ids), np.array(given.item_ids), scales)


def _specification(num_items: int, dims: int) -> Specification:
    """All is free but what fixes the rotation; no priors."""
    free = np.ones((num_items, dims + 2), bool)
    for item in range(dims - 1):
        free[item, item + 1 : dims] = False
    nothing = np.zeros(free.shape)
    return Specification(
        free=free,
        shared=np.zeros(num_items, bool),
        prior_mean=nothing,
        prior_precision=nothing,
        dims=dims,
        has_shared=False,
        mean_fixed=True,
        sd_fixed=True,
        free_slopes=True,
    )


def _in_units(
    columns: dict[str, Float[np.ndarray, " I"]], responses: ScaledResponses
) -> dict[str, Float[np.ndarray, " I"]]:
    """Columns in the unit of the data."""
    unit = np.array([scale.unit for scale in responses.scales])
    found = {name: column * unit for name, column in columns.items()}
    return found | {"mean": found["mean"] + np.array([scale.at(ABOVE) for scale in responses.scales])}
