"""How networks in training do on a bank of their training examples, from a few adaptive items after each epoch."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.evaluation.adaptive import AdaptiveTest, State
from irtjax.networks import Parameters
from irtjax.training.data import Data, accuracy, take
from irtjax.training.sparse_embeddings import split as split_embeddings
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
