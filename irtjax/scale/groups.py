"""Do groups of subjects differ? Raw scores and abilities are compared between groups and regressed on covariates."""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import f_oneway, ttest_ind
from statsmodels.regression.linear_model import OLS

from irtjax.errors import InputError
from irtjax.scale.multiple_tests import holm
from irtjax.types import Shaped


def compare(
    values: Mapping[str, Shaped[np.ndarray, " J"]], ids: Shaped[np.ndarray | pd.Index, " J"], subjects: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Compares values of subjects, such as raw scores and abilities, by group and by covariates.

    Args:
        values: by name.
        ids: of the subjects.
        subjects: one row per subject, indexed by id: a column `group`, covariates, or both. Subjects that have no row
            are left out.

    Returns:
        For each name, `groups_NAME` (see `group_tests`) if there are groups, and `regression_NAME` (see `regression`)
        if there are covariates.

    Raises:
        InputError: no subject has a row, or see `group_tests` and `regression`.
    """
    if not np.isin(ids, subjects.index.to_numpy(str)).any():
        raise InputError(f"no row for any of the {len(ids)} subjects, such as '{ids[0]}': compare the ids")
    known = subjects.reindex(ids)
    covariates = known.drop(columns="group", errors="ignore")
    tables: dict[str, pd.DataFrame] = {}
    for name, each in values.items():
        series = pd.Series(np.asarray(each, float), index=ids)
        if "group" in known:
            tables[f"groups_{name}"] = group_tests(series, known["group"])
        if covariates.shape[1]:
            tables[f"regression_{name}"] = regression(series, covariates)
    return tables


def group_tests(values: pd.Series, group: pd.Series) -> pd.DataFrame:
    """Welch's t-test of each pair of groups and, for three groups or more, a one-way analysis of variance.

    Args:
        values: one per subject, such as abilities; NaN counts as missing.
        group: names of the groups of the same subjects.

    Returns:
        One row per test: `test`, `groups`, `difference` of means (first minus second; NaN for ANOVA), `low` and `high`,
        its 95% interval, `statistic`, `degrees_of_freedom`, `p_value`, `p_holm` over the pairs.

    Raises:
        InputError: fewer than two groups, or one with fewer than two subjects.
    """
    known = values.notna() & group.notna()
    parts = {name: part.to_numpy(float) for name, part in values[known].groupby(group[known].astype(str))}
    if len(parts) < 2:
        raise InputError(f"groups of subjects to compare: {len(parts)}, at least two are needed")
    for name, part in parts.items():
        if len(part) < 2:
            raise InputError(f"group '{name}' has {len(part)} subject: at least two are needed to compare it")
    rows = []
    if len(parts) > 2:
        anova = f_oneway(*parts.values())
        degrees = f"{len(parts) - 1}, {known.sum() - len(parts)}"
        rows.append(("ANOVA", ", ".join(parts), np.nan, np.nan, np.nan, anova.statistic, degrees, anova.pvalue))
    for (first, one), (second, other) in itertools.combinations(parts.items(), 2):
        welch = ttest_ind(one, other, equal_var=False)
        low, high = welch.confidence_interval(0.95)
        difference = one.mean() - other.mean()
        rows.append(
            ("Welch", f"{first} - {second}", difference, low, high, welch.statistic, f"{welch.df:.1f}", welch.pvalue)
        )
    columns = ["test", "groups", "difference", "low", "high", "statistic", "degrees_of_freedom", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    pairs = table["test"] == "Welch"
    adjusted = np.full(len(table), np.nan)
    adjusted[pairs] = holm(table.loc[pairs, "p_value"].to_numpy())
    return table.assign(p_holm=adjusted)


def regression(values: pd.Series, covariates: pd.DataFrame) -> pd.DataFrame:
    """Linear regression by least squares.

    A covariate that is not numeric becomes indicators, one per level except the first.

    Args:
        values: one per subject.
        covariates: one row per subject, in the same order; subjects with a missing covariate are left out.

    Returns:
        One row per term: `term`, `coefficient`, `standard_error`, `t`, `p_value`, `low` and `high`, its 95% interval.

    Raises:
        InputError: there are no more subjects than terms, or a covariate is infinite or follows from those before it.
    """
    known = values.notna() & covariates.notna().all(axis=1)
    terms = pd.get_dummies(covariates[known], drop_first=True, dtype=float).astype(float)
    design = terms.assign(intercept=1.0)[["intercept", *terms]]
    if len(design) <= design.shape[1]:
        raise InputError(f"{len(design)} subjects with all covariates, too few for {design.shape[1]} terms")
    if not np.isfinite(design.to_numpy()).all():
        raise InputError(f"covariate '{design.columns[~np.isfinite(design.to_numpy()).all(axis=0)][0]}' is infinite")
    for count in range(2, design.shape[1] + 1):
        if np.linalg.matrix_rank(design.iloc[:, :count].to_numpy()) < count:
            raise InputError(
                f"covariate '{design.columns[count - 1]}' is constant or follows from the others: leave it out"
            )
    found = OLS(values[known].to_numpy(float), design).fit()
    interval = found.conf_int()
    return pd.DataFrame(
        {
            "term": design.columns,
            "coefficient": found.params.to_numpy(),
            "standard_error": found.bse.to_numpy(),
            "t": found.tvalues.to_numpy(),
            "p_value": found.pvalues.to_numpy(),
            "low": interval[0].to_numpy(),
            "high": interval[1].to_numpy(),
        }
    )
