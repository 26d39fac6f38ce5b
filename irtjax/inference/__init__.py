"""Estimation of item parameters and abilities from a response matrix."""

from irtjax.errors import InputError
from irtjax.inference import svi
from irtjax.inference.result import Fit, write_fit
from irtjax.responses import ResponseMatrix

MODELS = ("1pl",)
ESTIMATORS = ("svi",)
__all__ = ["ESTIMATORS", "MODELS", "Fit", "fit", "write_fit"]


def fit(responses: ResponseMatrix, model: str = "1pl", estimator: str = "svi", **options) -> Fit:
    """Fits an item response model to a response matrix.

    Args:
        responses: subjects × items, see `irtjax.read_responses`.
        model: "1pl".
        estimator: "svi", stochastic variational inference; `options` are those of `irtjax.inference.svi.fit_1pl`.
        **options: passed to the estimator, such as `priors`, `seed` and `max_steps`.

    Returns:
        A `Fit`; `irtjax.write_fit` saves it.

    Raises:
        InputError: an unknown model or estimator, or responses that cannot be fitted.
    """
    if model not in MODELS:
        raise InputError(f"unknown model {model!r}, expected one of {', '.join(MODELS)}")
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}, expected one of {', '.join(ESTIMATORS)}")
    return svi.fit_1pl(responses, **options)
