"""The report of the fit of items, subjects, pairs and the whole test."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document
from irtjax import Fit
from irtjax.scale.overall_fit import OverallFit
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "item_fit.csv", "person_fit.csv", "local_dependence.csv", "overall_fit.json")
LEVEL = 0.05
SHOWN = 10


class Found(NamedTuple):
    """What `irtjax.item_fit` and its kin found; why there is no overall fit in its place."""

    items: pd.DataFrame
    subjects: pd.DataFrame
    pairs: pd.DataFrame
    overall: OverallFit | str


def write(found: Found, fit: Fit, flags: dict[str, Any], pairs: int, directory: Path) -> list[str]:
    """Writes tables and report; returns its main lines."""
    write_csv(found.items, directory / "item_fit.csv")
    write_csv(found.subjects, directory / "person_fit.csv")
    write_csv(found.pairs.head(pairs), directory / "local_dependence.csv")
    record = found.overall._asdict() if isinstance(found.overall, OverallFit) else {"not_computed": found.overall}
    document.write_json(record, directory / "overall_fit.json")
    return document.write("item_fit", values(found) | {"model": fit.model, "flags": flags}, directory)


def values(found: Found) -> dict[str, Any]:
    """What the report says of the test, and the worst items, pairs and subjects."""
    items, subjects, pairs, overall = found
    t = items[["infit_t", "outfit_t"]].abs()
    off = t if t.notna().any(axis=None) else np.log(items[["infit", "outfit"]]).abs()
    by = "lz_star" if subjects["lz_star"].notna().any() else "outfit"
    return {
        "overall": overall,
        "num_subjects": len(subjects),
        "num_items": len(items),
        "of_items": _tests(items["p_holm"])
        | {"with_t": int(items["infit_t"].notna().sum()), "far": int((t > 3).any(axis=1).sum())},
        "of_pairs": _tests(pairs["p_holm"]),
        "of_subjects": {
            "tested": int(subjects["lz_star"].notna().sum()),
            "significant": int((subjects["p_value"] < LEVEL).sum()),
            "mean": subjects["lz_star"].mean(),
        },
        "items": items.iloc[np.argsort(-off.max(axis=1).fillna(0), kind="stable")].head(SHOWN),
        "pairs": pairs.head(SHOWN),
        "subjects": subjects.sort_values(by, ascending=by == "lz_star", kind="stable").head(SHOWN),
    }


def _tests(p: pd.Series) -> dict[str, int]:
    return {"tested": int(p.notna().sum()), "significant": int((p < LEVEL).sum())}
