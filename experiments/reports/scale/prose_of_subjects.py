"""The text of a scale's report on groups and covariates of subjects."""

import pandas as pd

from experiments.reports import markdown
from experiments.reports.scale.findings import GroupFindings
from irtjax.scale.groups import level_means, values_of_subjects


def comparisons(tables: dict[str, pd.DataFrame]) -> str:
    """The section on the tables of `irtjax.scale.groups.compare_groups`."""
    parts = ["**Groups and covariates.**"]
    for name, table in tables.items():
        kind, _, what = name.partition("_")
        what = what.replace("_", " ")
        parts.append(_group_tests(what, table) if kind == "groups" else _regression(what, table))
    return "\n\n".join(parts)


def levels(found: GroupFindings) -> str:
    """The section on means of the subjects at each level of their covariates."""
    assert found.levels is not None
    assert found.result.scale is not None
    fit = found.result.scale.fit
    table = level_means(values_of_subjects(fit.responses.read(), fit.ability), found.levels)
    score = next(name for name in table if name.startswith("mean_") and name != "mean_ability")
    columns = {
        "covariate": "{covariate!i}",
        "level": "{level!i}",
        "subjects": "{n}",
        markdown.inline(score.replace("_", " ")): f"{{{score}:.2f}}",
        "mean ability": "{mean_ability:.2f}",
        "sd of ability": "{sd_ability:.2f}",
    }
    return f"**Levels.** Means of the subjects at each level (`levels.csv`).\n\n{markdown.table_of(table, columns)}"


def _group_tests(what: str, table: pd.DataFrame) -> str:
    columns = {
        f"{markdown.inline(what)}: test": "{test}",
        "groups": "{groups!i}",
        "difference": "{difference:.2f}",
        "statistic": "{statistic:.2f}",
        "df": "{degrees_of_freedom}",
        "p (of pairs by Holm)": lambda row: markdown.p_value(row["adjusted"]),
    }
    return markdown.table_of(table.assign(adjusted=table["p_holm"].fillna(table["p_value"])), columns)


def _regression(what: str, table: pd.DataFrame) -> str:
    columns = {
        f"{markdown.inline(what)}: term": "{term!i}",
        "coefficient": "{coefficient:.3f}",
        "standard error": "{standard_error:.3f}",
        "t": "{t:.2f}",
        "p": lambda row: markdown.p_value(row["p_value"]),
    }
    return markdown.table_of(table, columns)
