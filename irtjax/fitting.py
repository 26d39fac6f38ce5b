"""One entry to all estimators."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax import choices, processes
from irtjax.arguments import checks_types, require_types
from irtjax.choices import AUTO, ESTIMATORS
from irtjax.errors import InputError
from irtjax.estimation import diagnostics
from irtjax.estimation.cells_or_answers import held_for, wanted
from irtjax.estimation.facets import fit_facets
from irtjax.estimation.families import fit_families
from irtjax.estimation.free_items import FreeItems, as_kinds, with_free_items
from irtjax.estimation.grouping import ALL, SLOPE, membership
from irtjax.estimation.linear_factors import fit_factors
from irtjax.estimation.mml import fit_mml
from irtjax.explanatory.amortised import fit_amortised
from irtjax.fits import category_text
from irtjax.fits.reading import Models, read, read_judged
from irtjax.fits.result import Fit
from irtjax.responses.convert import as_given
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales, in_memory, on_scales
from irtjax.scoring.abilities import item_table

MODELS = choices.OF_RIGHT_WRONG
NORMAL = "normal"  # of numbers of any size: not by "auto", nor by the command line
NAMES = choices.MODELS


@checks_types
@processes.collective
def fit(
    responses: Any,
    model: str | Sequence[str] = "2pl",
    estimator: str = "mml",
    *,
    columns: Mapping[str, str] | None = None,
    grades: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    repeats: str | None = None,
    trials: Any = None,
    metric: str | Sequence[str] | None = None,
    filter: str | Sequence[str] | None = None,
    facet: str | None = None,
    sparse: bool | None = None,
    mesh: jax.sharding.Mesh | None = None,
    **options: Any,
) -> Fit:
    """Fits an item response model to a response matrix.

    Args:
        responses: subjects × items: a `ResponseMatrix`, `SparseResponses`, a table of pandas (wide or long) or Arrow, a
            sparse array of SciPy, an array or a list of rows with 1, 0 and NaN or None, or the path of a file
            (`irtjax.responses.convert.as_responses`). A folder of `irtjax.write_shards`, and what
            `irtjax.open_responses` opened, are read as the fit goes. Grades, categories, counts and shares are given in
            the same ways, or as `ScaledResponses`. A subject may answer an item several times in a long table or a log:
            right and wrong answers are then counted ("2pl" and "auto" fit the binomial model, whose trials have the
            curve of the 2PL, "3pl" is "binomial_3pl"), and of others the mean counts.
        model: "rasch", "1pl", "2pl", "3pl" or "4pl" of right and wrong answers; a model of other responses
            (`irtjax.item_models.listing.MODELS`), such as "graded", "gpcm" or "nominal"; or "auto": the 2PL of right
            and wrong answers, "graded" of grades, as the responses are. "normal", of numbers of any size, is the linear
            factor model. For MML also a sequence of them, one per item;
            beside grades, "2pl" and "1pl" are of items that are right or wrong.
        estimator: "mml", marginal maximum likelihood (`irtjax.estimation.mml.fit_mml`), or "svi", stochastic
            variational inference of the 1PL and 2PL (`irtjax.svi.fit.fit_svi`), and of one model of other
            responses (`irtjax.svi.family_fit.fit_svi_families`).
        columns: of a long table with other names, `{"subject": "model", "item": "question", "response": "correct"}`.
        grades: all grades or categories, the lowest first, such as `["low", "mid", "high"]`; of all items, or a
            dictionary by item. By default the numbers that occur.
        repeats: what is done where a subject answers an item several times. Of grades the one nearest to their mean
            counts, the higher of two that are as near; "mean" does so with right and wrong answers too. "last" takes
            the last response, of all kinds.
        trials: of counts: one number, one per item, (J, I), or the name of a column of a long table. By default the
            column trials if there is one, else the number of responses to an item.
        metric: of the logs of a harness, as of `irtjax.read_responses`.
        filter: of the same logs, as there.
        facet: the column of a long table that says who judged. Judges then have severities beside the difficulties of
            the items, Σ = 0 (`irtjax.estimation.facets.fit_facets`; MML): with "pcm" and "rsm" the many-facet Rasch
            model (Linacre 1989). `Fit.facets` has them.
        sparse: whether a fit goes by single answers, in time and memory, and not by cells of the matrix. By default
            where there are more than 4 million cells of which fewer than 10% have an answer, if the model allows it.
            Both estimators do so with all models, of grades, counts and shares too; MML on nodes that subjects share.
        mesh: the devices that work on it; of several processes all call this function, and all get the fit; each reads
            a part of the responses.
        **options: of the estimator, such as `dims` and `anchors` (MML) or `priors` and `seed` (SVI). With `features` of
            the items (an array, a table, or for MML a dict of these) both estimate difficulties, and discriminations of
            the 2PL, from these too (`irtjax.explanatory.amortised.fit_amortised`); not those of the 3PL and 4PL. MML
            does so for "graded", "binomial" and "binomial_1pl" as well.
            With `groups` of subjects `free_by_group` names items whose parameters differ between these: by item id
            "all", "difficulty" (all but the slope) or "slope" (not the intercept), or ids of items of which all do. The
            table of items then has a row for each group (column `group`), and abilities are by the own group's items.
            `covariates` of the subjects, a table by subject id, say what mean ability depends on: `Fit.covariates`
            then has the coefficients (MML).
            Anchors are a table like `items.csv`, the path of one, or another fit.

    Returns:
        A `Fit`; its method `save` writes it to files.

    Raises:
        InputError: an unknown model or estimator, or responses that cannot be fitted.

    Warns:
        FitWarning: no convergence, or many items that speak against a single dimension of "more right answers".
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}, expected one of {', '.join(ESTIMATORS)}")
    _require_types(options, estimator)
    if mesh is not None:
        options["mesh"] = mesh
    if not isinstance(model, str | list | tuple):  # but of NumPy or pandas, where == goes by entry
        model = list(model)
    choice = {"columns": columns, "grades": grades, "repeats": repeats, "trials": trials}
    choice |= {
        name: value for name, value in (("metric", metric), ("filter", filter)) if value is not None and len(value)
    }
    if facet is not None:
        return _fit_judged(responses, model, estimator, facet, choice, options)
    if model == NORMAL:
        return _fit_numbers(responses, estimator, choice, options)
    wish = wanted(responses, sparse, options, estimator)
    responses, found = read(responses, model, mesh, sparse=wish, **choice)
    free = None
    if options.get("free_by_group") is not None:
        free = _with_free_items(responses, found, estimator, options)
        responses, options["groups"] = free.responses, free.membership
        found = found if isinstance(found, str) else [found[i] for i in free.source]
    options.pop("free_by_group", None)
    held = held_for(responses, sparse, options, estimator)
    if on_scales(responses):
        result = _fit_scaled(held, found, estimator, options)
    else:
        result = _fit_scored(held, found, estimator, options)
        if model == AUTO:
            result.details["read_as"] = "right and wrong"
    if isinstance(held, SparseResponses):
        result.details["num_answers"] = held.num_answers
    if isinstance(responses, ResponseMatrix):
        result = dataclasses.replace(result, responses=responses)
    if isinstance(responses, ScaledResponses):  # without categories that nobody was given
        result = dataclasses.replace(result, responses=result.responses.read())
    if free is not None:
        result.details["free_by_group"] = {
            "item": free.responses.item_ids.astype(str).tolist(),
            "group": free.group.tolist(),
        }
    diagnostics.warn(result, stacklevel=5)  # the caller of what the decorators made
    return result


