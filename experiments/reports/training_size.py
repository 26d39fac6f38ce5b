"""The report on difficulty and training-set size: what was observed, the regressions, and a picture."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import markdown
from irtjax.comparison.training_size import TERMS, Contrast, LogOdds, accuracy_by_size, observed_shares
from irtjax.plots.style import save_figure
from irtjax.plots.training_size import contours
from irtjax.storage.files import write_csv

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


def write(analyses: list[Analysis], directory: Path) -> list[str]:
    """Writes coefficients.csv, observed.csv and training_size.png; returns the sections of the report."""
    observed = pd.concat([_named(analysis, analysis.observed()) for analysis in analyses], ignore_index=True)
    write_csv(observed.drop(columns="title"), directory / "observed.csv")
    coefficients = pd.concat([_named(analysis, analysis.model.table()) for analysis in analyses], ignore_index=True)
    write_csv(coefficients.drop(columns="title"), directory / COEFFICIENTS)
    save_figure(contours({analysis.title: analysis.model for analysis in analyses}, observed), directory / PICTURE)
    return [_accuracy(analyses), _regression(analyses), _effects(analyses), f"![Log-odds of a right answer]({PICTURE})"]


COEFFICIENTS, PICTURE = "coefficients.csv", "training_size.png"


def _named(analysis: Analysis, table: pd.DataFrame) -> pd.DataFrame:
    """The table with columns that say of which analysis it is."""
    names = {"title": analysis.title, "scale": analysis.scale, "network": analysis.network}
    return pd.concat([pd.DataFrame(names, table.index), table], axis=1)


def _accuracy(analyses: list[Analysis]) -> str:
    sizes = sorted({int(size) for analysis in analyses for size in analysis.sizes})
    rows = []
    for analysis in analyses:
        found = accuracy_by_size(analysis.correct, analysis.sizes)
        cells = [f"{100 * found['mean'][size]:.1f} ({100 * found['std'][size]:.1f})" for size in sizes]
        name = markdown.inline(analysis.title)
        rows.append([name, f"{analysis.difficulty.size:,}", int(found["size"].iloc[0]), *cells])
    header = ["network, items", "items", "networks per size", *(f"{size:,}" for size in sizes)]
    return f"""## Accuracy

Right answers (%) by training-set size: mean over the networks, with their standard deviation in brackets.

{markdown.table(header, rows)}"""


def _regression(analyses: list[Analysis]) -> str:
    rows = []
    for analysis in analyses:
        model = analysis.model
        cells = [
            f"{value:.3f} ({error:.3f}; {plain:.3f})"
            for value, error, plain in zip(
                model.estimate, model.standard_error, model.plain_standard_error, strict=True
            )
        ]
        rows.append([markdown.inline(analysis.title), *cells])
    return f"""## Regression

logit P(right) = β0 + β1 b + β2 log n + β3 b log n, for a network trained on n examples and an item of difficulty b
(Lalor, Wu, Munkhdalai and Yu 2018). In brackets the standard errors: clustered by network and by item, and plain, as if
all answers were independent.

{markdown.table(["network, items", *TERMS], rows)}"""


def _effects(analyses: list[Analysis]) -> str:
    size_rows, difficulty_rows = [], []
    for analysis in analyses:
        name, model = markdown.inline(analysis.title), analysis.model
        of_size = [model.of_tenfold(float(b)) for b in np.percentile(analysis.difficulty, list(PERCENTILES.values()))]
        of_logit = [model.of_logit(float(size)) for size in (analysis.sizes.min(), analysis.sizes.max())]
        size_rows.append([name, *map(_odds_ratio, of_size)])
        difficulty_rows.append([name, *map(_odds_ratio, of_logit), _verdict(model.coefficient(TERMS[3]))])
    of_difficulty = ["network, items", "least examples", "most examples", "do easy items gain more?"]
    return f"""## What more examples do

Odds ratio of a right answer for ten times as many training examples, with its 95% interval, for items of these
percentiles of difficulty. 1 is no change; below 1 more examples make right answers rarer.

{markdown.table(["network, items", *PERCENTILES], size_rows)}

Odds ratio for an item that is harder by one logit, with the least and the most training examples. Easy items gain more
from more examples if β3 is below 0.

{markdown.table(of_difficulty, difficulty_rows)}"""


def _odds_ratio(contrast: Contrast) -> str:
    return markdown.times(*map(np.exp, contrast))


def _verdict(interaction: Contrast) -> str:
    if interaction.high < 0:
        return "yes"
    return "no, hard ones do" if interaction.low > 0 else "not certain"
