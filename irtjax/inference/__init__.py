"""Estimation of item parameters and abilities from a response matrix."""

from collections.abc import Sequence

from irtjax.errors import InputError
from irtjax.inference import diagnosis, svi
from irtjax.inference.diagnosis import FitWarning
from irtjax.inference.mml import fit_mml
from irtjax.inference.result import Fit, likelihood_ratio_test, read_items, write_fit
from irtjax.inference.specification import TYPES
from irtjax.responses import ResponseMatrix

MODELS = TYPES
ESTIMATORS = ("mml", "svi")
__all__ = ["ESTIMATORS", "MODELS", "Fit", "FitWarning", "fit", "likelihood_ratio_test", "read_items", "write_fit"]


def fit(responses: ResponseMatrix, model: str | Sequence[str] = "2pl", estimator: str = "mml", **options) -> Fit:
    """Fits an item response model to a response matrix.

    Args:
        responses: subjects × items, see `irtjax.read_responses`.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl"; for MML also a sequence of one of them an item.
        estimator: "mml", marginal maximum likelihood (`irtjax.inference.mml.fit_mml`), or "svi", stochastic
            variational inference of the 1PL and 2PL (`irtjax.inference.svi.fit_svi`).
        **options: of the estimator, such as `dims` and `anchors` (MML) or `priors` and `seed` (SVI).

    Returns:
        A `Fit`; `irtjax.write_fit` saves it.

    Raises:
        InputError: an unknown model or estimator, or responses that cannot be fitted.

    Warns:
        FitWarning: no convergence, or many items that speak against a single dimension of "more right answers".
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}, expected one of {', '.join(ESTIMATORS)}")
    estimate = fit_mml if estimator == "mml" else svi.fit_svi
    result = estimate(responses, model, **options)
    diagnosis.warn(result)
    return result
