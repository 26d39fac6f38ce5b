"""How far the probabilities that networks give to classes are from how people divide over them.

    KL_i = Σ_y p_i(y) (log p_i(y) - log q_i(y))

with people's shares p_i of item i and a network's softmax output q_i, in nats. No class has q_i(y) = 0, so nothing is
added. Shares of n answers are off by chance: even the true shares have a mean KL of about (C - 1) / 2n, the same for
every network.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, xlogy

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int

MOST_LOG_TEMPERATURE = float(np.log(100))


class Calibration(NamedTuple):
    """Of S networks on I items.

    Attributes:
        kl: (S, I) KL(people ‖ network), in nats.
        temperature: (S,) the one that brings the mean KL of a network to its least: above 1, it was too sure; 100 at
            most, for a network that is no better than equal shares.
        kl_at_best: (S, I) KL at that temperature.
    """

    kl: Float[np.ndarray, "S I"]
    temperature: Float[np.ndarray, " S"]
    kl_at_best: Float[np.ndarray, "S I"]


@checks_types
def calibration(shares: Float[AnyArray, "I C"], log_probabilities: Float[AnyArray, "S I C"]) -> Calibration:
    """The divergence of networks from people, as they are and at the best temperature of each.

    A temperature T changes how sure a network is, of all items alike: q_i(y) ∝ exp(z_i(y) / T) for logits z (Guo et al.
    2017). The best one is found on these items themselves, so that what is left at it is what no temperature mends.

    Args:
        shares: (I, C) soft labels of people, which sum to 1.
        log_probabilities: (S, I, C) of S networks; logits do as well.

    Raises:
        InputError: the shapes do not agree.
    """
    p, z = np.asarray(shares, float), np.asarray(log_probabilities, float)
    if z.shape[1:] != p.shape:
        raise InputError(f"log-probabilities {z.shape} of soft labels {p.shape}: expected (networks, *{p.shape})")
    best = np.array([_best_temperature(p, of_network) for of_network in z])
    return Calibration(_divergence(p, z), best, _divergence(p, z / best[:, None, None]))


def _divergence(p: np.ndarray, logits: np.ndarray) -> np.ndarray:
    return xlogy(p, p).sum(-1) - (p * log_softmax(logits, axis=-1)).sum(-1)


def _best_temperature(p: np.ndarray, logits: np.ndarray) -> float:
    """The mean divergence is convex in 1 / T, so that it has a single valley in log T."""
    found = minimize_scalar(
        lambda log_t: _divergence(p, logits / np.exp(log_t)).mean(),
        bounds=(-MOST_LOG_TEMPERATURE, MOST_LOG_TEMPERATURE),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))


@checks_types
def permuted(
    shares: Float[AnyArray, "I C"], gold: Int[AnyArray, " I"], seed: int | tuple[int, ...] = 0
) -> Float[np.ndarray, "I C"]:
    """Soft labels that are exchanged at random among the items of each gold label, as a control.

    What a network learns from them is how people divide over a class, not over an item.

    Args:
        shares: (I, C).
        gold: (I,) class numbers.
        seed: of the permutation.
    """
    rng, gold = np.random.default_rng(seed), np.asarray(gold)
    source = np.arange(len(gold))
    for label in np.unique(gold):
        rows = np.flatnonzero(gold == label)
        source[rows] = rng.permutation(rows)
    return np.asarray(shares)[source]