def _require_types(options: Mapping[str, Any], estimator: str) -> None:
    """Refuses options of other types than the estimator takes; but anchors are read first.

    Raises:
        InputError: names the first.
    """
    estimate: Callable[..., Fit] = fit_mml
    if estimator == "svi":
        from irtjax.svi.fit import fit_svi  # NumPyro and Optax take half a second to import

        estimate = fit_svi
    require_types(estimate, {name: value for name, value in options.items() if name != "anchors"})


def _with_free_items(
    responses: Any, model: str | Sequence[str], estimator: str, options: Mapping[str, Any]
) -> FreeItems:
    """Responses with a column for each group at the items that are free by group.

    Raises:
        InputError: no groups, another estimator, options that go by item, or slopes or difficulties alone of items with
            asymptotes.
    """
    if estimator != "mml" or options.get("groups") is None:
        raise InputError("`free_by_group` needs estimator mml and `groups`")
    for name in ("features", "anchors"):
        if options.get(name) is not None:
            raise InputError(f"`free_by_group` does not go with `{name}`")
    if not isinstance(options.get("guessing"), int | float | None):
        raise InputError("`free_by_group` does not go with a `guessing` of each item: give one number")
    given = in_memory(responses)
    kinds = as_kinds(options["free_by_group"], given.item_ids)
    models = [model] * given.num_items if isinstance(model, str) else list(model)
    for item, kind in kinds.items():
        if kind == SLOPE and models[item] in ("rasch", "1pl", "pcm", "rsm", "nominal", "binomial_1pl"):
            raise InputError(f"`free_by_group`: '{given.item_ids[item]}', a {models[item]}, has no slope of its own")
        if kind != ALL and models[item] in ("3pl", "4pl"):
            raise InputError(
                f"`free_by_group`: of item '{given.item_ids[item]}', a {models[item]}, expected {ALL}: "
                "its asymptotes are not tied"
            )
    return with_free_items(given, membership(options["groups"], given.subject_ids), kinds)


