"""Pictures of how well models predict; `style.save_figure` writes them."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from irtjax.plots.style import line_styles, plain


def calibration(table: pd.DataFrame, title: str) -> Figure:
    """Reliability diagram: the share of right answers among predictions of about the same probability.

    One column of axes per way of holding out, with the number of predictions below.

    Args:
        table: one row per `by`, `candidate` and bin: `number`, `predicted`, `observed`.
        title: of the figure.
    """
    ways, names = table["by"].unique(), table["candidate"].unique()
    figure = Figure(figsize=(1.0 + 4.0 * len(ways), 5.6))
    axes = figure.subplots(2, len(ways), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 1))
    for (curve, counts), way in zip(axes.T, ways, strict=True):
        curve.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=1)
        for name, style in zip(names, line_styles(len(names)), strict=True):
            rows = table[(table["by"] == way) & (table["candidate"] == name)]
            curve.plot(rows["predicted"], rows["observed"], "o", markersize=3.5, label=name, **style)
            counts.plot(rows["predicted"], rows["number"], "o", markersize=2.5, linewidth=1, **style)
        curve.set(title=f"held-out {way}", xlim=(0, 1), ylim=(0, 1))
        counts.set(xlabel="predicted probability of a right answer", ylim=(0, None))
    axes[0, 0].set_ylabel("share of right answers")
    axes[1, 0].set_ylabel("predictions")
    axes[1, 0].yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    for axis in axes[0]:
        axis.yaxis.set_major_formatter(PercentFormatter(1))
        axis.xaxis.set_major_formatter(PercentFormatter(1))
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    return plain(figure)
