"""The constants that take one scale to another, by characteristic curves or by moments, and their covariance."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from irtjax.errors import InputError
from irtjax.groups.choices import BY_MOMENTS
from irtjax.groups.known_curves import KnownCurves
from irtjax.types import AnyArray, Float

PRECISE = 1e-12  # gradient of a criterion at its minimum


class Weights(NamedTuple):
    """Abilities (Q,) at which curves are compared, and their weights, which sum to 1."""

    theta: Float[np.ndarray, " Q"]
    weights: Float[np.ndarray, " Q"]


def constants(base: KnownCurves, other: KnownCurves, method: str, at: Weights, symmetric: bool) -> tuple[float, float]:
    """A and B from the common items by either test.

    Raises:
        InputError: the discriminations, or difficulties, of the common items have no ratio above 0.
    """
    with jax.enable_x64(True):
        start = np.asarray(_by_moments(method, base, other) if method in BY_MOMENTS else _by_medians(base, other))
        sound = np.isfinite(start).all() and start[0] > 0
        if method in BY_MOMENTS:
            if not sound:
                raise InputError(f"{method} finds no A above 0: discriminations are of different sign; take haebara")
            return float(start[0]), float(start[1])
        begin = np.array([np.log(start[0]), start[1]]) if sound else np.zeros(2)
        found = minimize(
            lambda x: tuple(map(np.asarray, _height_and_slope(method, symmetric, base, other, at, x))),
            begin,
            jac=True,
            method="BFGS",
            options={"gtol": PRECISE},
        )
    return float(np.exp(found.x[0])), float(found.x[1])


def _by_moments(method: str, base: KnownCurves, other: KnownCurves) -> Float[AnyArray, "2"]:
    """A and B from means, or standard deviations, of the parameters of the common items."""
    (a, b), (a_other, b_other) = base.places(), other.places()
    if method == "mean_mean":
        slope = a_other.mean() / a.mean()
    elif method == "mean_geometric":
        slope = jnp.exp(jnp.mean(jnp.log(a_other / a)))
    else:
        slope = jnp.nanstd(b) / jnp.nanstd(b_other)
    return jnp.stack([slope, jnp.nanmean(b) - slope * jnp.nanmean(b_other)])


def _by_medians(base: KnownCurves, other: KnownCurves) -> Float[AnyArray, "2"]:
    """The same from medians, to start from: an item without slope has a difficulty without end, and spoils means."""
    (a, b), (a_other, b_other) = base.places(), other.places()
    slope = jnp.median(a_other) / jnp.median(a)
    return jnp.stack([slope, jnp.nanmedian(b - slope * b_other)])


def _criterion(
    method: str,
    symmetric: bool,
    base: KnownCurves,
    other: KnownCurves,
    at: Weights,
    constants: Float[AnyArray, "2"],
) -> AnyArray:
    """What Haebara, or Stocking and Lord, minimise."""
    slope, intercept = constants
    curves = _chances if method == "haebara" else _scores
    difference = curves(base, at.theta) - curves(other, (at.theta - intercept) / slope)
    total = at.weights @ (difference**2).sum(axis=1)
    if symmetric:
        back = curves(base, slope * at.theta + intercept) - curves(other, at.theta)
        total += at.weights @ (back**2).sum(axis=1)
    return total


@functools.partial(jax.jit, static_argnums=(0, 1))
def _height_and_slope(
    method: str, symmetric: bool, base: KnownCurves, other: KnownCurves, at: Weights, x: Float[AnyArray, "2"]
) -> tuple[AnyArray, AnyArray]:
    """The criterion and its gradient in log A and B."""
    return jax.value_and_grad(
        lambda x: _criterion(method, symmetric, base, other, at, jnp.stack([jnp.exp(x[0]), x[1]]))
    )(x)


def _chances(test: KnownCurves, theta: AnyArray) -> Float[AnyArray, "Q N"]:
    """Probabilities of the categories of all items; of the right answer alone where there are two."""
    found = test.categories(theta)
    lowest = jnp.where(test.top[None, :] > 1, 1 - found.sum(axis=2), 0.0)
    return jnp.concatenate([lowest[:, :, None], found], axis=2).reshape(len(theta), -1)


def _scores(test: KnownCurves, theta: AnyArray) -> Float[AnyArray, "Q 1"]:
    """Expected score of the common test."""
    return test.expected(theta).sum(axis=1, keepdims=True)


def covariance_of_constants(
    base: KnownCurves,
    other: KnownCurves,
    method: str,
    at: Weights,
    symmetric: bool,
    found: tuple[float, float],
    errors: Sequence[Float[np.ndarray, "n n"] | None],
) -> Float[np.ndarray, "2 2"]:
    """Of A and B by the delta method, given the covariances of all parameters of the common items of either test."""
    if any(covariance is None for covariance in errors):
        return np.full((2, 2), np.nan)
    total = np.zeros((2, 2))
    for one, covariance in zip(derivatives(base, other, method, at, symmetric, found), errors, strict=True):
        flat = one.reshape(2, -1)
        total += flat @ covariance @ flat.T
    return total


def derivatives(
    base: KnownCurves, other: KnownCurves, method: str, at: Weights, symmetric: bool, found: tuple[float, float]
) -> tuple[Float[np.ndarray, "2 I K"], Float[np.ndarray, "2 I K"]]:
    """Of A and B by all parameters of the common items of either test; 0 by asymptotes of 0 and 1, which are held.

    Where a criterion F has its minimum, ∂(A, B)/∂φ = -(∂²F/∂(A, B)²)⁻¹ ∂²F/∂(A, B)∂φ.
    """
    with jax.enable_x64(True):
        if method in BY_MOMENTS:
            by = _of_moments(method, base, other)
        else:
            by = _derivatives(method, symmetric, base, other, at, np.array(found), base.array, other.array)
    first, second = (np.nan_to_num(np.asarray(one)) for one in by)
    return first, second


def _of_moments(method: str, base: KnownCurves, other: KnownCurves) -> tuple[AnyArray, AnyArray]:
    """As `_derivatives`; not compiled, as thresholds go by the numbers of categories (`KnownCurves.places`)."""

    def moments(of_base: AnyArray, of_other: AnyArray) -> AnyArray:
        return _by_moments(method, dataclasses.replace(base, array=of_base), dataclasses.replace(other, array=of_other))

    by_base, by_other = jax.jacfwd(moments, argnums=(0, 1))(base.array, other.array)
    return by_base, by_other


@functools.partial(jax.jit, static_argnums=(0, 1))
def _derivatives(
    method: str,
    symmetric: bool,
    base: KnownCurves,
    other: KnownCurves,
    at: Weights,
    constants: Float[AnyArray, "2"],
    of_base: Float[AnyArray, "I K"],
    of_other: Float[AnyArray, "I K"],
) -> tuple[AnyArray, AnyArray]:
    """Of A and B by the parameters of either test, each (2, I, K)."""

    def tests(of_base: AnyArray, of_other: AnyArray) -> tuple[KnownCurves, KnownCurves]:
        return dataclasses.replace(base, array=of_base), dataclasses.replace(other, array=of_other)

    gradient = jax.grad(lambda x, *arrays: _criterion(method, symmetric, *tests(*arrays), at, x))
    hessian = jax.jacfwd(gradient)(constants, of_base, of_other)
    mixed = jax.jacrev(gradient, argnums=(1, 2))(constants, of_base, of_other)
    by_base, by_other = (-jnp.tensordot(jnp.linalg.inv(hessian), one, axes=1) for one in mixed)
    return by_base, by_other
