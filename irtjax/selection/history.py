"""What happened in each epoch of curricula."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class History(NamedTuple):
    """What happened in each epoch: (S seeds, E epochs) each, NaN after a seed has stopped early.

    Attributes:
        share: of the training data that was selected, 0 to 1.
        ability: of the network before the epoch, in logits; NaN for a fixed schedule, which does not estimate it.
        examples_used: examples trained on in the epoch, minibatches times their size.
        dev_accuracy: validation accuracy after the epoch.
        test_accuracy: test accuracy after the epoch.
        test_geometric_mean: of the recalls of the classes, on the test split after the epoch
            (`irtjax.selection.recalls`).
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
    test_geometric_mean: jax.Array
    ability_se: jax.Array
    items_asked: jax.Array
    monitor_ability: jax.Array
    monitor_ability_se: jax.Array
    monitor_score: jax.Array
    monitor_score_se: jax.Array
    train_accuracy: jax.Array


def empty_history(num_seeds: int, num_epochs: int) -> History:
    """A history of no epochs yet: NaN everywhere."""
    return History(*[jnp.full((num_seeds, num_epochs), jnp.nan)] * len(History._fields))


def recorded(history: History, row: History, active: jax.Array, epoch: jax.Array) -> History:
    """The history with one more row, (S,) values each, of the seeds that are active.

    Args:
        history: so far.
        row: of this epoch.
        active: (S,) seeds that have not stopped.
        epoch: (S,) from 0.
    """
    num_seeds, max_epochs = history.share.shape
    # a seed that has stopped writes past the end, which is dropped
    columns = jnp.where(active, epoch, max_epochs)
    return jax.tree.map(
        lambda table, values: table.at[jnp.arange(num_seeds), columns].set(values, mode="drop"), history, row
    )
