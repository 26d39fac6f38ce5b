"""What `experiments.build_scale` leaves: `scale.csv`, `report.md`, and the tables and pictures of each group."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import markdown, scale_sections
from experiments.reports.scale_sections import ShortForms, Told
from irtjax import InputError, versions
from irtjax.responses.agreement import agreement, label_counts
from irtjax.responses.matrix import percent_correct
from irtjax.scale import information
from irtjax.storage.files import whole_file, writable_directory, write_csv

PARAMETERS = ["item_id", "difficulty", "difficulty_se", "discrimination", "discrimination_se"]
FILES = ("report.md", "scale.csv", "agreement.csv", "build_scale.json")  # of the run directory
NO_ANSWER = {"", "na", "NA", "n/a"}


def agreement_table(answers: pd.DataFrame, gold: pd.Series) -> pd.DataFrame:
    """Agreement of people on labels: one row.

    Args:
        answers: a row a subject, a column an item; labels, written in full or abbreviated ("e" for "entailment"); empty
            cells and "na" count as no answer, labels that are never gold as labels of their own.
        gold: labels by item, in the order of the columns.

    Raises:
        InputError: gold labels that no answer is or begins, or that several do.
    """
    given = {value for value in pd.unique(answers.to_numpy().ravel()) if isinstance(value, str)} - NO_ANSWER
    name_of = {}
    for label in sorted(gold.unique()):
        codes = [label] if label in given else sorted(short for short in given if label.startswith(short))
        if len(codes) != 1 or codes[0] in name_of:
            raise InputError(
                f"no one answer stands for the gold label '{label}' alone; answers are {', '.join(sorted(given))}"
            )
        name_of[codes[0]] = label
    name_of |= {other: other for other in sorted(given - set(name_of))}
    labels = list(name_of.values())
    counts = label_counts(answers, list(name_of))
    found = agreement(counts, labels, gold.to_numpy())
    kappas = {f"kappa_{label}": value for label, value in found.kappa_of_label.items()}
    row = {name: value for name, value in found._asdict().items() if name != "kappa_of_label"}
    return pd.DataFrame([{"items": len(counts), "answers": int(counts.sum()), **row, **kappas}])


def write(
    told: list[Told], directory: Path, short_forms: ShortForms, agreement: pd.DataFrame | None, flags: dict[str, Any]
) -> None:
    """Writes everything; one group of items straight into the directory, several into a folder each.

    Args:
        told: what was found of each group.
        directory: of the run.
        short_forms: which are wanted.
        agreement: from `agreement_table`.
        flags: for the record.
    """
    _remove_former(directory)
    parts = [_overview(told)]
    if agreement is not None:
        write_csv(agreement, directory / "agreement.csv")
        parts.append(_agreement(agreement))
    decisions = []
    for one in told:
        folder = directory if len(told) == 1 else writable_directory(directory / folder_name(one.name))
        table = one.built.decisions()
        table.insert(1, "group", one.name)
        items = pd.DataFrame(columns=PARAMETERS)
        if one.built.scale is not None:
            items = one.built.scale.fit.items().drop(columns=["num_responses", "percent_correct"])
        decisions.append(table.merge(items, "left", "item_id"))
        parts.append(scale_sections.group(one, folder, directory, short_forms))
    write_csv(pd.concat(decisions, ignore_index=True), directory / "scale.csv")
    with whole_file(directory / "build_scale.json") as path:
        path.write_text(json.dumps(flags | {"versions": versions()}, indent=2) + "\n", encoding="utf-8")
    given = "\n".join(f"    --{name}={value}" for name, value in flags.items() if value is not None)
    made_by = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts.append(f"## How it was made\n\n{given}\n\n{made_by}.")
    with whole_file(directory / "report.md") as path:
        path.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    retained = sum(one.built.num_retained for one in told)
    total = sum(one.built.responses.num_items for one in told)
    print(f"Done: {directory}/report.md and scale.csv ({retained} of {total} items retained)", flush=True)


def folder_name(group: str) -> str:
    """What the folder of a group of items is called: its name, with signs that may mean something made underscores."""
    return re.sub(r"[^\w .,#+=-]", "_", group).strip(" .")


def _remove_former(directory: Path) -> None:
    """What a former run left must not be taken for this one's: a scale that is no more would still be administered."""
    folders = [summary.parent for summary in (*directory.glob("scale.json"), *directory.glob("*/scale.json"))]
    for folder in folders:
        for file in scale_sections.FILES:
            (folder / file).unlink(missing_ok=True)
    if folders:
        for file in FILES:
            (directory / file).unlink(missing_ok=True)


def _overview(told: list[Told]) -> str:
    rows = []
    for name, one, *_ in told:
        counts = one.removals["reason"].value_counts()
        reasons = [f"{number} {reason}" for reason, number in counts.items()]
        if one.no_scale:
            reasons.append(f"no scale ({one.no_scale})")
        reliability = "" if one.scale is None else f"{information.marginal_reliability(one.scale.fit.parameters):.3f}"
        right = f"{percent_correct(one.responses.values, axis=0).mean():.1%}"
        removed = ", ".join(reasons) or "none"
        rows.append([markdown.cell(name), one.responses.num_items, right, one.num_retained, reliability, removed])
    subjects = told[0].built.responses.num_subjects
    header = ["items", "number", "answered right", "retained", "reliability", "removed"]
    return f"# A test scale from {subjects:,} subjects\n\n{markdown.table(header, rows)}"


def _agreement(table: pd.DataFrame) -> str:
    row = table.iloc[0]
    kappas = ", ".join(f"{name.removeprefix('kappa_')} {row[name]:.2f}" for name in table if name.startswith("kappa_"))
    return f"""## Do people agree?

{int(row.answers):,} answers to {int(row["items"])} items. A majority agrees on {row.majority:.1%} of the items, two
thirds on {row.supermajority:.1%}; the most frequent label is the gold one for {row.mode_is_gold:.1%} of the items, and
an answer for {row.answer_is_gold:.1%} of the answers. Fleiss' kappa {row.kappa:.2f}; of single labels {kappas}."""
