"""Rotation of factor loadings to the minimum of a criterion, by gradient projection.

Bernaards and Jennrich (2005); for orthogonal rotations Jennrich (2001), for oblique ones Jennrich (2002).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.types import Float

MAX_STEPS = 5000
MAX_TRIALS = 11  # of step lengths, each half of the one before
TOLERANCE = 1e-8  # norm of the projected gradient

Criterion = Callable[[np.ndarray], tuple[float, np.ndarray]]  # of loadings: its value and its gradient


class Turns(NamedTuple):
    """The matrices T (D, D) that a rotation of loadings A may use.

    Attributes:
        loadings: A and T to the rotated loadings L.
        gradient: A, T, L and the criterion's gradient at L to its gradient at T.
        project: T and that gradient to its part along the allowed matrices.
        nearest: any matrix to one that is allowed.
    """

    loadings: Callable[[np.ndarray, np.ndarray], np.ndarray]
    gradient: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    project: Callable[[np.ndarray, np.ndarray], np.ndarray]
    nearest: Callable[[np.ndarray], np.ndarray]


def _project_on_orthogonal(turn: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    product = turn.T @ gradient
    return gradient - turn @ ((product + product.T) / 2)


def _nearest_orthogonal(matrix: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


ORTHOGONAL = Turns(  # T'T = 1, L = A T
    loadings=lambda unrotated, turn: unrotated @ turn,
    gradient=lambda unrotated, turn, rotated, by_loadings: unrotated.T @ by_loadings,
    project=_project_on_orthogonal,
    nearest=_nearest_orthogonal,
)
OBLIQUE = Turns(  # diag(T'T) = 1, L = A (T')⁻¹
    loadings=lambda unrotated, turn: unrotated @ np.linalg.inv(turn).T,
    gradient=lambda unrotated, turn, rotated, by_loadings: -(rotated.T @ by_loadings @ np.linalg.inv(turn)).T,
    project=lambda turn, gradient: gradient - turn * (turn * gradient).sum(axis=0),
    nearest=lambda matrix: matrix * (1 / np.sqrt((matrix**2).sum(axis=0))),
)


def minimize(
    unrotated: Float[np.ndarray, "I D"], criterion: Criterion, turns: Turns
) -> tuple[Float[np.ndarray, "I D"], Float[np.ndarray, "D D"]]:
    """Loadings L that minimize a criterion Q(L) over the rotations of A.

    From T = 1, each step follows the projected gradient G downhill to the nearest allowed matrix. Its length α starts
    at twice the former one and is halved until Q has fallen by more than α |G|² / 2.

    Args:
        unrotated: A.
        criterion: L to Q and its gradient (I, D).
        turns: `ORTHOGONAL` or `OBLIQUE`.

    Returns:
        L, and T; the correlations of the factors are T'T.
    """
    turn, step = np.eye(unrotated.shape[1]), 1.0
    rotated = turns.loadings(unrotated, turn)
    value, by_loadings = criterion(rotated)
    for _ in range(MAX_STEPS):
        uphill = turns.project(turn, turns.gradient(unrotated, turn, rotated, by_loadings))
        norm = np.linalg.norm(uphill)
        if norm < TOLERANCE:
            break
        step *= 2
        for _ in range(MAX_TRIALS):
            trial = turns.nearest(turn - step * uphill)
            rotated = turns.loadings(unrotated, trial)
            found, by_loadings = criterion(rotated)
            if found < value - step * norm**2 / 2:
                break
            step /= 2
        turn, value = trial, found
    return rotated, turn
