r"""What does the crowd of a data set tell? How good and reliable it is, and which of its scores finds wrong labels.

  python -m experiments.crowd --task=reviews.csv --output_dir=runs/reviews
  python -m benchmarks.your_data --task=reviews.csv --crowd=runs/reviews

Prints the accuracy of the networks; the reliability of ability and difficulty on the training examples (Rasch model);
and how well scores find labels of the validation and test splits that are made wrong at random after the crowd has been
trained, which it never saw: the AUC, the precision among as many as are wrong, and among the first hundred. With
--external, the rank correlation of difficulty with a column of the validation split's own file. Seconds to a minute.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import irtjax
from experiments.common import app, own_tasks
from experiments.common.path_flags import define_path
from experiments.common.settings import Settings
from irtjax import tasks
from irtjax.comparison.reliability import split_half
from irtjax.types import Float, Int

_TASK = flags.DEFINE_string("task", None, "the data, as of experiments.crowd", required=True)
_CROWD = define_path("crowd", "run directory of its crowd", required=True)
_SHARE = flags.DEFINE_float("share", 0.05, "of the labels that are made wrong", 0.001, 0.5)
_DRAWS = flags.DEFINE_integer("draws", 5, "of wrong labels, for a mean", lower_bound=1)
_EXTERNAL = flags.DEFINE_string("external", "", "FILE.csv:COLUMN with a row per example of the validation split")

SCORES = {"label_probability": -1, "evidence": 1, "difficulty": 1}
HELD_OUT = ("validation", "test")
FIRST = 100


def predictions(folder: Path, split: str) -> Int[np.ndarray, "J N"]:
    """The classes that the networks predict."""
    with np.load(folder / f"predictions_{split}.npz") as stored:
        return stored["predictions"]


def reliability(folder: Path) -> tuple[float, float]:
    """Of ability, 1 - mean squared standard error / total variance; and Spearman's of two halves' difficulties."""
    responses = irtjax.read_responses(folder / "responses_train.npz")
    fit = irtjax.fit(responses, model="rasch")
    error = np.mean(fit.ability_se**2)
    halves = split_half(responses, lambda half: irtjax.fit(half, model="rasch"))
    return float(1 - error / (error + np.var(fit.ability))), halves.spearman


def with_wrong(
    labels: Int[np.ndarray, " N"], share: float, num_classes: int, seed: int
) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """Labels of which a share is another class, and which these are."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(labels), int)
    wrong[rng.permutation(len(labels))[: max(1, round(share * len(labels)))]] = 1
    others = (labels + rng.integers(1, num_classes, len(labels))) % num_classes
    return np.where(wrong, others, labels), wrong


def found(score: Float[np.ndarray, " N"], wrong: Int[np.ndarray, " N"]) -> tuple[float, float, float]:
    """The AUC, and the precision among as many as are wrong and among the first hundred."""
    ranked = wrong[np.argsort(-score, kind="stable")]
    return float(roc_auc_score(wrong, score)), float(ranked[: wrong.sum()].mean()), float(ranked[:FIRST].mean())


def main() -> None:
    """Prints the figures."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    folder = Path(_CROWD.value) / "crowd"
    own = own_tasks.is_own(_TASK.value)
    task = own_tasks.load(Settings(task=_TASK.value), None) if own else tasks.load(_TASK.value)
    members = pd.read_csv(folder / "members.csv")
    accuracy = members.accuracy_test
    low, middle, high = accuracy.quantile([0, 0.5, 1])
    best = members[
        (members.subset_size > members.subset_size.max() / 5) & (members.corruption_rate < 0.2)
    ].accuracy_test
    counts = np.bincount(task.test.labels) / len(task.test.labels)
    print(f"{len(accuracy)} networks, accuracy (test): {low:.3f} to {high:.3f}, median {middle:.3f}", flush=True)
    print(f"those with over a fifth of the examples and under 20% of wrong labels: {len(best)}, mean {best.mean():.3f}")
    print(f"the commonest class (test): {counts.max():.3f}")
    of_ability, of_difficulty = reliability(folder)
    print(f"reliability: ability {of_ability:.3f}, difficulty (two halves, Spearman) {of_difficulty:.3f}", flush=True)
    labels = np.concatenate([task.split(split).labels for split in HELD_OUT]).astype(int)
    classes = np.concatenate([predictions(folder, split) for split in HELD_OUT], axis=1)
    suspected = (irtjax.difficulty(classes, labels).table.p_wrong_label > 0.5).mean()
    print(f"labels as they are: evidence takes {suspected:.0%} of {len(labels):,} for wrong", flush=True)
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SCORES}
    for draw in range(_DRAWS.value):
        shown, wrong = with_wrong(labels, _SHARE.value, task.num_classes, draw)
        table = irtjax.difficulty(classes, shown).table
        for name, sign in SCORES.items():
            rows[name].append(found(sign * table[name].to_numpy(), wrong))
    print(f"{_SHARE.value:.0%} of {len(labels):,} labels wrong: AUC, precision at k, at {FIRST}")
    for name, values in rows.items():
        auc, at_k, at_first = np.mean(values, axis=0)
        print(f"  {name}: {auc:.3f}, {at_k:.2f}, {at_first:.2f}", flush=True)
    if _EXTERNAL.value:
        path, column = _EXTERNAL.value.rsplit(":", 1)
        outside = pd.read_csv(path)[column]
        items = irtjax.fit(irtjax.read_responses(folder / "responses_validation.npz"), model="rasch").items()
        print(f"Spearman of difficulty with {column}: {spearmanr(items.difficulty, outside).statistic:.3f}")


if __name__ == "__main__":
    app.run(main)
