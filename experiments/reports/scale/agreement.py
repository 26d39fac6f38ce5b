"""Do people agree on the labels of the items?"""

import pandas as pd

from experiments.reports import markdown
from irtjax import InputError
from irtjax.responses.agreement import agreement, label_counts

NO_ANSWER = {"", "na", "NA", "n/a"}


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


def agreement_text(table: pd.DataFrame) -> str:
    """The section of the report on a table of `agreement_table`."""
    row = table.iloc[0]
    labels = {name: name.removeprefix("kappa_") for name in table if name.startswith("kappa_")}
    kappas = ", ".join(f"{markdown.inline(label)} {row[name]:.2f}" for name, label in labels.items())
    return f"""## Do people agree?

{int(row.answers):,} answers to {int(row["items"])} items. A majority agrees on {row.majority:.1%} of the items, two
thirds on {row.supermajority:.1%}. The most frequent label is the gold label for {row.mode_is_gold:.1%} of the items;
{row.answer_is_gold:.1%} of all answers are the gold label, {row.answer_is_mode:.1%} the most frequent label of their
item. Fleiss' kappa is {row.kappa:.2f}; for single labels: {kappas}."""
