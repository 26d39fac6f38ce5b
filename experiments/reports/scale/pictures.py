"""The pictures of a group of items."""

import numpy as np
from matplotlib.figure import Figure

from experiments.reports.scale.findings import GroupFindings
from irtjax.kernels.models import probabilities
from irtjax.plots import scale as plots
from irtjax.plots.fits import SMOOTH
from irtjax.plots.fitted_items import common_scale, drawn, expected_of, places, response_axis
from irtjax.plots.wright import wright_map
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale.curves import empirical_curves, empirical_means
from irtjax.scale.groups import values_of_subjects
from irtjax.scale.information import GRID
from irtjax.scale.precision import Precision
from irtjax.scale.procedure import ScaleResult
from irtjax.scoring.family_items import known_items

# of a group of items; without a scale only the first; with missing answers no scores
FILES = ("scree.png", "curves.png", "scores.png", "wright.png", "precision.png", "levels.png")

BEYOND = 6.0  # logits, where thresholds are drawn at the edge
SHOWN = GRID[np.abs(GRID) <= 3]  # abilities of curves


def pictures(group: GroupFindings, precision: Precision | None) -> dict[str, Figure]:
    """The pictures of a group, by file name.

    Args:
        group: what was found.
        precision: of its scale; None if there is none.
    """
    name, result = group.name, group.result
    correlations = "polychoric" if result.graded else "tetrachoric"
    figures = {"scree.png": plots.scree(result.eigenvalues, f"{name}: {correlations} correlations")}
    if result.scale is None or precision is None:
        return figures
    fit = result.scale.fit
    curves = _grades if result.graded else _right_answers
    difficulty, named = places(fit) if result.graded else (fit.difficulty, fit.responses.item_ids.tolist())
    found = figures | {
        "curves.png": curves(result, f"{name}: item characteristic curves"),
        "wright.png": wright_map(
            fit.ability,
            np.clip(difficulty, -BEYOND, BEYOND) if result.graded else difficulty,
            named,
            f"{name}: subjects and {'thresholds of items' if result.graded else 'items'}",
            what="thresholds of items" if result.graded else "items",
        ),
        "precision.png": plots.precision(
            precision.full, precision.short, precision.others, precision.dominant, f"{name}: precision"
        ),
    }
    values = values_of_subjects(fit.responses.read())
    if "raw_score" in values:
        title, what = f"{name}: ability and score", "sum of grades" if result.graded else "number right"
        found["scores.png"] = plots.ability_against_score(
            values["raw_score"], fit.ability, precision.scores, title, what
        )
    if group.levels is not None:
        found["levels.png"] = plots.ability_by_level(fit.ability, group.levels, f"{name}: ability of subjects")
    return found


def _answered(result: ScaleResult) -> ResponseMatrix | ScaledResponses:
    """The responses to all items of the subjects whose abilities are known."""
    assert result.scale is not None
    everyone = result.responses
    return everyone.choose_subjects(np.isin(everyone.subject_ids, result.scale.fit.responses.subject_ids))


def _right_answers(result: ScaleResult, title: str) -> Figure:
    """Curves of right answers."""
    assert result.scale is not None
    responses = _answered(result)
    assert isinstance(responses, ResponseMatrix)
    empirical = empirical_curves(result.scale.fit, responses)
    model = np.asarray(probabilities(empirical.model, SHOWN[:, None])[0])
    ids, reasons = responses.item_ids.tolist(), result.decisions()["reason"]
    return plots.item_curves(ids, SHOWN, model, empirical, reasons, title)


def _grades(result: ScaleResult, title: str) -> Figure:
    """Curves of expected grades; items that were removed have those of the responses alone."""
    assert result.scale is not None
    fit, responses = result.scale.fit, _answered(result)
    assert isinstance(responses, ScaledResponses)
    axis, ids = response_axis(responses.scales, counts=False), responses.item_ids
    model, place = np.full((len(SHOWN), len(ids)), np.nan), {item: at for at, item in enumerate(ids.tolist())}
    own = [place[item] for item in fit.responses.item_ids.tolist()]
    known = known_items(fit)
    assert known is not None
    scales = [responses.scales[at] for at in own]
    model[:, own] = expected_of(known, SHOWN, scales, common_scale(responses.scales))
    grouped = responses.num_subjects < SMOOTH
    empirical = empirical_means(fit, drawn(responses), (axis.low, axis.high), grouped)
    reasons = result.decisions()["reason"]
    return plots.item_curves(ids.tolist(), SHOWN, model, empirical, reasons, title, axis)
