"""How reliable are difficulties? Split-half reliability: do two disjoint halves of the subjects agree on them?"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.stats import spearmanr

from irtjax.arguments import checks_types
from irtjax.types import AnyArray, Float, Shaped


class HasDifficulty(Protocol):
    """What an estimator returns, such as `irtjax.Fit`."""

    @property
    def difficulty(self) -> AnyArray:
        """(I,) difficulties."""


class SplitHalf(NamedTuple):
    """How far two halves of the subjects agree.

    Attributes:
        spearman: rank correlation of the difficulties, -1 to 1. That of half a crowd is lower than that of a whole one.
        difficulty: (2, I) of each half, for the items that subjects of both halves have answered.
        item_ids: (I,) of those items.
        subjects_per_half: in the smaller half.
    """

    spearman: float
    difficulty: Float[np.ndarray, "2 I"]
    item_ids: Shaped[np.ndarray, " I"]
    subjects_per_half: int


@checks_types
def split_half(responses: Any, fit: Callable[[Any], HasDifficulty]) -> SplitHalf:
    """Fits two halves of the subjects apart from each other and correlates the difficulties of the items.

    The halves are the subjects at even and at odd positions: random samples where subjects come in a random order, as
    the members of a crowd do. Items that nobody in one of the halves has answered are left out.

    Args:
        responses: of at least two subjects in each half, whatever `fit` needs; right/wrong ones or `ScaledResponses`.
        fit: an estimator of responses, such as `functools.partial(irtjax.fit, model="1pl")`; called once per half.
    """
    halves = common_items(*alternate_subjects(responses))
    difficulty = np.stack([np.asarray(fit(half).difficulty) for half in halves])
    return SplitHalf(
        spearman=float(spearmanr(*difficulty).statistic),
        difficulty=difficulty,
        item_ids=halves[0].item_ids,
        subjects_per_half=responses.num_subjects // 2,
    )


def alternate_subjects(responses: Any) -> tuple[Any, Any]:
    """The subjects at even positions, and those at odd ones."""
    even, odd = (responses.choose_subjects(np.arange(at, responses.num_subjects, 2)) for at in (0, 1))
    return even, odd


def common_items(one: Any, other: Any) -> tuple[Any, Any]:
    """The items that subjects of both matrices, whose items are the same, have answered."""
    both = np.all([(np.asarray(half.values) >= 0).any(axis=0) for half in (one, other)], axis=0)
    return one.choose_items(both), other.choose_items(both)
