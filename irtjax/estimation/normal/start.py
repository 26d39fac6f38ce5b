"""Abilities to start from on long tests."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logit

from irtjax import processes
from irtjax.integration.normal_posterior import Posterior
from irtjax.responses.values import Values, counts_of
from irtjax.types import Float, Int, Shaped

COMPONENT_STEPS = 6
BLOCK_ITEMS = 4096


def starting_posterior(values: Values, dims: int, mine: slice = slice(None)) -> Posterior:
    """Standardised logits of percent correct; with D > 1 the first D principal components.

    Args:
        values: responses (J, I).
        dims: D.
        mine: the items whose responses this process has.
    """
    right, observed = counts_of(values, axis=1)
    if dims == 1:
        return _around(logit((right + 0.5) / (observed + 1))[:, None], observed)
    items = range(*mine.indices(values.shape[1]))
    return _around(_components(lambda some: values[:, some], values.shape[0], items, dims), observed)


def component_posterior(
    values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None, dims: int
) -> Posterior:
    """The first D principal components of grades, shares, or successes of trials; negative where missing."""

    def part(some: slice) -> Float[np.ndarray, "J B"]:
        return values[:, some] / (1 if trials is None else np.maximum(trials[:, some], 1))

    observed = np.where(values >= 0, 1 if trials is None else trials, 0).sum(axis=1)
    return _around(_components(part, len(values), range(values.shape[1]), dims), observed)


def _around(theta: Float[np.ndarray, "J D"], observed: Int[np.ndarray, " J"]) -> Posterior:
    """Standardised, and as wide as so many right and wrong answers make it."""
    theta = (theta - theta.mean(axis=0)) / np.maximum(theta.std(axis=0), 1e-6)
    return Posterior(theta, np.eye(theta.shape[1])[None] * (4 / (observed + 4))[:, None, None])


def _components(part: Callable[[slice], Any], num_subjects: int, items: range, dims: int) -> Float[np.ndarray, "J D"]:
    """Principal components of the standardised responses, by a few steps of subspace iteration.

    Args:
        part: responses (J, B) to some items, negative where missing.
        num_subjects: J.
        items: whose responses this process has.
        dims: D.
    """
    basis = np.random.default_rng(0).normal(size=(num_subjects, dims + 2)).astype(np.float32)
    for _ in range(COMPONENT_STEPS):
        product = np.zeros_like(basis)
        for at in items[::BLOCK_ITEMS]:
            y = part(slice(at, min(at + BLOCK_ITEMS, items.stop)))
            seen = y >= 0
            number = np.maximum(seen.sum(axis=0), 1)
            mean = np.where(seen, y, 0).sum(axis=0) / number
            variance = np.where(seen, (y - mean) ** 2, 0).sum(axis=0) / number
            z = np.where(seen, (y - mean) / np.sqrt(variance + 1e-3), 0).astype(np.float32)
            product += z @ (z.T @ basis)
        basis = np.linalg.qr(processes.total(product))[0]
    return basis[:, :dims]
