"""Features of items in directions that have nothing to do with each other, for a guide of independent normals.

With X = U S V' the features in standard deviations, Z = √I U has uncorrelated columns of mean square 1, and

    X w = Z c,    c = s ∘ V' w,    w ~ N(0, ω² 1)    means    c_k ~ N(0, ω² s_k²),    s_k = S_k / √I

The posterior of c is nearly one of independent parts, however the features correlate; that of w is not.
"""

from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.fits.regression import Regression, centre_and_scale
from irtjax.svi.guide import Normal
from irtjax.svi.model import Directions
from irtjax.types import Float

LEAST_SPREAD = 1e-4  # of a direction, to the largest; those of less say nothing


class Rotation(NamedTuple):
    """Features, and the directions that they are read in.

    Attributes:
        features: (I, F) x.
        centre, scale: (F,) of the features; scale 1 where a feature is the same for all items.
        vectors: (F, K) V.
        directions: Z and s.
    """

    features: Float[np.ndarray, "I F"]
    centre: Float[np.ndarray, " F"]
    scale: Float[np.ndarray, " F"]
    vectors: Float[np.ndarray, "F K"]
    directions: Directions


def rotated(features: Float[np.ndarray, "I F"]) -> Rotation:
    """The directions of features.

    Raises:
        InputError: all features are the same for all items.
    """
    if not np.ptp(features, axis=0).any():
        raise InputError("`features` are the same for all items: nothing can be regressed on them")
    centre, scale = centre_and_scale(features)
    left, singular, right = np.linalg.svd((features - centre) / scale, full_matrices=False)
    kept = singular > LEAST_SPREAD * max(singular[0], np.finfo(np.float32).tiny)
    root = np.sqrt(len(features))
    directions = Directions(*((part[..., kept]).astype(np.float32) for part in (root * left, singular / root)))
    return Rotation(features, centre, scale, right[kept].T, directions)


def coefficients(found: Regression, rotation: Rotation) -> Normal:
    """Means and standard deviations of c (K,) from those of w."""
    to_c = rotation.vectors * rotation.directions.spread
    return Normal(to_c.T @ found.weights, np.sqrt(found.variance(to_c.T, 0.0)))


def regression(posterior: dict[str, Normal], site: str, rotation: Rotation) -> Regression:
    """The regression of a site in its features from the posterior of c, `mean`, and log standard deviations.

    What the features of these items do not show of w stays as the prior has it.
    """
    mean, precision, c, log_sd = (posterior[f"{site}_{part}"] for part in ("mean", "precision", "weights", "weight_sd"))
    covariance = np.diag(np.append(mean.scale, c.scale / rotation.directions.spread) ** 2.0)
    return Regression(
        np.asarray(mean.loc),
        rotation.vectors @ (c.loc / rotation.directions.spread),
        covariance,
        rotation.vectors,
        rotation.centre,
        rotation.scale,
        np.asarray(np.exp(-0.5 * precision.loc)),
        np.asarray(np.exp(log_sd.loc)),
    )
