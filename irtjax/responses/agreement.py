"""Do people agree on the labels of items? Majorities and Fleiss' kappa."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.types import Int, Shaped

NO_ANSWER = {"", "na", "NA", "n/a"}


class Agreement(NamedTuple):
    """Agreement of raters with one another and with the gold labels, over I items.

    Attributes:
        majority: share of items of which one label has more than half of the answers.
        supermajority: share of items of which one label has two thirds of them or more.
        mode_is_gold: share of items whose most frequent label is the gold one.
        answer_is_gold: share of all answers that are the gold label.
        answer_is_mode: share of all answers that are the most frequent label of their item.
        kappa: of Fleiss, over all labels.
        kappa_of_label: of each label, that label against the others.
    """

    majority: float
    supermajority: float
    mode_is_gold: float
    answer_is_gold: float
    answer_is_mode: float
    kappa: float
    kappa_of_label: dict[str, float]


def label_counts(answers: pd.DataFrame, labels: Sequence[str]) -> Int[np.ndarray, "I C"]:
    """How often each item was given each label: (I, C); other cells, such as empty ones, count as missing."""
    return np.stack([(answers == label).to_numpy().sum(axis=0) for label in labels], axis=1)


def agreement(counts: Int[np.ndarray, "I C"], labels: Sequence[str], gold: Shaped[np.ndarray, " I"]) -> Agreement:
    """Majorities and kappas of labels that people gave to items.

    With n_ic of n_i answers to item i for label c, P_i = Σ_c n_ic (n_ic - 1) / (n_i (n_i - 1)) and p_c the share of all
    answers that are c: κ = (mean P_i - Σ p_c²) / (1 - Σ p_c²) (Fleiss 1971, eq. 7), and for one label

        κ_c = 1 - mean [n_ic (n_i - n_ic) / (n_i (n_i - 1))] / (p_c (1 - p_c))

    (eq. 15). Items may have different numbers of answers; p_c is then a mean over answers, P_i a mean over items.

    Args:
        counts: (I, C).
        labels: C names.
        gold: (I,) gold labels, among the names.

    Raises:
        InputError: an item with fewer than two answers.
    """
    total = counts.sum(1)
    if (total < 2).any():
        raise InputError(f"item number {int(np.argmax(total < 2)) + 1} has fewer than two answers")
    share = counts / total[:, None]
    is_gold = np.asarray(labels)[None, :] == np.asarray(gold)[:, None]
    of_label = counts.sum(0) / total.sum()
    pairs = counts * (counts - 1) / (total * (total - 1))[:, None]
    by_chance = (of_label**2).sum()
    apart = (counts * (total[:, None] - counts) / (total * (total - 1))[:, None]).mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):  # a label that nobody gave
        each = 1 - apart / (of_label * (1 - of_label))
    return Agreement(
        majority=float((share.max(1) > 1 / 2).mean()),
        supermajority=float((share.max(1) >= 2 / 3).mean()),
        mode_is_gold=float(is_gold[np.arange(len(counts)), counts.argmax(1)].mean()),
        answer_is_gold=float((counts * is_gold).sum() / total.sum()),
        answer_is_mode=float(counts.max(1).sum() / total.sum()),
        kappa=float((pairs.sum(1).mean() - by_chance) / (1 - by_chance)),
        kappa_of_label=dict(zip(labels, each.tolist(), strict=True)),
    )


def agreement_table(answers: pd.DataFrame, gold: pd.Series) -> pd.DataFrame:
    """Agreement of people on labels: one row.

    Args:
        answers: one row per subject, one column per item; labels, written in full or abbreviated ("e" for
            "entailment"). Empty cells and "na" count as no answer, labels that are never gold as labels of their own.
        gold: labels by item, in the order of the columns.

    Raises:
        InputError: a gold label that no answer equals or abbreviates, or that several do.
    """
    labels = label_by_answer(answers, gold)
    counts = label_counts(answers, list(labels))
    found = agreement(counts, list(labels.values()), gold.to_numpy())
    kappas = {f"kappa_{label}": value for label, value in found.kappa_of_label.items()}
    row = {name: value for name, value in found._asdict().items() if name != "kappa_of_label"}
    return pd.DataFrame([{"items": len(counts), "answers": int(counts.sum()), **row, **kappas}])


def label_by_answer(answers: pd.DataFrame, gold: pd.Series) -> dict[str, str]:
    """The label that each answer stands for: gold ones first, in alphabetical order, then all others.

    Raises:
        InputError: see `agreement_table`.
    """
    given = {value for value in pd.unique(answers.to_numpy().ravel()) if isinstance(value, str)} - NO_ANSWER
    label_of: dict[str, str] = {}
    for label in sorted(gold.unique()):
        codes = [label] if label in given else sorted(short for short in given if label.startswith(short))
        if len(codes) != 1 or codes[0] in label_of:
            raise InputError(
                f"no one answer stands for the gold label '{label}' alone; answers are {', '.join(sorted(given))}"
            )
        label_of[codes[0]] = label
    return label_of | {other: other for other in sorted(given - set(label_of))}
