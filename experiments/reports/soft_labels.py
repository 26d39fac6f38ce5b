"""The report on soft labels: what the items are, what each method reached, and how many people labels need."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import entropy, spearmanr

from experiments.common.settings import Settings
from experiments.common.soft_items import Found
from experiments.reports import markdown
from irtjax.plots.soft_labels import divergence, divergence_by_difficulty, gold_probabilities
from irtjax.plots.style import save_figure
from irtjax.selection.summary import detectable, interval
from irtjax.soft_labels.labels import DIVERGENCES, divergence_by_number, gold_histogram, kl
from irtjax.storage.files import write_csv

# Test accuracy in % of single runs (Lalor, Wu and Yu 2018; Lalor 2020, chapter 4).
PUBLISHED = {
    ("snli", "lstm"): {"B1": 76.7, "B2": 76.9, "B3": 75.7, "S-MSE": 76.5, "S-CCE": 77.4, "I-MSE": 76.9, "I-CCE": 76.7},
    ("snli", "nse"): {"B1": 84.6, "B2": 84.8, "B3": 84.0, "S-MSE": 84.1, "S-CCE": 85.1, "I-MSE": 84.3, "I-CCE": 84.4},
    ("snli", "esim"): {"B1": 87.7, "B2": 84.0, "B3": 84.1, "S-MSE": 87.7, "S-CCE": 87.6, "I-MSE": 87.8, "I-CCE": 87.9},
    ("sst2", "lstm"): {"B1": 87.4, "B2": 86.7, "B3": 87.0, "S-MSE": 87.3, "S-CCE": 87.5, "I-MSE": 86.5, "I-CCE": 87.5},
    ("sst2", "nse"): {"B1": 88.9, "B2": 88.7, "B3": 87.7, "S-MSE": 87.5, "S-CCE": 88.6, "I-MSE": 88.4, "I-CCE": 89.1},
}
MOST_CLASSES = 5  # of confusion matrices that are shown in full
QUARTERS = 4  # of difficulties
RUNS = 20  # of drawing people one after the other


def people_and_networks(
    ids: np.ndarray, difficulty: np.ndarray, people: np.ndarray, networks: np.ndarray
) -> pd.DataFrame:
    """How far soft labels of a crowd are from those of people.

    Args:
        ids: (I,) of the items.
        difficulty: (I,) NaN where it is not known.
        people: (I, C) shares of their answers.
        networks: (I, C) numbers of networks that chose each class; half of one is added to each.

    Returns:
        One row per item: `item_id, difficulty, kl`, that of people ‖ networks in nats, and the entropies of both.
    """
    shares = (networks + 0.5) / (networks + 0.5).sum(1, keepdims=True)
    entropies = {name: entropy(p, axis=1) for name, p in (("people", people), ("networks", shares))}
    return pd.DataFrame(
        {
            "item_id": ids,
            "difficulty": difficulty,
            "kl": kl(people, shares),
            **{f"entropy_{name}": values for name, values in entropies.items()},
        }
    )


def write(
    settings: Settings, found: Found, source: str, directory: Path, compared: pd.DataFrame | None = None
) -> list[str]:
    """Writes the pictures, `divergence.csv` and `people_networks.csv`; returns the sections of the report."""
    folder = directory / "soft_labels"
    parts = [
        _methods(pd.read_csv(folder / "methods.csv"), PUBLISHED.get((settings.task, settings.networks[0]), {})),
        _items(found, source, directory),
        _confusion(pd.read_csv(folder / "confusion.csv")),
    ]
    if found.answers is not None:
        parts.insert(2, _people(found.answers, found.task.num_classes, settings.seed, directory))
    if compared is not None:
        parts.insert(3, _networks(compared, directory))
    return parts


def _methods(table: pd.DataFrame, published: dict[str, float]) -> str:
    wide = table.pivot(index="seed", columns="method", values="test_accuracy") * 100
    names = list(table.method.unique())
    reference = "B1" if "B1" in names else names[0]
    rows = []
    for name in names:
        change = wide[name] - wide[reference]
        rows.append(
            [
                name,
                markdown.with_interval(table[table.method == name].best_epoch.mean(), float("nan"), ".1f"),
                markdown.with_interval(wide[name].mean(), interval(wide[name]), ".2f"),
                "" if name == reference else markdown.with_interval(change.mean(), interval(change), "+.2f"),
                "" if name == reference else _points(detectable(change)),
                *([f"{published[name]:.1f}" if name in published else ""] if published else []),
            ]
        )
    header = ["method", "best epoch", "test accuracy (%)", f"against {reference} (points)", "detectable (points)"]
    single = " Published figures are of single\nruns." if published else ""
    return f"""## Methods

