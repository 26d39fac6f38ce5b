"""Pictures of soft labels."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from scipy.stats import spearmanr

from irtjax.fits.result import Z_95
from irtjax.plots.style import COLOURS, line_styles, plain

QUARTERS = 4


def divergence(table: pd.DataFrame) -> Figure:
    """Divergence of the soft labels of all people from those of some, against their number, with a band over draws.

    Args:
        table: as from `irtjax.soft_labels.labels.divergence_by_number`; the largest number of people is left out.
    """
    table = table[table.people < table.people.max()]  # all of them have nothing left to tell
    names = [name for name in table if name not in ("run", "people", "unseen")]
    figure = Figure(figsize=(7.5, 4.2))
    axis = figure.subplots()
    for name, style in zip(names, line_styles(len(names)), strict=True):
        groups = table.groupby("people")[name]
        axis.plot(groups.mean(), **style, label=name)
        low, high = groups.quantile(0.025), groups.quantile(0.975)
        axis.fill_between(low.index, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axis.set(xscale="log", yscale="log", xlabel="people", ylabel="KL divergence (nats)")
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_title("How many people does a soft label need?")
    axis.legend(frameon=False, title="mean of draws,\n95% of them", loc="center left", bbox_to_anchor=(1, 0.5))
    return plain(figure)


def divergence_by_difficulty(table: pd.DataFrame) -> Figure:
    """Divergence of the soft labels of networks from those of people against difficulty: items, and means of quarters.

    Args:
        table: with columns `difficulty` and `kl`; items without a difficulty are left out.
    """
    figure = Figure(figsize=(7, 4.2))
    axis = figure.subplots()
    known = table.dropna(subset="difficulty")
    axis.plot(known.difficulty, known.kl, "o", color="0.6", alpha=0.5, markeredgewidth=0, label="items")
    quarters = known.groupby(pd.qcut(known.difficulty, min(QUARTERS, len(known)), duplicates="drop"), observed=True)
    means = quarters[["difficulty", "kl"]].mean()
    error = Z_95 * quarters.kl.sem().fillna(0)
    axis.errorbar(
        means.difficulty, means.kl, error, fmt="o-", color=COLOURS[0], capsize=4, label="quarters, mean ± 95%"
    )
    correlation = spearmanr(known.difficulty, known.kl).statistic
    axis.set(xlabel="difficulty (logits)", ylabel="KL (people ‖ networks), nats", ylim=(0, None))
    axis.set_title(f"Networks against people: rank correlation with difficulty {correlation:.2f}")
    axis.legend(frameon=False)
    return plain(figure)


def gold_probabilities(counts: np.ndarray) -> Figure:
    """Numbers of items by the probability of their gold label.

    Args:
        counts: of items in bins of equal width from 0 to 1.
    """
    figure = Figure(figsize=(6, 3))
    axis = figure.subplots()
    width = 1 / counts.size
    bars = axis.bar(width * (np.arange(counts.size) + 0.5), counts, 0.92 * width, color=COLOURS[0])
    axis.bar_label(bars, labels=[f"{count:,}" for count in counts], fontsize=8)
    axis.set(xlabel="probability of the gold label", ylabel="items", xlim=(0, 1))
    return plain(figure)
