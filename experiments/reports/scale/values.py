"""The values of a scale's report: an overview, agreement of people, and what is told of each group of items."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from experiments.reports.scale.findings import GroupFindings, Wanted
from irtjax.responses.matrix import MISSING
from irtjax.scale import information
from irtjax.scale.elimination import Scale
from irtjax.scale.forms import FEWEST, form_table
from irtjax.scale.groups import level_means, values_of_subjects
from irtjax.scale.information import GRID
from irtjax.scale.item_tests import Graded
from irtjax.scale.precision import Precision, reliability_of
from irtjax.scale.procedure import LEAST_SUBJECTS, ScaleResult, model_of_factors


def overview(groups: list[GroupFindings], agreement: pd.DataFrame | None, wanted: Wanted) -> dict[str, Any]:
    """One row per group of items, and what is the same for all.

    Args:
        groups: what was found of each.
        agreement: of `irtjax.responses.agreement.agreement_table`; None if there are no labels by people.
        wanted: what is to be told of precision.
    """
    of_people = {} if agreement is None else agreement.iloc[0].to_dict()
    kappas = {name.removeprefix("kappa_"): of_people[name] for name in of_people if name.startswith("kappa_")}
    return {
        "num_subjects": len({subject for group in groups for subject in group.result.responses.subject_ids.tolist()}),
        "mean": "mean response" if groups[0].result.graded else "answered right",
        "overview": pd.DataFrame([{"name": group.name, **_row(group.result)} for group in groups]),
        "agreement": of_people,
        "kappas": kappas,
        "wanted": wanted,
        "least_subjects": LEAST_SUBJECTS,
        "fewest": FEWEST,
        "rules": Graded(),
        "lowest": GRID[0],
        "highest": GRID[-1],
    }


def _row(result: ScaleResult) -> dict[str, Any]:
    """Items, how many were retained, and why the others were not."""
    decided = result.decisions()
    reasons = [f"{number} {reason}" for reason, number in result.removals["reason"].value_counts().items()]
    reasons += [f"no scale ({result.no_scale})"] if result.no_scale else []
    return {
        "number": result.responses.num_items,
        "mean": f"{decided.mean_response.mean():.2f}" if result.graded else f"{decided.proportion_correct.mean():.1%}",
        "retained": result.num_retained,
        "reliability": None if result.scale is None else reliability_of(result.scale.fit),
        "removed": ", ".join(reasons) or "none",
    }


def of_group(found: GroupFindings, precision: Precision | None, wanted: Wanted, folder: Path) -> dict[str, Any]:
    """What there is to tell of one group of items.

    Args:
        found: of the group.
        precision: of its scale; None if there is none.
        wanted: what is to be told of precision.
        folder: of the group's pictures, relative to the report.
    """
    result, removals = found.result, found.result.removals
    held, guessing = result.options.guessing, result.guessing
    model = model_of_factors(result.responses, result.options).replace("pl", "PL")
    values = {
        "name": found.name,
        "folder": "" if folder == Path() else quote(folder.as_posix()) + "/",
        "result": result,
        "design": _design(result) if result.options.by_design else None,
        "model": model if held is None else f"{model}, guessing fixed",
        "fixed": [] if held is None else sorted(set(held.values())),
        "guessed": None if guessing is None else guessing[guessing["p_holm"] < result.options.rules.level],
        "reversed": removals["item_id"][removals["reason"] == "reversed"],
        "precision": None,
        "confirmation": found.confirmation,
        "comparisons": [_comparison(name, table) for name, table in found.comparisons.items()],
        "levels": None,
    }
    if result.scale is not None and result.overall is not None and precision is not None:
        values |= {"precision": precision, **_precision(result.scale, precision, wanted)}
    if found.levels is not None and result.scale is not None:
        fit = result.scale.fit
        table = level_means(values_of_subjects(fit.responses.read(), fit.ability), found.levels)
        score = next(name for name in table if name.startswith("mean_") and name != "mean_ability")
        values |= {"levels": table, "score": score}
    return values


def _design(result: ScaleResult) -> dict[str, Any]:
    """The forms, and the fewest subjects who answered both items of a pair."""
    table = form_table(result.responses)
    seen = (np.asarray(result.responses.values) != MISSING).astype(float)
    together = (seen.T @ seen)[np.triu_indices(seen.shape[1], 1)]
    left_out = result.responses.num_subjects - int(table["num_subjects"].sum())
    return {"forms": table, "together": int(together.min()), "left_out": left_out}


def _precision(scale: Scale, precision: Precision, wanted: Wanted) -> dict[str, Any]:
    """Where the scale measures best, with the most informative item and without it, and where well enough."""
    responses = scale.fit.responses
    best = precision.full.loc[precision.full["test"].idxmax()]
    return {
        "complete": not (np.asarray(responses.read().values) == MISSING).any(),
        "best": best,
        "others": precision.others.loc[precision.others["test"].idxmax()],
        "part": 1 - precision.others["test"][best.name] / best.test,
        "slope": scale.fit.item_columns["discrimination"][responses.item_ids == precision.dominant][0],
        "enough": information.range_above(precision.full, wanted.least),
    }


def _comparison(name: str, table: pd.DataFrame) -> tuple[str, str, pd.DataFrame]:
    """The kind of a table of `irtjax.scale.groups.compare_groups`, what it compares, and the table."""
    kind, _, what = name.partition("_")
    if kind == "groups":
        table = table.assign(adjusted=table["p_holm"].fillna(table["p_value"]))
    return kind, what.replace("_", " "), table
