"""Answers as arrays of numbers, and the items' curves at nodes.

Arrays of nodes by items have a few thousand numbers, which NumPy handles without compilation. In several dimensions
they have millions, for which a compiled program is five times as fast.
"""

from typing import NamedTuple

import jax
import numpy as np

from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.populations.normal import Population
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int

LEAST = 1e-300
COMPILED = 2**20  # curves at nodes, beyond which compilation is worth it


class Answers(NamedTuple):
    """Indicators (J, I) of right and of observed answers, the latter None where all were observed."""

    right: AnyArray
    observed: AnyArray | None


def to_answers(values: Int[np.ndarray, "J I"]) -> Answers:
    """Puts responses (J, I) int8 on the device."""
    observed = values != MISSING
    return jax.device_put(Answers((values == 1).astype(float), None if observed.all() else observed.astype(float)))


def place_nodes(population: Population, quadrature: Quadrature) -> Float[np.ndarray, "Q D"]:
    """The nodes (Q, D) on the scale of ability; mean and standard deviation of the population have D entries."""
    return np.asarray(population.mean)[None, :] + np.asarray(population.sd)[None, :] * quadrature.nodes


def curves(
    items: ItemParameters, nodes: Float[np.ndarray, "Q D"]
) -> tuple[Float[np.ndarray, "Q I"], Float[np.ndarray, "Q I"]]:
    """Probabilities (Q, I) of a right and of a wrong answer.

    At least `LEAST`: an item on its way to infinity must not turn the sums over all others into NaN.
    """
    many = len(nodes) * len(items.intercept) > COMPILED
    p, q = _compiled(items, nodes) if many else probabilities(items, nodes)
    return np.maximum(np.asarray(p), LEAST), np.maximum(np.asarray(q), LEAST)


_compiled = jax.jit(probabilities)
