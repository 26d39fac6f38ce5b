"""Whole adaptive tests of many subjects at once, over recorded answers or over answers drawn from the model."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.evaluation.adaptive_options import REASONS
from irtjax.evaluation.binary_adaptive import AdaptiveTest, State
from irtjax.evaluation.choice import NO_ITEM
from irtjax.kernels.loops import at_once
from irtjax.kernels.models import probabilities
from irtjax.types import AnyArray, Float, Int

BATCH = 256  # subjects at a time: a criterion for all of them and 5,000 items takes 5 MB

Answer = Callable[[AdaptiveTest, Any, jax.Array, jax.Array], jax.Array]


class Replayed(NamedTuple):
    """Tests of J subjects, of at most K items; after its last item a subject has -1 and NaN.

    Attributes:
        items: (J, K) positions in the bank, in the order in which they were asked.
        answers: (J, K) 1 right, 0 wrong.
        ability: (J, K) after each answer, in logits; (J, K, D) with D > 1.
        standard_error: (J, K) or (J, K, D) of these.
        score: (J, K) predicted share right over the whole bank after each answer, the answers included.
        score_error: (J, K) its posterior standard deviation.
        number: (J,) how many items were asked.
        reason: (J,) why the test ended, as positions in `irtjax.evaluation.adaptive_options.REASONS`.
    """

    items: AnyArray
    answers: AnyArray
    ability: AnyArray
    standard_error: AnyArray
    score: AnyArray
    score_error: AnyArray
    number: AnyArray
    reason: AnyArray

    def reasons(self) -> list[str]:
        """Why each test ended: "max_items", "standard_error", "score_error", "change" or "no_items"."""
        return [REASONS[code] for code in self.reason]

    def last(self) -> tuple[AnyArray, AnyArray]:
        """Abilities and standard errors at the end, (J,) or (J, D); NaN where no item was asked."""
        rows, end = np.arange(len(self.number)), np.maximum(self.number - 1, 0)
        return self.ability[rows, end], self.standard_error[rows, end]


@checks_types
def replay(
    test: AdaptiveTest,
    values: Int[AnyArray, "J I"],
    key: jax.Array,
    *,
    at_a_time: int = 1,
) -> Replayed:
    """Adaptive tests over recorded answers; an item whose answer is missing is never asked of that subject.

    Args:
        test: of I items.
        values: (J, I) 1 right, 0 wrong, negative missing.
        key: of the random draws; subjects have keys of their own.
        at_a_time: items that are asked together (`AdaptiveTest.next_items`).

    Raises:
        InputError: the matrix has another number of items than the bank.
    """
    values = np.asarray(values)
    if values.ndim != 2 or values.shape[1] != test.num_items:
        raise InputError(f"`values` of shape {values.shape}, expected (subjects, {test.num_items:,}), as the bank has")
    return _in_batches(_recorded, test, np.clip(values, -1, 1).astype(np.int8), key, at_a_time)


@checks_types
def simulate(
    test: AdaptiveTest,
    theta: Float[AnyArray, " J *dims"],
    key: jax.Array,
) -> Replayed:
    """Adaptive tests with answers that are drawn from the model of the bank.

    Args:
        test: of I items.
        theta: (J,) true abilities, in logits; (J, D) with D > 1.
        key: of answers and of other random draws; subjects have keys of their own.

    Raises:
        InputError: abilities of another number of dimensions than the bank.
    """
    theta = np.asarray(theta)
    wide = theta[:, None] if theta.ndim == 1 else theta
    if wide.ndim != 2 or wide.shape[1] != test.dims:
        raise InputError(f"`theta` of shape {theta.shape}, expected one ability a subject, in {test.dims} dimensions")
    return _in_batches(_drawn, test, wide.astype(test.tables.items.slope.dtype), key)


def _recorded(test: AdaptiveTest, row: jax.Array, items: jax.Array, key: jax.Array) -> jax.Array:
    return row[items]


def _drawn(test: AdaptiveTest, theta: jax.Array, items: jax.Array, key: jax.Array) -> jax.Array:
    chosen = test.tables.items.take(items)
    right = probabilities(chosen, theta[None, :])[0][0]
    return (jax.random.uniform(key, right.shape, right.dtype) < right).astype(jnp.int8)


def _in_batches(
    answer: Answer,
    test: AdaptiveTest,
    subjects: np.ndarray,
    key: jax.Array,
    at_a_time: int = 1,
) -> Replayed:
    """Runs the tests of all subjects, filled up to whole batches, which share a program."""
    number = len(subjects)
    whole_number("at_a_time", at_a_time, 1, test.stop.max_items)
    size = min(at_once(BATCH, test.num_items), max(number, 1))
    more = -number % size if number else 1
    padded = np.concatenate([subjects, np.full((more, *subjects.shape[1:]), -1, subjects.dtype)])
    keys = jax.random.split(key, max(len(padded), 1))
    # no batch waits for the one before: XLA may work on several at a time
    parts = [
        _one_batch(answer, at_a_time, test, padded[at : at + size], keys[at : at + size])
        for at in range(0, max(number, 1), size)
    ]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *parts)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _one_batch(answer: Answer, at_a_time: int, test: AdaptiveTest, subjects: jax.Array, keys: jax.Array) -> Replayed:
    """Tests of B subjects, in step, until the last has ended; a subject whose test is over is asked no item."""
    steps = -(-test.stop.max_items // at_a_time)

    def begin(subject: jax.Array, key: jax.Array) -> State:
        return test.init(key, subject >= 0 if answer is _recorded else None)

    def step(state: State, subject: jax.Array, over: jax.Array) -> State:
        items = jnp.where(over, NO_ITEM, test.next_items(state, at_a_time))
        key = jax.random.fold_in(jax.random.fold_in(state.key, state.number), 2)
        return test.update(state, items, answer(test, subject, items, key))

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        at, states, over, traces = carry
        states = jax.vmap(step)(states, subjects, over)
        seen = states.ability, states.standard_error, states.score, states.score_error
        traces = jax.tree.map(lambda trace, value: trace.at[at].set(value), traces, seen)
        return at + 1, states, jax.vmap(test.finished)(states), traces

    states = jax.vmap(begin)(subjects, keys)
    seen = states.ability, states.standard_error, states.score, states.score_error
    traces = jax.tree.map(lambda value: jnp.full((steps, *value.shape), jnp.nan, value.dtype), seen)
    start = jnp.zeros((), jnp.int32), states, jax.vmap(test.finished)(states), traces
    _, states, _, traces = jax.lax.while_loop(lambda carry: ~carry[2].all(), body, start)

    asked = jnp.arange(test.stop.max_items)[None, :] < states.number[:, None]

    def by_item(trace: jax.Array) -> jax.Array:
        each = jnp.moveaxis(jnp.repeat(trace, at_a_time, axis=0)[: test.stop.max_items], 0, 1)
        return jnp.where(asked.reshape(asked.shape + (1,) * (each.ndim - 2)), each, jnp.nan)

    reason = jax.vmap(test.reason)(states)
    ability, error, score, score_error = (by_item(trace) for trace in traces)
    return Replayed(states.items, states.answers, ability, error, score, score_error, states.number, reason)
