"""Which items can be guessed? The 3PL against the 2PL, item by item."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2

from irtjax.estimation.mml import fixed_nodes
from irtjax.estimation.mml.fixed_nodes import State
from irtjax.estimation.parameterization import Specification, specify, start_items
from irtjax.kernels.quadrature import rectangular
from irtjax.responses.matrix import ResponseMatrix, counts
from irtjax.scale.multiple_tests import holm

SMALLEST_GAIN = 3e-4  # nats in three EM steps
SMALLEST_RATIO = 1.0  # p > 0.15: an item below is not guessed, whatever its exact statistic
TOLERANCE = 1e-5
MAX_STEPS = 3000


def guessing_tests(responses: ResponseMatrix, on_item: Callable[[int], None] = lambda _: None) -> pd.DataFrame:
    """Likelihood-ratio test of c_i > 0 for each item: the 3PL of all items against the same with c_i = 0, no priors.

    The hypothesis c_i = 0 is on the boundary of the parameter space, so that twice the difference of the
    log-likelihoods is 0 or χ² with one degree of freedom, with probability ½ each (Self and Liang 1987): the p-value is
    half that of χ².

    Each restricted model starts from the maximum of the full one, so that few EM steps reach its own maximum. It ends
    as soon as its statistic is below `SMALLEST_RATIO`: the statistic is then an upper bound, the p-value above 0.05.

    Args:
        responses: complete or not.
        on_item: called with the number of items done.

    Returns:
        One row per item: `guessing` in the full model, `likelihood_ratio`, `p_value`, `p_holm`.
    """
    num_items = responses.num_items
    full = specify(["3pl"] * num_items, guessing_prior=None)
    quadrature = rectangular()
    start = start_items(full, *counts(responses.values, axis=0))
    with jax.enable_x64(True):
        state, answers, _, _ = fixed_nodes.solve(
            responses.values, start, full, quadrature, tolerance=TOLERANCE, max_iterations=MAX_STEPS
        )
        best = float(fixed_nodes.expectation(state, answers, quadrature).log_likelihood)

        def enough(reached: float, gain: float) -> bool:
            return bool(gain < SMALLEST_GAIN or 2 * (best - reached) < SMALLEST_RATIO)

        restricted = np.empty(num_items)
        for item in range(num_items):
            begin, without = _without_guessing(state, full, item)
            _, restricted[item] = fixed_nodes.resume(
                begin, answers, without, quadrature, until=enough, max_iterations=MAX_STEPS
            )
            on_item(item + 1)
    # the full model contains the restricted ones: if one of them ended higher, the full one had not quite converged
    ratio = 2 * np.maximum(max(best, restricted.max()) - restricted, 0.0)
    p_value = chi2.sf(ratio, 1) / 2
    return pd.DataFrame(
        {
            "guessing": expit(state.items.lower),
            "likelihood_ratio": ratio,
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    )


def _without_guessing(state: State, full: Specification, item: int) -> tuple[State, Specification]:
    lower, free = state.items.lower.copy(), full.free.copy()
    lower[item], free[item, 2] = -np.inf, False
    return state._replace(items=state.items._replace(lower=lower)), dataclasses.replace(full, free=free)