Test accuracy at the best validation epoch: mean of {markdown.seeds(len(wide))}. Networks of one seed begin with the
same weights under each method, so that the change against {reference} is paired. The detectable change is the smallest
that a t test detects with 80% power, given the spread of these seeds.{single}

{markdown.table([*header, *(["published"] if published else [])], rows)}"""


def _points(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _items(found: Found, source: str, directory: Path) -> str:
    items, task = found.items, found.task
    of_gold = items.shares[np.arange(len(items.split.labels)), items.split.labels]
    save_figure(
        gold_probabilities(gold_histogram(items.shares, items.split.labels)), directory / "gold_probability.png"
    )
    removed = ", ".join(f"{number:,} of {name}" for name, number in found.removed.items() if number)
    answers = "" if items.counts is None else f", of {items.counts.sum(1).min():,} answers or more each"
    distilled = "\nTheir soft labels are shares of the networks of a crowd: training on them is distillation."
    of_networks = distilled if source == "predictions" else ""
    return f"""## Items

{len(of_gold):,} items have soft labels{answers}. They and their copies are in no split of {task.name}: {removed} were
removed.{of_networks}

The mean probability of the gold label is {of_gold.mean():.3f}; items by that probability:

![Items by the probability of their gold label](gold_probability.png)"""


def _people(answers: np.ndarray, num_classes: int, seed: int, directory: Path) -> str:
    shown = [number for number in (1, 5, 10, 20, 50, 100, 200, 500) if number <= len(answers)]
    numbers = np.union1d(np.geomspace(1, len(answers), 25).round().astype(int), shown)
    table = divergence_by_number(answers, num_classes, numbers, RUNS, seed)
    write_csv(table, directory / "divergence.csv")
    save_figure(divergence(table), directory / "divergence.png")
    at = table.groupby("people").mean().loc[shown]
    rows = [[name, *(f"{value:.3f}" for value in at[name])] for name in (*DIVERGENCES, "unseen")]
    return f"""## How many people?

Divergence of the soft labels of all {len(answers):,} people from those of some of them, in nats, averaged over all
{answers.shape[1]:,} items of the answers and {RUNS} draws of people without replacement. A class that none of them
chose decides it, so that what stands in its place matters: half an answer added to each class; shares of 1e-3 or 1e-10
at least; or nothing, in the reverse divergence. "Unseen" is the share of the classes chosen by anybody that none of
those drawn chose.

![Divergence against number of people](divergence.png)

{markdown.table(["people", *map(str, shown)], rows)}"""


def _networks(table: pd.DataFrame, directory: Path) -> str:
    write_csv(table, directory / "people_networks.csv")
    save_figure(divergence_by_difficulty(table), directory / "people_networks.png")
    known = table.dropna(subset="difficulty")
    found = spearmanr(known.difficulty, known.kl)
    parts = pd.qcut(known.difficulty, min(QUARTERS, len(known)), duplicates="drop")
    names = ["kl", "entropy_people", "entropy_networks"]
    rows = [
        [
            f"{part.difficulty.min():.2f} to {part.difficulty.max():.2f}",
            len(part),
            *(f"{part[n].mean():.3f}" for n in names),
        ]
        for _, part in known.groupby(parts, observed=True)
    ]
    header = ["difficulty", "items", "KL (people ‖ networks)", "entropy of people", "entropy of networks"]
    return f"""## People and networks

How far the soft labels of the networks are from those of people, in nats: the mean over {len(table):,} items is
{table.kl.mean():.3f}. Half a network is added to each class. Its rank correlation with difficulty is
{found.statistic:.2f} (p = {found.pvalue:.4f}, {len(known):,} items).

{markdown.table(header, rows)}

![Divergence of networks from people against difficulty](people_networks.png)"""


def _confusion(table: pd.DataFrame) -> str:
    classes = list(table.columns[2:])
    shares = table[classes].div(table[classes].sum(1), axis=0) * 100
    if len(classes) <= MOST_CLASSES:
        what = "Predicted classes in % of the test examples of each gold label (rows), mean of the seeds."
        header = ["method", "gold", *map(markdown.inline, classes)]
        names = zip(table.method, table.gold, strict=True)
        rows = [
            [method, markdown.inline(gold), *(f"{share:.1f}" for share in row)]
            for (method, gold), row in zip(names, shares.to_numpy(), strict=True)
        ]
    else:
        what = "Right answers in % of the test examples of each gold label, mean of the seeds; `confusion.csv` has all."
        header = ["method", *map(markdown.inline, classes)]
        rows = [
            [method, *(f"{share:.1f}" for share in np.diag(shares.loc[group.index]))]
            for method, group in table.groupby("method", sort=False)
        ]
    return f"""## Confusion

{what}

{markdown.table(header, rows)}"""
