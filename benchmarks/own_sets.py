r"""Data as a user has them, for `benchmarks.your_data`: a folder of PNG files and CSV files, two with wrong labels.

  python -m benchmarks.own_sets --data_dir=DIR --counts=cifar10h.npz --output_dir=sets

Writes `pets`, 4,000 test images of CIFAR-10 in a folder for each class; `cover.csv`, 5,000 made rows of 54 features and
seven classes about as uneven as those of covertype; `breast_cancer.csv` and `wine.csv` of scikit-learn. Of the first
two, 5% of the labels are wrong: `pets_truth.csv` and `cover_truth.csv` have the given and the true ones, and of `pets`
the share of people who doubt the true one. CIFAR-10H (Peterson et al. 2019), what fifty people called each test image,
is at github.com/jcpeterson/cifar-10h. Seconds.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_wine, make_classification

from experiments.common import app
from experiments.common.path_flags import define_output_dir, define_path
from irtjax import tasks
from irtjax.types import Int

_DATA = define_path("data_dir", "folder of prepared data sets: cifar10", required=True)
_COUNTS = define_path("counts", "cifar10h.npz: counts of people by class, and label", required=True)
_OUTPUT_DIR = define_output_dir("the data sets")

PICTURES, ROWS, WRONG = 4000, 5000, 0.05
SHARES = (0.36, 0.30, 0.1, 0.06, 0.08, 0.05, 0.05)


def made_wrong(labels: Int[np.ndarray, " N"], number: int, rng: np.random.Generator) -> Int[np.ndarray, " N"]:
    """The labels, a share of them replaced by another class."""
    given = labels.copy()
    wrong = np.sort(rng.choice(len(labels), round(WRONG * len(labels)), replace=False))
    given[wrong] = (labels[wrong] + rng.integers(1, number, len(wrong))) % number
    return given


def write_cover(folder: Path, rng: np.random.Generator) -> None:
    """A table of uneven classes."""
    x, y = make_classification(
        ROWS,
        54,
        n_informative=12,
        n_redundant=6,
        n_classes=len(SHARES),
        class_sep=1.5,
        flip_y=0,
        weights=list(SHARES),
        random_state=0,
    )
    given = made_wrong(y, len(SHARES), rng)
    table = pd.DataFrame(x, columns=[f"feature_{column}" for column in range(x.shape[1])]).round(5)
    table.assign(label=given).to_csv(folder / "cover.csv", index=False)
    ids = [f"cover_{row:05d}" for row in range(ROWS)]
    pd.DataFrame({"item_id": ids, "given": given, "true": y}).to_csv(folder / "cover_truth.csv", index=False)


def write_pets(folder: Path, rng: np.random.Generator) -> None:
    """A folder of images."""
    task = tasks.load("cifar10", _DATA.value)
    rows = rng.choice(len(task.test.labels), PICTURES, replace=False)
    true, classes = task.test.labels[rows], np.array(task.classes)
    given = made_wrong(true, len(classes), rng)
    with np.load(_COUNTS.value) as arrays:
        counts = arrays["counts"][rows]
    ids = [f"{classes[label]}/{task.test.ids[row]}.png" for row, label in zip(rows, given, strict=True)]
    for row, name in zip(rows, ids, strict=True):
        path = folder / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(task.test.inputs[row])).save(path)
    doubted = 1 - counts[np.arange(PICTURES), true] / counts.sum(axis=1)
    table = {"item_id": ids, "given": classes[given], "true": classes[true], "people_who_doubt_it": doubted}
    pd.DataFrame(table).to_csv(folder / "pets_truth.csv", index=False)


def main() -> None:
    """Writes all sets."""
    folder, rng = Path(_OUTPUT_DIR.value), np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    load_wine(as_frame=True).frame.to_csv(folder / "wine.csv", index=False)
    load_breast_cancer(as_frame=True).frame.to_csv(folder / "breast_cancer.csv", index=False)
    write_cover(folder, rng)
    write_pets(folder, rng)


if __name__ == "__main__":
    app.run(main)
