r"""From images and tables to a crowd, difficulties, suspects and curricula: the steps of docs/guide/your_data.md.

  python -m benchmarks.images_and_tables --data_dir=DIR --counts=cifar10h.npz --output_dir=runs/images_and_tables

Writes data as a user has them, a folder of PNG files and CSV files, two sets with labels that are made wrong; trains a
crowd on each, fits difficulties, and trains by DDaCLAE, with the defaults of each command; and prints what came out.
What is finished is not done again. CIFAR-10H (Peterson et al. 2019), what fifty people called each test image, is at
github.com/jcpeterson/cifar-10h. On 2 CPU cores half an hour beside other work, nearly all of it for the pictures.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.metrics import roc_auc_score

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_output_dir, define_path
from irtjax import InputError, tasks
from irtjax.comparison.reliability import split_half
from irtjax.responses.formats import read_responses

_DATA = define_path("data_dir", "folder of prepared data sets: cifar10", required=True)
_COUNTS = define_path("counts", "cifar10h.npz: counts of people by class, test_index and label", required=True)
_OUTPUT_DIR = define_output_dir("data and runs")

PICTURES, ROWS, WRONG = 4000, 5000, 0.05
SHARES = (0.36, 0.30, 0.1, 0.06, 0.08, 0.05, 0.05)  # of the classes, about as uneven as those of covertype
SUSPECTS = "crowd/suspects/suspects.csv"
TRUTH = "truth.csv"  # item_id, label as given, true label
FIRST = (20, 50, 100)
BINS = ("to 0.5", "to 0.9", "to 0.99", "to 1")


def write_wine(folder: Path, rng: np.random.Generator) -> str:
    """178 wines of three growers."""
    load_wine(as_frame=True).frame.to_csv(folder / "wine.csv", index=False)
    return "wine.csv"


def write_breast_cancer(folder: Path, rng: np.random.Generator) -> str:
    """569 tumours, benign or malignant."""
    load_breast_cancer(as_frame=True).frame.to_csv(folder / "breast_cancer.csv", index=False)
    return "breast_cancer.csv"


def write_cover(folder: Path, rng: np.random.Generator) -> str:
    """5,000 made rows of 54 features and seven uneven classes, 5% of the labels wrong."""
    x, y = make_classification(
        ROWS,
        54,
        n_informative=12,
        n_redundant=6,
        n_classes=7,
        class_sep=1.5,
        flip_y=0,
        weights=list(SHARES),
        random_state=0,
    )
    given = _made_wrong(y, 7, rng)
    table = pd.DataFrame(x, columns=[f"feature_{column}" for column in range(x.shape[1])]).round(5)
    table.assign(label=given).to_csv(folder / "cover.csv", index=False)
    _write_truth(folder, [f"cover_{row:05d}" for row in range(ROWS)], given, y)
    return "cover.csv"


def write_pets(folder: Path, rng: np.random.Generator) -> str:
    """4,000 test images of CIFAR-10 as PNG files, a folder for each class, 5% in a wrong one."""
    task = tasks.load("cifar10", _DATA.value)
    rows = rng.choice(len(task.test.labels), PICTURES, replace=False)
    true, classes = task.test.labels[rows], np.array(task.classes)
    given, ids = _made_wrong(true, len(classes), rng), []
    for row, label in zip(rows, given, strict=True):
        ids.append(f"{classes[label]}/{task.test.ids[row]}.png")
        path = folder / "pets" / ids[-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(task.test.inputs[row])).save(path)
    _write_truth(folder, ids, classes[given], classes[true])
    return "images:pets"


SETS: dict[str, Callable[[Path, np.random.Generator], str]] = {
    "cover": write_cover,
    "pets": write_pets,
    "breast_cancer": write_breast_cancer,
    "wine": write_wine,
}


def _made_wrong(labels: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """The labels, a share of them replaced by another class."""
    given = labels.copy()
    wrong = np.sort(rng.choice(len(labels), round(WRONG * len(labels)), replace=False))
    given[wrong] = (labels[wrong] + rng.integers(1, number, len(wrong))) % number
    return given


def _write_truth(folder: Path, ids: list[str], given: np.ndarray, true: np.ndarray) -> None:
    pd.DataFrame({"item_id": ids, "given": given, "true": true}).to_csv(folder / TRUTH, index=False)


def commands(task: str) -> list[list[str]]:
    """From data to a curriculum, in the folder of the data."""
    return [
        ["crowd", f"--task={task}", "--output_dir=crowd"],
        [
            *("fit_irt", "--responses=crowd/crowd/responses_train.npz", "--model=1pl", "--estimator=svi"),
            "--output_dir=fit",
        ],
        [
            *("curriculum", f"--task={task}", "--items=fit/items.csv", "--strategies=no-effect,DDaCLAE"),
            "--output_dir=curriculum",
        ],
    ]


def of_run(name: str, folder: Path) -> dict[str, Any]:
    """What the commands have found."""
    members, suspects = pd.read_csv(folder / "crowd/crowd/members.csv"), pd.read_csv(folder / SUSPECTS)
    curriculum = pd.read_csv(folder / "curriculum/curriculum/summary.csv").set_index("strategy")
    seconds = [
        json.loads((folder / stage / "stage.json").read_text())["seconds"]
        for stage in ("crowd/crowd", "curriculum/curriculum")
    ]
    halves = split_half(
        read_responses(folder / "crowd/crowd/responses_train.npz", sparse=False),
        lambda half: irtjax.fit(half, model="1pl", estimator="svi"),
    )
    return {
        "set": name,
        "examples": len(suspects),
        "classes": suspects.label.nunique(),
        "networks": f"{len(members)} {', '.join(members.network.unique())}",
        "accuracy, minimum, median, maximum": members.accuracy_test.quantile([0, 0.5, 1]).round(2).tolist(),
        "minutes, crowd and curriculum": [round(one / 60, 1) for one in seconds],
        "reliability": round(halves.spearman, 3),
    } | {
        f"{strategy} (%)": f"{100 * row.test_accuracy:.1f} ± {100 * row.test_accuracy_ci:.1f}"
        for strategy, row in curriculum.iterrows()
    }


def of_planted(folder: Path, truth: pd.DataFrame) -> dict[str, Any]:
    """How well the suspects, and the hardest examples, are those whose labels were made wrong."""
    suspects = pd.read_csv(folder / SUSPECTS, dtype={"label": str})
    known = truth.set_index("item_id").loc[suspects.item_id]
    wrong, found = (known.given != known.true).to_numpy(), dict[str, Any]()
    doubt = {"label probability": -suspects.label_probability, "difficulty": suspects.difficulty}
    for name, score in doubt.items():
        order = np.argsort(-score.to_numpy(), kind="stable")
        cuts = {"k": int(wrong.sum())} | {str(number): number for number in FIRST}
        found |= {f"precision at {cut}, {name}": round(wrong[order[:number]].mean(), 2) for cut, number in cuts.items()}
        found[f"AUC, {name}"] = round(roc_auc_score(wrong, score), 3)
    bins = pd.cut(1 - suspects.label_probability, (-1e-9, 0.5, 0.9, 0.99, 1 + 1e-9), labels=BINS)
    found |= {
        f"wrong where p(wrong) {name}": f"{part.mean():.2f} of {len(part)}"
        for name, part in pd.Series(wrong).groupby(bins, observed=True)
    }
    return {"wrong": int(wrong.sum())} | found


def of_people(folder: Path, truth: pd.DataFrame) -> dict[str, float]:
    """Rank correlation of difficulty with the share of people who do not say the label, where the label is right."""
    with np.load(_COUNTS.value) as arrays:
        counts, labels = arrays["counts"], arrays["label"]
    items = pd.read_csv(folder / "fit/items.csv").set_index("item_id")
    right = truth[(truth.given == truth.true) & truth.item_id.isin(items.index)]
    rows = right.item_id.str.extract(r"test_(\d+)", expand=False).astype(int).to_numpy()
    difficulty = items.loc[right.item_id].difficulty.to_numpy()
    disagreeing = 1 - counts[rows, labels[rows]] / counts[rows].sum(1)
    found = {"people, all": float(spearmanr(difficulty, disagreeing).statistic)}
    unsure = disagreeing > 0
    found[f"people, {unsure.sum():,} on which they divide"] = float(
        spearmanr(difficulty[unsure], disagreeing[unsure]).statistic
    )
    return {name: round(value, 2) for name, value in found.items()}


def _run(folder: Path, module: str, arguments: list[str]) -> None:
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    if subprocess.run([sys.executable, "-m", module, *arguments], cwd=folder, env=environment).returncode:
        raise InputError(f"{folder}: {module} {' '.join(arguments)} failed")


def main() -> None:
    """Writes, runs, prints."""
    rng = np.random.default_rng(0)
    for name, write in SETS.items():
        folder = Path(_OUTPUT_DIR.value, name)
        folder.mkdir(parents=True, exist_ok=True)
        task = write(folder, rng)
        for command, *arguments in commands(task):
            _run(folder, f"experiments.{command}", arguments)
        found = of_run(name, folder)
        if (folder / TRUTH).exists():
            truth = pd.read_csv(folder / TRUTH, dtype=str)
            found |= of_planted(folder, truth) | (of_people(folder, truth) if name == "pets" else {})
        print("\n".join(f"{key}: {value}" for key, value in found.items()), end="\n\n", flush=True)


if __name__ == "__main__":
    app.run(main)
