"""The report on soft labels: what the items are, what each method reached, and how many people labels need."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from experiments.common.settings import Settings
from experiments.common.soft_items import Found
from experiments.reports import markdown
from irtjax.plots.soft_labels import divergence, divergence_by_difficulty, gold_probabilities
from irtjax.plots.style import save_figure
from irtjax.selection.summary import detectable, interval
from irtjax.soft_labels.allocation import CHOICES, divergence_by_budget
from irtjax.soft_labels.labels import DIVERGENCES, by_quarter, divergence_by_number, gold_histogram, kl
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
OF_CONTROL, CONTROL = "I-CCE", "I-CCE permuted"  # soft labels of the items, and exchanged within their class
RUNS = 20  # of drawing people one after the other
BUDGETS, RUNS_OF_CHOICE = (2, 5, 10, 20, 50), 5  # labels per item; draws for each way to choose where they go


def write(
    settings: Settings, found: Found, source: str, directory: Path, compared: pd.DataFrame | None = None
) -> dict[str, Any]:
    """Writes the pictures, `divergence.csv` and `people_networks.csv`; returns the values of the report."""
    folder, items = directory / "soft_labels", found.items
    published = published_for(settings.task, settings.networks[0])
    save_figure(
        gold_probabilities(gold_histogram(items.shares, items.split.labels)), directory / "gold_probability.png"
    )
    return {
        **_methods(pd.read_csv(folder / "methods.csv"), published),
        "task": found.task,
        "of_gold": items.shares[np.arange(len(items.split.labels)), items.split.labels],
        "control": _control(pd.read_csv(folder / "methods.csv")),
        "held_out": None if found.held_out is None else _held_out(found, folder),
        "least_answers": None if items.counts is None else items.counts.sum(1).min(),
        "removed": found.removed,
        "source": source,
        "people": None if found.answers is None else _people(found, settings.seed, directory),
        "allocation": None if source == "predictions" else _allocation(found, settings.seed, directory),
        "networks": None if compared is None else _networks(compared, directory),
        **_confusion(pd.read_csv(folder / "confusion.csv")),
    }


def published_for(task: str, network: str) -> dict[str, float]:
    """The published accuracy of each method for a network, or for its `_study` form; empty where none is published."""
    return PUBLISHED.get((task, network.removesuffix("_study")), {})


def _methods(table: pd.DataFrame, published: dict[str, float]) -> dict[str, Any]:
    """Epochs, test accuracies and changes against the reference, by method."""
    wide = table.pivot(index="seed", columns="method", values="test_accuracy") * 100
    epochs = table.groupby("method", sort=False).best_epoch.mean()
    reference = "B1" if "B1" in epochs else epochs.index[0]
    changes = {name: wide[name] - wide[reference] for name in epochs.index if name != reference}
    columns = {
        "epoch": epochs,
        "accuracy": {name: markdown.mean_of(wide[name]) for name in wide},
        "change": {name: markdown.mean_of(change) for name, change in changes.items()},
        "detectable": {name: detectable(change) for name, change in changes.items()},
        "published": published,
    }
    methods = pd.DataFrame(columns, epochs.index)
    return {"num_seeds": len(wide), "reference": reference, "methods": methods, "published": published}


def _control(table: pd.DataFrame) -> dict[str, markdown.Mean] | None:
    """What soft labels of the item itself gain over those of others of its class; None where that was not tried."""
    if CONTROL not in set(table.method) or OF_CONTROL not in set(table.method):
        return None
    wide = table.pivot(index="seed", columns="method")
    gain = {name: wide[name][OF_CONTROL] - wide[name][CONTROL] for name in wide.columns.unique(0)}
    return {"accuracy": markdown.mean_of(100 * gain["test_accuracy"])} | {
        name: markdown.mean_of(gain[name]) for name in ("kl", "kl_at_best") if name in gain
    }


def _held_out(found: Found, folder: Path) -> dict[str, Any]:
    """Divergence from people on the items that were not learned from, by method, and that of constant guesses."""
    assert found.held_out is not None
    table, of_items = pd.read_csv(folder / "methods.csv"), pd.read_csv(folder / "held_out.csv", dtype={"item_id": str})
    wide, items = table.pivot(index="seed", columns="method"), of_items.pivot(index="item_id", columns="method")
    names = list(table.method.unique())
    reference = "B1" if "B1" in names else names[0]
    others = [name for name in names if name != reference]
    columns: dict[str, Any] = {"temperature": {name: markdown.mean_of(wide.temperature[name]) for name in names}}
    for what in ("kl", "kl_at_best"):
        changes = {name: wide[what][name] - wide[what][reference] for name in others}
        columns[what] = {name: markdown.mean_of(wide[what][name]) for name in names}
        columns[f"{what}_change"] = {name: markdown.mean_of(change) for name, change in changes.items()}
        columns[f"{what}_of_items"] = {name: interval(items[what][name] - items[what][reference]) for name in others}
    people = np.asarray(found.held_out.shares)
    usual = np.asarray(found.items.shares).mean(0)
    constant = {"equal shares": np.full_like(usual, 1 / usual.size), "the mean shares of the others": usual}
    return {
        "methods": pd.DataFrame(columns, names),
        "items": len(people),
        "constant": {name: kl(people, np.broadcast_to(q, people.shape)).mean() for name, q in constant.items()},
    }


def _people(found: Found, seed: int, directory: Path) -> dict[str, Any]:
    """Divergence of the soft labels of some people from those of all, by their number."""
    answers = found.answers
    assert answers is not None
    shown = [number for number in (1, 5, 10, 20, 50, 100, 200, 500) if number <= answers.num_people]
    numbers = np.union1d(np.geomspace(1, answers.num_people, 25).round().astype(int), shown)
    table = divergence_by_number(answers, found.task.num_classes, numbers, RUNS, seed)
    write_csv(table, directory / "divergence.csv")
    save_figure(divergence(table), directory / "divergence.png")
    means = table.groupby("people")[[*DIVERGENCES, "unseen"]].mean().loc[shown]
    return {"people": answers.num_people, "items": len(answers.item_ids), "runs": RUNS, "table": means.T}


def _allocation(found: Found, seed: int, directory: Path) -> dict[str, Any] | None:
    """Divergence of soft labels from those of all, by what the next label goes to; None without numbers of answers."""
    counts = None if found.items.counts is None else np.asarray(found.items.counts)
    if counts is None or counts.sum(1).min() <= min(BUDGETS):
        return None
    budgets = [number for number in BUDGETS if number < counts.sum(1).min()]
    table = divergence_by_budget(counts, budgets, runs=RUNS_OF_CHOICE, seed=seed)
    write_csv(table, directory / "allocation.csv")
    means = table.groupby(["choice", "labels"]).kl.mean().unstack().loc[list(CHOICES)]
    return {"items": len(counts), "runs": RUNS_OF_CHOICE, "table": means}


def _networks(table: pd.DataFrame, directory: Path) -> dict[str, Any]:
    """Divergence of the soft labels of networks from those of people, and how it goes with difficulty."""
    write_csv(table, directory / "people_networks.csv")
    save_figure(divergence_by_difficulty(table), directory / "people_networks.png")
    known = table.dropna(subset="difficulty")
    correlation = spearmanr(known.difficulty, known.kl)
    return {"table": table, "known": len(known), "correlation": correlation, "quarters": by_quarter(known)}


def _confusion(table: pd.DataFrame) -> dict[str, Any]:
    """Shares of predicted classes in %, by gold label; of many classes only those of right answers."""
    classes = list(table.columns[2:])
    shares = table.assign(**table[classes].div(table[classes].sum(1), axis=0) * 100)
    if len(classes) <= MOST_CLASSES:
        return {"confusion": shares, "right": None}
    right = {name: np.diag(rows[classes]) for name, rows in shares.groupby("method", sort=False)}
    return {"confusion": None, "right": pd.DataFrame.from_dict(right, "index", columns=classes)}
