"""Computerised adaptive tests of right and wrong answers as pure functions: each item is chosen by those before it.

    test = adaptive_test(bank, rule="variance", stop=Stop(max_items=50, standard_error=0.2))
    state = test.init(jax.random.key(0))
    while not test.finished(state):
        item = test.next_item(state)
        state = test.update(state, item, answer_to(item))

An `AdaptiveTest` is a pytree that holds the bank, tables and rules; a `State` is one of a subject. All methods can be
jitted, `jax.jit(AdaptiveTest.update)`, and vmapped over states. `irtjax.evaluation.adaptive`
has `adaptive_test`, and `irtjax.evaluation.replay` runs whole tests of many subjects.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.evaluation.ability import Unseen, in_space, on_line, precision_at, share_right
from irtjax.evaluation.adaptive_options import Progressive, Randomesque, Stop
from irtjax.evaluation.bank_tables import Tables
from irtjax.evaluation.choice import NO_ITEM, Design, Remaining, choose_item
from irtjax.evaluation.rules import RULES, Knowledge
from irtjax.kernels.ability import Ability
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.precision import in_full_precision
from irtjax.populations.normal import Population
from irtjax.types import AnyArray, Bool, Float, Int, Shaped


class State(NamedTuple):
    """A subject in the course of a test of I items, at most K of them asked.

    Attributes:
        key: of the random draws; each choice has its own, by the number of items before it.
        items: (K,) int32 items that were asked, in order; -1 where there is none yet.
        answers: (K,) int8 to them: 1 right, 0 wrong, -1 none.
        remaining: how many were asked, and which items may still be.
        log_posterior: (Q,) of the nodes, normalised; (0,) with D > 1.
        ability: in logits; (D,) with D > 1.
        standard_error: in logits; (D,) with D > 1.
        unseen: what the items without an answer add to the score, at the nodes.
        score: posterior mean of the share right over the whole bank, the answers so far included; NaN with D > 1.
        score_error: its posterior standard deviation, the noise of unseen answers included.
        change: of the ability by the last answers, the largest over dimensions; infinite at first.
    """

    key: jax.Array
    items: jax.Array
    answers: jax.Array
    remaining: Remaining
    log_posterior: jax.Array
    ability: jax.Array
    standard_error: jax.Array
    unseen: Unseen
    score: jax.Array
    score_error: jax.Array
    change: jax.Array

    @property
    def number(self) -> jax.Array:
        """How many items were asked."""
        return self.remaining.number


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AdaptiveTest:
    """An adaptive test; `adaptive_test` makes it. Arrays are traced, settings are static.

    Attributes:
        tables: the bank, and what its rule looks up.
        log_prior: (Q,) logarithms of the population's weights of the nodes; (0,) with D > 1.
        population: mean and standard deviation.
        design: quotas and starts.
        rule: a name of `irtjax.evaluation.rules.RULES`.
        method: "eap", "map" or "ml".
        stop: when it ends.
        exposure: how far it strays from the best item.
    """

    tables: Tables
    log_prior: Any  # an array, or what JAX puts in the place of one
    population: Population
    design: Design
    rule: str = dataclasses.field(metadata={"static": True})
    method: str = dataclasses.field(metadata={"static": True})
    stop: Stop = dataclasses.field(metadata={"static": True})
    exposure: Randomesque | Progressive | None = dataclasses.field(metadata={"static": True})

    @property
    def num_items(self) -> int:
        """I, of the bank."""
        return self.tables.items.intercept.size

    @property
    def num_nodes(self) -> int:
        """Q, 0 with D > 1."""
        return self.tables.nodes.size

    @property
    def dims(self) -> int:
        """D."""
        return self.tables.items.slope.shape[1]

    def init(self, key: jax.Array, available: Bool[AnyArray, " I"] | None = None) -> State:
        """The state before the first item, at the population's mean.

        Args:
            key: of the random draws.
            available: (I,) items that may be asked of this subject; None for all.
        """
        groups, quotas = self.design.groups, self.design.quotas
        possible = (quotas > 0)[groups]
        possible = possible if available is None else possible & available
        none, dtype = jnp.zeros(quotas.shape, jnp.int32), self.tables.items.slope.dtype
        shape = () if self.dims == 1 else (self.dims,)
        ability, error = (jnp.full(shape, x, dtype) for x in self.population)
        unseen = Unseen(self.num_items * self.tables.score, self.num_items * self.tables.noise)
        score, score_error = share_right(self.log_prior, none.sum(), unseen, self.num_items)
        return State(
            key=key,
            items=jnp.full(self.stop.max_items, NO_ITEM, jnp.int32),
            answers=jnp.full(self.stop.max_items, -1, jnp.int8),
            remaining=Remaining(
                jnp.zeros((), jnp.int32), possible, none, none.at[groups].add(possible.astype(jnp.int32))
            ),
            log_posterior=self.log_prior,
            ability=ability,
            standard_error=error,
            unseen=unseen,
            score=score,
            score_error=score_error,
            change=jnp.full((), jnp.inf, dtype),
        )

    def next_item(self, state: State) -> Int[jax.Array, ""]:
        """Position of the item to ask next; -1 if all that may be asked were, or `max_items`.

        Whether the test is over is another question: `finished`.
        """
        return self.next_items(state, 1)[0]

    def next_items(self, state: State, number: int) -> Int[jax.Array, " K"]:
        """Positions of the next `number` items, to be asked together: the best by what is known now; -1 for none.

        Quotas, starts and exposure control go on from item to item as if they were asked one by one. What the answer
        to one item would tell about the worth of another is not foreseen.
        """
        gain = self.gain(state)

        def pick(remaining: Remaining, _: None) -> tuple[Remaining, jax.Array]:
            key = jax.random.fold_in(jax.random.fold_in(state.key, remaining.number), 1)
            item = choose_item(gain, remaining, self.design, self.exposure, self.stop.max_items, key)
            return remaining.without(item[None], self.design), item

        if number == 1:  # a loop would copy what remains
            return pick(state.remaining, None)[1][None]
        return jax.lax.scan(pick, state.remaining, None, length=number)[1]

    @in_full_precision
    def update(
        self,
        state: State,
        item: Int[AnyArray, "*k"] | np.integer | int,
        answer: Shaped[AnyArray, "*k"] | np.generic | int | bool,
    ) -> State:
        """The state after an answer, or after k answers to k items.

        Args:
            state: before.
            item: position of an item; -1 for none, which changes nothing.
            answer: 1 right, 0 wrong; negative for no answer, which tells nothing, and the item is not asked again.
        """
        items = jnp.atleast_1d(jnp.asarray(item, jnp.int32))
        answers = jnp.atleast_1d(jnp.asarray(answer)).astype(jnp.int8)
        real = items >= 0
        places = jnp.where(real, state.number + jnp.cumsum(real) - 1, self.stop.max_items)
        asked, given = (
            old.at[places].set(new, mode="drop") for old, new in ((state.items, items), (state.answers, answers))
        )
        log_posterior, unseen, tables = state.log_posterior, state.unseen, self.tables
        if self.dims == 1:
            right, wrong = ((real & (answers == y))[:, None] for y in (1, 0))
            told = jnp.where(right, tables.log_right[items], jnp.where(wrong, tables.log_wrong[items], 0))
            log_posterior = log_posterior + told.sum(axis=0)
            log_posterior -= jax.nn.logsumexp(log_posterior)
            p, q = (jnp.where(right | wrong, jnp.exp(x[items]), 0) for x in (tables.log_right, tables.log_wrong))
            unseen = unseen.without(p, q, self.num_items - (given >= 0).sum())
        ability, error = self._ability(log_posterior, asked, given)
        score, score_error = share_right(log_posterior, (given == 1).sum(), unseen, self.num_items)
        return State(
            key=state.key,
            items=asked,
            answers=given,
            remaining=state.remaining.without(items, self.design),
            log_posterior=log_posterior,
            ability=ability,
            standard_error=error,
            unseen=unseen,
            score=score,
            score_error=score_error,
            change=jnp.where(real.any(), jnp.abs(ability - state.ability).max(), state.change),
        )

    def reason(self, state: State) -> Int[jax.Array, ""]:
        """Why the test is over, as a position in `REASONS`; 0 while it is not."""
        enough, never = state.number >= self.stop.min_items, jnp.zeros((), bool)

        def within(value: jax.Array, limit: float | None) -> jax.Array:
            return never if limit is None else enough & (value <= limit).all()

        met = jnp.stack(
            [
                state.number >= self.stop.max_items,
                within(state.standard_error, self.stop.standard_error),
                within(state.score_error, self.stop.score_error),
                within(state.change, self.stop.change),
                state.remaining.left.sum() <= 0,
            ]
        )
        return jnp.where(met.any(), jnp.argmax(met) + 1, 0).astype(jnp.int8)

    def finished(self, state: State) -> Bool[jax.Array, ""]:
        """Whether the test is over."""
        return self.reason(state) > 0

    def gain(self, state: State) -> Float[AnyArray, " I"]:
        """The criterion of the rule for each item of the bank, asked or not."""
        ability, precision = jnp.reshape(state.ability, (self.dims,)), jnp.zeros((0, 0))
        if self.rule == "determinant":
            precision = precision_at(ability, self._choose(state.items), self.population, state.answers)
        known = Knowledge(ability, jnp.exp(state.log_posterior), state.number, precision)
        key = jax.random.fold_in(jax.random.fold_in(state.key, state.number), 0)
        return RULES[self.rule](self.tables, known, key)

    def _ability(self, log_posterior: jax.Array, items: jax.Array, answers: jax.Array) -> Ability:
        if self.dims > 1:
            return in_space(self.method, self._choose(items), self.population, answers)
        return on_line(self.method, self.tables, self.population, self.log_prior, log_posterior, items, answers)

    def _choose(self, items: jax.Array) -> ItemParameters:
        """Parameters of some items; of no item those of the last."""
        return self.tables.items.take(items)
