"""Loadings of items on factors, and their rotation."""

from typing import NamedTuple

import numpy as np

from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import ItemParameters
from irtjax.scale.gradient_projection import OBLIQUE, ORTHOGONAL, Criterion, Turns, minimize
from irtjax.types import Float

METRIC = 1.702  # a logistic slope over the normal ogive slope of the same curve
SMALL = 0.3  # the target has zeros for loadings below it


class Rotated(NamedTuple):
    """Rotated loadings.

    Attributes:
        loadings: (I, D); the sign of each factor is such that its loadings have a positive sum.
        correlations: (D, D) of the factors.
    """

    loadings: Float[np.ndarray, "I D"]
    correlations: Float[np.ndarray, "D D"]


def loadings(items: ItemParameters | PredictorParameters) -> Float[np.ndarray, "I D"]:
    """Standardised loadings of items on uncorrelated factors: slope / sqrt(1.702² + |slope|²).

    These are the loadings of the latent responses in the normal ogive metric (McLeod, Swygert and Thissen 2001, eq. 6).
    """
    slope = np.asarray(items.slope)
    return slope / np.sqrt(METRIC**2 + (slope**2).sum(1, keepdims=True))


def communalities(items: ItemParameters | PredictorParameters) -> Float[np.ndarray, " I"]:
    """Share of the variance of each item's latent response that the factors explain: its sum of squared loadings."""
    return (loadings(items) ** 2).sum(1)


def varimax(unrotated: Float[np.ndarray, "I D"]) -> Rotated:
    """Orthogonal rotation that maximizes the variance of the squared loadings of each factor (Kaiser 1958)."""
    centring = np.eye(len(unrotated)) - 1 / len(unrotated)

    def criterion(rotated: np.ndarray) -> tuple[float, np.ndarray]:
        squares = rotated**2
        deviations = centring @ squares
        return -(squares * deviations).sum() / 4, -rotated * deviations

    return _from_principal_axes(unrotated, criterion, ORTHOGONAL)


def oblimin(unrotated: Float[np.ndarray, "I D"]) -> Rotated:
    """Direct oblimin with γ = 0 (Jennrich and Sampson 1966), an oblique rotation.

    It minimizes Σ_i Σ_{k<l} L_ik² L_il² / 2.
    """

    def criterion(rotated: np.ndarray) -> tuple[float, np.ndarray]:
        squares = rotated**2
        of_others = squares @ (1 - np.eye(squares.shape[1]))
        return (squares * of_others).sum() / 4, rotated * of_others

    return _from_principal_axes(unrotated, criterion, OBLIQUE)


def target(unrotated: Float[np.ndarray, "I D"], wanted: Float[np.ndarray, "I D"]) -> Rotated:
    """Oblique rotation towards a partially specified target (Browne 1972, 2001).

    Args:
        unrotated: loadings.
        wanted: target loadings, NaN where the target leaves one open.
    """
    specified, goal = np.isfinite(wanted).astype(float), np.nan_to_num(wanted)

    def criterion(rotated: np.ndarray) -> tuple[float, np.ndarray]:
        residual = specified * (rotated - goal)
        return float(np.linalg.norm(residual) ** 2), 2 * residual

    return _from_principal_axes(unrotated, criterion, OBLIQUE)


def simple_target(first: Float[np.ndarray, "I D"]) -> Float[np.ndarray, "I D"]:
    """A target for `target` from a first rotation: zero where an item loads on another factor only, else open (NaN).

    That is, zero where a loading is below `SMALL` and another loading of the item is not.
    """
    small = np.abs(first) < SMALL
    return np.where(small & ~small.all(1, keepdims=True), 0.0, np.nan)


def _from_principal_axes(unrotated: np.ndarray, criterion: Criterion, turns: Turns) -> Rotated:
    # the start is the axes of the data, which do not depend on the order of the items
    _, _, axes = np.linalg.svd(unrotated, full_matrices=False)
    rotated, turn = minimize(unrotated @ axes.T, criterion, turns)
    sign = np.where(rotated.sum(0) < 0, -1.0, 1.0)
    return Rotated(rotated * sign, turn.T @ turn * np.outer(sign, sign))