def _fit_scaled(responses: OnScales, model: str | Sequence[str], estimator: str, options: dict[str, Any]) -> Fit:
    """Of grades, categories, counts or shares.

    Raises:
        InputError: see `fit`.
    """
    kept = ("priors",) if estimator == "mml" else ("mesh",)  # where None means none
    options = {name: value for name, value in options.items() if name in kept or (name != "mesh" and value is not None)}
    estimate: Callable[..., Fit] = fit_families
    if estimator == "svi":
        from irtjax.svi.family_fit import fit_svi_families  # as of right and wrong answers

        if not isinstance(model, str):
            raise InputError("estimator svi fits one model to all items: use estimator mml for a model per item")
        estimate = fit_svi_families
    with_features = estimator == "mml" and "features" in options
    own = set(options) - ({"features", "on_round"} if with_features else set())
    _check_options(estimate, own, f"{estimator} of {category_text.said(responses.scales)}")
    if "anchors" in options:
        options["anchors"] = item_table(options["anchors"]).reset_index()
    require_estimable(responses)
    result = (fit_amortised if with_features else estimate)(responses, model, **options)
    result.details.update(category_text.record(responses, result.responses, result.details["models"]))
    return result


def _fit_numbers(responses: Any, estimator: str, choice: dict[str, Any], options: dict[str, Any]) -> Fit:
    """Of numbers of any size.

    Raises:
        InputError: see `fit`.
    """
    if estimator != "mml":
        raise InputError(f"estimator {estimator} has no normal model: use estimator mml")
    for name in ("grades", "repeats", "trials"):
        if choice.pop(name, None) is not None:
            raise InputError(f"`{name}` is not for the normal model, whose responses are numbers")
    options = {name: value for name, value in options.items() if value is not None}
    _check_options(fit_factors, options, "mml of the normal model")
    if isinstance(responses, np.ndarray):  # whose negative numbers are not missing
        responses = pd.DataFrame(responses)
    result = fit_factors(as_given(responses, **choice), **options)
    diagnostics.warn(result, stacklevel=6)
    return result


def _fit_judged(
    responses: Any, model: Models, estimator: str, facet: str, choice: dict[str, Any], options: dict[str, Any]
) -> Fit:
    """Of responses that say who judged.

    Raises:
        InputError: see `fit`.
    """
    if estimator != "mml":
        raise InputError(f"estimator {estimator} has no facet: use estimator mml")
    options = {
        name: value for name, value in options.items() if name == "priors" or (name != "mesh" and value is not None)
    }
    _check_options(fit_facets, options, "mml with a facet")
    judged, found = read_judged(responses, model, facet, **choice)
    result = fit_facets(judged, found, facet, **options)
    result.details.update(category_text.record(judged.of_rows, judged.of_rows, result.details["models"]))
    result.details["read_as"] += f" by {len(judged.judge_ids):,} of the facet {facet}"
    diagnostics.warn(result, stacklevel=6)
    return result


def _fit_scored(responses: Any, model: str | Sequence[str], estimator: str, options: dict[str, Any]) -> Fit:
    """Of right and wrong answers.

    Raises:
        InputError: see `fit`.
    """
    if options.get("anchors") is not None:
        options["anchors"] = item_table(options["anchors"]).reset_index()
    if estimator == "svi":
        from irtjax.svi.fit import fit_svi  # NumPyro and Optax take half a second to import

        if not isinstance(model, str):
            raise InputError("estimator svi fits one model to all items: use estimator mml for a type per item")
        _check_options(fit_svi, options, estimator)
        return fit_svi(responses, model, **options)
    if options.get("features") is not None:
        _check_options(fit_mml, set(options) - {"features", "on_round"}, estimator)
        return fit_amortised(responses, model, **options)
    options.pop("features", None)
    _check_options(fit_mml, options, estimator)
    return fit_mml(responses, model, **options)


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
