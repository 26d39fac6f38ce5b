r"""What does the crowd of a data set tell? How good and reliable it is, and which of its scores finds wrong labels.

  python -m experiments.crowd --task=reviews.csv --output_dir=runs/reviews
  python -m benchmarks.your_data --task=reviews.csv --crowd=runs/reviews

Prints the accuracy of the networks, the reliability of ability and difficulty on the training examples (Rasch model),
and how well scores find wrong labels: the AUC, the precision among as many as are wrong and among the first 20 and 100,
and how many are wrong by what the probability of the label says. With --truth, as `benchmarks.own_sets` writes it, the
labels were wrong before the crowd was trained, and the scores are those of its suspects.csv. Else labels of the
validation and test splits, which no network has seen, are made wrong at random, several times. With --external, the
rank correlation of difficulty with a column of another file. Seconds to a minute.
"""

from collections.abc import Iterator
from itertools import pairwise
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
from irtjax.estimation.diagnostics import one_warning_of_each_kind
from irtjax.types import Bool, Int

_TASK = flags.DEFINE_string("task", None, "the data, as of experiments.crowd", required=True)
_CROWD = define_path("crowd", "run directory of its crowd", required=True)
_TRUTH = define_path("truth", "CSV file of item_id, given, true where labels were wrong before training")
_SHARE = flags.DEFINE_float("share", 0.05, "else, of the held-out labels that are made wrong", 0.001, 0.5)
_DRAWS = flags.DEFINE_integer("draws", 5, "of these, for a mean", lower_bound=1)
_NEXT = flags.DEFINE_boolean("next", False, "they are the class before or after, of classes in order")
_EXTERNAL = flags.DEFINE_string(
    "external", "", "FILE.csv:COLUMN, a row per item_id, or per example of the validation split in its order"
)

SCORES = {"label_probability": -1, "evidence": 1, "difficulty": 1}
HELD_OUT = ("validation", "test")
FIRST = (20, 100)
BINS = (0, 0.5, 0.9, 0.99, 1)  # one minus the probability of the label


def tell_accuracy(members: pd.DataFrame, test_labels: Int[np.ndarray, " N"]) -> None:
    """How good the networks are: all, and those whose training examples are neither few nor often wrong."""
    accuracy = members.accuracy_test
    low, middle, high = accuracy.quantile([0, 0.5, 1])
    best = accuracy[(members.subset_size > members.subset_size.max() / 5) & (members.corruption_rate < 0.2)]
    networks = ", ".join(members.network.unique())
    print(f"{len(accuracy)} {networks}, accuracy (test): {low:.3f} to {high:.3f}, median {middle:.3f}")
    print(f"those with over a fifth of the examples and under 20% of wrong labels: {len(best)}, mean {best.mean():.3f}")
    print(f"the commonest class (test): {np.bincount(test_labels).max() / len(test_labels):.3f}", flush=True)


def tell_reliability(crowd: Path) -> None:
    """Of ability, 1 - mean squared standard error / total variance; and Spearman's of two halves' difficulties."""
    responses = irtjax.read_responses(crowd / "responses_train.npz")
    fit = irtjax.fit(responses, model="rasch")
    error = np.mean(fit.ability_se**2)
    halves = split_half(responses, lambda half: irtjax.fit(half, model="rasch"))
    of_ability = 1 - error / (error + np.var(fit.ability))
    print(f"reliability: ability {of_ability:.3f}, difficulty (two halves, Spearman) {halves.spearman:.3f}", flush=True)


