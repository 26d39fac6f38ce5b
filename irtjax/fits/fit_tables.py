"""The tables of a fit: one row per item, one row per subject."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.populations.normal import Population
from irtjax.responses.matrix import share_right
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import Responses, on_scales
from irtjax.types import Bool, Float


def items(
    responses: Responses | ScaledResponses,
    columns: Mapping[str, Float[np.ndarray, " I"]],
    extreme: Bool[np.ndarray, " I"],
    discriminates: Bool[np.ndarray, " I"] | None,
    details: Mapping[str, Any],
) -> pd.DataFrame:
    """The table of items; arguments as the attributes of a `Fit`.

    Items that are not right/wrong have their model (an entry of `details`) and their categories beside the estimates.
    Where some are free by group, `group` is that of the row, empty of items that all groups have in common.
    """
    kinds: dict[str, Any] = {}
    if on_scales(responses):
        kinds = {"model": details["models"], "grades": [scale.text for scale in responses.scales]}
    return pd.DataFrame(
        {
            "item_id": responses.item_ids,
            **({"group": details["free_by_group"]["group"]} if "free_by_group" in details else {}),
            **kinds,
            **columns,
            **_totals(responses, axis=0),
            "extreme": extreme.astype(int),
            **({} if discriminates is None else {"discriminates": discriminates.astype(int)}),
        }
    )


def subjects(
    responses: Responses | ScaledResponses,
    population: Population | FittedGroups | FittedLatentRegression,
    ability: Float[np.ndarray, "J ..."],
    error: Float[np.ndarray, "J ..."],
) -> pd.DataFrame:
    """The table of subjects; abilities and their errors are numbered where there are several dimensions."""
    if ability.ndim == 1:
        columns = {"ability": ability, "ability_se": error}
    else:
        columns = {}
        for k in range(ability.shape[1]):
            columns |= {f"ability_{k + 1}": ability[:, k], f"ability_{k + 1}_se": error[:, k]}
    group = {"group": population.names[population.member]} if isinstance(population, FittedGroups) else {}
    return pd.DataFrame({"subject_id": responses.subject_ids, **group, **columns, **_totals(responses, axis=1)})


def groups(population: FittedGroups) -> pd.DataFrame:
    """The table of groups; means and standard deviations are numbered where there are several dimensions."""
    columns: dict[str, np.ndarray] = {}
    dims = population.means.shape[1]
    for name, leaf in (("mean", population.means), ("sd", population.sds)):
        error = population.means_se if name == "mean" else population.sds_se
        for k in range(dims):
            ending = f"_{k + 1}" if dims > 1 else ""
            columns |= {f"{name}{ending}": leaf[:, k], f"{name}{ending}_se": error[:, k]}
    number = np.bincount(population.member, minlength=len(population.names))
    return pd.DataFrame({"group": population.names, "num_subjects": number, **columns})


def covariates(population: FittedLatentRegression) -> pd.DataFrame:
    """The table of predictors of ability; columns are numbered where there are several dimensions."""
    has_intercept = bool((population.intercept_se != 0).any())
    columns: dict[str, np.ndarray] = {"covariate": population.names}
    coefficients, errors, origins = population.coefficients, population.coefficients_se, population.origins
    if has_intercept:
        columns["covariate"] = np.append("(intercept)", population.names)
        coefficients = np.concatenate([population.intercept[None], coefficients])
        errors, origins = np.concatenate([population.intercept_se[None], errors]), np.append(np.nan, origins)
    for k in range(coefficients.shape[1]):
        ending = f"_{k + 1}" if coefficients.shape[1] > 1 else ""
        z = np.abs(coefficients[:, k]) / errors[:, k]
        columns |= {f"coefficient{ending}": coefficients[:, k], f"coefficient{ending}_se": errors[:, k]}
        columns[f"p_value{ending}"] = 2 * ndtr(-z)
    return pd.DataFrame({**columns, "counted_from": origins})


def of_populations(population: Population | FittedGroups | FittedLatentRegression) -> dict[str, Any]:
    """What `fit.json` says of several populations; nothing of one."""
    if isinstance(population, FittedGroups):
        return {"groups": groups(population).to_dict("records")}
    if isinstance(population, FittedLatentRegression):
        rows, explained = covariates(population).to_dict("records"), population.explained.tolist()
        return {"covariates": rows, "variance_explained_by_covariates": explained}
    return {}


def facets(found: Mapping[str, Any]) -> pd.DataFrame:
    """The table of judges, out of the entry `facet` of `fit.json`."""
    columns = ("severity", "severity_se", "num_responses", "mean_response")
    return pd.DataFrame({f"{found['name']}_id": found["ids"], **{name: found[name] for name in columns}})


def _totals(responses: Responses | ScaledResponses, axis: int) -> dict[str, np.ndarray]:
    if on_scales(responses):
        return {"num_responses": responses.counts(axis)[1], "mean_response": responses.mean(axis)}
    right, observed = responses.counts(axis)
    return {"num_responses": observed, "proportion_correct": share_right(right, observed)}
