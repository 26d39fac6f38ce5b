"""Which items can be guessed? The 3PL against the 2PL, item by item."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import chi2

from irtjax.estimation.driver import Info, Problem, run
from irtjax.estimation.priors import Priors
from irtjax.estimation.quadrature.engine import PATIENCE, QuadratureEngine
from irtjax.estimation.specify import specify, start_items
from irtjax.integration.rules import SharedNodes
from irtjax.kernels.quadrature import STANDARD_NODES
from irtjax.responses.matrix import ResponseMatrix, counts
from irtjax.scale.multiple_tests import holm

SMALLEST_RATIO = 1.0  # p > 0.15: an item below is not guessed, whatever its exact statistic
TOLERANCE = 0.01  # standard errors; the log-likelihood is within 1e-4 nats then
MAX_STEPS = 1000
FULL = QuadratureEngine(SharedNodes(STANDARD_NODES, 1), adapt=False, tolerance=TOLERANCE, standard_errors=False)
RESTRICTED = dataclasses.replace(FULL, warm=True, search=False)


def guessing_tests(responses: ResponseMatrix, on_item: Callable[[int], None] = lambda _: None) -> pd.DataFrame:
    """Likelihood-ratio test of c_i > 0 for each item: the 3PL of all items against the same with c_i = 0, no priors.

    The hypothesis c_i = 0 is on the boundary of the parameter space, so that twice the difference of the
    log-likelihoods is 0 or χ² with one degree of freedom, with probability ½ each (Self and Liang 1987): the p-value is
    half that of χ².

    Each restricted model starts from the maximum of the full one, so that few steps reach its own maximum. It ends as
    soon as its statistic is below `SMALLEST_RATIO`: the statistic is then an upper bound, the p-value above 0.05.

    Args:
        responses: complete or not.
        on_item: called with the number of items done.

    Returns:
        One row per item: `guessing` in the full model, `likelihood_ratio`, `p_value`, `p_holm`.
    """
    num_items = responses.num_items
    full = specify(["3pl"] * num_items, priors=Priors(guessing=None))
    start = start_items(full, *counts(responses.values, axis=0))
    estimate, _ = run(FULL, Problem(responses.values, start, full), max_iterations=MAX_STEPS, patience=PATIENCE)
    best = float(estimate.log_likelihoods.sum())

    def enough(_: int, info: Info) -> bool:
        return 2 * (best - info.objective) < SMALLEST_RATIO

    restricted = np.empty(num_items)
    for item in range(num_items):
        problem = _without_guessing(Problem(responses.values, estimate.items, full), item)
        reached, _ = run(RESTRICTED, problem, max_iterations=MAX_STEPS, patience=PATIENCE, on_iteration=enough)
        restricted[item] = reached.log_likelihoods.sum()
        on_item(item + 1)
    # the full model contains the restricted ones: if one of them ended higher, the full one had not quite converged
    ratio = 2 * np.maximum(max(best, restricted.max()) - restricted, 0.0)
    p_value = chi2.sf(ratio, 1) / 2
    return pd.DataFrame(
        {
            "guessing": expit(estimate.items.lower),
            "likelihood_ratio": ratio,
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    )


def _without_guessing(problem: Problem, item: int) -> Problem:
    lower, free = np.array(problem.items.lower), np.array(problem.specification.free)
    lower[item], free[item, 2] = -np.inf, False
    return Problem(
        problem.values, problem.items._replace(lower=lower), dataclasses.replace(problem.specification, free=free)
    )
