"""What `experiments.build_scale` leaves: `scale.csv`, `report.md`, and the tables and pictures of each group."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments import markdown, scale_sections
from experiments.scale_sections import ShortForms, Told
from irtjax import InputError, versions
from irtjax.agreement import agreement, label_counts
from irtjax.files import whole_file, writable_directory, write_csv
from irtjax.responses import percent_correct
from irtjax.scale import information


def agreement_table(answers: pd.DataFrame, gold: pd.Series) -> pd.DataFrame:
    """Agreement of people on labels: one row.

    Args:
        answers: a row a subject, a column an item; labels, written in full or abbreviated ("e" for "entailment").
        gold: labels by item, in the order of the columns.

    Raises:
        InputError: gold labels that no answer begins.
    """
    labels = sorted(gold.unique())
    given = {str(value) for value in pd.unique(answers.to_numpy().ravel()) if isinstance(value, str)}
    codes = {}
    for label in labels:
        codes[label] = label if label in given else next((short for short in given if label.startswith(short)), None)
        if codes[label] is None:
            raise InputError(
                f"no answer is the gold label '{label}' or begins it; answers are {', '.join(sorted(given))}"
            )
    counts = label_counts(answers, list(codes.values()))
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
    parts = [_overview(told)]
    if agreement is not None:
        write_csv(agreement, directory / "agreement.csv")
        parts.append(_agreement(agreement))
    decisions = []
    for one in told:
        folder = directory if len(told) == 1 else writable_directory(directory / one.name.replace("/", "_"))
        table = one.built.decisions()
        table.insert(1, "group", one.name)
        if one.built.scale is not None:
            items = one.built.scale.fit.items().drop(columns=["num_responses", "percent_correct"])
            table = table.merge(items, "left", "item_id")
        decisions.append(table)
        parts.append(scale_sections.group(one, folder, directory, short_forms))
    write_csv(pd.concat(decisions, ignore_index=True), directory / "scale.csv")
    given = "\n".join(f"    --{name}={value}" for name, value in flags.items() if value is not None)
    made_by = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts.append(f"## How it was made\n\n{given}\n\n{made_by}.")
    with whole_file(directory / "report.md") as path:
        path.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    retained = sum(one.built.num_retained for one in told)
    total = sum(one.built.responses.num_items for one in told)
    print(f"Done: {directory}/report.md and scale.csv ({retained} of {total} items retained)", flush=True)


def _overview(told: list[Told]) -> str:
    rows = []
    for name, one, *_ in told:
        counts = one.removals["reason"].value_counts()
        reasons = [f"{number} {reason}" for reason, number in counts.items()]
        if one.no_scale:
            reasons.append(f"no scale ({one.no_scale})")
        reliability = "" if one.scale is None else f"{information.marginal_reliability(one.scale.fit.parameters):.3f}"
        right = f"{percent_correct(one.responses.values, axis=0).mean():.1%}"
        rows.append([name, one.responses.num_items, right, one.num_retained, reliability, ", ".join(reasons) or "none"])
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
