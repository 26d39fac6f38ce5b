"""What is written of a group of items as CSV and JSON."""

from typing import Any

import numpy as np
import pandas as pd

from experiments.reports.scale.findings import GroupFindings
from irtjax.scale.confirmation import Confirmation
from irtjax.scale.elimination import Scale
from irtjax.scale.forms import form_table
from irtjax.scale.groups import level_means, values_of_subjects
from irtjax.scale.precision import Precision, reliability_of
from irtjax.scale.procedure import ScaleResult

PARAMETERS = ["item_id", "difficulty", "difficulty_se", "discrimination", "discrimination_se"]
MEANS = ("proportion_correct", "mean_response")
# of a group of items; not every group has every one
FILES = (
    "items.csv", "subjects.csv", "eigenvalues.csv", "factors.csv", "loadings.csv", "guessing.csv", "item_fit.csv",
    "dependence.csv", "triplets.csv", "information.csv", "short_form.csv", "score_table.csv", "confirmation.csv",
    "confirmation_pairs.csv", "groups_raw_score.csv", "groups_ability.csv", "regression_raw_score.csv",
    "regression_ability.csv", "groups_percent_correct.csv", "regression_percent_correct.csv",
    "groups_mean_response.csv", "regression_mean_response.csv", "levels.csv", "forms.csv", "scale.json",
)  # fmt: skip


def decisions(group: GroupFindings) -> pd.DataFrame:
    """The rows of `scale.csv`: what became of each item, then the parameters of the retained ones."""
    table = group.result.decisions()
    table.insert(1, "group", group.name)
    items = pd.DataFrame(columns=PARAMETERS)
    if group.result.scale is not None:
        known = ["num_responses", "proportion_correct", "mean_response"]
        items = group.result.scale.fit.items().drop(columns=known, errors="ignore")
    return table.merge(items, "left", "item_id")


def tables(group: GroupFindings, precision: Precision | None) -> dict[str, pd.DataFrame]:
    """The CSV files of a group, by name without the suffix.

    Args:
        group: what was found.
        precision: of its scale; None if there is none.
    """
    found = _dimensions(group.result)
    if group.result.guessing is not None:
        found["guessing"] = group.result.guessing
    if group.result.scale is not None:
        found |= _scale(group.result.scale)
    if precision is not None:
        found |= _precision(precision)
    if group.result.options.by_design:
        found["forms"] = form_table(group.result.responses)
    if group.levels is not None and group.result.scale is not None:
        fit = group.result.scale.fit
        found["levels"] = level_means(values_of_subjects(fit.responses.read(), fit.ability), group.levels)
    if group.confirmation is not None:
        found |= _confirmation(group.confirmation)
    return found | group.comparisons


def _dimensions(result: ScaleResult) -> dict[str, pd.DataFrame]:
    eigenvalues = result.eigenvalues
    numbers = np.arange(1, len(eigenvalues.observed) + 1)
    found = {
        "eigenvalues": pd.DataFrame({"number": numbers, "eigenvalue": eigenvalues.observed, "noise": eigenvalues.noise})
    }
    if result.factors is not None and result.loadings is not None:
        found |= {"factors": result.factors.table, "loadings": result.loadings}
    return found


def _scale(scale: Scale) -> dict[str, pd.DataFrame]:
    ids = scale.fit.responses.item_ids
    found = {
        "items": scale.fit.items(),
        "subjects": scale.fit.subjects(),
        "item_fit": _of_items(scale.item_fit, ids),
        "dependence": scale.dependence,
    }
    if len(scale.triplets):
        found["triplets"] = scale.triplets
    return found


def _precision(precision: Precision) -> dict[str, pd.DataFrame]:
    by_rule = {f"by_{rule}": ids for rule, ids in precision.short_forms.items()}
    size = len(precision.short_forms["information"])
    return {
        "information": precision.full,
        "short_form": pd.DataFrame({"rank": np.arange(1, size + 1), **by_rule}),
        "score_table": precision.scores,
    }


def _confirmation(confirmation: Confirmation) -> dict[str, pd.DataFrame]:
    ids = confirmation.fit.responses.item_ids
    return {
        "confirmation": _of_items(confirmation.item_fit, ids),
        "confirmation_pairs": confirmation.dependence,
    }


def _of_items(table: pd.DataFrame, ids: np.ndarray) -> pd.DataFrame:
    """A table with one row per item, their ids in its first column."""
    return table.assign(item_id=ids)[["item_id", *table]]


def summary(group: GroupFindings) -> dict[str, Any]:
    """What `scale.json` says."""
    result = group.result
    found = {
        "group": group.name,
        "num_subjects": result.responses.num_subjects,
        "num_items": result.responses.num_items,
        "num_retained": result.num_retained,
        "no_scale": result.no_scale or None,
        "eigenvalue_ratio": result.eigenvalues.ratio,
        "factors_by_parallel_analysis": result.eigenvalues.num_factors,
    }
    decided = result.decisions()
    found |= {f"mean_{name}": float(decided[name].mean()) for name in MEANS if name in decided}
    if result.factors is not None:
        found |= {
            "factors_by_bic": result.factors.num_factors,
            "likelihood_ratio": result.factors.likelihood_ratio,
            "likelihood_ratio_degrees_of_freedom": result.factors.degrees_of_freedom,
            "likelihood_ratio_p_value": result.factors.p_value,
        }
    if result.scale is not None and result.overall is not None:
        found |= {
            "overall_fit": result.overall._asdict(),
            "marginal_reliability": reliability_of(result.scale.fit),
            "models": dict(zip(result.scale.fit.responses.item_ids.tolist(), result.scale.types, strict=True)),
        }
    return found
