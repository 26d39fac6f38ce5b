"""DDaCLAE and other curricula: which training examples in which epoch (Lalor and Yu 2020; dissertation, chapter 6).

Dynamic data selection for curriculum learning by ability estimation. In each epoch, `_Curriculum.epoch`:

1. estimate the network's ability θ from its right and wrong answers to training examples;
2. select the examples that it is ready for, b ≤ θ;
3. train on them;
4. record what happened.

Other rules select other examples. A fixed schedule estimates nothing, and selects the easiest, more in each epoch.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.networks import Network
from irtjax.populations.normal import Population
from irtjax.selection.filtering import within_classes
from irtjax.selection.history import History, empty_history, recorded
from irtjax.selection.probe import (
    MIN_ITEMS_TO_SAMPLE,
    Estimate,
    RankedItems,
    Subjects,
    estimate_ability,
    estimate_ability_from_all,
    rank_items,
)
from irtjax.selection.recalls import geometric_mean_of_recalls
from irtjax.selection.rules import Range, Rule, at_least_a_minibatch, required_se
from irtjax.selection.schedules import examples_in_epochs
from irtjax.selection.tracking import Tracked, track
from irtjax.training import loop
from irtjax.training.data import Data, EvaluationSplit, accuracy, classify
from irtjax.training.loop import Learner, OnEpoch, Plan, same_plan
from irtjax.training.step import Trainer
from irtjax.types import AnyArray, Float, Shaped

# Folded into the key of a network to draw the samples that it is asked, and for the tests that monitor it. They are
# beyond any epoch: epochs are folded into the same key, to draw minibatches.
PROBE_STREAM, MONITOR_STREAM = np.uint32(2**31 + 1), np.uint32(2**31 + 2)


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
    floor: bool = True,
    by_class: bool = False,
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
    class, can leave the ability where it was. The algorithm of the study has no such floor: without `floor`, what is
    selected is trained on, however little, and nothing in an epoch that selects nothing. A selection of at least a
    minibatch is followed exactly, even if the ability stays the same until early stopping.

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
        on_epoch: called after each epoch with the epochs completed and the best validation accuracies, (S,) each. Then
            each epoch is a call of the program.
        monitor: an adaptive test on the training examples, which the networks take after each epoch
            (`irtjax.selection.tracking`). It has no effect on training.
        floor: for a rule, whether there is a least number of examples, see above.
        by_class: whether as many examples are taken as are selected, but of each class its share, those of a class in
            ascending order of difficulty (balanced curricula: Lalor 2020, section 6.5).
        mesh: devices that seeds are spread over, with the data on each of them; None for the default device.

    Raises:
        InputError: not one difficulty for each training example; not one share from 0 to 1 for each epoch; data with a
            split of their own to stop on; or the monitor has another number of items than there are examples, or
            several dimensions.
    """
    _require_fitting(data, np.shape(difficulty), monitor)
    num_examples = len(data.train.labels)
    difficulty = jnp.asarray(difficulty, jnp.float32)
    if callable(selection):
        rule, counts = selection, None
    else:
        rule, counts = None, jnp.asarray(examples_in_epochs(selection, trainer.max_epochs, num_examples))
    by_sample = rule is not None and probe_error is not None and difficulty.size >= MIN_ITEMS_TO_SAMPLE
    items = rank_items(difficulty)
    order = within_classes(items.order, data.train.labels) if by_class else items.order
    problem = _Problem(
        data,
        items,
        jnp.asarray(order),
        jnp.float32(learning_rate),
        counts,
        population,
        jnp.float32(probe_error) if by_sample else None,
        monitor,
    )
    num_classes = int(np.max(data.test.labels)) + 1  # classes after these have no test example, and so no recall
    return loop.train(_Curriculum(trainer, rule, floor, num_classes), keys, problem, mesh, on_epoch)


