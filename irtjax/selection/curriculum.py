"""Curricula: which training examples in which epoch, by a fixed schedule or by the ability that the network has then.

All epochs of all seeds are one program. It is a loop over epochs of `_epoch`: select examples, train on them, record.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.adaptive import AdaptiveTest
from irtjax.populations.normal import Population
from irtjax.selection.probe import (
    MIN_ITEMS_TO_SAMPLE,
    Estimate,
    RankedItems,
    estimate_ability,
    estimate_ability_from_all,
    rank_items,
)
from irtjax.selection.rules import Range, Rule, required_se, widen
from irtjax.selection.tracking import Tracked, track
from irtjax.training.data import Data, accuracy
from irtjax.training.devices import default_mesh, on_devices
from irtjax.training.trainer import (
    Learner,
    Plan,
    Trainer,
    end_epoch,
    is_training,
    same_plan,
    start,
    train_epoch,
    tree_where,
)
from irtjax.types import AnyArray, Float, Shaped

PROBE_STREAM = 1  # folded into the key of a network to draw the samples that it is asked
MONITOR_STREAM = 2  # folded into it for the tests that monitor the network

OnEpoch = Callable[[np.ndarray, np.ndarray], None]


class History(NamedTuple):
    """What happened in each epoch: (S seeds, E epochs) each, NaN after a seed has stopped early.

    Attributes:
        share: of the training data that was selected, 0 to 1.
        ability: of the network before the epoch, in logits; NaN for a fixed schedule, which does not estimate it.
        examples_used: examples trained on in the epoch, minibatches times their size.
        dev_accuracy: validation accuracy after the epoch.
        test_accuracy: test accuracy after the epoch.
        ability_se: standard error of the ability, in logits. From a sample of the items, it is measured against the
            ability that answers to all items would give; from answers to all items, it follows from their information.
        items_asked: items answered to estimate the ability.
        monitor_ability: after the epoch, as all that follow: ability by an adaptive test on the training examples, in
            logits; NaN without a monitor, as all that follow.
        monitor_ability_se: its standard error.
        monitor_score: predicted accuracy on the training examples.
        monitor_score_se: its standard error, as far as it comes from that of the ability.
        train_accuracy: true accuracy on the training examples.
    """

    share: jax.Array
    ability: jax.Array
    examples_used: jax.Array
    dev_accuracy: jax.Array
    test_accuracy: jax.Array
    ability_se: jax.Array
    items_asked: jax.Array
    monitor_ability: jax.Array
    monitor_ability_se: jax.Array
    monitor_score: jax.Array
    monitor_score_se: jax.Array
    train_accuracy: jax.Array


class _Pacing(NamedTuple):
    """Numbers that a selection depends on, the same for all seeds; None for those that it does not need.

    Attributes:
        shares: (E,) share of the data at each epoch, of a fixed schedule.
        population: for a rule, the prior of a MAP estimate of ability.
        probe_error: for a rule, scalar, standard error of the selected share where a sample gives the ability.
    """

    shares: jax.Array | None
    population: Population | None
    probe_error: jax.Array | None


class _Program(NamedTuple):
    """What is compiled into the program: how to train, the rule (None for a schedule), and the callback."""

    trainer: Trainer
    rule: Rule | None
    on_epoch: OnEpoch | None


class _Problem(NamedTuple):
    """Arrays that no epoch changes."""

    data: Data
    items: RankedItems
    plans: Plan
    pacing: _Pacing
    monitor: AdaptiveTest | None


class _State(NamedTuple):
    """What an epoch leaves to the next one; leading axes of S seeds.

    Attributes:
        learners: networks in training.
        ability: (S,) abilities that were estimated last.
        min_examples: (S,) examples to train on where a rule selects fewer than a minibatch.
        history: the epochs so far.
    """

    learners: Learner
    ability: jax.Array
    min_examples: jax.Array
    history: History


def train_curriculum(
    trainer: Trainer,
    keys: jax.Array,
    data: Data,
    difficulty: Shaped[AnyArray, " N"],
    selection: Float[AnyArray, " E"] | Rule,
    *,
    learning_rate: float,
    population: Population | None = None,
    probe_error: float | None = None,
    on_epoch: OnEpoch | None = None,
    monitor: AdaptiveTest | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> History:
    """Trains one network per key under one strategy; all epochs of all seeds are one jitted program.

    An epoch is one pass over the selected examples: as many whole minibatches as they fill, drawn without replacement.
    It has at least one minibatch, filled by reading the examples again where they are fewer. A fixed schedule selects
    the easiest examples, `selection[t]` of the data at epoch t, rounded up. A rule (`up_to_ability`, `beyond_ability`,
    `Window`) selects by the network's ability θ, which its scored answers to the training examples give.

    A network that answers everything right has θ = +inf by maximum likelihood, one that answers everything wrong -inf.
    Where a rule selects fewer examples than one minibatch, `batch_size` examples about the middle of those are trained
    on instead, and twice as many at each further such epoch: training on a handful of the easiest, often of a single
    class, can leave the ability where it was. A selection of at least a minibatch is followed exactly, even if the
    ability stays the same until early stopping.

    Args:
        trainer: how to train.
        keys: (S,) of initial weights, minibatches and samples.
        data: the splits.
        difficulty: (N,) of the training examples: in logits for a rule, on any scale for a schedule.
        selection: (max_epochs,) share of the data at each epoch, or a rule, which must be hashable.
        learning_rate: of the optimizer.
        population: for a rule, None to estimate ability by maximum likelihood, else the prior of a MAP estimate.
        probe_error: for a rule, standard error of the selected share (0 to 1) for which a sample of the examples is
            large enough to give the ability, see `irtjax.selection.probe`. With None, or where examples are few, all
            of them are asked.
        on_epoch: called from within the program after each epoch, with the epochs completed and the best validation
            accuracies of the seeds on one device.
        monitor: an adaptive test on the training examples, which the networks take after each epoch
            (`irtjax.selection.tracking`). It has no effect on training.
        mesh: devices that seeds are spread over, with the data on each of them; None for the default device.

    Raises:
        InputError: the monitor has another number of items than there are examples, or several dimensions.
    """
    rule, shares = (selection, None) if callable(selection) else (None, jnp.asarray(selection, jnp.float32))
    difficulty = jnp.asarray(difficulty, jnp.float32)
    by_sample = rule is not None and probe_error is not None and difficulty.size >= MIN_ITEMS_TO_SAMPLE
    pacing = _Pacing(shares, population, jnp.float32(probe_error) if by_sample else None)
    if monitor is not None and (monitor.dims > 1 or monitor.num_items != difficulty.size):
        raise InputError(
            f"`monitor` has {monitor.num_items:,} items in D = {monitor.dims}, expected one for each of the "
            f"{difficulty.size:,} training examples in D = 1"
        )
    mesh = default_mesh(1) if mesh is None else mesh
    num_seeds = keys.shape[0]
    filled = keys[jnp.arange(-(-num_seeds // mesh.size) * mesh.size) % num_seeds]
    # by a pass over what is selected
    program = _Program(dataclasses.replace(trainer, steps_per_epoch=None), rule, on_epoch)
    history = _train(program, mesh, filled, data, difficulty, pacing, jnp.float32(learning_rate), monitor)
    return jax.tree.map(lambda table: table[:num_seeds], history)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(
    program: _Program,
    mesh: jax.sharding.Mesh,
    keys: jax.Array,
    data: Data,
    difficulty: jax.Array,
    pacing: _Pacing,
    learning_rate: jax.Array,
    monitor: AdaptiveTest | None = None,
) -> History:
    train = on_devices(functools.partial(_train_seeds, program), mesh, (True, False, False, False, False, False))
    return train(keys, data, difficulty, pacing, learning_rate, monitor)


def _train_seeds(
    program: _Program,
    keys: jax.Array,
    data: Data,
    difficulty: jax.Array,
    pacing: _Pacing,
    learning_rate: jax.Array,
    monitor: AdaptiveTest | None,
) -> History:
    """All epochs of the seeds of one device."""
    items = rank_items(difficulty)
    # by ascending difficulty; each epoch sets how many examples, and from where
    plans = same_plan(keys, items.order, jnp.int32(1), data.train.labels, learning_rate)
    problem = _Problem(data, items, plans, pacing, monitor)
    return jax.lax.while_loop(
        lambda state: is_training(program.trainer, state.learners).any(),
        functools.partial(_epoch, program, problem),
        _start(program.trainer, problem),
    ).history


def _start(trainer: Trainer, problem: _Problem) -> _State:
    """Before the first epoch: the ability is 0, the mean of the crowd, as the network has not been asked yet."""
    num_seeds, num_examples = problem.plans.order.shape
    empty = jnp.full((num_seeds, trainer.max_epochs), jnp.nan)
    return _State(
        learners=jax.vmap(functools.partial(start, trainer), (0, None))(problem.plans, problem.data.given),
        ability=jnp.zeros(num_seeds, jnp.float32),
        min_examples=jnp.full(num_seeds, min(trainer.batch_size, num_examples)),
        history=History(*[empty] * len(History._fields)),
    )


def _epoch(program: _Program, problem: _Problem, state: _State) -> _State:
    """One epoch of the seeds that are still in training; the others stay as they are."""
    trainer, data, plans, learners = program.trainer, problem.data, problem.plans, state.learners
    active = is_training(trainer, learners)
    selected, estimate, min_examples = _select(program, problem, state)
    num_steps = jnp.where(active, jnp.maximum(selected.num_examples // trainer.batch_size, 1), 0)
    # the selected examples come first
    orders = jax.vmap(jnp.roll)(plans.order, -selected.first)
    # a rate that falls does so by epochs, however many minibatches these have
    begun = learners._replace(steps=learners.epoch * num_steps)
    trained = train_epoch(trainer, begun, plans._replace(order=orders, size=selected.num_examples), data, num_steps)
    accuracies = jax.vmap(functools.partial(accuracy, trainer.network), (0, None, None))
    dev_accuracy = accuracies(trained.parameters, data.embeddings, data.validation)
    row = History(
        share=selected.num_examples / problem.items.order.size,
        ability=estimate.ability,
        examples_used=num_steps * trainer.batch_size,
        dev_accuracy=dev_accuracy,
        test_accuracy=accuracies(trained.parameters, data.embeddings, data.test),
        ability_se=estimate.standard_error,
        items_asked=estimate.items_asked,
        **_monitored(trainer, problem, trained)._asdict(),
    )
    history = _record(state.history, row, active, learners.epoch)
    learners = jax.vmap(tree_where)(active, end_epoch(trained, dev_accuracy), learners)
    if program.on_epoch is not None:
        jax.debug.callback(program.on_epoch, learners.epoch, learners.best_accuracy)
    return _State(learners, estimate.ability, min_examples, history)


def _select(program: _Program, problem: _Problem, state: _State) -> tuple[Range, Estimate, jax.Array]:
    """The examples of each seed, the abilities they rest on, and how many to train on when next they are too few."""
    num_seeds, num_examples = problem.plans.order.shape
    if program.rule is None:
        assert problem.pacing.shares is not None  # a schedule or a rule
        count = jnp.ceil(problem.pacing.shares[state.learners.epoch] * num_examples).astype(jnp.int32)
        selected = Range(jnp.zeros_like(count), jnp.clip(count, 1, num_examples))
        unknown = jnp.full(num_seeds, jnp.nan)
        return selected, Estimate(unknown, unknown, jnp.zeros(num_seeds, jnp.int32)), state.min_examples
    estimate = _estimate(program.trainer, program.rule, problem, state)
    selected = jax.vmap(program.rule, (None, 0))(problem.items.ascending, estimate.ability)
    too_few = selected.num_examples < min(program.trainer.batch_size, num_examples)
    wider = jax.vmap(widen, (0, 0, None))(selected, state.min_examples, num_examples)
    selected = jax.tree.map(functools.partial(jnp.where, too_few), wider, selected)
    doubled = jnp.minimum(2 * state.min_examples, num_examples)
    return selected, estimate, jnp.where(too_few, doubled, state.min_examples)


def _estimate(trainer: Trainer, rule: Rule, problem: _Problem, state: _State) -> Estimate:
    """Abilities of the networks, from a sample of the training examples or from all of them."""
    (data, items, _, pacing, _), learners = problem, state.learners
    if pacing.probe_error is None:
        return estimate_ability_from_all(trainer, learners.parameters, data, items.difficulty, pacing.population)
    draws = jax.vmap(lambda key, epoch: jax.random.fold_in(jax.random.fold_in(key, PROBE_STREAM), epoch))
    keys = draws(learners.key, learners.epoch)
    required = functools.partial(required_se, rule, items.ascending, pacing.probe_error)
    return estimate_ability(trainer, required, keys, learners.parameters, data, items, state.ability, pacing.population)


def _monitored(trainer: Trainer, problem: _Problem, learners: Learner) -> Tracked:
    """What the monitor finds of the networks after an epoch; NaN without one."""
    if problem.monitor is None:
        return Tracked(*[jnp.full(learners.epoch.shape, jnp.nan)] * len(Tracked._fields))
    draws = jax.vmap(lambda key, epoch: jax.random.fold_in(jax.random.fold_in(key, MONITOR_STREAM), epoch))
    keys = draws(learners.key, learners.epoch)
    return track(trainer, problem.monitor, keys, learners.parameters, problem.data)


def _record(history: History, row: History, active: jax.Array, epoch: jax.Array) -> History:
    """The history with one more row, (S,) values each, of the seeds that are active."""
    num_seeds, max_epochs = history.share.shape
    # a seed that has stopped writes past the end, which is dropped
    columns = jnp.where(active, epoch, max_epochs)
    return jax.tree.map(
        lambda table, values: table.at[jnp.arange(num_seeds), columns].set(values, mode="drop"), history, row
    )
