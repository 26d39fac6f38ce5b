"""The pictures of a group of items."""

import numpy as np
from matplotlib.figure import Figure

from experiments.reports.scale.findings import GroupFindings
from irtjax.kernels.models import probabilities
from irtjax.plots import scale as plots
from irtjax.scale.curves import empirical_curves
from irtjax.scale.groups import values_of_subjects
from irtjax.scale.information import GRID
from irtjax.scale.precision import Precision

# of a group of items; without a scale only the first; with missing answers no scores
FILES = ("scree.png", "curves.png", "scores.png", "wright.png", "precision.png", "levels.png")

SHOWN = GRID[np.abs(GRID) <= 3]  # abilities of curves


def pictures(group: GroupFindings, precision: Precision | None) -> dict[str, Figure]:
    """The pictures of a group, by file name.

    Args:
        group: what was found.
        precision: of its scale; None if there is none.
    """
    name, result = group.name, group.result
    figures = {"scree.png": plots.scree(result.eigenvalues, f"{name}: tetrachoric correlations")}
    if result.scale is None or precision is None:
        return figures
    fit, everyone = result.scale.fit, result.responses
    responses = everyone.choose_subjects(np.isin(everyone.subject_ids, fit.responses.subject_ids))
    empirical = empirical_curves(fit, responses)
    found = figures | {
        "curves.png": plots.item_curves(
            responses.item_ids.tolist(),
            SHOWN,
            np.asarray(probabilities(empirical.model, SHOWN[:, None])[0]),
            empirical,
            result.decisions()["reason"],
            f"{name}: item characteristic curves",
        ),
        "wright.png": plots.wright_map(
            fit.ability, fit.difficulty, fit.responses.item_ids.tolist(), f"{name}: subjects and items"
        ),
        "precision.png": plots.precision(
            precision.full, precision.short, precision.others, precision.dominant, f"{name}: precision"
        ),
    }
    values = values_of_subjects(fit.responses.read())
    if "raw_score" in values:
        title = f"{name}: ability and score"
        found["scores.png"] = plots.ability_against_score(values["raw_score"], fit.ability, precision.scores, title)
    if group.levels is not None:
        found["levels.png"] = plots.ability_by_level(fit.ability, group.levels, f"{name}: ability of subjects")
    return found
