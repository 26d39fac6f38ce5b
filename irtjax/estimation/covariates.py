"""What is known of each subject, as predictors of its ability, and what a fit says of them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.driver import Estimate
from irtjax.estimation.grouping import in_order
from irtjax.estimation.problem import Specification
from irtjax.populations.latent_regression import FittedLatentRegression, LatentRegression
from irtjax.storage.frames import as_frame
from irtjax.types import Float, Shaped

SAME = 1e-8  # of a predictor's spread, that others leave unexplained, below which it says nothing of its own


class Predictors(NamedTuple):
    """Predictors of the ability of J subjects.

    Attributes:
        names: (C,) a covariate, or "covariate=category".
        origins: (C,) where each counts from.
        given: (J, C) from there on.
    """

    names: Shaped[np.ndarray, " C"]
    origins: Float[np.ndarray, " C"]
    given: Float[np.ndarray, "J C"]


class Design(NamedTuple):
    """The same as orthogonal columns, so that the information about their coefficients is diagonal: X = Z R.

    Attributes:
        predictors: with a column of ones first, where the mean is free.
        columns: (J, C) Z, with Z'Z = J.
        triangle: (C, C) R.
    """

    predictors: Predictors
    columns: Float[np.ndarray, "J C"]
    triangle: Float[np.ndarray, "C C"]


def as_predictors(covariates: Any, subject_ids: Shaped[np.ndarray, " J"]) -> Predictors:
    """Reads covariates. Numbers count from their mean; of categories each but the first is 1 where it is the subject's.

    Args:
        covariates: a table, a Series or a dictionary of columns, by subject id or in the order of the subjects. The
            first category is the one that occurs first, or the first of a categorical.
        subject_ids: of J subjects.

    Raises:
        InputError: no covariates, a subject without one, one that does not vary, or one that others determine.
    """
    covariates = as_frame(covariates, "covariates", "subject_id")
    table = _table(covariates)
    if isinstance(covariates, pd.DataFrame | pd.Series):
        table = in_order(table, subject_ids, "covariates")
    elif len(table) != len(subject_ids):
        raise InputError(f"`covariates`: {len(table)} rows for {len(subject_ids)} subjects")
    names: list[str] = []
    origins: list[float] = []
    columns: list[np.ndarray] = []
    for name, values in table.items():
        missing = values.isna().to_numpy()
        if missing.any():
            raise InputError(
                f"`covariates`: subject '{subject_ids[missing][0]}' has no '{name}' ({missing.sum():,} of "
                f"{len(missing):,} such): leave them out of the responses, or the covariate"
            )
        if values.nunique() < 2:
            raise InputError(f"`covariates`: '{name}' is {values.iloc[0]} for all subjects, which explains nothing")
        if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
            numbers = values.to_numpy(float)
            if not np.isfinite(numbers).all():
                raise InputError(
                    f"`covariates`: '{name}' of subject '{subject_ids[~np.isfinite(numbers)][0]}' is infinite"
                )
            names, origins = [*names, str(name)], [*origins, float(numbers.mean())]
            columns.append(numbers - numbers.mean())
            continue
        if isinstance(values.dtype, pd.CategoricalDtype):
            categories = values.cat.remove_unused_categories().cat.categories
        else:
            categories = pd.unique(values)
        for category in categories[1:]:
            names, origins = [*names, f"{name}={category}"], [*origins, 0.0]
            columns.append((values == category).to_numpy(float))
    return Predictors(np.array(names), np.array(origins), np.stack(columns, axis=1))


def _table(covariates: Any) -> pd.DataFrame:
    """Covariates as a table.

    Raises:
        InputError: they are none.
    """
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame(covariates.name or "covariate")
    if isinstance(covariates, Mapping):
        series = [one for one in covariates.values() if isinstance(one, pd.Series)]
        if series:
            raise InputError(
                "`covariates`: a dictionary of Series: give a table, `pandas.DataFrame(...)`, by subject id"
            )
        try:
            covariates = pd.DataFrame(dict(covariates))
        except ValueError as error:
            raise InputError("`covariates`: expected columns of one length") from error
    if not isinstance(covariates, pd.DataFrame) or not covariates.shape[1]:
        raise InputError("`covariates`: expected a table with a row for each subject, by its id, and a column or more")
    return covariates


def design_of(predictors: Predictors, *, with_mean: bool) -> Design:
    """Orthogonal columns.

    Raises:
        InputError: too few subjects, or a predictor that others determine.
    """
    given = predictors.given
    if with_mean:
        given = np.concatenate([np.ones((len(given), 1)), given], axis=1)
    constant = np.concatenate([np.ones((len(given), 1)), predictors.given], axis=1)
    spread = np.linalg.norm(predictors.given - predictors.given.mean(axis=0), axis=0)
    own = (
        np.abs(np.diag(np.linalg.qr(constant, mode="r")))[1:]
        if len(given) > constant.shape[1]
        else np.zeros(len(spread))
    )
    if (own <= SAME * spread).any():
        name = predictors.names[int(np.argmax(own <= SAME * spread))]
        raise InputError(
            f"`covariates`: '{name}' is determined by the others, or there are too few subjects: leave it out"
        )
    columns, triangle = np.linalg.qr(given)
    scale = np.copysign(np.sqrt(len(given)), np.diag(triangle))
    return Design(predictors, columns * scale, triangle / scale[:, None])


def latent_design(covariates: Any, groups: Any, subject_ids: Shaped[np.ndarray, " J"], *, with_mean: bool) -> Design:
    """The design of a fit that was given these covariates.

    Raises:
        InputError: groups beside them, or as `as_predictors` and `design_of`.
    """
    if groups is not None:
        raise InputError("`covariates` do not go with `groups`: make the group one of the covariates")
    return design_of(as_predictors(covariates, subject_ids), with_mean=with_mean)


def with_predictors(specification: Specification, design: Design) -> Specification:
    """What is free with a population whose mean depends on predictors."""
    return dataclasses.replace(specification, num_predictors=design.columns.shape[1])


def fitted(estimate: Estimate, design: Design, *, in_logits: bool) -> FittedLatentRegression:
    """The latent regression of a fit, with standard errors by the delta method.

    Args:
        estimate: on the scale that is reported.
        design: of the subjects.
        in_logits: whether that is the scale of slopes of 1, in place of one shared slope: coefficients and deviation
            are then times that slope, and have a part in its error.
    """
    population = estimate.population
    assert isinstance(population, LatentRegression)
    inverse = np.linalg.inv(design.triangle)
    coefficients = inverse @ population.mean  # in the order of the predictors, a mean before
    (number, dims), sd = coefficients.shape, population.sd
    errors, sd_errors = np.full((number, dims), np.nan), np.full(dims, np.nan)
    if estimate.of_groups is not None:
        covariance = np.nan_to_num(estimate.of_groups)
        for dimension in range(dims):
            at = np.append(np.arange(number) * dims + dimension, len(covariance) - 1)
            by = np.concatenate([inverse * (sd[0] if in_logits else 1.0), coefficients[:, dimension, None]], axis=1)
            by[:, -1] *= in_logits
            errors[:, dimension] = np.sqrt(np.maximum(np.diag(by @ covariance[np.ix_(at, at)] @ by.T), 0.0))
            own = np.array([number * dims + dimension, len(covariance) - 1])
            known = not np.isnan(estimate.of_groups[own[0], own[0]])
            of_log_sd = covariance[own[0], own[0]] + in_logits * (
                2 * covariance[own[0], own[1]] + covariance[own[1], own[1]]
            )
            sd_errors[dimension] = sd[dimension] * np.sqrt(max(of_log_sd, 0.0)) if known else np.nan
    has_mean = number > len(design.predictors.names)
    none = np.zeros(dims)
    return FittedLatentRegression(
        names=design.predictors.names,
        origins=design.predictors.origins,
        coefficients=coefficients[int(has_mean) :],
        coefficients_se=errors[int(has_mean) :],
        intercept=coefficients[0] if has_mean else none,
        intercept_se=errors[0] if has_mean else none,
        residual_sd=sd,
        residual_sd_se=sd_errors,
        means=design.columns @ population.mean,
    )
