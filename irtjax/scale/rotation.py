"""Loadings of items on factors, and their rotation."""

import functools
from typing import NamedTuple

import numpy as np
from statsmodels.multivariate.factor_rotation._gpa_rotation import (
    GPA,
    oblimin_objective,
    orthomax_objective,
    vgQ_partial_target,
)

from irtjax.kernels.models import ItemParameters

METRIC = 1.702  # between the logistic and the normal ogive metric
SMALL = 0.3  # loadings below it are zeros of the target
MOST_STEPS = 5000
TOLERANCE = 1e-8


class Rotated(NamedTuple):
    """Rotated loadings.

    Attributes:
        loadings: (I, D), each factor turned so that its loadings sum to something positive.
        correlations: (D, D) of the factors.
    """

    loadings: np.ndarray
    correlations: np.ndarray


def loadings(items: ItemParameters) -> np.ndarray:
    """Standardised loadings (I, D) of items on uncorrelated factors: slope / sqrt(1.702² + |slope|²).

    Those of the latent responses in the normal ogive metric (McLeod, Swygert and Thissen 2001, eq. 6).
    """
    slope = np.asarray(items.slope)
    return slope / np.sqrt(METRIC**2 + (slope**2).sum(1, keepdims=True))


def communalities(items: ItemParameters) -> np.ndarray:
    """Shares (I,) of the variance of the latent responses that the factors explain: sums of squared loadings."""
    return (loadings(items) ** 2).sum(1)


def varimax(unrotated: np.ndarray) -> Rotated:
    """Orthogonal rotation that spreads the squared loadings of each factor most (Kaiser 1958)."""
    return _rotated(unrotated, lambda L: orthomax_objective(L=L, gamma=1, return_gradient=True), "orthogonal")


def oblimin(unrotated: np.ndarray) -> Rotated:
    """Direct oblimin with γ = 0 (Jennrich and Sampson 1966), an oblique rotation."""
    objective = functools.partial(oblimin_objective, gamma=0, rotation_method="oblique", return_gradient=True)
    return _rotated(unrotated, lambda L: objective(L=L), "oblique")


def target(unrotated: np.ndarray, wanted: np.ndarray) -> Rotated:
    """Oblique rotation towards a partially specified target (Browne 1972, 2001).

    Args:
        unrotated: (I, D) loadings.
        wanted: (I, D), NaN where the target leaves a loading open.
    """
    weights = np.isfinite(wanted).astype(float)
    return _rotated(unrotated, lambda L: vgQ_partial_target(np.nan_to_num(wanted), weights, L=L), "oblique")


def simple_target(first: np.ndarray) -> np.ndarray:
    """A target for `target` from a first rotation: zero where an item loads on another factor only, else open.

    That is, where its loading is below `SMALL` and another of its loadings is not.
    """
    small = np.abs(first) < SMALL
    return np.where(small & ~small.all(1, keepdims=True), 0.0, np.nan)


def _rotated(unrotated, objective, method) -> Rotated:
    # gradient projection starts from the axes of the data, not of whichever items came first
    _, _, axes = np.linalg.svd(unrotated, full_matrices=False)
    found, _, turn, _ = GPA(
        unrotated @ axes.T,
        vgQ=lambda L=None, A=None, T=None: objective(A @ T if L is None else L),
        rotation_method=method,
        max_tries=MOST_STEPS,
        tol=TOLERANCE,
    )
    sign = np.where(found.sum(0) < 0, -1.0, 1.0)
    return Rotated(found * sign, turn.T @ turn * np.outer(sign, sign))
