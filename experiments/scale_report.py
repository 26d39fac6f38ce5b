"""What `experiments.build_scale` leaves: `scale.csv`, `report.md`, and the tables and pictures of each group."""

from pathlib import Path

import pandas as pd

from experiments import markdown, scale_sections
from experiments.scale_sections import Wanted, no_scale
from irtjax import InputError, versions
from irtjax.agreement import agreement, label_counts
from irtjax.files import whole_file, writable_directory, write_csv
from irtjax.scale import information
from irtjax.scale.procedure import Built


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


def write(built: dict[str, Built], directory: Path, wanted: Wanted) -> None:
    """Writes everything; one group of items straight into the directory, several into a folder each."""
    parts = [_overview(built)]
    if wanted.agreement is not None:
        write_csv(wanted.agreement, directory / "agreement.csv")
        parts.append(_agreement(wanted.agreement))
    decisions = []
    for name, one in built.items():
        folder = directory if len(built) == 1 else writable_directory(directory / name.replace("/", "_"))
        table = one.decisions()
        table.insert(1, "group", name)
        if one.scale is not None:
            table = table.merge(
                one.scale.fit.items().drop(columns=["num_responses", "percent_correct"]), "left", "item_id"
            )
        decisions.append(table)
        parts.append(scale_sections.group(name, one, folder, directory, wanted))
    write_csv(pd.concat(decisions, ignore_index=True), directory / "scale.csv")
    flags = "\n".join(f"    --{name}={value}" for name, value in wanted.flags.items() if value is not None)
    made_by = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts.append(f"## How it was made\n\n{flags}\n\n{made_by}.")
    with whole_file(directory / "report.md") as path:
        path.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    retained = sum(0 if one.scale is None else one.scale.fit.responses.num_items for one in built.values())
    total = sum(one.responses.num_items for one in built.values())
    print(f"Done: {directory}/report.md and scale.csv ({retained} of {total} items retained)", flush=True)


def _overview(built: dict[str, Built]) -> str:
    rows = []
    for name, one in built.items():
        counts = one.removals["reason"].value_counts()
        reasons = ", ".join(f"{number} {reason}" for reason, number in counts.items())
        kept = 0 if one.scale is None else one.scale.fit.responses.num_items
        reliability = "" if one.scale is None else f"{information.marginal_reliability(one.scale.fit.parameters):.3f}"
        rows.append([name, one.responses.num_items, kept, reliability, reasons or no_scale(one) or "none"])
    subjects = next(iter(built.values())).responses.num_subjects
    header = ["items", "number", "retained", "reliability", "removed"]
    return f"# A test scale from {subjects:,} subjects\n\n{markdown.table(header, rows)}"


def _agreement(table: pd.DataFrame) -> str:
    row = table.iloc[0]
    kappas = ", ".join(f"{name.removeprefix('kappa_')} {row[name]:.2f}" for name in table if name.startswith("kappa_"))
    return f"""## Do people agree?

{int(row.answers):,} answers to {int(row["items"])} items. A majority agrees on {row.majority:.1%} of the items, two
thirds on {row.supermajority:.1%}; the most frequent label is the gold one for {row.mode_is_gold:.1%} of the items, and
an answer for {row.answer_is_gold:.1%} of the answers. Fleiss' kappa {row.kappa:.2f}; of single labels {kappas}."""
