"""Writes what was found of a scale: `scale.csv`, `report.md`, and the tables and pictures of each group of items."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document
from experiments.reports.scale import values
from experiments.reports.scale.findings import GroupFindings, Wanted
from experiments.reports.scale.pictures import FILES as PICTURES
from experiments.reports.scale.pictures import pictures
from experiments.reports.scale.tables import FILES as TABLES
from experiments.reports.scale.tables import decisions, summary, tables
from irtjax import versions
from irtjax.plots.style import save_figure
from irtjax.scale.precision import precision as precision_of
from irtjax.storage.files import writable_directory, write_csv

RUN_FILES = (*document.FILES, "scale.csv", "agreement.csv", "build_scale.json")  # of the run directory
GROUP_FILES = (*TABLES, *PICTURES)  # of the folder of a group of items


def write(
    groups: list[GroupFindings],
    directory: Path,
    wanted: Wanted,
    agreement: pd.DataFrame | None,
    flags: dict[str, Any],
) -> None:
    """Writes everything. One group of items goes into the directory itself, several into a folder each.

    Args:
        groups: what was found of each.
        directory: for the results; nothing else is in it.
        wanted: what is to be told of precision.
        agreement: from `agreement_table`; None if there are no labels by people.
        flags: for the record.
    """
    if agreement is not None:
        write_csv(agreement, directory / "agreement.csv")
    told = []
    for group in groups:
        folder = directory if len(groups) == 1 else writable_directory(directory / folder_name(group.name))
        scale = group.result.scale
        precision = None if scale is None else precision_of(scale.fit, wanted.size, wanted.ability_range)
        for name, table in tables(group, precision).items():
            write_csv(table, folder / f"{name}.csv")
        for file, figure in pictures(group, precision).items():
            save_figure(figure, folder / file)
        told.append(values.of_group(group, precision, wanted, folder.relative_to(directory)))
        document.write_json(summary(group), folder / "scale.json")
    write_csv(pd.concat(map(decisions, groups), ignore_index=True), directory / "scale.csv")
    document.write_json(flags | {"versions": versions()}, directory / "build_scale.json")
    given = {name: value for name, value in flags.items() if value is not None}
    overview = values.overview(groups, agreement, wanted)
    document.write("build_scale", overview | {"groups": told, "flags": given}, directory)


def folder_name(group: str) -> str:
    """The folder of a group of items: its name, with underscores for characters that a file system may not allow."""
    return re.sub(r"[^\w .,#+=-]", "_", group).strip(" .")


def former_files(directory: Path) -> list[str]:
    """The results of a former run: a scale that is no longer valid would still be administered."""
    folders = {summary.parent for summary in (*directory.glob("scale.json"), *directory.glob("*/scale.json"))}
    in_groups = [str((folder / file).relative_to(directory)) for folder in sorted(folders) for file in GROUP_FILES]
    return [*in_groups, *RUN_FILES] if folders else []
