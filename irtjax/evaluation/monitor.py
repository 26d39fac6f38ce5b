"""The ability and the accuracy of a model in training, from a few adaptive items at each checkpoint.

monitor = Monitor(fit, max_items=30)
for step in range(num_steps):
    ...
    if step % 1000 == 0:
        monitor(step, lambda item_ids: [model_is_right(item) for item in item_ids])
monitor.table()
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.special import ndtr

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Progressive, Randomesque, Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.item_bank import item_bank
from irtjax.populations.normal import Population
from irtjax.types import Float, Int, Shaped

LEVEL = 0.9  # of intervals
FINEST = 2000  # steps of a share, where an interval is looked for
LEAST_SD = 1e-9  # of a share that is known

Answer = Callable[[list[str]], Any]

_next_items = jax.jit(AdaptiveTest.next_items, static_argnums=2)
_update = jax.jit(AdaptiveTest.update)
_finished = jax.jit(AdaptiveTest.finished)


class Share(NamedTuple):
    """A share of right answers in a bank: its posterior mean and standard deviation, and a 90% interval."""

    mean: float
    sd: float
    low: float
    high: float


class Checkpoint(NamedTuple):
    """What a checkpoint was found to be.

    Attributes:
        step: of training.
        ability: in logits.
        ability_se: its posterior standard deviation; by "map" and "ml" from the information.
        score: predicted share of right answers over the bank.
        score_se: its posterior standard deviation.
        low, high: limits of its 90% interval.
        item_ids: that were asked, in order.
        answers: to them: 1 right, 0 wrong, -1 none.
    """

    step: int | float
    ability: float
    ability_se: float
    score: float
    score_se: float
    low: float
    high: float
    item_ids: list[str]
    answers: list[int]


class Monitor:
    """Scores checkpoints of a model by adaptive tests, and keeps what it found.

    **Each checkpoint is a new subject**: its test begins from the population, not from the checkpoint before, so that a
    collapse is seen as soon as a rise. The price is that estimates are drawn towards the population's mean, the more so
    the fewer items are asked.

    **Checkpoints are asked many of the same items**, since the first ones are the best for whoever begins. That makes
    differences between them more certain than their errors say: what is particular about an item is the same in both.
    It also means that errors do not average out over checkpoints. Where a model is trained on items of the bank, the
    score is one of its training data; where checkpoints are chosen by the score, that of the chosen one is too high.
    `Randomesque` exposure varies the items.

    Attributes:
        item_ids: (I,) of the bank.
        test: the adaptive test.
        checkpoints: that were scored, in order.
    """

    item_ids: Shaped[np.ndarray, " I"]
    test: AdaptiveTest
    checkpoints: list[Checkpoint]

    @checks_types
    def __init__(
        self,
        items: Any,
        *,
        max_items: int = 30,
        standard_error: float | None = None,
        rule: str = "variance",
        ability: str = "eap",
        population: Population | None = None,
        exposure: Randomesque | Progressive | None = None,
        groups: Sequence[Any] | Shaped[np.ndarray, " I"] | None = None,
        at_a_time: int = 1,
        seed: int = 0,
    ) -> None:
        """Prepares the bank.

        Args:
            items: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of one; in one dimension.
            max_items: largest number of items a checkpoint is asked, all of the bank if that has fewer.
            standard_error: of the ability, in logits, at which a checkpoint is known well enough.
            rule: how items are chosen (`irtjax.evaluation.adaptive.adaptive_test`).
            ability: "eap", "map" or "ml".
            population: normal distribution of ability; by default that of the fit or, for a table, the standard normal.
            exposure: how far tests stray from the best item.
            groups: (I,) of each item, such as its class: every test keeps their shares of the bank. A network that has
                just begun is right on some classes and wrong on others, which no single ability describes.
            at_a_time: items that are asked together, as a batch.
            seed: of random draws; each checkpoint has its own.

        Raises:
            InputError: items that cannot be read or are of several dimensions, or as `adaptive_test`.
        """
        self.item_ids, bank, population = item_bank(items, population)
        if bank.slope.shape[1] > 1:
            raise InputError(f"`items` in {bank.slope.shape[1]} dimensions, expected one")
        size = min(whole_number("max_items", max_items, 1), max(len(self.item_ids), 1))
        self.test = adaptive_test(
            bank,
            rule=rule,
            ability=ability,
            population=population,
            stop=Stop(size, standard_error=standard_error),
            exposure=exposure,
            groups=groups,
        )
        self.checkpoints = []
        self._at_a_time = whole_number("at_a_time", at_a_time, 1, size)
        self._key = jax.random.key(whole_number("seed", seed))
        self._right = np.exp(np.asarray(self.test.tables.log_right, float))

    @checks_types
    def __call__(self, step: int | float, answer: Answer) -> Checkpoint:
        """Scores a checkpoint.

        Args:
            step: of training; what `table` calls it.
            answer: from item ids, `at_a_time` or fewer, to as many answers: 1 right, 0 wrong, None for none. A series
                with the ids as index may have another order.

        Raises:
            InputError: another number of answers, or something else in them.
        """
        state = self.test.init(jax.random.fold_in(self._key, len(self.checkpoints)))
        while not _finished(self.test, state):
            items = np.asarray(_next_items(self.test, state, self._at_a_time))
            asked = self.item_ids[items[items >= 0]].tolist()
            given = np.full(items.shape, -1, np.int8)
            given[items >= 0] = _checked(answer(asked), asked)
            state = _update(self.test, state, items, given)
        places, answers = np.asarray(state.items), np.asarray(state.answers)
        share = share_of_bank(self._right, np.exp(np.asarray(state.log_posterior, float)), places, answers)
        found = Checkpoint(
            step,
            float(state.ability),
            float(state.standard_error),
            *share,
            item_ids=self.item_ids[places[places >= 0]].tolist(),
            answers=answers[places >= 0].tolist(),
        )
        self.checkpoints.append(found)
        return found

    def table(self) -> pd.DataFrame:
        """One row per checkpoint: step, ability, ability_se, score, score_se, low, high, num_items."""
        columns = ["step", "ability", "ability_se", "score", "score_se", "low", "high"]
        rows = [[*checkpoint[: len(columns)], len(checkpoint.item_ids)] for checkpoint in self.checkpoints]
        return pd.DataFrame(rows, columns=[*columns, "num_items"])


def share_of_bank(
    right: Float[np.ndarray, "I Q"],
    weights: Float[np.ndarray, " Q"],
    items: Int[np.ndarray, " K"],
    answers: Int[np.ndarray, " K"],
) -> Share:
    """The share of right answers in a bank, given the answers to some of its items.

    Given the ability, unseen answers are independent: T = (Σ_seen y_i + Σ_unseen Y_i)/I has the mean and variance

        m(θ) = (Σ_seen y_i + Σ_unseen P_i(θ))/I,   v(θ) = Σ_unseen P_i(θ) (1 - P_i(θ))/I²,

    and the posterior of T is taken for a mixture of the normal distributions of these over the posterior of θ. Errors
    of the items' parameters are not in it (`irtjax.evaluation.score_posterior` has them).

    Args:
        right: (I, Q) P at the nodes.
        weights: (Q,) posterior of the nodes; normalised here.
        items: (K,) positions of those that were asked, negative for none.
        answers: (K,) 1 right, 0 wrong, negative for none.
    """
    weights = weights / weights.sum()
    unseen = np.delete(right, items[(items >= 0) & (answers >= 0)], axis=0)
    size = len(right)
    mean = ((answers[items >= 0] == 1).sum() + unseen.sum(axis=0)) / size
    noise = (unseen * (1 - unseen)).sum(axis=0)
    sd = np.maximum(np.sqrt(noise) / size, LEAST_SD)
    centre = float(np.clip(weights @ mean, mean.min(), mean.max()))  # rounding may lead out
    line = np.linspace(0, 1, FINEST + 1)
    below = ndtr((line[:, None] - mean) / sd) @ weights
    low, high = np.interp([(1 - LEVEL) / 2, (1 + LEVEL) / 2], below, line)
    return Share(centre, float(np.sqrt(weights @ ((mean - centre) ** 2 + sd**2))), float(low), float(high))


def _in_order(given: Any, asked: list[str]) -> Any:
    """Answers in the order of the items, if they are a series by item id; all others as they are.

    Raises:
        InputError: a series of other ids, or of one twice.
    """
    if not isinstance(given, pd.Series) or isinstance(given.index, pd.RangeIndex):
        return given
    ids = given.index.astype(str)
    if sorted(ids) != sorted(asked):
        raise InputError(
            f"`answer` gave a series with the index {', '.join(ids)!s:.100}, expected each of {', '.join(asked)!s:.100}"
        )
    return given.set_axis(ids)[asked]


def _checked(given: Any, asked: list[str]) -> Int[np.ndarray, " K"]:
    """Answers as numbers, -1 for none.

    Raises:
        InputError: they are not one an item, or no answers.
    """
    answers = list(np.asarray(_in_order(given, asked), object).ravel())
    if len(answers) != len(asked):
        raise InputError(f"`answer` gave {len(answers)} answers to {len(asked)} items, expected one each")
    for item, value in zip(asked, answers, strict=True):
        if value is not None and not (np.isscalar(value) and value in (0, 1)):
            raise InputError(f"`answer` gave {value!r:.100} to item '{item}', expected 1, 0 or None")
    return np.array([-1 if value is None else int(value) for value in answers], int)
