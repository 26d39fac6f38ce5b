"""What the responses say of each item's curve, given the abilities that a scale says."""

from typing import NamedTuple

import jax
import numpy as np
import statsmodels.api as sm
from scipy.stats import norm

from irtjax.inference import Fit, fixed_nodes
from irtjax.inference.quadrature import rectangular
from irtjax.models import ItemParameters
from irtjax.responses import MISSING

FEWEST = 5.0  # subjects behind a point of an empirical curve


class EmpiricalCurves(NamedTuple):
    """Shares of right answers against ability.

    Attributes:
        theta: (Q,) abilities.
        share: (Q, I) smoothed shares of right answers; NaN where there are hardly any subjects.
        low: (Q, I) lower ends of 95% intervals.
        high: (Q, I) upper ends.
        model: the 2PL closest to them: of items that are not in the scale too, and of the same attenuation.
    """

    theta: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    model: ItemParameters


def empirical_curves(fit: Fit, values: np.ndarray) -> EmpiricalCurves:
    """Each subject is spread over the abilities by the posterior that the scale gives, which does the smoothing.

    With w_jq the posterior of subject j at node q, the share there is Σ_j w_jq y_j / Σ_j w_jq, with Wilson's interval
    (1927) for (Σ_j w_jq)² / Σ_j w_jq² subjects. Items of the scale have its own parameters; for others a logistic
    regression on these numbers gives them, which is the M-step of EM with the scale held.

    Args:
        fit: of the scale.
        values: (J, I) int8, responses of the same subjects to any items.
    """
    quadrature = rectangular()
    state = fixed_nodes.State(fit.parameters, np.zeros(1), np.ones(1))
    with jax.enable_x64(True):
        answers = fixed_nodes.to_answers(fit.responses.values)
        weights = np.asarray(fixed_nodes.expectation(state, answers, quadrature).weights)
    right, observed = (values == 1).astype(float), (values != MISSING).astype(float)
    mass = weights.T @ observed
    subjects = mass**2 / np.maximum((weights**2).T @ observed, 1e-300)
    share = weights.T @ right / np.maximum(mass, 1e-300)
    z = norm.ppf(0.975)
    centre = (share + z**2 / (2 * subjects)) / (1 + z**2 / subjects)
    half = z / (1 + z**2 / subjects) * np.sqrt(share * (1 - share) / subjects + z**2 / (4 * subjects**2))
    enough = mass >= FEWEST
    shown = (np.where(enough, array, np.nan) for array in (share, centre - half, centre + half))
    design = sm.add_constant(quadrature.nodes[:, 0])
    right_at, wrong_at = weights.T @ right, weights.T @ (observed - right)
    fitted = [
        sm.GLM(np.stack(pair, axis=1), design, family=sm.families.Binomial()).fit().params
        for pair in zip(right_at.T, wrong_at.T, strict=True)
    ]
    intercept, slope = np.transpose(fitted)
    none = np.full(len(slope), np.inf)
    return EmpiricalCurves(quadrature.nodes[:, 0], *shown, ItemParameters(slope[:, None], intercept, -none, none))
