"""Difficulties from responses and from features of the items at once (amortised IRT).

    b_i = f(x_i) + r_i,    r_i ~ N(0, τ²)

An item with many responses keeps its own estimate, one with few borrows from items like it, and one with none has f.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.driver import Status
from irtjax.estimation.item_features import item_features
from irtjax.estimation.mml.fit import fit_mml
from irtjax.estimation.priors import ItemPriors
from irtjax.estimation.regression import Regression, regress
from irtjax.estimation.result import Fit
from irtjax.responses.stored import Responses

START_SD = 3.0  # of difficulties, in logits, before anything is known of them
SETTLED = 0.02  # change of f in standard deviations of the residual, or of log τ, that is none
MOST_ROUNDS = 15
MODELS = ("rasch", "1pl")


def fit_amortised(
    responses: Responses,
    model: str | Sequence[str] = "1pl",
    *,
    features: Any,
    on_round: Callable[[int, float], None] | None = None,
    **options: Any,
) -> Fit:
    """Fits by marginal maximum likelihood, with a prior of each difficulty whose mean is a regression on features.

    The regression and the fit take turns until neither moves the other. Each round takes the difficulties without
    their priors, y = (b̂/s² - f/τ²) v with 1/v = 1/s² - 1/τ², regresses them (`regression.regress`), and fits again
    under N(f, τ²). Where it ends, difficulties and coefficients are at their joint mode, and τ and the variance of the
    coefficients where the responses are likeliest (empirical Bayes, in the normal approximation). All this is done with
    the Rasch model. The 1PL is the same one in other units: N(f, τ²) is the prior of its a b.

    Args:
        responses: as in `fit_mml`.
        model: "rasch" or "1pl", which are the same model in other units.
        features: (I, F) numbers in the order of the items, or a table whose index has their ids, with others. A dict of
            these, by any names, are blocks whose weights have a variance each: for a few columns beside hundreds of
            numbers of an encoder.
        on_round: called with the number of rounds and what `SETTLED` is compared with.
        **options: others of `fit_mml`.

    Returns:
        The fit under the last of these priors, with `regression`; not converged if the rounds did not settle.

    Raises:
        InputError: features that are missing or not finite, or what `fit_mml` refuses.
    """
    if model not in MODELS:
        raise InputError(
            f"estimator mml takes features with the models {' and '.join(MODELS)}, not with {model!r}: "
            "use estimator svi for the 2pl"
        )
    usual = {"dims": 1, "intercept_prior": None, "anchors": None, "standard_errors": True}
    for name, value in usual.items():
        given = options.get(name, value)
        if given is not value and not (name == "dims" and given == 1):
            raise InputError(f"`{name}` does not go with `features`")
    x, blocks = item_features(features, responses.item_ids)
    mean, sd = np.zeros(responses.num_items), START_SD
    number, change = 0, np.inf
    found: Regression | None = None
    while number < MOST_ROUNDS and change >= SETTLED:
        fit = fit_mml(responses, "rasch", intercept_prior=ItemPriors(-mean, np.full(mean.shape, sd)), **options)
        found = regress(*without_prior(fit, mean, sd), x, found, blocks)
        new, new_sd = found.predict(x)[0], float(found.residual_sd)
        change = max(float(np.abs(new - mean).max()) / new_sd, abs(np.log(new_sd / sd)))
        mean, sd, number = new, new_sd, number + 1
        if on_round is not None:
            on_round(number, change)
    fit = fit_mml(responses, model, intercept_prior=ItemPriors(-mean, np.full(mean.shape, sd)), **options)
    assert found is not None
    found = found.rescaled(1 / float(fit.parameters.slope[0, 0]))
    return dataclasses.replace(
        fit,
        regression=found,
        status=fit.status if change < SETTLED else Status.OUT_OF_ITERATIONS,
        details=fit.details | {"features": x.shape[1], "rounds": number, "residual_sd": float(found.residual_sd)},
    )


def without_prior(fit: Fit, mean: np.ndarray, sd: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Difficulties as the responses alone would have them, and the variances of their errors.

    Args:
        fit: under a prior N(mean, sd²) of each difficulty.
        mean: (I,) of that prior.
        sd: (I,) of that prior, or one for all.

    Returns:
        (I,) both, in the normal approximation; 0 and infinite where the responses say nothing.
    """
    precision = fit.difficulty_se**-2.0
    own = precision - sd**-2.0
    known = np.isfinite(own) & (own > 1e-6 * precision)
    own = np.where(known, own, 1.0)
    y = np.where(known, (fit.difficulty * precision - mean / sd**2) / own, 0.0)
    return y, np.where(known, 1 / own, np.inf)
