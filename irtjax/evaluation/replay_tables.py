"""Adaptive tests as tables, in one dimension: one row per subject, per answer, or per item."""

from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.replay import Replayed
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.types import Shaped


def subjects_table(
    test: AdaptiveTest | ScaledAdaptiveTest, tests: Replayed, subject_ids: Shaped[np.ndarray, " J"]
) -> pd.DataFrame:
    """What each test came to.

    Args:
        test: that they are of, D = 1.
        tests: of J subjects.
        subject_ids: (J,).

    Returns:
        `subject_id`, `ability` and `ability_se` in logits, `score` and `score_error` as shares of the bank,
        `num_items`, and the `reason` why it ended. Who was asked nothing has the moments of the population.
    """
    none = tests.number == 0
    start = before(test)
    last = {}
    for name, values in trace(tests).items():
        at_end = values[np.arange(len(values)), np.maximum(tests.number - 1, 0)]
        last[name] = np.where(none, start[name], at_end)
    return pd.DataFrame({"subject_id": subject_ids, **last, "num_items": tests.number, "reason": tests.reasons()})


def answers_table(
    tests: Replayed,
    subject_ids: Shaped[np.ndarray, " J"],
    item_ids: Shaped[np.ndarray, " I"],
    written: Shaped[np.ndarray, "J K"] | None = None,
) -> pd.DataFrame:
    """Each answer, in the order of the tests.

    Args:
        tests: of J subjects.
        subject_ids: (J,).
        item_ids: (I,) of the bank.
        written: (J, K) the answers as they are written, NaN where there is none; by default 1 right and 0 wrong.

    Returns:
        `subject_id`, `step` from 1, `item_id`, `answer` (missing for none), and what was known after
        it, or after the last of those that were asked together: `ability`, `ability_se`, `score`.
    """
    row, step = np.nonzero(tests.items >= 0)
    answers: Any
    if written is None:
        answers = pd.array(tests.answers[row, step].astype(int), dtype="Int64")
        answers[answers < 0] = pd.NA
    else:
        answers = written[row, step]
    known = {name: values[row, step] for name, values in trace(tests).items() if name != "score_error"}
    ids = {"subject_id": subject_ids[row], "step": step + 1, "item_id": item_ids[tests.items[row, step]]}
    return pd.DataFrame({**ids, "answer": answers, **known})


def exposure_table(tests: Replayed, item_ids: Shaped[np.ndarray, " I"]) -> pd.DataFrame:
    """How often each item was asked: `item_id`, `times_asked`, and `share` of the subjects."""
    asked = np.asarray(tests.items)
    times = np.bincount(asked[asked >= 0], minlength=len(item_ids))
    return pd.DataFrame({"item_id": item_ids, "times_asked": times, "share": times / max(len(asked), 1)})


def trace(tests: Replayed) -> dict[str, np.ndarray]:
    """What was known after each answer, (J, K), by the names of columns."""
    names = {"ability": "ability", "ability_se": "standard_error", "score": "score", "score_error": "score_error"}
    return {column: np.asarray(getattr(tests, name)) for column, name in names.items()}


def before(test: AdaptiveTest | ScaledAdaptiveTest) -> dict[str, float]:
    """What is known before the first item, by the names of columns."""
    state: Any = test.init() if isinstance(test, ScaledAdaptiveTest) else test.init(jax.random.key(0))
    found = state.ability, state.standard_error, state.score, state.score_error
    return dict(zip(("ability", "ability_se", "score", "score_error"), map(float, found), strict=True))
