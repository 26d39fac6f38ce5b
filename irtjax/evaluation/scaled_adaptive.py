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
from typing import Any

import jax
import numpy as np

from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.scaled_state import Estimates, ScaledState, Score
from irtjax.evaluation.scaled_test import ends_of
from irtjax.evaluation.scaled_trials import trials_of
from irtjax.item_models.coded_counts import numbered
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import PredictorParameters
from irtjax.populations.normal import Population
from irtjax.scoring.family_items import KnownItems
from irtjax.scoring.family_nodes import family_nodes
from irtjax.scoring.family_scores import NEAREST_END, rescaled
from irtjax.scoring.family_worth import information_at, of_scales, worth_at
from irtjax.types import Float, Int

RULES = ("information", "random")


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
        model: of the items, which knows the numbers of trials where these agree.
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
    model: Families
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
        parts = Score(0.0, self.mean.sum(axis=1), self.noise.sum(axis=1))
        known = self.estimates(self.log_prior, parts)
        return ScaledState((), possible, self.log_prior, known, np.inf, parts, self.random_order(seed))

    def random_order(self, seed: int) -> Int[np.ndarray, " I"]:
        """In which the rule "random" asks."""
        return np.random.default_rng(seed).permutation(self.num_items)

    def next_item(self, state: ScaledState) -> int:
        """Position of the item to ask next; -1 if all that may be asked were, or `max_items`."""
        if not state.open.any() or len(state.items) >= self.stop.max_items:
            return -1
        return int(np.where(state.open, self.gains(state.ability, state.order), -np.inf).argmax())

    def update(self, state: ScaledState, item: int, answer: Any) -> ScaledState:
        """The state after an answer.

        Args:
            state: before.
            item: position of an item.
            answer: a grade of its scale, successes, or a share; None for no answer, which tells nothing.

        Raises:
            InputError: an answer that the item cannot have.
        """
        opened, log_posterior, parts = state.open.copy(), state.log_posterior, state.parts
        opened[item] = False
        if answer is not None:
            value, worth = self.read(item, answer)
            one = self.model.take(np.array([item]))
            codes, times = numbered(one, np.array([[value]]), self.trials[None, [item]])
            log_posterior = self.posterior(log_posterior, item, np.asarray(one.statistics(codes))[0], times[0, 0])
            parts = self.without(parts, item, worth)
        known = self.estimates(log_posterior, parts)
        change = abs(float(known.ability) - state.ability)
        return ScaledState((*state.items, item), opened, log_posterior, known, change, parts, state.order)

    def reason(self, state: ScaledState) -> int:
        """Why the test is over, as a position in `irtjax.evaluation.adaptive_options.REASONS`; 0 while it is not."""
        return int(self.reasons(len(state.items), state.known, state.change, bool(state.open.any())))

    def finished(self, state: ScaledState) -> bool:
        """Whether the test is over."""
        return self.reason(state) > 0

    def read(self, item: int, answer: Any) -> tuple[float, float]:
        """Category, successes or share that an answer is; and what it is worth.

        Raises:
            InputError: the item cannot have it.
        """
        labels = self.known.scales[item].labels
        name = f"item {str(self.known.item_ids[item])!r}"
        if labels is not None:
            texts = [str(label) for label in labels]
            if str(answer) not in texts:
                raise InputError(f"{name}: {answer!r}, expected one of {', '.join(texts)}")
            place = texts.index(str(answer))
            return float(place), float(self.worth[item, place])
        most = self.trials[item]
        try:
            number = float(answer)
        except (TypeError, ValueError):
            number = -1.0
        if not 0 <= number <= most:
            raise InputError(f"{name}: {answer!r}, expected 0 to {most:g}")
        return number, number / most

    def posterior(
        self, log_posterior: Float[np.ndarray, "*J Q"], item: Any, statistics: Float[np.ndarray, "*J S"], trials: Any
    ) -> Float[np.ndarray, "*J Q"]:
        """That after an answer to an item, of one subject, or of J to an item each."""
        told = np.moveaxis(self.eta[:, item] * statistics, 0, -2).sum(axis=-1)
        told = told - np.asarray(trials)[..., None] * np.moveaxis(self.log_normalizer[:, item], 0, -1)
        found = log_posterior + told
        return found - np.logaddexp.reduce(found, axis=-1, keepdims=True)

    def without(self, parts: Score, item: Any, worth: Any) -> Score:
        """The parts of the score once an item has an answer."""
        mean, noise = (np.moveaxis(table[:, item], 0, -1) for table in (self.mean, self.noise))
        return Score(parts.seen + worth, parts.rest - mean, parts.noise - noise)

    def estimates(self, log_posterior: Float[np.ndarray, "*J Q"], parts: Score) -> Estimates:
        """What posteriors come to."""
        weights = np.exp(log_posterior)
        ability, mean = weights @ self.theta, (weights * parts.rest).sum(axis=-1)
        square = (weights * (self.theta - ability[..., None]) ** 2).sum(axis=-1)
        variance = (weights * ((parts.rest - mean[..., None]) ** 2 + np.maximum(parts.noise, 0.0))).sum(axis=-1)
        number = self.num_items
        return Estimates(ability, np.sqrt(square), (parts.seen + mean) / number, np.sqrt(variance) / number)

    def gains(self, ability: Any, order: Int[np.ndarray, "*J I"]) -> Float[np.ndarray, "*J I"]:
        """By the rule, of each item: its information at abilities, linear between nodes, or its place in an order."""
        if self.rule == "random":
            return -np.argsort(order, axis=-1).astype(float)
        at = np.clip(np.searchsorted(self.theta, ability), 1, len(self.theta) - 1)
        share = np.clip((ability - self.theta[at - 1]) / (self.theta[at] - self.theta[at - 1]), 0, 1)[..., None]
        return (1 - share) * self.information[at - 1] + share * self.information[at]

    def reasons(self, number: Any, known: Estimates, change: Any, left: Any) -> Int[np.ndarray, "*J"]:
        """Why tests are over after so many items, with others `left` or not; 0 while they are not."""
        stop = self.stop
        enough = np.asarray(number) >= stop.min_items

        def within(value: Any, limit: float | None) -> Any:
            return enough & (np.asarray(value) <= (-np.inf if limit is None else limit))

        met = (
            np.asarray(number) >= stop.max_items,
            within(known.standard_error, stop.standard_error),
            within(known.score_error, stop.score_error),
            within(change, stop.change),
            ~np.asarray(left, bool),
        )
        return np.select(met, [np.full(np.shape(number), code) for code in range(1, len(met) + 1)], 0)


