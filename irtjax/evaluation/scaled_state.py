"""A subject in an adaptive test of items with grades, counts or shares: what was asked, and what is known."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.types import Bool, Float, Int


class Estimates(NamedTuple):
    """What is known of subjects.

    Attributes:
        ability: posterior mean.
        standard_error: posterior standard deviation.
        score: posterior mean of the mean response to all items, the answers so far included, in grades where all items
            have such; else a share from 0, the lowest responses, to 1.
        score_error: its posterior standard deviation, the noise of unseen answers included.
    """

    ability: Any
    standard_error: Any
    score: Any
    score_error: Any


class Score(NamedTuple):
    """What the score of subjects is made of.

    Attributes:
        seen: (...) sum of what the answers are worth.
        rest: (..., Q) sum of what the items without an answer are expected to be worth at the nodes.
        noise: (..., Q) its variance there.
    """

    seen: Any
    rest: Float[np.ndarray, "*J Q"]
    noise: Float[np.ndarray, "*J Q"]


class ScaledState(NamedTuple):
    """A subject in the course of a test.

    Attributes:
        items: positions of the items that were asked, in order.
        open: (I,) bool items that may still be asked.
        log_posterior: (Q,) of the nodes, normalised.
        known: ability and score, with their errors.
        change: of the ability by the last answer; infinite at first.
        parts: of the score.
        order: (I,) in which the rule "random" asks.
    """

    items: tuple[int, ...]
    open: Bool[np.ndarray, " I"]
    log_posterior: Float[np.ndarray, " Q"]
    known: Estimates
    change: float
    parts: Score
    order: Int[np.ndarray, " I"]

    @property
    def ability(self) -> float:
        """Posterior mean."""
        return float(self.known.ability)

    @property
    def standard_error(self) -> float:
        """Its posterior standard deviation."""
        return float(self.known.standard_error)

    @property
    def score(self) -> float:
        """Predicted mean response to all items."""
        return float(self.known.score)

    @property
    def score_error(self) -> float:
        """Its posterior standard deviation."""
        return float(self.known.score_error)
