"""Adaptive tests of items with grades, counts or shares, over recorded answers and over answers that are drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.responses.scaled import ScaledResponses
from irtjax.scoring.family_items import matched
from irtjax.scoring.family_worth import categories_at
from irtjax.types import Float


def replay_scaled(test: ScaledAdaptiveTest, responses: Any, seed: int = 0) -> pd.DataFrame:
    """Adaptive tests over recorded answers; an item whose answer is missing is never asked of that subject.

    Args:
        test: of the items.
        responses: as `irtjax.score` takes them: `ScaledResponses`, or a table of grades by item id.
        seed: of random items; subjects have draws of their own.

    Returns:
        One row per answer: `subject_id`, `number`, `item_id`, `ability`, `ability_se`, `score`, `score_se`.

    Raises:
        InputError: an item that the bank does not have, or a response that it cannot have.
    """
    given, _ = matched(responses, test.known)
    places = [test.known.item_ids.astype(str).tolist().index(item) for item in given.item_ids]
    return _courses(test, given.subject_ids, _recorded(given, places), seed)


def simulate_scaled(test: ScaledAdaptiveTest, theta: Float[np.ndarray, " J"], seed: int = 0) -> pd.DataFrame:
    """Adaptive tests with answers drawn from the model of the bank, of items with categories.

    Args:
        test: of the items.
        theta: (J,) true abilities.
        seed: of the answers.

    Returns:
        As `replay_scaled`; subjects are numbers from 0.

    Raises:
        InputError: an item has no categories.
    """
    without = [str(i) for i, scale in zip(test.known.item_ids, test.known.scales, strict=True) if scale.labels is None]
    if without:
        raise InputError(f"item {without[0]!r} has counts or shares: answers are drawn of items with categories")
    p = categories_at(test.known, np.asarray(theta, float)).cumsum(axis=2)
    draws = np.random.default_rng(seed).random(p.shape[:2])
    codes = np.minimum((draws[:, :, None] > p).sum(axis=2), [scale.top for scale in test.known.scales])
    ids = np.arange(len(theta)).astype(str)
    given = ScaledResponses(codes, ids, test.known.item_ids, test.known.scales)
    return _courses(test, ids, _recorded(given, list(range(test.num_items))), seed)


def _recorded(given: ScaledResponses, places: list[int]) -> Callable[[int], dict[int, Any]]:
    """The answers of a subject by positions of items in the bank."""

    def of(row: int) -> dict[int, Any]:
        found = {}
        for column, place in enumerate(places):
            if given.observed[row, column]:
                value, labels = np.asarray(given.values)[row, column], given.scales[column].labels
                found[place] = float(value) if labels is None else labels[int(value)]
        return found

    return of


def _courses(
    test: ScaledAdaptiveTest, subject_ids: np.ndarray, answers_of: Callable[[int], dict[int, Any]], seed: int
) -> pd.DataFrame:
    rows = []
    for row, subject in enumerate(subject_ids):
        answers = answers_of(row)
        available = np.isin(np.arange(test.num_items), list(answers))
        state = test.init(seed + row, available)
        while not test.finished(state):
            item = test.next_item(state)
            state = test.update(state, item, answers[item])
            rows.append(
                {
                    "subject_id": str(subject),
                    "number": len(state.items),
                    "item_id": str(test.known.item_ids[item]),
                    "ability": state.ability,
                    "ability_se": state.standard_error,
                    "score": state.score,
                    "score_se": state.score_error,
                }
            )
    return pd.DataFrame(rows)
