"""Results of fits of every kind, to hold a change of the code against: not a test, but a program.

    python tests/golden.py --output_dir=runs/golden_before          # on the commit before
    python tests/golden.py --output_dir=runs/golden_after --against=runs/golden_before

Writes `items.csv`, `subjects.csv` and `fit.json` of each case, and prints the largest relative difference of each from
those of another folder, of the numbers that are not the same to the letter. `--only` takes the cases whose name has it.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import irtjax
from irtjax import ResponseMatrix

SKIPPED = {"seconds", "versions"}


def simulated(num_subjects: int, num_items: int, dims: int = 1, seed: int = 0, missing: float = 0.0) -> ResponseMatrix:
    """Responses with slopes exp N(0, 0.3²), difficulties N(0, 1) and guessing of 0.2 at every fourth item."""
    rng = np.random.default_rng(seed)
    slope = rng.lognormal(0, 0.3, (num_items, dims)) * (rng.random((num_items, dims)) < 0.7 if dims > 1 else 1)
    slope[:dims] = np.tril(slope[:dims]) + np.eye(dims)[:num_items]
    logit = rng.normal(size=(num_subjects, dims)) @ slope.T + rng.normal(size=num_items)
    p = 1 / (1 + np.exp(-logit))
    p[:, ::4] = 0.2 + 0.8 * p[:, ::4]
    values = (rng.random(p.shape) < p).astype(np.int8)
    values[rng.random(p.shape) < missing] = -1
    ids = [np.array([f"{letter}{k}" for k in range(n)]) for letter, n in zip("si", values.shape, strict=True)]
    return ResponseMatrix(values, *ids)


def cases() -> dict[str, Callable[[], irtjax.Fit]]:
    """What is fitted, by name."""
    short, holes = simulated(300, 20), simulated(300, 20, seed=1, missing=0.15)
    wide, long = simulated(25, 80, seed=2), simulated(60, 1500, seed=3)
    two, three, four = (simulated(400, 24, dims, seed=dims) for dims in (2, 3, 4))
    many = simulated(1500, 150, seed=5)
    mixed = ["1pl"] * 6 + ["2pl"] * 6 + ["3pl"] * 4 + ["4pl"] * 4
    halves = np.repeat(["a", "b"], 150)
    known = irtjax.fit(simulated(2000, 6, seed=0), "2pl").items()
    known["item_id"] = [f"i{k}" for k in (0, 3, 5, 8, 11, 14)]
    x = np.random.default_rng(9).normal(size=(20, 3))
    fits: dict[str, Callable[[], irtjax.Fit]] = {}
    for model in ("rasch", "1pl", "2pl", "3pl", "4pl"):
        fits[f"short_{model}"] = lambda model=model: irtjax.fit(short, model)
        fits[f"missing_{model}"] = lambda model=model: irtjax.fit(holes, model)
        fits[f"few_{model}"] = lambda model=model: irtjax.fit(wide, model)
        fits[f"anchors_{model}"] = lambda model=model: irtjax.fit(short, model, anchors=known)
        fits[f"long_{model}"] = lambda model=model: irtjax.fit(long, model)
    fits |= {
        "mixed": lambda: irtjax.fit(short, mixed),
        "guessing_2pl": lambda: irtjax.fit(short, "2pl", guessing=0.2),
        "guessing_3pl": lambda: irtjax.fit(short, "3pl", guessing=[0.2] * 10 + [np.nan] * 10),
        "nodes": lambda: irtjax.fit(short, "2pl", num_nodes=61),
        "without_errors": lambda: irtjax.fit(short, "3pl", standard_errors=False),
        "tiles_2pl": lambda: irtjax.fit(many, "2pl"),
        "tiles_3pl": lambda: irtjax.fit(many, "3pl"),
        "two_dims": lambda: irtjax.fit(two, "2pl", dims=2),
        "two_dims_3pl": lambda: irtjax.fit(two, "3pl", dims=2),
        "three_dims": lambda: irtjax.fit(three, "2pl", dims=3),
        "four_dims": lambda: irtjax.fit(four, "2pl", dims=4),
        "features_rasch": lambda: irtjax.fit(short, "rasch", features=x),
        "features_2pl": lambda: irtjax.fit(short, "2pl", features=x),
        "long_two_dims": lambda: irtjax.fit(long, "2pl", dims=2),
        "long_anchors": lambda: irtjax.fit(long, "2pl", anchors=known),
        "groups_2pl": lambda: irtjax.fit(short, "2pl", groups=halves),
        "groups_free": lambda: irtjax.fit(short, "2pl", groups=halves, free_by_group={"i3": "all", "i5": "difficulty"}),
        "groups_rasch": lambda: irtjax.fit(holes, "rasch", groups=halves),
        "covariates_2pl": lambda: irtjax.fit(short, "2pl", covariates={"half": halves, "x": np.arange(300) % 7}),
        "svi_1pl": lambda: irtjax.fit(short, "1pl", "svi"),
        "svi_2pl": lambda: irtjax.fit(short, "2pl", "svi"),
        "svi_vague": lambda: irtjax.fit(short, "2pl", "svi", priors="vague"),
    }
    return fits


def numbers(value: Any) -> Iterator[float]:
    """The numbers in what JSON or a table holds, in order; None is NaN."""
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, list | np.ndarray):
        for one in value:
            yield from numbers(one)
    else:
        yield float("nan" if value is None else value)


def difference(one: Path, other: Path) -> str:
    """How two result files differ: nothing, or the largest relative difference and where."""
    if one.read_bytes() == other.read_bytes():
        return ""
    largest, where = 0.0, "text"
    if one.suffix == ".csv":
        tables = [pd.read_csv(path) for path in (one, other)]
        if list(tables[0]) != list(tables[1]):
            return f"columns {set(tables[0]) ^ set(tables[1])}"
        pairs = {name: [table[name].to_numpy() for table in tables] for name in tables[0]}
    else:
        records = [json.loads(path.read_text()) for path in (one, other)]
        names = sorted((records[0].keys() | records[1].keys()) - SKIPPED)
        pairs = {name: [record.get(name) for record in records] for name in names}  # type: ignore[misc]
    for name, (a, b) in pairs.items():
        try:
            x, y = (np.array(list(numbers(one)), float) for one in (a, b))
            error = np.abs(x - y) / np.maximum(np.maximum(np.abs(x), np.abs(y)), 1e-3)
            size = np.inf if (np.isnan(x) != np.isnan(y)).any() else float(np.nan_to_num(error).max())
        except (TypeError, ValueError):
            size = 0.0 if np.all(np.asarray(a == b)) else np.inf
        if size > largest:
            largest, where = size, name
    return f"{largest:.1e} {where}" if largest else ""


def main() -> None:
    """Writes and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for name, make in cases().items():
        if arguments.only not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make().save(arguments.output_dir / name)
        found = []
        for file in ("items.csv", "subjects.csv", "fit.json"):
            if arguments.against and (arguments.against / name / file).exists():
                found.append(difference(arguments.against / name / file, arguments.output_dir / name / file))
        print(f"{name:20} {' | '.join(found) if any(found) else 'same' if found else 'written'}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
