"""How networks in training do on a bank of their training examples, from a few adaptive items after each epoch."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.evaluation.binary_adaptive import AdaptiveTest, State
from irtjax.networks import Parameters
from irtjax.training.data import Data, accuracy, split_embeddings, take
from irtjax.training.step import Trainer


class Tracked(NamedTuple):
    """What adaptive tests found of G networks, (G,) each, and what is true.

    Attributes:
        monitor_ability: in logits.
        monitor_ability_se: its posterior standard deviation.
        monitor_score: predicted accuracy on the training examples, 0 to 1.
        monitor_score_se: its posterior standard deviation.
        train_accuracy: true accuracy on all training examples.
    """

    monitor_ability: jax.Array
    monitor_ability_se: jax.Array
    monitor_score: jax.Array
    monitor_score_se: jax.Array
    train_accuracy: jax.Array


def track(trainer: Trainer, test: AdaptiveTest, keys: jax.Array, parameters: Parameters, data: Data) -> Tracked:
    """Adaptive tests of G networks, each from the population on, and their accuracies on the whole bank.

    Args:
        trainer: of the networks.
        test: its bank are all N training examples in their order, D = 1. It ends after `max_items`.
        keys: (G,) of random draws.
        parameters: of G networks.
        data: the task.
    """

    def of_network(key: jax.Array, parameters: Parameters) -> State:
        network, embeddings = split_embeddings(parameters, data.embeddings)

        def ask(_: int, state: State) -> State:
            item = test.next_item(state)
            logits = trainer.network.logits(network, embeddings, take(data.inputs, item[None], None), None)
            right = logits[0].argmax() == data.train.labels[item]
            return test.update(state, item, right)

        return jax.lax.fori_loop(0, test.stop.max_items, ask, test.init(key))

    found = jax.vmap(of_network)(keys, parameters)
    true = jax.vmap(functools.partial(accuracy, trainer.network), (0, None, None))
    of_bank = true(parameters, data.embeddings, data.train)
    return Tracked(found.ability, found.standard_error, found.score, found.score_error, of_bank.astype(jnp.float32))


def tracking_errors(table: pd.DataFrame) -> pd.DataFrame:
    """How well predicted accuracies follow true ones.

    Args:
        table: columns strategy, seed, epoch, those of `Tracked`, and dev_accuracy.

    Returns:
        By strategy, in the order of the table: `mean_error`, the mean of |predicted - true| over networks and epochs;
        `claimed_error`, the mean posterior standard deviation; and `r_train` and `r_validation`, correlations over the
        epochs of a network with its true accuracies on the training and on the validation examples, mean of the seeds;
        NaN where one of these never changed.
    """

    def correlation(rows: pd.DataFrame, name: str) -> float:
        return float(np.mean([of_seed.monitor_score.corr(of_seed[name]) for _, of_seed in rows.groupby("seed")]))

    found = {
        strategy: {
            "mean_error": (rows.monitor_score - rows.train_accuracy).abs().mean(),
            "claimed_error": rows.monitor_score_se.mean(),
            "r_train": correlation(rows, "train_accuracy"),
            "r_validation": correlation(rows, "dev_accuracy"),
        }
        for strategy, rows in table.groupby("strategy", sort=False)
    }
    return pd.DataFrame.from_dict(found, orient="index")