def _require_fitting(data: Data, shape: tuple[int, ...], monitor: AdaptiveTest | None) -> None:
    """Refuses difficulties of a shape, or a monitor, that are not of the training examples."""
    num_examples = len(data.train.labels)
    if shape != (num_examples,):
        raise InputError(
            f"`difficulty` has the shape {shape}, expected ({num_examples},): one number for each training example"
        )
    if data.stop_on is not None:
        raise InputError("`data` has a split to stop on: curricula stop by the validation split, leave `stop_on` out")
    if monitor is not None and (monitor.dims > 1 or monitor.num_items != num_examples):
        raise InputError(
            f"`monitor` has {monitor.num_items:,} items in D = {monitor.dims}, expected one for each of the "
            f"{num_examples:,} training examples in D = 1"
        )


class _Problem(NamedTuple):
    """Arrays that no epoch changes.

    Attributes:
        data: the task.
        items: its training examples by ascending difficulty.
        order: (N,) the examples in the order of which what is selected is a range.
        learning_rate: of all networks.
        counts: (E,) how many of the easiest to train on at each epoch, of a fixed schedule; None for a rule.
        population: for a rule, the prior of a MAP estimate of ability; None for maximum likelihood.
        probe_error: standard error of the selected share for which a sample gives the ability; None to ask all items.
        monitor: the test that networks take after each epoch, if any.
    """

    data: Data
    items: RankedItems
    order: jax.Array
    learning_rate: jax.Array
    counts: jax.Array | None
    population: Population | None
    probe_error: jax.Array | None
    monitor: AdaptiveTest | None


class _Memory(NamedTuple):
    """What an epoch leaves to the next one, beside the networks; leading axes of S seeds.

    Attributes:
        ability: (S,) abilities that were estimated last.
        min_examples: (S,) examples to train on where a rule selects fewer than a minibatch.
        history: the epochs so far.
    """

    ability: jax.Array
    min_examples: jax.Array
    history: History


