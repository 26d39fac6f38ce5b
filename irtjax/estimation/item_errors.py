"""Standard errors of items on long tests: each item's own, and those of the scale that all of them share.

Given the abilities, which thousands of responses determine, items are independent, and each has its own information.
What they share is the scale: the abilities of J subjects, a sample of the population, have mean 0 and covariance 1 only
up to errors of order 1/sqrt(J), by which all items are shifted and stretched together. The observed information of the
marginal likelihood comes to the same sum, without inverting a matrix of all parameters.
"""

import itertools

import numpy as np

from irtjax.estimation.problem import Specification
from irtjax.types import Bool, Float

ITEMS = 2**16  # whose matrices are inverted at a time


def item_covariances(
    slope: Float[np.ndarray, "I D"],
    information: Float[np.ndarray, "I K K"],
    specification: Specification,
    sd: Float[np.ndarray, " D"],
    num_subjects: int,
    anchor_information: Float[np.ndarray, "2 2"] | None = None,
) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of the estimates of each item; 0 where a parameter is held.

    With abilities θ̂ = (θ - μ̂) / σ̂ of a sample, Var μ̂ = 1/J moves the intercept by slope·μ̂, and Var log σ̂ = 1/(2J)
    stretches the slope. With D > 1 the covariance of the sample enters through its Cholesky factor L: slope' = L'slope.

    Args:
        slope: (I, D), with D > 1 rotated so that the slopes of the first D items above the diagonal are 0.
        information: (I, K, K) of each item given the abilities, priors included; K is D + 3, or D + 1 where no item has
            asymptotes.
        specification: what is free.
        sd: (D,) standard deviation of the population, 1 but for a Rasch model.
        num_subjects: J.
        anchor_information: (2, 2), of anchors about origin and log unit of the scale, in place of the sample's.
    """
    dims, size = slope.shape[1], information.shape[1]
    free = np.array(specification.free)[:, :size]
    rotated = free[:, :dims] | free[:, :1]  # slopes held for the rotation only are as free as the others
    own = np.concatenate([rotated, free[:, dims:]], axis=1)
    common = [(column, np.asarray(items)) for column, items in specification.common if column < size]
    for column, items in common:
        own[items, column] = False
    covariance = _inverse(information, own)
    if dims > 1:
        covariance = _fix_rotation(covariance, slope)
        covariance = np.where(free[:, :, None] & free[:, None, :], covariance, 0.0)
    if common:
        covariance += _of_common(information, own, common)
    if anchor_information is not None:
        # where no slope is free the unit of the scale is that of the slopes, without error
        origin_and_unit = (
            np.linalg.pinv(anchor_information)
            if specification.free_slopes
            else np.diag([1 / anchor_information[0, 0], 0.0])
        )
        moved = np.zeros((slope.shape[0], size, 2))
        moved[:, dims, 0], moved[:, 0, 1] = slope[:, 0], slope[:, 0]
        scale = moved @ origin_and_unit @ moved.transpose(0, 2, 1)
        covariance += np.where(free[:, :, None] & free[:, None, :], scale, 0.0)
    else:
        variance = np.zeros((slope.shape[0], size))
        if specification.sd_fixed:
            later = np.cumsum(slope[:, ::-1] ** 2, axis=1)[:, ::-1] - slope**2
            variance[:, :dims] = (slope**2 / 2 + later) / num_subjects
        if specification.mean_fixed:
            variance[:, dims] = (slope**2 * sd**2).sum(axis=1) / num_subjects
        covariance[:, range(size), range(size)] += np.where(free, variance, 0.0)
    return covariance


def _inverse(information: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Inverse of the free part of each matrix, 0 elsewhere; NaN where there is none."""
    inverse = np.empty(information.shape)
    for at in range(0, len(free), ITEMS):
        part = slice(at, at + ITEMS)
        both = free[part, :, None] & free[part, None, :]
        matrices = np.where(both, information[part], 0.0) + ~free[part, :, None] * np.eye(free.shape[1])
        singular = ~np.isfinite(matrices).all(axis=(1, 2)) | (np.linalg.det(np.nan_to_num(matrices)) <= 0)
        matrices[singular] = np.eye(free.shape[1])
        inverses = np.linalg.inv(matrices)
        singular |= (np.einsum("ikk->ik", inverses) <= 0).any(axis=1)
        inverse[part] = np.where(singular[:, None, None], np.nan, inverses)
        inverse[part][~both] = 0.0
    return inverse


def _of_common(
    information: np.ndarray, own: np.ndarray, common: list[tuple[int, Bool[np.ndarray, " I"]]]
) -> Float[np.ndarray, "I K K"]:
    """What the errors of parameters that items have in common, such as a slope, add to each of these items."""
    inverse = _inverse(information, own)
    changes = []  # (I, K) of each item with one of them
    for column, items in common:
        coupling = np.where(own & items[:, None], information[:, :, column], 0.0)
        change = -np.einsum("ikl,il->ik", inverse, coupling)
        change[items, column] = 1.0
        changes.append(change)
    moved = np.stack(changes, axis=2)
    # of those that hold no such parameter nothing moves; of the others the own parameters are where they are best
    moved = np.where(np.isfinite(moved), moved, 0.0)
    curvature = np.einsum("ikc,ikl,ild->cd", moved, information, moved)
    return moved @ np.linalg.inv(curvature) @ moved.transpose(0, 2, 1)


def _fix_rotation(covariance: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Adds the error of the rotation, which the slopes held at 0 of the first D - 1 items fix.

    The abilities determine the errors e of all slopes but for a rotation exp Ω with Ω = -Ω', and that is such that the
    held slopes have none: (e_i + slope_i Ω)_k = 0 for i < k.
    """
    dims, size = slope.shape[1], covariance.shape[1]
    planes = list(itertools.combinations(range(dims), 2))
    generators = np.zeros((len(planes), dims, dims))
    for at, (k, n) in enumerate(planes):
        generators[at, k, n], generators[at, n, k] = 1, -1
    turned = np.zeros((slope.shape[0], size, len(planes)))  # change of every item's parameters with each angle
    turned[:, :dims] = np.einsum("ik,pkl->ilp", slope, generators)
    # the angles as a linear function of the errors of the first D - 1 items
    constraints = np.stack([turned[i, k] for i, k in planes])
    pick = np.zeros((len(planes), dims - 1, size))
    for at, (i, k) in enumerate(planes):
        pick[at, i, k] = 1
    angles = -np.linalg.solve(constraints, pick.reshape(len(planes), -1))  # (planes, (D - 1) K)
    first = np.zeros(((dims - 1) * size,) * 2)
    for i in range(dims - 1):
        first[i * size : (i + 1) * size, i * size : (i + 1) * size] = covariance[i]
    # errors of these items' own free parameters are not moved: their slopes are triangular
    return covariance + turned @ (angles @ first @ angles.T) @ turned.transpose(0, 2, 1)
