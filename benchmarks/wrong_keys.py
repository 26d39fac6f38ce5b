r"""Are wrong keys found? Plants some in a benchmark of multiple choice, and looks for them in several ways.

  python -m benchmarks.wrong_keys --responses=mmlu_pro.npz

Reads an archive with the letters that subjects chose (choices, subjects × items), the answer of each item and its
options. In each trial the keys of some items, drawn at random, are replaced by another of the item's options, drawn at
random, and the answers are scored anew. Prints for each way of ordering the items what share of the first 1, 2 and 4%
have a planted key (precision), and what share of the planted keys is there (recall). A key that was wrong before counts
as a miss. With --chosen the planted keys are options that some subject chose.
"""

import ast
import string
from typing import Any

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax.auditing.choices import read_choices
from irtjax.auditing.wrong_keys import wrong_keys

_RESPONSES = define_path("responses", "NPZ file with choices, answer, options, subject_ids, item_ids", required=True)
_SHARE = flags.DEFINE_float("share", 0.02, "of the keys that are replaced", 0.0, 0.5)
_TRIALS = flags.DEFINE_integer("trials", 5, "draws of planted keys", lower_bound=1)
_CHOSEN = flags.DEFINE_bool("chosen", False, "plant options that some subject chose")
TOPS = (0.01, 0.02, 0.04)


def main() -> None:
    """Plants, looks, prints."""
    with np.load(_RESPONSES.value, allow_pickle=False) as file:
        letters, answer = file["choices"], file["answer"]
        options: list[Any] = [list(string.ascii_uppercase[: len(ast.literal_eval(some))]) for some in file["options"]]
        ids = file["subject_ids"].astype(str), file["item_ids"].astype(str)
    letters = np.where(np.isin(letters, np.unique(answer)), letters, "")  # nothing else could be read
    if _CHOSEN.value:
        options = [np.setdiff1d(column, [""]) for column in letters.T]
    rows = []
    for seed in range(_TRIALS.value):
        rows += _trial(letters, answer, options, ids, np.random.default_rng(seed))
    table = pd.DataFrame(rows).groupby("way", sort=False).mean()
    size = f"{letters.shape[0]:,} subjects × {letters.shape[1]:,} items"
    print(f"{size}, {_SHARE.value:.0%} planted, {_TRIALS.value} trials")
    print(table.round(3).to_string())


def _trial(
    letters: np.ndarray,
    answer: np.ndarray,
    options: list[Any],
    ids: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Precision and recall of each way."""
    key, planted = answer.copy(), np.zeros(answer.size, bool)
    planted[rng.permutation(answer.size)[: round(_SHARE.value * answer.size)]] = True
    for item in np.flatnonzero(planted):
        others = np.setdiff1d(options[item], [answer[item]])
        key[item] = rng.choice(others if len(others) else np.setdiff1d(np.unique(answer), [answer[item]]))
    right = (letters == key).astype(np.int8)
    fit = irtjax.fit(irtjax.ResponseMatrix(right, *ids), "2pl")
    rest = right.sum(axis=1, keepdims=True) - right
    centred = right - right.mean(axis=0), rest - rest.mean(axis=0)
    spread = np.sqrt((centred[0] ** 2).sum(axis=0) * (centred[1] ** 2).sum(axis=0))
    ways = {
        "evidence, by choices": wrong_keys(fit, read_choices(letters, key, *ids))["evidence"],
        "evidence, by scores": wrong_keys(fit)["evidence"],
        "lowest slope": -fit.item_columns["discrimination"],
        "lowest item-rest correlation": -(centred[0] * centred[1]).sum(axis=0) / np.maximum(spread, 1e-9),
        "fewest right": -right.mean(axis=0),
        "another letter more often": np.max([(letters == k).mean(axis=0) for k in np.unique(answer)], axis=0)
        - right.mean(axis=0),
    }
    return [{"way": way, **_found(np.asarray(by), planted, rng)} for way, by in ways.items()]


def _found(by: np.ndarray, planted: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """Precision and recall of the first items, ties in any order."""
    order = np.lexsort([rng.random(by.size), -by])
    found: dict[str, float] = {}
    for top in TOPS:
        some = planted[order[: round(top * by.size)]]
        found |= {f"precision {top:.0%}": some.mean(), f"recall {top:.0%}": some.sum() / planted.sum()}
    return found


if __name__ == "__main__":
    app.run(main)