def in_grades(known: KnownItems) -> bool:
    """Whether all items have grades that are numbers, so that a score is a mean grade."""
    labels = [label for scale in known.scales for label in scale.labels or (None,)]
    return all(isinstance(label, int | float) for label in labels)


def _worth(known: KnownItems) -> Float[np.ndarray, "I C"]:
    """Grades where all items have numbers; else shares of the way from the lowest to the highest category."""
    worth = of_scales(known)
    if in_grades(known):
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
        trials: of a response to each item that is a count; a number, (I,), or (J, I) of many responses with 0 where
            there is none (`irtjax.evaluation.scaled_trials`).

    Raises:
        InputError: another rule, a nominal item, or more items than there are.
    """
    if rule not in RULES:
        raise InputError(f"unknown `rule` {rule!r} of items with grades, expected one of {', '.join(RULES)}")
    names = [family.name for family in known.model.families]
    if "nominal" in names:
        raise InputError("nominal items have no order to make a score of: take them out of the bank")
    number = len(known.item_ids)
    whole_number("max_items", stop.max_items, 1, number)
    of_trials = trials_of(known, 1.0 if trials is None else trials)
    coded, each = of_trials.known, of_trials.times
    with jax.enable_x64(True):
        centre, unit, items = rescaled(coded, population, in_population=True)
        line = family_nodes(coded.model, items, each, stop.max_items, NEAREST_END)
    theta = centre + unit * line.nodes
    parameters = PredictorParameters(*(np.asarray(leaf) for leaf in coded.parameters))
    natural = coded.model.natural(parameters, theta[:, None], asymptotes=False)
    worth = _worth(known)
    found = worth_at(known, theta, worth)
    return ScaledAdaptiveTest(
        known,
        theta,
        line.log_weights,
        information_at(coded, theta) * each,
        found.mean,
        found.variance / of_trials.effective,
        np.asarray(natural.eta).reshape(len(theta), number, -1),
        np.asarray(natural.log_normalizer),
        of_trials.mean,
        coded.model,
        worth,
        rule,
        stop,
    )
