"""Adaptive tests of items with grades, counts or shares, in one dimension.

    test = adaptive_test(fit, stop=Stop(max_items=20, standard_error=0.3))
    state = test.init(seed=0)
    while not test.finished(state):
        item = test.next_item(state)
        state = test.update(state, item, answer_to(item))  # a grade of the item's scale

The posterior is on nodes that all subjects share, where everything about the items is a table: a step is a few vector
sums, and nothing is compiled.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.scaled_test import ends_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.populations.normal import Population
from irtjax.scoring.family_items import KnownItems
from irtjax.scoring.family_nodes import family_nodes
from irtjax.scoring.family_scores import NEAREST_END, rescaled
from irtjax.scoring.family_worth import information_at, of_scales, worth_at
from irtjax.types import Float

RULES = ("information", "random")


class ScaledState(NamedTuple):
    """A subject in the course of a test.

    Attributes:
        items: positions of the items that were asked, in order.
        open: (I,) bool items that may still be asked.
        log_posterior: (Q,) of the nodes, normalised.
        ability: posterior mean.
        standard_error: posterior standard deviation.
        score: posterior mean of the mean response to all items, the answers so far included, in grades where all items
            have such; else a share from 0, the lowest responses, to 1.
        score_error: its posterior standard deviation, the noise of unseen answers included.
        change: of the ability by the last answer; infinite at first.
        answered: (I,) what each answer is worth, NaN where there is none.
        order: (I,) in which the rule "random" asks.
    """

    items: tuple[int, ...]
    open: np.ndarray
    log_posterior: np.ndarray
    ability: float
    standard_error: float
    score: float
    score_error: float
    change: float
    answered: np.ndarray
    order: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledAdaptiveTest:
    """An adaptive test; `irtjax.evaluation.adaptive.adaptive_test` makes it.

    Attributes:
        known: the I items.
        theta: (Q,) abilities.
        log_prior: (Q,) logarithms of the population's weights there.
        information: (Q, I) of one response, of counts with their trials.
        mean: (Q, I) what a response is worth.
        noise: (Q, I) its variance.
        eta: (Q, I, S) natural parameters of the items.
        log_normalizer: (Q, I).
        trials: (I,) of a response to each item; 1 but for counts.
        worth: (I, C) of the categories.
        rule: "information", the largest at the posterior mean, or "random".
        stop: when it ends.
    """

    known: KnownItems
    theta: Float[np.ndarray, " Q"]
    log_prior: Float[np.ndarray, " Q"]
    information: Float[np.ndarray, "Q I"]
    mean: Float[np.ndarray, "Q I"]
    noise: Float[np.ndarray, "Q I"]
    eta: Float[np.ndarray, "Q I S"]
    log_normalizer: Float[np.ndarray, "Q I"]
    trials: Float[np.ndarray, " I"]
    worth: Float[np.ndarray, "I C"]
    rule: str
    stop: Stop

    @property
    def num_items(self) -> int:
        """I, of the bank."""
        return len(self.trials)

    def init(self, seed: int = 0, available: np.ndarray | None = None) -> ScaledState:
        """The state before the first item.

        Args:
            seed: of random items.
            available: (I,) items that may be asked of this subject; None for all.
        """
        possible = np.ones(self.num_items, bool) if available is None else np.asarray(available, bool)
        order = np.random.default_rng(seed).permutation(self.num_items)
        return self._state((), possible, self.log_prior, np.full(self.num_items, np.nan), order, None)

    def next_item(self, state: ScaledState) -> int:
        """Position of the item to ask next; -1 if all that may be asked were, or `max_items`."""
        if not state.open.any() or len(state.items) >= self.stop.max_items:
            return -1
        gain = -np.argsort(state.order).astype(float) if self.rule == "random" else self._information(state.ability)
        return int(np.where(state.open, gain, -np.inf).argmax())

    def update(self, state: ScaledState, item: int, answer: Any) -> ScaledState:
        """The state after an answer.

        Args:
            state: before.
            item: position of an item.
            answer: a grade of its scale, successes, or a share; None for no answer, which tells nothing.

        Raises:
            InputError: an answer that the item cannot have.
        """
        opened, answered, log_posterior = state.open.copy(), state.answered.copy(), state.log_posterior
        opened[item] = False
        if answer is not None:
            value, answered[item] = self._read(item, answer)
            one = self.known.model.take(np.array([item])).statistics(np.array([[value]]))[0]
            log_posterior = log_posterior + self.eta[:, item] @ one - self.trials[item] * self.log_normalizer[:, item]
        return self._state((*state.items, item), opened, log_posterior, answered, state.order, state.ability)

    def finished(self, state: ScaledState) -> bool:
        """Whether the test is over."""
        stop = self.stop
        if len(state.items) >= stop.max_items or not state.open.any():
            return True
        pairs = (
            (state.standard_error, stop.standard_error),
            (state.score_error, stop.score_error),
            (state.change, stop.change),
        )
        return len(state.items) >= stop.min_items and any(
            limit is not None and value <= limit for value, limit in pairs
        )

    def _read(self, item: int, answer: Any) -> tuple[float, float]:
        """Category, successes or share; and what it is worth."""
        labels = self.known.scales[item].labels
        name = f"item {str(self.known.item_ids[item])!r}"
        if labels is not None:
            texts = [str(label) for label in labels]
            if str(answer) not in texts:
                raise InputError(f"{name}: {answer!r}, expected one of {', '.join(texts)}")
            place = texts.index(str(answer))
            return float(place), float(self.worth[item, place])
        most = self.trials[item]
        if not 0 <= float(answer) <= most:
            raise InputError(f"{name}: {answer!r}, expected 0 to {most:g}")
        return float(answer), float(answer) / most

    def _information(self, ability: float) -> Float[np.ndarray, " I"]:
        """Of each item at an ability, linear between nodes."""
        at = int(np.clip(np.searchsorted(self.theta, ability), 1, len(self.theta) - 1))
        share = np.clip((ability - self.theta[at - 1]) / (self.theta[at] - self.theta[at - 1]), 0, 1)
        return (1 - share) * self.information[at - 1] + share * self.information[at]

    def _state(
        self,
        items: tuple[int, ...],
        opened: np.ndarray,
        log_posterior: np.ndarray,
        answered: np.ndarray,
        order: np.ndarray,
        before: float | None,
    ) -> ScaledState:
        log_posterior = log_posterior - np.logaddexp.reduce(log_posterior)
        weights, unseen = np.exp(log_posterior), np.isnan(answered)
        ability = float(weights @ self.theta)
        error = float(np.sqrt(weights @ (self.theta - ability) ** 2))
        rest = self.mean @ unseen.astype(float)
        mean = float(weights @ rest)
        variance = weights @ (rest - mean) ** 2 + weights @ (self.noise @ unseen.astype(float))
        return ScaledState(
            items,
            opened,
            log_posterior,
            ability,
            error,
            (float(np.nansum(answered)) + mean) / self.num_items,
            float(np.sqrt(variance)) / self.num_items,
            np.inf if before is None else abs(ability - before),
            answered,
            order,
        )


def _worth(known: KnownItems) -> Float[np.ndarray, "I C"]:
    """Grades where all items have numbers; else shares of the way from the lowest to the highest category."""
    worth = of_scales(known)
    labels = [label for scale in known.scales for label in scale.labels or (None,)]
    if all(isinstance(label, int | float) for label in labels):
        return worth
    low, high = ends_of(known.scales)
    return (worth - low[:, None]) / (high - low)[:, None]


def scaled_adaptive_test(
    known: KnownItems, population: Population, *, rule: str, stop: Stop, trials: Any = None
) -> ScaledAdaptiveTest:
    """An adaptive test of known items.

    Args:
        known: the items.
        population: of abilities.
        rule: "information" or "random".
        stop: when it ends.
        trials: of a response to each item that is a count; a number, or (I,).

    Raises:
        InputError: another rule, a nominal item, or more items than there are.
    """
    if rule not in RULES:
        raise InputError(f"unknown `rule` {rule!r} of items with grades, expected one of {', '.join(RULES)}")
    if any(family.name == "nominal" for family in known.model.families):
        raise InputError("nominal items have no order to make a score of: take them out of the bank")
    number = len(known.item_ids)
    whole_number("max_items", stop.max_items, 1, number)
    each = np.broadcast_to(np.asarray(1.0 if trials is None else trials, float), number)
    with jax.enable_x64(True):
        centre, unit, items = rescaled(known, population, in_population=True)
        line = family_nodes(known.model, items, np.asarray(each), stop.max_items, NEAREST_END)
    theta = centre + unit * line.nodes
    parameters = PredictorParameters(*(np.asarray(leaf) for leaf in known.parameters))
    natural = known.model.natural(parameters, theta[:, None], asymptotes=False)
    worth = _worth(known)
    found = worth_at(known, theta, worth)
    return ScaledAdaptiveTest(
        known,
        theta,
        line.log_weights,
        information_at(known, theta) * each,
        found.mean,
        found.variance / each,
        np.asarray(natural.eta).reshape(len(theta), number, -1),
        np.asarray(natural.log_normalizer),
        np.asarray(each),
        worth,
        rule,
        stop,
    )