def with_wrong(
    labels: Int[np.ndarray, " N"], num_classes: int, seed: int
) -> tuple[Int[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """Labels of which a share is another class, and which these are."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros(len(labels), bool)
    wrong[rng.permutation(len(labels))[: max(1, round(_SHARE.value * len(labels)))]] = True
    others = (labels + rng.integers(1, num_classes, len(labels))) % num_classes
    if _NEXT.value:
        step = rng.choice([-1, 1], len(labels))
        others = labels + np.where(labels == 0, 1, np.where(labels == num_classes - 1, -1, step))
    return np.where(wrong, others, labels), wrong


def draws(crowd: Path, task: tasks.Task) -> Iterator[tuple[pd.DataFrame, Bool[np.ndarray, " N"]]]:
    """Scores of the held-out examples with labels made wrong, and which these are."""
    labels = np.concatenate([task.split(split).labels for split in HELD_OUT]).astype(int)
    predictions = []
    for split in HELD_OUT:
        with np.load(crowd / f"predictions_{split}.npz") as stored:
            predictions.append(stored["predictions"])
    classes = np.concatenate(predictions, axis=1)
    for draw in range(_DRAWS.value):
        shown, wrong = with_wrong(labels, task.num_classes, draw)
        yield irtjax.difficulty(classes, shown).table, wrong


def found(table: pd.DataFrame, wrong: Bool[np.ndarray, " N"]) -> pd.DataFrame:
    """For each score the AUC and the precisions."""
    rows, cuts = {}, {"at k": int(wrong.sum())} | {f"first {number}": number for number in FIRST}
    for name, sign in SCORES.items():
        if name in table:
            score = sign * table[name].to_numpy()
            ranked = wrong[np.argsort(-score, kind="stable")]
            rows[name] = {"AUC": roc_auc_score(wrong, score)} | {cut: ranked[:n].mean() for cut, n in cuts.items()}
    return pd.DataFrame(rows).T


def tell_wrong(cases: list[tuple[pd.DataFrame, Bool[np.ndarray, " N"]]]) -> None:
    """How well wrong labels are found, on average, and how many are wrong by the probability of the label."""
    wrong = np.concatenate([wrong for _, wrong in cases])
    print(f"{len(cases)} × {cases[0][1].sum():,} of {cases[0][1].size:,} labels wrong")
    print(sum(found(*case) for case in cases).div(len(cases)).round(3).to_string())
    doubt = 1 - np.concatenate([table.label_probability for table, _ in cases])
    bins = pd.cut(
        doubt, [-1e-9, *BINS[1:-1], 1 + 1e-9], labels=[f"from {low} to {high}" for low, high in pairwise(BINS)]
    )
    for name, part in pd.Series(wrong).groupby(bins, observed=True):
        print(f"  improbable {name}: {part.mean():.3f} of {part.size / len(cases):,.0f} are wrong", flush=True)


def tell_external(suspects: pd.DataFrame, task: tasks.Task) -> None:
    """Spearman's correlation of difficulty with what others have found of the same examples."""
    path, column = _EXTERNAL.value.rsplit(":", 1)
    outside = pd.read_csv(path, dtype={"item_id": str})
    ids = outside.item_id if "item_id" in outside else task.validation.ids
    known = suspects.set_index("item_id").difficulty.reindex(ids).to_numpy()
    used = ~np.isnan(known)
    if not used.any():
        raise irtjax.InputError(f"{path}: no `item_id` of it is an example of the task")
    print(f"{column}, {used.sum():,} examples: Spearman {spearmanr(known[used], outside[column][used]).statistic:.3f}")


def main() -> None:
    """Prints the figures."""
    run = Path(_CROWD.value)
    own = own_tasks.is_own(_TASK.value)
    task = own_tasks.load(Settings(task=_TASK.value), None) if own else tasks.load(_TASK.value)
    tell_accuracy(pd.read_csv(run / "crowd/members.csv"), task.test.labels)
    suspects = pd.read_csv(run / "suspects/suspects.csv", dtype={"item_id": str}, keep_default_na=False)
    with one_warning_of_each_kind():
        tell_reliability(run / "crowd")
        if _TRUTH.value:
            truth = pd.read_csv(_TRUTH.value, dtype=str).set_index("item_id").loc[suspects.item_id]
            wrong = (truth.given != truth.true).to_numpy()
            tell_wrong([(suspects, wrong)])
            suspects = suspects[~wrong]
        else:
            tell_wrong(list(draws(run / "crowd", task)))
    if _EXTERNAL.value:
        tell_external(suspects, task)


if __name__ == "__main__":
    app.run(main)
