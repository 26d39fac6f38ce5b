"""Adaptive tests of items with grades, counts or shares, over recorded answers and over answers that are drawn.

All subjects are a step further at once; the last of them ends the test.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.evaluation.replay import Replayed
from irtjax.evaluation.scaled_adaptive import ScaledAdaptiveTest
from irtjax.evaluation.scaled_state import Estimates, Score
from irtjax.item_models.coded_counts import numbered
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scoring.family_items import matched
from irtjax.scoring.family_worth import categories_at
from irtjax.types import Bool, Float, Int, Shaped

TOGETHER = 2**22  # statistics of responses, and weights of nodes, at a time


class Recorded(NamedTuple):
    """Answers of J subjects to the I items of a bank.

    Attributes:
        values: (J, I) category, successes or share; negative where there is none.
        worth: (J, I) what they are worth; NaN where there is none.
        trials: (J, I) of counts, else 1.
    """

    values: Float[np.ndarray, "J I"]
    worth: Float[np.ndarray, "J I"]
    trials: Float[np.ndarray, "J I"]


@checks_types
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
    return _answers(test, replay_recorded(test, recorded(test, whole(given)), seed), given.subject_ids)


@checks_types
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
    return _answers(test, replay_recorded(test, recorded(test, whole(given)), seed), ids)


def recorded(test: ScaledAdaptiveTest, given: ScaledResponses) -> Recorded:
    """Responses in the order of the bank, as `irtjax.scoring.family_items.matched` has them."""
    ids = pd.Index(test.known.item_ids.astype(str))
    places = ids.get_indexer(pd.Index(given.item_ids.astype(str)))
    shape = given.num_subjects, test.num_items
    values, worth, trials = np.full(shape, -1.0), np.full(shape, np.nan), np.ones(shape)
    values[:, places] = given.values
    if given.trials is not None:
        trials[:, places] = given.trials
    has = [scale.labels is not None for scale in given.scales]
    worth[:, places] = given.worths_on([test.worth[at] if own else None for at, own in zip(places, has, strict=True)])
    return Recorded(values, worth, trials)


def replay_recorded(
    test: ScaledAdaptiveTest, answers: Recorded, seed: int = 0, order: Int[np.ndarray, " I"] | None = None
) -> Replayed:
    """The same as arrays; answers are numbers of categories, successes or shares, and NaN where there is none.

    Args:
        test: of the items.
        answers: of J subjects.
        seed: of random items; subjects have draws of their own.
        order: in which the rule "random" asks all subjects; None for draws.
    """
    parts = list(_in_parts(test, answers, seed, order))
    return Replayed(*(np.concatenate(leaves) for leaves in zip(*parts, strict=True)))


def _in_parts(
    test: ScaledAdaptiveTest, answers: Recorded, seed: int, order: Int[np.ndarray, " I"] | None
) -> Iterator[Replayed]:
    """Some subjects at a time."""
    entries = max(test.num_items * test.eta.shape[2], len(test.theta) * 4)
    size, number = max(1, TOGETHER // entries), len(answers.values)
    for first in range(0, max(number, 1), size):
        rows = slice(first, min(first + size, number))
        orders = np.arange(test.num_items) if order is None else order
        each = np.broadcast_to(orders, answers.values[rows].shape)
        if order is None and test.rule == "random":
            drawn = [test.random_order(seed + row) for row in range(rows.start, rows.stop)]
            each = np.array(drawn, int).reshape(each.shape)
        yield _replay(test, Recorded(*(leaf[rows] for leaf in answers)), each)


def _replay(test: ScaledAdaptiveTest, answers: Recorded, order: Int[np.ndarray, "J I"]) -> Replayed:
    """Tests of J subjects in step."""
    number, size, rows = len(answers.values), test.stop.max_items, np.arange(len(answers.values))
    codes, times = numbered(test.model, answers.values, answers.trials)
    statistics = np.asarray(test.model.statistics(codes)).reshape(number, test.num_items, -1)
    opened = answers.values >= 0
    log_posterior = np.broadcast_to(test.log_prior, (number, len(test.theta)))
    rest, noise = (np.broadcast_to(x.sum(axis=1), log_posterior.shape) for x in (test.mean, test.noise))
    score = Score(np.zeros(number), rest, noise)
    known, change = test.estimates(log_posterior, score), np.full(number, np.inf)
    items, asked = np.full((number, size), -1), np.zeros(number, int)
    given, ability, error, of_score, score_error = traces = np.full((5, number, size), np.nan)
    reason = test.reasons(asked, known, change, opened.any(axis=1))
    for step in range(size):
        going: Bool[np.ndarray, " J"] = reason == 0
        if not going.any():
            break
        at = rows[going]
        gains = test.gains(np.asarray(known.ability)[at], order[at])
        item = np.where(opened[at], gains, -np.inf).argmax(axis=1)
        opened[at, item] = False
        after = test.posterior(log_posterior[at], item, statistics[at, item], times[at, item])
        parts = test.without(Score(*(leaf[at] for leaf in score)), item, answers.worth[at, item])
        now = test.estimates(after, parts)
        log_posterior, score, change = (
            _with(log_posterior, at, after),
            Score(*(_with(old, at, new) for old, new in zip(score, parts, strict=True))),
            _with(change, at, np.abs(now.ability - known.ability[at])),
        )
        known = Estimates(*(_with(old, at, new) for old, new in zip(known, now, strict=True)))
        items[at, step], given[at, step] = item, answers.values[at, item]
        for trace, value in zip(traces[1:], now, strict=True):
            trace[at, step] = value
        asked[at] += 1
        reason = np.where(going, test.reasons(asked, known, change, opened.any(axis=1)), reason)
    return Replayed(items, given, ability, error, of_score, score_error, asked, reason)


def _with(array: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.array(array)
    found[rows] = values
    return found


def as_written(test: ScaledAdaptiveTest, found: Replayed) -> Shaped[np.ndarray, "J K"]:
    """The answers of tests as grades, successes or shares."""
    written = np.asarray(found.answers).astype(object)
    for row, step in zip(*np.nonzero(found.items >= 0), strict=True):
        labels, value = test.known.scales[found.items[row, step]].labels, found.answers[row, step]
        if np.isfinite(value):
            written[row, step] = value if labels is None else labels[int(value)]
    return written


def _answers(test: ScaledAdaptiveTest, found: Replayed, subject_ids: np.ndarray) -> pd.DataFrame:
    row, step = np.nonzero(found.items >= 0)
    return pd.DataFrame(
        {
            "subject_id": subject_ids[row].astype(str),
            "number": step + 1,
            "item_id": test.known.item_ids[found.items[row, step]].astype(str),
            "ability": found.ability[row, step],
            "ability_se": found.standard_error[row, step],
            "score": found.score[row, step],
            "score_se": found.score_error[row, step],
        }
    )
