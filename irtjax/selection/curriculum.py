"""A curriculum for a training loop that is not ours: answers in, examples to train on out.

curriculum = Curriculum(difficulty, "DDaCLAE", batch_size=32)
for epoch in range(num_epochs):
    examples = curriculum.indices(epoch, answers=logits_of(all_examples), labels=labels)
    ...  # train on them
    curriculum.save("curriculum.json")
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.populations.normal import Population
from irtjax.selection import filtering
from irtjax.selection.choices import FILTERS, CurriculumOptions
from irtjax.selection.curriculum_file import (
    NOT_A_RECORD,
    Epoch,
    as_epochs,
    read_record,
    require_same,
    write_record,
)
from irtjax.selection.own_loop import BY_ABILITY, ability, as_difficulty, rule_of, scored
from irtjax.selection.probe import rank_items
from irtjax.selection.rules import at_least_a_minibatch
from irtjax.selection.schedules import examples_in_epochs
from irtjax.selection.strategies import STRATEGIES, Order, from_average
from irtjax.types import Int, Shaped

SCHEDULES = tuple(
    name
    for name, strategy in STRATEGIES.items()
    if name not in BY_ABILITY and strategy.order is not Order.SHORTEST and not strategy.other_seeds
)
RULES = (*BY_ABILITY, *SCHEDULES, *FILTERS)

_at_least = jax.jit(at_least_a_minibatch, static_argnums=(0, 4))


class Curriculum:
    """Which of N training examples to train on in each epoch.

    It selects what `irtjax.selection.ddaclae.train_curriculum` selects, given the same answers:

        ============================  ======================================================================
        DDaCLAE                       b ≤ θ, the ability of the network before the epoch (Lalor and Yu 2020)
        DDaCLAE-hard                  b ≥ θ
        window                        |b - θ| ≤ `options.half_width`
        baseline                      all
        CB-linear, CB-root            the easiest, more in each epoch (Platanios et al. 2019)
        CB-…-average                  the same with average difficulty first, outliers last (Lalor 2020, 5.4.3)
        AVI, AVO, UB, LB, PCUB, PCLB  `share` of all, the same in each epoch (Lalor, Wu and Yu 2019), see
                                      `irtjax.selection.filtering.ranking`
        random                        `share` of all, the same in each epoch: the control of these
        ============================  ======================================================================

    Where a rule by ability selects less than a minibatch, `batch_size` examples about the middle of those are selected,
    and twice as many at each further such epoch; with `options.floor` False, what the rule selects, perhaps nothing.

    Attributes:
        difficulty: (N,) b, in logits.
        item_ids: (N,) of the examples: the index of a series of difficulties, else their positions.
        rule: its name.
        batch_size: examples of a minibatch.
        options: what rules leave open.
        epochs: what was selected, in order.
    """

    difficulty: Shaped[np.ndarray, " N"]
    item_ids: Shaped[np.ndarray, " N"]
    rule: str
    batch_size: int
    options: CurriculumOptions
    epochs: list[Epoch]

    @checks_types
    def __init__(
        self,
        difficulty: Any,
        rule: str = "DDaCLAE",
        *,
        batch_size: int = 32,
        options: CurriculumOptions = CurriculumOptions(),  # noqa: B008 (frozen)
        population: Population | None = None,
        share: float | None = None,
        percent_correct: Any = None,
        centre: str = "difficulty",
        seed: int = 0,
    ) -> None:
        """A curriculum before its first epoch.

        Args:
            difficulty: (N,) of the training examples in their order, logits; or a series with their ids as index.
            rule: one of `RULES`.
            batch_size: examples of a minibatch of the training.
            options: T and c0 of CB-linear and CB-root, the width of the window, and the floor of rules by ability.
            population: for rules by ability, None for maximum likelihood, else the prior of a MAP estimate.
            share: of the examples that a filter keeps, above 0 to 1.
            percent_correct: (N,) share of the crowd that was right, 0 to 1, for PCUB and PCLB.
            centre: what AVI, AVO and CB-…-average take for average (`irtjax.selection.filtering.centre_of`).
            seed: of the random filter, and of ties.

        Raises:
            InputError: an unknown rule; difficulties that are not finite; a share without a filter or a filter without
                a share; `percent_correct` that is missing, of another length or out of range.
        """
        as_difficulty(difficulty)  # or an error
        self.item_ids = difficulty.index.to_numpy() if isinstance(difficulty, pd.Series) else np.arange(len(difficulty))
        self.difficulty = np.asarray(difficulty, float)
        if rule not in RULES:
            by_length = rule in STRATEGIES and STRATEGIES[rule].order is Order.SHORTEST
            hint = ": give lengths as `difficulty`, and" if by_length else ","
            raise InputError(f"unknown `rule` {rule!r}{hint} expected one of {', '.join(RULES)}")
        self.rule, self.options, self.population, self.centre = rule, options, population, centre
        self.batch_size, self.seed = whole_number("batch_size", batch_size, 1), whole_number("seed", seed)
        self.share = _share(rule, share)
        self.percent_correct = _percent_correct(rule, percent_correct, self.difficulty.size)
        self.epochs = []
        self._min_examples = min(self.batch_size, self.difficulty.size)
        average = rule in STRATEGIES and STRATEGIES[rule].order is Order.AVERAGE
        ordered_by = from_average(self.difficulty, centre) if average else self.difficulty
        self._items = rank_items(jnp.asarray(ordered_by, jnp.float32))
        self._order = np.asarray(self._items.order) if rule not in FILTERS else self._kept()

    @property
    def needs_answers(self) -> bool:
        """Whether the rule goes by ability. Others select without answers, and do not look at them."""
        return self.rule in BY_ABILITY

    @property
    def epoch(self) -> int | None:
        """The latest epoch; None before the first."""
        return self.epochs[-1].epoch if self.epochs else None

    @property
    def selected(self) -> Int[np.ndarray, " K"]:
        """Positions of the examples of the latest epoch, as `indices` returned them.

        Raises:
            InputError: there is none yet.
        """
        if not self.epochs:
            raise InputError("no epoch has been selected yet: call `indices` first")
        latest = self.epochs[-1]
        return self._order[latest.first : latest.first + latest.num_examples].astype(int)

    @checks_types
    def indices(self, epoch: int, answers: Any = None, labels: Any = None) -> Int[np.ndarray, " K"]:
        """The examples to train on in an epoch.

        Args:
            epoch: its number, from 0 or 1; above that of the epoch before. A fixed schedule goes by it.
            answers: of the network to the N examples before the epoch, for rules by ability: (N,) 1 right, 0 wrong; or
                with `labels` classes (N,) or logits (N, C). -1 or NaN stand for examples that were not asked: they do
                not count for the ability (`irtjax.selection.ability`), and are selected like others.
            labels: (N,) true classes.

        Returns:
            Positions, the easiest first; of a filter in its order. `item_ids` has their ids.

        Raises:
            InputError: an epoch that is not above the latest; no answers where the rule needs them, or not one to each
                example; or as `irtjax.selection.own_loop.scored`.
        """
        epoch = whole_number("epoch", epoch)
        if self.epoch is not None and epoch <= self.epoch:
            raise InputError(
                f"`epoch` {epoch} after epoch {self.epoch}: epochs go forward; `selected` has those of the latest"
            )
        self.epochs.append(self._by_ability(epoch, answers, labels) if self.needs_answers else self._fixed(epoch))
        return self.selected

    def table(self) -> pd.DataFrame:
        """One row per epoch: epoch, ability, ability_se, items_asked, num_examples, share."""
        table = pd.DataFrame(self.epochs, columns=Epoch._fields).drop(columns="first")
        return table.assign(share=table.num_examples / self.difficulty.size)

    @checks_types
    def save(self, path: str | Path) -> None:
        """Writes everything that later epochs depend on, difficulties included, as JSON.

        Raises:
            InputError: the file cannot be written.
        """
        record = {
            "rule": self.rule,
            "batch_size": self.batch_size,
            "options": dataclasses.asdict(self.options),
            "population": None if self.population is None else [float(x) for x in self.population],
            "share": self.share,
            "centre": self.centre,
            "seed": self.seed,
            "min_examples": self._min_examples,
            "epochs": self.epochs,
            "item_ids": self.item_ids,
            "difficulty": self.difficulty,
            "percent_correct": self.percent_correct,
        }
        write_record(path, record)

    @classmethod
    @checks_types
    def load(cls, path: str | Path, difficulty: Any = None) -> "Curriculum":
        """The curriculum that `save` wrote: it goes on as it would have.

        Args:
            path: the file.
            difficulty: of the training examples now, to make sure that they are those it was saved with; None to take
                those of the file.

        Raises:
            InputError: a file that cannot be read, is not a curriculum, or is of other difficulties.
        """
        record = read_record(path)
        try:
            found = cls._restored(record)
        except NOT_A_RECORD as error:
            raise InputError(f"{path}: not a curriculum that `Curriculum.save` wrote ({error})") from error
        if difficulty is not None:
            require_same(path, pd.Series(found.difficulty, found.item_ids), difficulty)
        return found

    @classmethod
    def _restored(cls, record: Any) -> "Curriculum":
        """From a file; raises `NOT_A_RECORD` where it is something else."""
        arguments = {name: record[name] for name in ("batch_size", "share", "percent_correct", "centre", "seed")}
        found = cls(
            pd.Series(record["difficulty"], record["item_ids"], dtype=float),
            record["rule"],
            options=CurriculumOptions(**record["options"]),
            population=None if record["population"] is None else Population(*map(float, record["population"])),
            **arguments,
        )
        found.epochs = as_epochs(record["epochs"], len(found._order))
        found._min_examples = whole_number("min_examples", record["min_examples"], 1, found.difficulty.size)
        return found

    def _kept(self) -> Int[np.ndarray, " K"]:
        """What a filter keeps."""
        percent = np.zeros(self.difficulty.size) if self.percent_correct is None else self.percent_correct
        order = filtering.ranking(self.rule, self.difficulty, percent, self.seed, self.centre)
        return order[: filtering.number_kept(self.share or 0.0, order.size)]

    def _fixed(self, epoch: int) -> Epoch:
        """By a schedule or a filter."""
        if self.rule in FILTERS:
            number = self._order.size
        else:
            shares = STRATEGIES[self.rule].selection(epoch + 1, self.options)
            assert not callable(shares)
            number = int(examples_in_epochs(shares, epoch + 1, self.difficulty.size)[epoch])
        return Epoch(epoch, math.nan, math.nan, 0, 0, number)

    def _by_ability(self, epoch: int, answers: Any, labels: Any) -> Epoch:
        """By a rule, which needs answers."""
        if answers is None:
            raise InputError(f"`rule` {self.rule} goes by ability: give `answers` of the network to the examples")
        right = np.asarray(scored(answers, labels))
        asked = int((right >= 0).sum())
        found = ability(right, self._items.difficulty, population=self.population)
        if np.isnan(found.ability):
            raise InputError(f"`answers`: none of {right.size:,} examples was asked, which says nothing of the ability")
        rule, ascending = rule_of(self.rule, self.options), self._items.ascending
        if self.options.floor:
            selected, left = _at_least(rule, ascending, found.ability, self._min_examples, self.batch_size)
            self._min_examples = int(left)
        else:
            selected = rule(ascending, found.ability)
        numbers = asked, int(selected.first), int(selected.num_examples)
        return Epoch(epoch, float(found.ability), float(found.standard_error), *numbers)


def _share(rule: str, share: float | None) -> float | None:
    """A share as a number.

    Raises:
        InputError: a share without a filter, a filter without one, or out of range.
    """
    if (share is None) != (rule not in FILTERS):
        wants = "keeps a `share` of the examples: give it" if share is None else "has no `share`"
        raise InputError(f"`rule` {rule} {wants}")
    if share is not None and not 0 < share <= 1:
        raise InputError(f"`share` {share!r:.50}, expected a number above 0, to 1")
    return None if share is None else float(share)


def _percent_correct(rule: str, percent_correct: Any, number: int) -> np.ndarray | None:
    """Shares of right answers as an array.

    Raises:
        InputError: missing where the filter goes by it, of another length, or out of range.
    """
    if percent_correct is None:
        if rule in ("PCUB", "PCLB"):
            raise InputError(f"`rule` {rule} goes by `percent_correct`: give it")
        return None
    found = np.asarray(percent_correct, float)
    if found.shape != (number,) or not ((found >= 0) & (found <= 1)).all():
        raise InputError(f"`percent_correct` {found.shape}, expected ({number},), from 0 to 1")
    return found
