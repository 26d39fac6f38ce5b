"""The report of predicted difficulties: how good they are, what they save, and which items they miss."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document
from irtjax import Fit
from irtjax.comparison.rank_agreement import disattenuated
from irtjax.explanatory.few_responses import worth
from irtjax.explanatory.new_items import Predictions, accuracy, model_of_difficulties, plane, surprises
from irtjax.plots.new_items import error_by_number, item_map, predicted_and_fitted
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv
from irtjax.tasks.item_texts import ItemTexts

FILES = (*document.FILES, "items.csv", "predictors.csv", "predicted.png")
FORMER = ("map.png", "new_items.csv", "curve.csv", "curve.png")  # not of every run
LONGEST = 160  # characters of a text in a table


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
    if found.places.size:
        title = f"{len(found.places):,} items"
        save_figure(item_map(plane(found.places), found.reference.difficulty, title), directory / "map.png")
    regression = found.joint.regression
    assert regression is not None
    values = {
        "size": size,
        "kind": model_of_difficulties(found.reference.responses.read()),
        "scores": scores,
        "reliability": found.reliability,
        "residual_sd": float(regression.residual_sd),
        "sd": found.reference.difficulty.std(),
        "curve": None if found.curve is None else _numbers(found.curve),
        "items": table.assign(text=table["text"].map(_short)),
        "mapped": bool(found.places.size),
        "flags": flags,
    }
    (verdict,) = document.write("predict_difficulty", values, directory)
    return verdict


def _numbers(curve: pd.DataFrame) -> pd.DataFrame:
    """The errors by number of responses, without a text and with it, and the number that is as good without."""
    wide = curve.pivot(index="responses", columns="features", values="rmse").set_axis(["without", "with"], axis=1)
    as_good = worth(curve)
    return wide.assign(worth=as_good, over=np.isinf(as_good), most=curve.responses.max())


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
