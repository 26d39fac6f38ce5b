"""The baseline of every comparison: the rates of items, which know no subject."""

from typing import NamedTuple

import numpy as np

from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.sparse import SparseResponses


class ItemRates(NamedTuple):
    """Items whose curves are flat, as a fit has them: P = (r + 1/2) / (n + 1), r of n answers being right.

    That is the posterior mean of a rate under Jeffreys' prior. Attributes are those of a `Fit`.
    """

    responses: ResponseMatrix | SparseResponses
    parameters: ItemParameters
    population: Population
    num_parameters: int
    estimator: str = "mml"
    maximum_likelihood: bool = False
    converged: bool = True
    seconds: float = 0.0


def item_rates(responses: ResponseMatrix | SparseResponses) -> ItemRates:
    """The baseline, of the responses of a fold."""
    right, observed = responses.counts(axis=0)
    none = np.full(len(right), np.inf)
    intercept = np.log(right + 0.5) - np.log(observed - right + 0.5)
    items = ItemParameters(np.zeros((len(right), 1)), intercept, -none, none)
    return ItemRates(responses, items, Population(np.zeros(1), np.ones(1)), len(right))