@dataclasses.dataclass(frozen=True)
class _Curriculum:
    """A `training.loop.Program`: how to train, the rule (None for a schedule), the floor of a rule, classes."""

    trainer: Trainer
    rule: Rule | None
    floor: bool
    num_classes: int

    def begin(self, problem: _Problem, keys: jax.Array) -> tuple[Learner, _Memory]:
        """The networks; abilities are 0, the mean of the crowd, as no network has been asked yet."""
        num_seeds, num_examples = keys.shape[0], problem.items.order.size
        start = functools.partial(loop.start, self.trainer)
        memory = _Memory(
            ability=jnp.zeros(num_seeds, jnp.float32),
            min_examples=jnp.full(num_seeds, min(self.trainer.batch_size, num_examples)),
            history=empty_history(num_seeds, self.trainer.max_epochs),
        )
        return jax.vmap(start, (0, None))(_plans(problem, keys), problem.data.initial), memory

    def epoch(
        self, problem: _Problem, learners: Learner, memory: _Memory, active: jax.Array
    ) -> tuple[Learner, jax.Array, _Memory]:
        """Estimate, select, train, record."""
        trainer, data = self.trainer, problem.data
        estimate = _estimate(self, problem, learners, memory, active)
        selected, min_examples = _select(self, problem, learners, memory, estimate)
        trains = active & (selected.num_examples > 0)
        num_steps = jnp.where(trains, jnp.maximum(selected.num_examples // trainer.batch_size, 1), 0)
        trained = loop.train_epoch(trainer, learners, _plans(problem, learners.key, selected), data, num_steps)
        by_network = (0, None, None)
        validate = jax.vmap(functools.partial(accuracy, trainer.network), by_network)
        dev_accuracy = validate(trained.parameters, data.embeddings, data.validation)
        test = jax.vmap(functools.partial(_tested, trainer.network, self.num_classes), by_network)
        test_accuracy, geometric_mean = test(trained.parameters, data.embeddings, data.test)
        row = History(
            share=selected.num_examples / problem.items.order.size,
            ability=estimate.ability,
            examples_used=num_steps * trainer.batch_size,
            dev_accuracy=dev_accuracy,
            test_accuracy=test_accuracy,
            test_geometric_mean=geometric_mean,
            ability_se=estimate.standard_error,
            items_asked=estimate.items_asked,
            **_monitored(trainer, problem, trained)._asdict(),
        )
        history = recorded(memory.history, row, active, learners.epoch)
        ability = jnp.where(active, estimate.ability, memory.ability)
        min_examples = jnp.where(active, min_examples, memory.min_examples)
        return trained, dev_accuracy, _Memory(ability, min_examples, history)

    def end(self, problem: _Problem, learners: Learner, memory: _Memory) -> History:
        """What happened."""
        return memory.history


def _plans(problem: _Problem, keys: jax.Array, selected: Range | None = None) -> Plan:
    """Examples in their order, those that are selected first; None before any are."""
    plans = same_plan(keys, problem.order, jnp.int32(1), problem.data.train.labels, problem.learning_rate)
    if selected is None:
        return plans
    return plans._replace(order=jax.vmap(jnp.roll)(plans.order, -selected.first), size=selected.num_examples)


def _estimate(
    program: _Curriculum, problem: _Problem, learners: Learner, memory: _Memory, active: jax.Array
) -> Estimate:
    """Abilities of the networks, from a sample of the training examples or from all of them; NaN for a schedule."""
    trainer, rule, items = program.trainer, program.rule, problem.items
    if rule is None:
        unknown = jnp.full(learners.epoch.shape, jnp.nan)
        return Estimate(unknown, unknown, jnp.zeros(learners.epoch.shape, jnp.int32))
    if problem.probe_error is None:
        return estimate_ability_from_all(
            trainer, learners.parameters, problem.data, items.difficulty, problem.population
        )
    subjects = Subjects(_draws(learners, PROBE_STREAM), learners.parameters, memory.ability, active)
    required = functools.partial(required_se, rule, items.ascending, problem.probe_error)
    return estimate_ability(trainer, required, subjects, problem.data, items, problem.population)


def _select(
    program: _Curriculum, problem: _Problem, learners: Learner, memory: _Memory, estimate: Estimate
) -> tuple[Range, jax.Array]:
    """The examples of each seed, and how many to train on when next they are too few."""
    if program.rule is None:
        assert problem.counts is not None  # a schedule or a rule
        count = problem.counts[learners.epoch]
        return Range(jnp.zeros_like(count), count), memory.min_examples
    if not program.floor:
        select_alone = jax.vmap(program.rule, (None, 0))
        return select_alone(problem.items.ascending, estimate.ability), memory.min_examples
    select = jax.vmap(at_least_a_minibatch, (None, None, 0, 0, None))
    return select(
        program.rule, problem.items.ascending, estimate.ability, memory.min_examples, program.trainer.batch_size
    )


def _tested(
    network: Network, num_classes: int, parameters: Any, embeddings: AnyArray | None, split: EvaluationSplit
) -> tuple[jax.Array, jax.Array]:
    """Accuracy of a network on a split, and the geometric mean of its recalls."""
    right = classify(network, parameters, embeddings, split) == split.labels
    return right.mean(), geometric_mean_of_recalls(right, split.labels, num_classes)


def _monitored(trainer: Trainer, problem: _Problem, learners: Learner) -> Tracked:
    """What the monitor finds of the networks after an epoch; NaN without one."""
    if problem.monitor is None:
        return Tracked(*[jnp.full(learners.epoch.shape, jnp.nan)] * len(Tracked._fields))
    return track(trainer, problem.monitor, _draws(learners, MONITOR_STREAM), learners.parameters, problem.data)


def _draws(learners: Learner, stream: np.uint32) -> jax.Array:
    """A key of each network for one purpose in one epoch."""
    return jax.vmap(lambda key, epoch: jax.random.fold_in(jax.random.fold_in(key, stream), epoch))(
        learners.key, learners.epoch
    )
