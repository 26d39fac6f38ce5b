"""The report on difficulty and training-set size: what was observed, the regressions, and a picture."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import markdown
from irtjax.comparison.training_size import TERMS, Contrast, LogOdds, accuracy_by_size, observed_shares
from irtjax.plots.style import save_figure
from irtjax.plots.training_size import contours
from irtjax.storage.files import write_csv

COEFFICIENTS, PICTURE = "coefficients.csv", "training_size.png"
PERCENTILES = {"easy (10%)": 10, "median": 50, "hard (90%)": 90, "hardest": 100}


class Analysis(NamedTuple):
    """One architecture on the items of one scale.

    Attributes:
        scale, network: their names.
        sizes: (J,) training examples of each network.
        correct: (J, I) right answers.
        difficulty: (I,) of the items.
        model: the regression.
    """

    scale: str
    network: str
    sizes: np.ndarray
    correct: np.ndarray
    difficulty: np.ndarray
    model: LogOdds

    @property
    def title(self) -> str:
        """What the analysis is called."""
        return f"{self.network}, {self.scale}"

    def observed(self) -> pd.DataFrame:
        """The shares of right answers beside those of the regression, see `observed_shares`."""
        return observed_shares(self.model, self.correct, self.difficulty, self.sizes)


def write(analyses: list[Analysis], directory: Path) -> dict[str, Any]:
    """Writes coefficients.csv, observed.csv and training_size.png; returns the values of the report."""
    observed = pd.concat([_named(analysis, analysis.observed()) for analysis in analyses], ignore_index=True)
    write_csv(observed.drop(columns="title"), directory / "observed.csv")
    coefficients = pd.concat([_named(analysis, analysis.model.table()) for analysis in analyses], ignore_index=True)
    write_csv(coefficients.drop(columns="title"), directory / COEFFICIENTS)
    save_figure(contours({analysis.title: analysis.model for analysis in analyses}, observed), directory / PICTURE)
    titles = [analysis.title for analysis in analyses]
    tables = {"accuracies": _accuracies, "coefficients": _coefficients, "of_size": _of_size, "of_logit": _of_logit}
    return {name: pd.DataFrame(list(map(row, analyses)), titles) for name, row in tables.items()}


def _named(analysis: Analysis, table: pd.DataFrame) -> pd.DataFrame:
    """The table with columns that say of which analysis it is."""
    names = {"title": analysis.title, "scale": analysis.scale, "network": analysis.network}
    return pd.concat([pd.DataFrame(names, table.index), table], axis=1)


def _accuracies(analysis: Analysis) -> dict[Any, Any]:
    """Mean and standard deviation of the accuracies, by training-set size."""
    found = accuracy_by_size(analysis.correct, analysis.sizes)
    percent = (100 * found).map("{:.1f}".format)
    cells = percent["mean"] + " (" + percent["std"] + ")"
    return {"items": analysis.difficulty.size, "networks": int(found["size"].iloc[0]), **cells}


def _coefficients(analysis: Analysis) -> dict[str, str]:
    """Each coefficient with its standard errors, clustered and plain."""
    model = analysis.model
    errors = zip(TERMS, model.estimate, model.standard_error, model.plain_standard_error, strict=True)
    return {term: f"{value:.3f} ({error:.3f}; {plain:.3f})" for term, value, error, plain in errors}


def _of_size(analysis: Analysis) -> dict[str, markdown.Limits]:
    """Odds ratios for ten times as many examples, by percentile of difficulty."""
    at = np.percentile(analysis.difficulty, list(PERCENTILES.values()))
    return dict(zip(PERCENTILES, (_odds_ratio(analysis.model.of_tenfold(float(b))) for b in at), strict=True))


def _of_logit(analysis: Analysis) -> dict[str, Any]:
    """Odds ratios for an item that is harder by a logit, with the least and the most examples; and the interaction."""
    model, sizes = analysis.model, analysis.sizes
    least, most = (_odds_ratio(model.of_logit(float(size))) for size in (sizes.min(), sizes.max()))
    return {"least": least, "most": most, "interaction": model.coefficient(TERMS[3])}


def _odds_ratio(contrast: Contrast) -> markdown.Limits:
    return markdown.ratio(*map(np.exp, contrast))
