"""Do groups of subjects differ? Raw scores and abilities by group and covariate: means, tests, regression."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import f_oneway, ttest_ind
from statsmodels.regression.linear_model import OLS

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix, proportion_correct
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import OnScales, whole
from irtjax.scale.information import lowest_score
from irtjax.scale.multiple_tests import holm
from irtjax.types import Shaped

MOST_LEVELS = 8  # of a covariate of numbers, before it is cut
QUARTERS = 4


def values_of_subjects(
    responses: ResponseMatrix | OnScales, ability: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """What subjects are compared by: the number right, or the percentage of what was asked where not all was.

    Of grades the sum (`irtjax.scale.information.score_table`), or the mean of what was asked.
    """
    cells: Any = whole(responses)
    values: dict[str, np.ndarray]
    if isinstance(cells, ScaledResponses):
        if cells.observed.all():
            values = {"raw_score": np.asarray(cells.values).sum(axis=1) + lowest_score(cells.scales)}
        else:
            values = {"mean_response": cells.mean(axis=1)}
    elif (cells.values == MISSING).any():
        values = {"percent_correct": 100 * proportion_correct(cells.values, axis=1)}
    else:
        values = {"raw_score": cells.values.sum(axis=1)}
    return values if ability is None else values | {"ability": ability}


def compare_groups(
    values: Mapping[str, Shaped[np.ndarray, " J"]],
    ids: Shaped[np.ndarray | pd.Index, " J"],
    subjects: pd.DataFrame,
    baseline: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Compares values of subjects, such as raw scores and abilities, by group and by covariates.

    Args:
        values: by name.
        ids: of the subjects.
        subjects: one row per subject, indexed by id: a column `group`, covariates, or both. Subjects that have no row
            are left out.
        baseline: the group that the others are compared with; None for all pairs.

    Returns:
        For each name, `groups_NAME` (see `group_tests`) if there are groups, and `regression_NAME` (see `regression`)
        on covariates, and on groups too, if there are covariates.

    Raises:
        InputError: no subject has a row, there is a baseline but no groups, or see `group_tests` and `regression`.
    """
    known = _known(ids, subjects)
    if baseline is not None and "group" not in known:
        raise InputError(f"no column group, so that no baseline '{baseline}' can be compared with")
    covariates = known.drop(columns="group", errors="ignore")
    if "group" in known and covariates.shape[1]:
        names = known["group"].dropna().astype(str)
        order = sorted(names.unique(), key=lambda name: (name != baseline, name))
        covariates.insert(0, "group", pd.Categorical(names.reindex(known.index), order))
    tables: dict[str, pd.DataFrame] = {}
    for name, each in values.items():
        series = pd.Series(np.asarray(each, float), index=ids)
        if "group" in known:
            tables[f"groups_{name}"] = group_tests(series, known["group"], baseline)
        if covariates.shape[1]:
            tables[f"regression_{name}"] = regression(series, covariates)
    return tables


def levels(ids: Shaped[np.ndarray | pd.Index, " J"], subjects: pd.DataFrame) -> pd.DataFrame:
    """What each subject has of each covariate, in words: one row per subject, NaN where it is not known.

    Args:
        ids: of the subjects.
        subjects: as for `compare`. A covariate of more than eight different numbers is cut into quarters.
    """
    known = _known(ids, subjects)
    return pd.DataFrame({name: _in_words(column) for name, column in known.items()}, known.index)


def _in_words(column: pd.Series) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= MOST_LEVELS:
        whole = column.dropna()
        if pd.api.types.is_float_dtype(column) and (whole == whole.round()).all():
            whole = whole.astype(int)  # a gap has made numbers of them
        words = [str(value) for value in whole]
        order = [str(value) for value in sorted(whole.unique())]
        return pd.Series(pd.Categorical(words, order), whole.index).reindex(column.index)
    bounds = pd.qcut(column, QUARTERS, labels=False, duplicates="drop")
    parts = column.groupby(bounds).agg(["min", "max"])
    names = {number: f"{part['min']:g} to {part['max']:g}" for number, part in parts.iterrows()}
    return pd.Series(pd.Categorical(bounds.map(names), list(names.values())), column.index)


def level_means(values: Mapping[str, Shaped[np.ndarray, " J"]], words: pd.DataFrame) -> pd.DataFrame:
    """Means by level of each covariate.

    Args:
        values: by name, one per subject.
        words: from `levels`, of the same subjects.

    Returns:
        One row per level: `covariate`, `level`, `n`, and for each name `mean_NAME` and `sd_NAME`.
    """
    rows = []
    for name, column in words.items():
        for level in column.cat.categories:
            chosen = (column == level).to_numpy()
            row: dict[str, object] = {"covariate": name, "level": level, "n": int(chosen.sum())}
            for what, each in values.items():
                part = np.asarray(each, float)[chosen]
                row |= {f"mean_{what}": part.mean(), f"sd_{what}": part.std(ddof=1) if len(part) > 1 else np.nan}
            rows.append(row)
    return pd.DataFrame(rows)


def _known(ids: np.ndarray | pd.Index, subjects: pd.DataFrame) -> pd.DataFrame:
    """The rows of these subjects."""
    if not np.isin(ids, subjects.index.to_numpy(str)).any():
        raise InputError(f"no row for any of the {len(ids)} subjects, such as '{ids[0]}': compare the ids")
    return subjects.reindex(ids)


def group_tests(values: pd.Series, group: pd.Series, baseline: str | None = None) -> pd.DataFrame:
    """Welch's t-test of each pair of groups and, for three groups or more, a one-way analysis of variance.

    Args:
        values: one per subject, such as abilities; NaN counts as missing.
        group: names of the groups of the same subjects.
        baseline: the group that each other is compared with; None for every pair.

    Returns:
        One row per test: `test`, `groups`, `difference` of means (first minus second; NaN for ANOVA), `low` and `high`,
        its 95% interval, `statistic`, `degrees_of_freedom`, `p_value`, `p_holm` over the pairs.

    Raises:
        InputError: fewer than two groups, one with fewer than two subjects, or no baseline among them.
    """
    known = values.notna() & group.notna()
    parts = {name: part.to_numpy(float) for name, part in values[known].groupby(group[known].astype(str))}
    if len(parts) < 2:
        raise InputError(f"groups of subjects to compare: {len(parts)}, at least two are needed")
    if baseline is not None and baseline not in parts:
        raise InputError(f"no subject of the baseline '{baseline}': the groups are {', '.join(parts)}")
    for name, part in parts.items():
        if len(part) < 2:
            raise InputError(f"group '{name}' has {len(part)} subject: at least two are needed to compare it")
    rows = []
    if len(parts) > 2:
        anova = f_oneway(*parts.values())
        degrees = f"{len(parts) - 1}, {known.sum() - len(parts)}"
        rows.append(("ANOVA", ", ".join(parts), np.nan, np.nan, np.nan, anova.statistic, degrees, anova.pvalue))
    pairs_of = list(itertools.combinations(parts, 2))
    if baseline is not None:
        pairs_of = [(name, baseline) for name in parts if name != baseline]
    for first, second in pairs_of:
        one, other = parts[first], parts[second]
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
