"""The pictures of a group of items."""

from matplotlib.figure import Figure

from experiments.reports.scale.findings import GroupFindings, Precision
from irtjax.plots import scale as plots
from irtjax.scale.curves import empirical_curves

# of a group of items; without a scale only the first
FILES = ("scree.png", "curves.png", "scores.png", "wright.png", "precision.png")


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
    fit, responses = result.scale.fit, result.responses
    empirical = empirical_curves(fit, responses)
    return figures | {
        "curves.png": plots.item_curves(
            responses.item_ids,
            empirical.model,
            empirical,
            result.decisions()["reason"],
            f"{name}: item characteristic curves",
        ),
        "scores.png": plots.ability_against_score(
            fit.responses.values.sum(1), fit.ability, precision.scores, f"{name}: ability and score"
        ),
        "wright.png": plots.wright_map(
            fit.ability, fit.difficulty, fit.responses.item_ids, f"{name}: subjects and items"
        ),
        "precision.png": plots.precision(precision.full, precision.short, f"{name}: precision"),
    }
