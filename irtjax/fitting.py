"""One entry to all estimators."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from irtjax import processes
from irtjax.errors import InputError
from irtjax.estimation import diagnostics
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.result import Fit
from irtjax.estimation.scoring import item_table
from irtjax.estimation.specify import TYPES
from irtjax.explanatory.amortised import fit_amortised
from irtjax.responses.convert import as_responses_or_stored

MODELS = TYPES
ESTIMATORS = ("mml", "svi")


@processes.collective
def fit(
    responses: Any,
    model: str | Sequence[str] = "2pl",
    estimator: str = "mml",
    *,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> Fit:
    """Fits an item response model to a response matrix.

    Args:
        responses: subjects × items: a `ResponseMatrix`, a table of pandas (wide or long), an array or a list of rows
            with 1, 0 and NaN or None, or the path of a file (`irtjax.responses.convert.as_responses`). A folder of
            `irtjax.write_shards`, and what `irtjax.open_responses` opened, are read as the fit goes.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl"; for MML also a sequence of them, one per item.
        estimator: "mml", marginal maximum likelihood (`irtjax.estimation.mml.fit_mml`), or "svi", stochastic
            variational inference of the 1PL and 2PL (`irtjax.estimation.svi.fit.fit_svi`).
        columns: of a long table with other names, `{"subject": "model", "item": "question", "response": "correct"}`.
        **options: of the estimator, such as `dims` and `anchors` (MML) or `priors` and `seed` (SVI). With `features` of
            the items (an array, a table, or for MML a dict of these) both estimate difficulties, and discriminations of
            the 2PL, from these too (`irtjax.explanatory.amortised.fit_amortised`); not those of the 3PL and 4PL.
            Anchors are a table like `items.csv`, the path of one, or another fit. With a `mesh` over the devices of
            several processes all of them call this function, and all get the fit; each reads a part of the responses.

    Returns:
        A `Fit`; its method `save` writes it to files.

    Raises:
        InputError: an unknown model or estimator, or responses that cannot be fitted.

    Warns:
        FitWarning: no convergence, or many items that speak against a single dimension of "more right answers".
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}, expected one of {', '.join(ESTIMATORS)}")
    if not isinstance(model, str | Sequence):
        raise InputError(f"unknown model {model!r}, expected one of {', '.join(MODELS)}, or a sequence of them")
    responses = as_responses_or_stored(responses, options.get("mesh"), columns=columns)
    if options.get("anchors") is not None:
        options["anchors"] = item_table(options["anchors"]).reset_index()
    if estimator == "svi":
        from irtjax.estimation.svi.fit import fit_svi  # NumPyro and Optax take half a second to import

        if not isinstance(model, str):
            raise InputError("estimator svi fits one model to all items: use estimator mml for a type per item")
        _check_options(fit_svi, options, estimator)
        result = fit_svi(responses, model, **options)
    elif options.get("features") is not None:
        _check_options(fit_mml, set(options) - {"features", "on_round"}, estimator)
        result = fit_amortised(responses, model, **options)
    else:
        options.pop("features", None)
        _check_options(fit_mml, options, estimator)
        result = fit_mml(responses, model, **options)
    diagnostics.warn(result, stacklevel=4)  # the caller of what `collective` made
    return result


def _check_options(estimate: Callable[..., Fit], options: Collection[str], estimator: str) -> None:
    """Refuses options that an estimator does not have.

    Raises:
        InputError: names the first, and those that it has.
    """
    parameters = inspect.signature(estimate).parameters.values()
    own = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in own:
            raise InputError(f"estimator {estimator} has no option `{name}`, but {', '.join(own)}")
