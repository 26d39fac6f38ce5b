"""The document that a run ends with, `report.md` and the same as a page, `report.html`; and how it was made."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.common.run_directory import RECORD
from experiments.common.settings import STAGES
from experiments.reports import markdown
from experiments.reports.page import page
from experiments.reports.render import render
from irtjax import versions
from irtjax.errors import printable
from irtjax.storage.files import whole_file

FILES = ("report.md", "report.html")


def write_report(template: str, values: Mapping[str, Any], directory: Path) -> list[str]:
    """Fills the template and writes the document, whose pictures are there already; returns the lines of its summary.

    Args:
        template: its name.
        values: that it asks for, with `flags`; of a run directory those of `made` too.
        directory: for the document.
    """
    text, summary = render(template, {"versions": versions(), **values})
    publish(text, directory)
    return summary


def publish(text: str, directory: Path) -> None:
    """Writes the document from its Markdown."""
    for name, content in zip(FILES, (text, page(text, directory)), strict=True):
        with whole_file(directory / name) as path:
            path.write_text(content, encoding="utf-8")


def write(parts: list[str], directory: Path) -> None:
    """Writes the document: its parts with a blank line between them, empty ones left out; the pictures are there."""
    publish(one_line_each("\n\n".join(filter(None, parts))) + "\n", directory)


def one_line_each(text: str) -> str:
    """Markdown with each paragraph in one line: in no other line can a number or a dash begin a list."""
    return re.sub(r"(?<=\S)\n {0,3}(?![\s|#]|\* |!\[)", " ", text)


def save(parts: list[str], directory: Path) -> None:
    """Writes the document and prints where it is."""
    write(parts, directory)
    pictures = ", ".join(path.name for path in sorted(directory.glob("*.png")))
    print(f"Done: {directory}/report.html and report.md, with the pictures {pictures}", flush=True)


def save_report(template: str, values: Mapping[str, Any], directory: Path) -> None:
    """Writes the document and prints where it is."""
    write_report(template, values, directory)
    pictures = ", ".join(path.name for path in sorted(directory.glob("*.png")))
    print(f"Done: {directory}/report.html and report.md, with the pictures {pictures}", flush=True)


def made(flags: dict[str, Any], directory: Path) -> dict[str, Any]:
    """How a run directory was made: flags, and versions, durations and memory of the stages whose folders are in it."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(directory.glob(f"*/{RECORD}"))}
    in_order = [*(name for name in STAGES if name in found), *(name for name in found if name not in STAGES)]
    stages = pd.DataFrame([{"peak_mib": None} | found[name] | {"stage": name} for name in in_order])
    return {"flags": flags, "versions": found[in_order[0]]["versions"], "stages": stages}


def write_json(record: dict[str, Any], path: Path) -> None:
    """Writes a record as indented JSON."""
    with whole_file(path) as partial:
        partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def how_it_was_made(flags: dict[str, Any], directory: Path) -> str:
    """Flags, durations and versions of the stages whose folders are in a run directory."""
    found = {path.parent.name: path for path in sorted(directory.glob(f"*/{RECORD}"))}
    in_order = [*(name for name in STAGES if name in found), *(name for name in found if name not in STAGES)]
    records = {name: json.loads(found[name].read_text()) for name in in_order}
    packages = next(iter(records.values()))["versions"]
    rows = [
        [name, f"{record['seconds']:.1f}", f"{record['peak_mib']:,}" if "peak_mib" in record else ""]
        for name, record in records.items()
    ]
    return provenance(flags, packages, markdown.table(["stage", "seconds", "peak memory (MiB)"], rows))


def provenance(flags: dict[str, Any], packages: dict[str, str], between: str = "") -> str:
    """The last section of a report: flags, something between them, and versions."""
    given = "\n".join(
        f"    --{name}={printable(str(value))}" for name, value in flags.items() if value not in (None, "", [])
    )
    named = ", ".join(f"{name} {version}" for name, version in packages.items())
    return "\n\n".join(filter(None, ["## How it was made", given, between, f"{named}."]))
