"""Abilities to start from on long tests."""

import numpy as np
from scipy.special import logit

from irtjax import processes
from irtjax.integration.normal_posterior import Posterior
from irtjax.responses.values import Values, counts_of

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
    theta = logit((right + 0.5) / (observed + 1))[:, None] if dims == 1 else _components(values, dims, mine)
    theta = (theta - theta.mean(axis=0)) / np.maximum(theta.std(axis=0), 1e-6)
    return Posterior(theta, np.eye(dims)[None] * (4 / (observed + 4))[:, None, None])


def _components(values: Values, dims: int, mine: slice) -> np.ndarray:
    """Principal components (J, D) of the standardised responses, by a few steps of subspace iteration."""
    items = range(*mine.indices(values.shape[1]))
    basis = np.random.default_rng(0).normal(size=(values.shape[0], dims + 2)).astype(np.float32)
    for _ in range(COMPONENT_STEPS):
        product = np.zeros_like(basis)
        for at in items[::BLOCK_ITEMS]:
            part = values[:, at : min(at + BLOCK_ITEMS, items.stop)]
            seen = part >= 0
            p = (part == 1).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
            z = np.where(seen, (part - p) / np.sqrt(p * (1 - p) + 1e-3), 0).astype(np.float32)
            product += z @ (z.T @ basis)
        basis = np.linalg.qr(processes.total(product))[0]
    return basis[:, :dims]
