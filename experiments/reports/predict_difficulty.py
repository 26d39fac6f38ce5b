"""The report of predicted difficulties: how good they are, what they save, and which items they miss."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from irtjax import Fit, versions
from irtjax.comparison.rank_agreement import disattenuated
from irtjax.explanatory.few_responses import worth
from irtjax.explanatory.new_items import (
    OF_COUNTS,
    OF_GRADES,
    RASCH,
    Predictions,
    accuracy,
    model_of_difficulties,
    plane,
    surprises,
)
from irtjax.plots.new_items import error_by_number, item_map, predicted_and_fitted
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv
from irtjax.tasks.item_texts import ItemTexts

FILES = (*document.FILES, "items.csv", "predictors.csv", "predicted.png")
FORMER = ("map.png", "new_items.csv", "curve.csv", "curve.png")  # not of every run
LONGEST = 160  # characters of a text in a table
WHAT = {RASCH: "Difficulties", OF_COUNTS: "Difficulties", OF_GRADES: "Locations (means of the thresholds)"}
MEANT = {
    OF_GRADES: """The difficulty of an item is its location: the mean of the thresholds of the graded model. A threshold
is the ability at which a grade, or a higher one, has probability 1/2; abilities have mean 0 and variance 1.""",
    OF_COUNTS: """The difficulty of an item is the ability at which a trial succeeds with probability 1/2; all items
have one slope, and abilities mean 0 and variance 1.""",
}


class Predicted(NamedTuple):
    """What a run found.

    Attributes:
        items: with their texts.
        reference: the model without features, of all responses.
        reliability: of its difficulties, by split halves.
        joint: the model with features, of all responses.
        held_out: predictions of held-out items; the first predictor is the model with features.
        curve: of `irtjax.explanatory.few_responses.by_number`; None of grades.
        places: (I, D) vectors of the items, D of at least 2; (I, 0) where there are none to draw a map of.
    """

    items: ItemTexts
    reference: Fit
    reliability: float
    joint: Fit
    held_out: Predictions
    curve: pd.DataFrame | None
    places: np.ndarray


def write(found: Predicted, flags: dict[str, Any], directory: Path) -> str:
    """Writes the tables, the pictures and report.md; returns the verdict."""
    scores = accuracy(found.held_out, found.reference)
    scores.insert(2, "disattenuated", [disattenuated(value, found.reliability, 1.0) for value in scores.spearman])
    write_csv(scores, directory / "predictors.csv")
    if found.curve is not None:
        write_csv(found.curve.assign(features=found.curve.features.astype(int)), directory / "curve.csv")
    table = surprises(found.held_out, found.reference, found.joint)
    table.insert(0, "item_id", found.items.ids)
    table["text"] = found.items.shown()
    write_csv(table, directory / "items.csv")
    size = f"{found.reference.responses.num_subjects:,} subjects × {len(table):,} items"
    save_figure(
        predicted_and_fitted(table.predicted.to_numpy(), found.reference.difficulty, f"Held-out items, {size}"),
        directory / "predicted.png",
    )
    if found.curve is not None:
        save_figure(error_by_number(found.curve, f"New items, {size}"), directory / "curve.png")
    best, what = scores.iloc[0], model_of_difficulties(found.reference.responses.read())
    verdict = (
        f"{WHAT[what]} of held-out items are predicted with Spearman {best.spearman:.3f} and an error of "
        f"{best.rmse:.2f} logits ({scores.rmse.iloc[-1]:.2f} by their mean)."
    )
    parts = [
        "# Difficulty from text",
        f"{size}. {verdict}",
        MEANT.get(what, ""),
        predictors(found, scores),
        "![Difficulty by responses against predicted difficulty](predicted.png)",
        numbers(found.curve),
        "## Items\n\nEasiest and hardest by their text, each predicted while it was held out.",
        listed(table.sort_values("predicted", kind="stable"), flags["shown"]),
        listed(table.sort_values("predicted", ascending=False, kind="stable"), flags["shown"]),
        "Predicted worst, in standard deviations of the prediction: harder than their text predicts, and easier.",
        listed(table.sort_values("surprise", ascending=False, kind="stable"), flags["shown"]),
        listed(table.sort_values("surprise", kind="stable"), flags["shown"]),
        _map(found, directory),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return verdict


def _map(found: Predicted, directory: Path) -> str:
    """Draws the map; nothing where items have one feature alone."""
    if not found.places.size:
        return ""
    title = f"{len(found.places):,} items"
    save_figure(item_map(plane(found.places), found.reference.difficulty, title), directory / "map.png")
    return """## Map

![Items by their vectors, coloured by difficulty](map.png)

The two directions in which the features of the items differ most (principal components)."""


def predictors(found: Predicted, scores: pd.DataFrame) -> str:
    """The table of predictors."""
    columns = {
        "predicted by": "{predictor}",
        "Spearman": "{spearman:.3f}",
        "disattenuated": "{disattenuated:.3f}",
        "error (logits)": "{rmse:.3f}",
        "R²": "{r_squared:.3f}",
        "in 95% interval": "{coverage:.1%}",
        "log-loss": "{log_loss:.4f}",
    }
    of_responses = """ Log-loss is of
the responses to held-out items, in nats, abilities from the other items."""
    if scores.log_loss.isna().all():
        of_responses = ""
        del columns["log-loss"]
    regression = found.joint.regression
    assert regression is not None
    return f"""## Held-out items

Each item is predicted from the others: only its text is known. *Features* is the model that is fitted to
responses and features at once; the other rows are regressions of difficulties that were fitted before. Disattenuated
is Spearman's correlation without the sampling error of the difficulties, whose split-half reliability is
{found.reliability:.3f}. The interval is that of the prediction, with the error of the difficulty itself.{of_responses}

{markdown.table_of(scores, columns)}

In the fit to all items, difficulties scatter around what their features predict with a standard deviation of
{float(regression.residual_sd):.2f} logits; around their mean, with {found.reference.difficulty.std():.2f}."""


def numbers(curve: pd.DataFrame | None) -> str:
    """The table of numbers of responses; nothing of grades, a few of which do not tell the thresholds of an item."""
    if curve is None:
        return ""
    wide = curve.pivot(index="responses", columns="features", values="rmse")
    as_good = worth(curve)
    most = curve.responses.max()
    rows = []
    for number, row in wide.iterrows():
        same = as_good[number]
        word = "none" if np.isnan(same) else f"over {most:,}" if np.isinf(same) else f"{same:,.1f}"
        rows.append([f"{number:,}", f"{row[False]:.3f}", f"{row[True]:.3f}", word])
    header = ["responses per new item", "error without text (logits)", "with text", "as good without text"]
    return f"""## How many responses is a text worth?

A fifth of the items are new: they have the responses of so many random subjects, the others have all. The error is the
root mean square difference from the difficulty by all responses. The last column is the number of responses that
are as good without the text. Where an item has all its responses, the error without text is 0 by definition; so the
column is too low at the end.

{markdown.table(header, rows)}

![Error against responses per item](curve.png)"""


def listed(table: pd.DataFrame, shown: int) -> str:
    """The first items of a table."""
    columns = {"item": "{item_id!i}", "predicted": "{predicted:.2f}", "by responses": "{by_responses:.2f}"}
    rows = table.head(shown)
    return markdown.table_of(rows.assign(text=rows.text.map(_short)), {**columns, "text": "{text!i}"})


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
