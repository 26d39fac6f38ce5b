"""Abilities to start from on long tests."""

import numpy as np
from scipy.special import logit

from irtjax.estimation.mml.posterior import Posterior
from irtjax.responses.matrix import counts
from irtjax.types import Int

COMPONENT_STEPS = 6


def starting_posterior(values: Int[np.ndarray, "J I"], dims: int) -> Posterior:
    """Standardised logits of percent correct; with D > 1 the first D principal components."""
    right, observed = counts(values, axis=1)
    theta = logit((right + 0.5) / (observed + 1))[:, None] if dims == 1 else _components(values, dims)
    theta = (theta - theta.mean(axis=0)) / np.maximum(theta.std(axis=0), 1e-6)
    return Posterior(theta, np.eye(dims)[None] * (4 / (observed + 4))[:, None, None])


def _components(values: np.ndarray, dims: int, block: int = 4096) -> np.ndarray:
    """Principal components (J, D) of the standardised responses, by a few steps of subspace iteration."""
    basis = np.random.default_rng(0).normal(size=(values.shape[0], dims + 2)).astype(np.float32)
    for _ in range(COMPONENT_STEPS):
        product = np.zeros_like(basis)
        for at in range(0, values.shape[1], block):
            part = values[:, at : at + block]
            seen = part >= 0
            p = (part == 1).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
            z = np.where(seen, (part - p) / np.sqrt(p * (1 - p) + 1e-3), 0).astype(np.float32)
            product += z @ (z.T @ basis)
        basis = np.linalg.qr(product)[0]
    return basis[:, :dims]
