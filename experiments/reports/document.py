"""The document that a run ends with, `report.md` and the same as a page, `report.html`; and how it was made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.common.run_directory import RECORD
from experiments.common.settings import STAGES
from experiments.reports.page import page
from experiments.reports.render import render
from irtjax import versions
from irtjax.storage.files import whole_file

FILES = ("report.md", "report.html")


def write(template: str, values: Mapping[str, Any], directory: Path) -> list[str]:
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


def save(template: str, values: Mapping[str, Any], directory: Path) -> None:
    """Writes the document and prints where it is."""
    write(template, values, directory)
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
