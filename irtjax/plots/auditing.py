"""Pictures of an audit: items, keys, ranges of ranks, gains on items that could be known."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.auditing.reasons import HIGHEST, LOWEST, REASONS
from irtjax.plots.style import COLOURS, plain, short

NO_REASON = "0.75"
MOST_RANKED = 40
LONGEST_NAME = 34


def audited_items(table: pd.DataFrame) -> Figure:
    """Discrimination of each item against its mean response; colours are the first reason to look at it.

    Args:
        table: of `irtjax.auditing.audit.Audit.items`.
    """
    figure = Figure(figsize=(8, 4.8))
    axis = figure.subplots()
    first = table["reasons"].str.split("; ").str[0]
    inside = ~first.isin([LOWEST, HIGHEST])  # their discrimination is that of the prior
    for name, colour in zip(("", *REASONS), (NO_REASON, *COLOURS), strict=False):
        chosen = table[(first == name) & inside]
        if len(chosen):
            label, front = f"{name or 'no reason'}: {len(chosen):,}", 1 if name == "" else 2
            points = chosen["mean_response"], chosen["discrimination"]
            axis.scatter(*points, s=14 if name else 8, color=colour, label=label, zorder=front, linewidths=0)
    left_out = int((~inside).sum())
    title = f"{len(table):,} items" + (f", {left_out:,} that all or none solve left out" if left_out else "")
    axis.set(xlabel="mean response", ylabel="discrimination", title=title)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return plain(figure)


def keys(table: pd.DataFrame) -> Figure:
    """Share of the subjects who chose the key of each item against that of the likeliest other option.

    Args:
        table: of `irtjax.auditing.wrong_keys.wrong_keys`, with choices.
    """
    figure = Figure(figsize=(6, 5.4))
    axis = figure.subplots()
    likely = table["p_wrong_key"] > 0.5
    rng = np.random.default_rng(0)
    for chosen, colour, label in ((~likely, NO_REASON, "not in doubt"), (likely, COLOURS[1], "in doubt")):
        some = table[chosen]
        x, y = (some[name] + rng.uniform(-0.01, 0.01, len(some)) for name in ("share_key", "share_instead"))
        axis.scatter(x, y, s=10, color=colour, alpha=0.5, linewidths=0, label=f"key {label}: {len(some):,}")
    axis.plot([0, 0.5], [0, 0.5], color="0.5", linewidth=0.8, linestyle=":")
    axis.set(xlabel="share of subjects who chose the key", ylabel="share who chose the likeliest other option")
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    return plain(figure)


def rank_ranges(table: pd.DataFrame, level: float = 0.95) -> Figure:
    """Ranks with the ranges that hold at once.

    Args:
        table: of `irtjax.ranking`, of which the first 40 are drawn.
        level: of the ranges.
    """
    some = table.head(MOST_RANKED)
    figure = Figure(figsize=(9, 1.4 + 0.24 * max(len(some), 6)))
    axis = figure.subplots()
    rows = np.arange(len(some))
    axis.hlines(rows, some["best_rank"], some["worst_rank"], color=COLOURS[0], linewidth=3, alpha=0.5)
    axis.plot(some["rank"], rows, "o", color=COLOURS[0], markersize=5)
    axis.set_yticks(rows, [short(name, LONGEST_NAME) for name in some["subject_id"]], fontsize=9)
    axis.set_ylim(len(some) - 0.4, -0.6)
    of_all = "" if len(some) == len(table) else f", the first {len(some)} of {len(table):,}"
    axis.set(xlabel="rank", title=f"Ranks, with ranges that all hold at once ({level:.0%}){of_all}")
    return plain(figure)


def gains(table: pd.DataFrame) -> Figure:
    """Gains of subjects on items before their cutoff, with 95% intervals.

    Args:
        table: of `irtjax.auditing.contamination.Contamination.subjects`.
    """
    some = table.sort_values("gain", ascending=False).head(MOST_RANKED)
    figure = Figure(figsize=(8, 1.4 + 0.3 * max(len(some), 4)))
    axis = figure.subplots()
    rows, clear = np.arange(len(some)), (some["p_adjusted"] < 0.05).to_numpy()
    for chosen, colour in ((clear, COLOURS[1]), (~clear, COLOURS[6])):
        half = 1.96 * some["standard_error"][chosen]
        axis.errorbar(some["gain"][chosen], rows[chosen], xerr=half, fmt="o", color=colour, capsize=2)
    axis.axvline(0, color="0.5", linewidth=0.8, linestyle=":")
    axis.set_yticks(rows, [short(name, LONGEST_NAME) for name in some["subject_id"]], fontsize=9)
    axis.set_ylim(len(some) - 0.4, -0.6)
    axis.set(xlabel="gain on items before the cutoff (logits; orange: adjusted p < 0.05)")
    return plain(figure)
