"""Computerised adaptive tests as pure functions: each item is chosen by the answers before it.

    test = adaptive_test(bank, rule="variance", stop=Stop(max_items=50, standard_error=0.2))
    state = test.init(jax.random.key(0))
    while not test.finished(state):
        item = test.next_item(state)
        state = test.update(state, item, answer_to(item))

An `AdaptiveTest` is a pytree that holds the bank, tables and rules; a `State` is one of a subject. All methods can be
jitted, `jax.jit(AdaptiveTest.update)`, and vmapped over states. `irtjax.evaluation.replay` runs whole tests of many
subjects.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.ability import Unseen, in_space, on_line, precision_at, share_right
from irtjax.evaluation.adaptive_options import (
    REASONS as REASONS,
)
from irtjax.evaluation.adaptive_options import (
    Band,
    Progressive,
    Randomesque,
    Stop,
    checked,
    first_items,
    grouped,
)
from irtjax.evaluation.bank_tables import Tables, tables_of
from irtjax.evaluation.choice import NO_ITEM, Design, Remaining, choose_item
from irtjax.evaluation.item_bank import graded_bank, item_bank
from irtjax.evaluation.rules import READ_RIGHT, RULES, Knowledge
from irtjax.evaluation.scaled_adaptive import scaled_adaptive_test
from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_nodes import LineNodes, even_nodes, line_nodes
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
            return (remaining.without(item[None], self.design) if number > 1 else remaining), item

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


def adaptive_test(
    bank: Any,
    *,
    rule: str = "information",
    ability: str = "eap",
    population: Population | None = None,
    stop: Stop,
    exposure: Randomesque | Progressive | None = None,
    groups: Sequence[Any] | np.ndarray | None = None,
    quotas: Mapping[Any, float] | None = None,
    start: Band | Sequence[int] | np.ndarray | None = None,
    num_nodes: int | None = None,
    trials: Any = None,
) -> Any:
    """A computerised adaptive test.

    Items with grades, counts or shares are those of `irtjax.evaluation.scaled_adaptive`: by the rules "information" and
    "random", scored by the posterior mean, without exposure control, groups and starts.

    Args:
        bank: parameters of I items, 1PL to 4PL, or in D > 1 dimensions. Their dtype is that of the test; float32 does.
            Or what `irtjax.score` takes: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of
            one, in whose order the positions of items are.
        rule: how the next item is chosen (`irtjax.evaluation.rules`): "information", the largest Fisher information at
            the ability; "variance", the smallest expected posterior variance of the ability; "score", that of the
            predicted score, the mean probability of a right answer over the bank; "kl" and "kl_posterior",
            Kullback-Leibler information in an interval around the ability, or weighted by the posterior; "determinant",
            D-optimality, the rule for D > 1; or "random".
        ability: "eap", the posterior mean; "map", its mode; or "ml", maximum likelihood. This is replaced by the
            posterior mean as long as there is no maximum within 6 standard deviations of the population, as while all
            answers are alike; with D > 1, by the posterior mode as long as it is not finite.
        population: normal distribution of ability, the same for each dimension; by default that of a fit, else the
            standard normal.
        stop: when a test ends.
        exposure: None, the best item; or `Randomesque`, `Progressive`.
        groups: (I,) of each item, such as its content; None for one group.
        quotas: share of each group in a test; a group without one is not asked. By default their shares of the bank.
            The group that is most behind its quota is asked next (Kingsbury and Zara 1989).
        start: None, the first item is chosen by the rule at the population's mean; a `Band` of difficulties; or
            positions of items that are asked first, in this order.
        num_nodes: Q, equally spaced; by default nodes for every posterior that the bank can lead to in `max_items`
            answers (`irtjax.kernels.ability_nodes.line_nodes`). Tables take 8 or 12 bytes for each item and node.
        trials: of a response to each item that is a count; a number, or (I,).

    Returns:
        An `AdaptiveTest`; of items with grades, counts or shares a `ScaledAdaptiveTest`.

    Raises:
        InputError: items that cannot be read, an empty bank, an item whose parameters are not finite, an unknown
            rule or method, one that is not for so many dimensions, more items than the bank has, quotas that do not sum
            to 1 or are of unknown groups.
    """
    graded = graded_bank(bank, population)
    if graded is not None:
        settings = {"exposure": exposure, "groups": groups, "quotas": quotas, "start": start, "num_nodes": num_nodes}
        given = [name for name, value in settings.items() if value is not None]
        if ability != "eap" or given:
            wrong = given[0] if given else f"ability={ability}"
            raise InputError(f"`{wrong}`: tests of items with grades, counts or shares do not have it: leave it out")
        return scaled_adaptive_test(*graded, rule=rule, stop=stop, trials=trials)
    if trials is not None:
        raise InputError("`trials` are of counts, and these items are right or wrong: leave it out")
    _, bank, population = item_bank(bank, population)
    bank = checked(bank, rule, ability, population, stop, exposure, num_nodes)
    which, shares = grouped(len(bank.intercept), groups, quotas, stop.max_items)
    first, in_band = first_items(bank, start, stop.max_items)
    dtype, mean, sd = jnp.asarray(bank.slope).dtype, float(population.mean), float(population.sd)
    line = LineNodes(np.zeros(0), np.zeros(0), np.zeros(0))
    if bank.slope.shape[1] == 1:
        line = even_nodes(num_nodes, mean, sd) if num_nodes else line_nodes(bank, stop.max_items, mean, sd)
    return AdaptiveTest(
        tables=tables_of(bank, line, sd, rule in READ_RIGHT),
        log_prior=jnp.asarray(line.log_weights, dtype),
        population=Population(*(jnp.asarray(x, dtype) for x in population)),
        design=Design(
            jnp.asarray(which, jnp.int32),
            jnp.asarray(shares, dtype),
            jnp.asarray(first, jnp.int32),
            jnp.asarray(in_band),
        ),
        rule=rule,
        method=ability,
        stop=stop,
        exposure=exposure,
    )
