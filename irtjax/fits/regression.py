"""Ridge regression of difficulties on features of items, with all variances estimated (empirical Bayes)."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int

LEAST_SD, MOST_SD = 1e-3, 1e2  # of a standard deviation, in logits
NEVER = 1e8  # variance of what says nothing
SMALL = 200  # rows of a matrix up to which a second thread costs more time than it saves
FLAT = 0.05  # of the usual start: a search that begins at less may stay there


class Regression(NamedTuple):
    """b = mean + Σ_k w_k (x_k - centre_k) / scale_k + residual, in logits.

    Attributes:
        mean: () of the items.
        weights: (F,) posterior means of w.
        covariance: (R + 1, R + 1) of the mean and of V'w; in the other directions the weights are as their prior has
            them, independent of these, with a variance of ω².
        directions: (F, R) V, orthonormal: those that the items differ in, and all of them where R = F.
        centre, scale: (F,) of the features. scale is their standard deviation, 1 where a feature is the same for all
            items; in a block whose weights have a smaller deviation than ω, as much larger.
        residual_sd: () τ, of what features do not tell.
        weight_sd: () ω, of the weights; of several blocks the largest. That of a block is ω times the standard
            deviation of one of its features over `scale`.
    """

    mean: AnyArray
    weights: AnyArray
    covariance: AnyArray
    directions: AnyArray
    centre: AnyArray
    scale: AnyArray
    residual_sd: AnyArray
    weight_sd: AnyArray

    def predict(
        self, features: Float[AnyArray, "I F"], item_ids: Sequence[str] | np.ndarray | None = None
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
        """Difficulties of items that nobody has answered: means and standard deviations (I,), residual included.

        Args:
            features: of these items.
            item_ids: their names, for errors.

        Raises:
            InputError: another number of features, values that are not finite, or so far from those of the fit that a
                prediction is not.
        """
        features = np.asarray(features, np.float64)
        if features.ndim != 2 or features.shape[1] != len(self.weights):
            raise InputError(f"features of shape {features.shape}, expected {len(self.weights)} columns")
        if not np.isfinite(features).all():
            raise InputError("features that are not finite")
        with np.errstate(over="ignore", invalid="ignore"):
            z = (features - self.centre) / self.scale
            mean, sd = np.asarray(self.mean + z @ self.weights), np.sqrt(self.variance(z, 1.0) + self.residual_sd**2)
        require_finite(item_ids, mean, sd)
        return mean, sd

    def variance(self, z: Float[np.ndarray, "N F"], of_mean: float) -> Float[np.ndarray, " N"]:
        """The variance of c mean + w'z for each of N vectors z, with the same c, `of_mean`, for all."""
        turned = z @ self.directions
        design = np.column_stack([np.full(len(z), of_mean), turned])
        beside = (z**2).sum(1) - (turned**2).sum(1)  # the square of what is left of z in the other directions
        return ((design @ self.covariance) * design).sum(1) + self.weight_sd**2 * np.maximum(beside, 0.0)

    def rescaled(self, factor: float) -> "Regression":
        """The same of difficulties that are multiplied by a positive factor."""
        return self._replace(
            mean=np.asarray(factor * self.mean),
            weights=factor * self.weights,
            covariance=factor**2 * self.covariance,
            residual_sd=np.asarray(factor * self.residual_sd),
            weight_sd=np.asarray(factor * self.weight_sd),
        )


def regress(
    difficulty: Float[AnyArray, " I"],
    variance: Float[AnyArray, " I"],
    features: Float[AnyArray, "I F"],
    near: Regression | None = None,
    blocks: Int[AnyArray, " F"] | None = None,
) -> Regression:
    """Estimates a regression from difficulties that are known with errors.

        y_i = mean + w' z_i + r_i + e_i,    w_k ~ N(0, ω_g²),    r_i ~ N(0, τ²),    e_i ~ N(0, v_i)

    for features z in standard deviations, k in block g; the mean has no prior. τ and all ω are those under which y is
    likeliest, w and the mean integrated out (type II maximum likelihood; MacKay 1992), found by L-BFGS. With
    fewer items than features the items differ in I directions of the F at most, and no matrix is larger than (F, I).

    Args:
        difficulty: (I,) y.
        variance: (I,) v, of their errors; infinite where nothing is known.
        features: (I, F) x.
        near: one of the same features, whose τ and ω the search begins at.
        blocks: (F,) g, from 0 on; None for a single one.

    Returns:
        The regression, with the largest ω; features of the other blocks are scaled down to it.
    """
    y, features = np.asarray(difficulty, np.float64), np.asarray(features, np.float64)
    block = np.zeros(features.shape[1], int) if blocks is None else np.asarray(blocks)
    with _blas().limit(limits=1 if min(features.shape) < SMALL else None, user_api="blas"):
        return _regress(y, np.asarray(variance, np.float64), features, near, block)


@functools.cache
def _blas() -> ThreadpoolController:
    """The threads of linear algebra; asked for once SciPy's is loaded, which is not NumPy's."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()


def _regress(
    y: np.ndarray, variance: np.ndarray, features: np.ndarray, near: Regression | None, block: np.ndarray
) -> Regression:
    import scipy.linalg
    import scipy.optimize  # both take a while to import, and few need them

    noise = np.minimum(variance, NEVER)
    y = np.where(noise < NEVER, y, 0.0)
    centre, deviation = centre_and_scale(features)
    design = _design((features - centre) / deviation)
    told = y[noise < NEVER]
    usual = max(float(np.std(told)) if told.size else 0.0, 10 * LEAST_SD)
    first = np.unique(block, return_index=True)[1]
    begin = np.array([usual, *np.full(first.size, usual / np.sqrt(max(block.size, 1)))])
    if near is not None:  # but not at a bound, where the evidence is flat
        begin = np.maximum([near.residual_sd, *(near.weight_sd * deviation / near.scale)[first]], FLAT * begin)
    bounds = [(np.log(LEAST_SD), np.log(MOST_SD))] * begin.size
    by_items = y.size < block.size  # a matrix of items is the smaller one
    if by_items:
        evidence = functools.partial(_minus_evidence_by_items, y=y, noise=noise, products=_products(design, block))
    else:
        evidence = functools.partial(_minus_evidence, y=y, noise=noise, design=design, block=block)
    found = scipy.optimize.minimize(
        lambda logs: _per_item(*evidence(logs), y.size),
        np.log(begin),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
    )
    residual_sd, *by_block = np.exp(found.x)
    varying = np.unique(block[np.ptp(features, axis=0) > 0])
    largest = np.max(np.array(by_block)[varying] if varying.size else by_block)
    share = np.array(by_block)[block] / largest  # of smaller weights, which have ω too where features are smaller
    z = design[:, 1:] * share
    directions = scipy.linalg.qr(z.T, mode="economic")[0] if by_items else np.eye(block.size)
    turned = _design(z @ directions if by_items else z)
    posterior = _posterior(residual_sd, np.full(directions.shape[1], largest), y, noise, turned)
    mean, *weights = posterior.coefficients
    return Regression(
        np.asarray(mean),
        directions @ weights,
        posterior.covariance(),
        directions,
        centre,
        deviation / share,
        np.asarray(residual_sd),
        np.asarray(largest),
    )


def require_finite(item_ids: Sequence[str] | np.ndarray | None, *predicted: Float[np.ndarray, " I"]) -> None:
    """Refuses predictions that are not finite.

    Raises:
        InputError: names the item, or the row.
    """
    bad = ~np.all(np.isfinite(predicted), axis=0)
    if bad.any():
        at = int(np.argmax(bad))
        which = f"in row {at + 1}" if item_ids is None else f"of item {str(item_ids[at])!r}"
        raise InputError(f"features {which} are so far from those of the fit that nothing can be predicted: mend them")


def centre_and_scale(features: Float[np.ndarray, "I F"]) -> tuple[Float[np.ndarray, " F"], Float[np.ndarray, " F"]]:
    """Means and standard deviations of features; 1 where a feature is the same for all items, exactly."""
    unit = np.ldexp(1.0, np.frexp(np.abs(features).max(0))[1])  # a power of two, so that it changes no digit
    scaled = features / unit  # the squares of very small numbers would be 0
    return unit * scaled.mean(0), np.where(np.ptp(features, axis=0) > 0, unit * scaled.std(0), 1.0)


def _design(standardised: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(standardised)), standardised])


def _per_item(value: float, gradient: np.ndarray, number: int) -> tuple[float, np.ndarray]:
    """So that the first step of a search, which is as long as the gradient, does not lead to a bound."""
    return value / number, gradient / number


class _Posterior(NamedTuple):
    """Of the coefficients, given all standard deviations.

    Attributes:
        coefficients: (F + 1,) means.
        factor: (F + 1, F + 1) lower triangular L, where L L' is their precision.
        weighted: (I, F + 1) the design, over the standard deviations of y.
        precision: (I,) of y.
    """

    coefficients: np.ndarray
    factor: np.ndarray
    weighted: np.ndarray
    precision: np.ndarray

    def covariance(self) -> np.ndarray:
        """(L L')⁻¹."""
        import scipy.linalg

        lower = scipy.linalg.lapack.dpotri(self.factor, lower=1)[0]
        return np.tril(lower) + np.tril(lower, -1).T


def _posterior(
    residual_sd: float, weight_sd: np.ndarray, y: np.ndarray, noise: np.ndarray, design: np.ndarray
) -> _Posterior:
    import scipy.linalg

    precision = 1 / (residual_sd**2 + noise)
    root = np.sqrt(precision)
    weighted = design * root[:, None]
    of_coefficients = weighted.T @ weighted
    of_coefficients.flat[design.shape[1] + 1 :: design.shape[1] + 1] += weight_sd**-2.0  # the mean has no prior
    factor = scipy.linalg.cholesky(of_coefficients, lower=True)
    coefficients = scipy.linalg.cho_solve((factor, True), weighted.T @ (root * y))
    return _Posterior(coefficients, factor, weighted, precision)


def _minus_evidence(
    logs: np.ndarray, y: np.ndarray, noise: np.ndarray, design: np.ndarray, block: np.ndarray
) -> tuple[float, np.ndarray]:
    """-2 log p(y | τ, ω) up to a constant, and its gradient in log τ and the log ω of each block."""
    import scipy.linalg

    residual_sd, *by_block = np.exp(logs)
    weight_sd = np.array(by_block)[block]
    found = _posterior(residual_sd, weight_sd, y, noise, design)
    precision, weights = found.precision, found.coefficients[1:]
    rest = y - design @ found.coefficients
    inverse = scipy.linalg.lapack.dtrtri(found.factor, lower=1)[0]  # its squares are what both traces need
    of_weights = ((np.tril(inverse)[:, 1:] ** 2).sum(0) + weights**2) / weight_sd**2
    value = -np.log(precision).sum() + 2 * np.log(np.diag(found.factor)).sum() + 2 * np.log(weight_sd).sum()
    value += (precision * rest**2).sum() + (weights**2 / weight_sd**2).sum()
    explained = (scipy.linalg.blas.dtrmm(1.0, inverse, found.weighted.T, lower=1) ** 2).sum(0)
    by_variance = precision * (1 - explained) - precision**2 * rest**2
    by_weights = 2 * np.bincount(block, 1 - of_weights, len(by_block))
    return value, np.array([2 * residual_sd**2 * by_variance.sum(), *by_weights])


def _products(design: np.ndarray, block: np.ndarray) -> Float[np.ndarray, "G I I"]:
    """Z_g Z_g' of the features of each block."""
    of_blocks = (design[:, 1:][:, block == g] for g in range(block.max() + 1))
    return np.stack([z @ z.T for z in of_blocks])


def _minus_evidence_by_items(
    logs: np.ndarray, y: np.ndarray, noise: np.ndarray, products: Float[np.ndarray, "G I I"]
) -> tuple[float, np.ndarray]:
    """As `_minus_evidence`, by the covariance of y, C = diag(τ² + v) + Σ_g ω_g² Z_g Z_g'.

    With P = C⁻¹ - C⁻¹ 1 1' C⁻¹ / (1' C⁻¹ 1), which leaves the mean out, -2 log p = log |C| + log 1' C⁻¹ 1 + y' P y.
    """
    import scipy.linalg

    residual_sd, *by_block = np.exp(logs)
    covariance = np.tensordot(np.square(by_block), products, axes=1)
    covariance.flat[:: len(y) + 1] += residual_sd**2 + noise
    factor = scipy.linalg.cholesky(covariance, lower=True)
    lower = scipy.linalg.lapack.dpotri(factor, lower=1)[0]
    inverse = np.tril(lower) + np.tril(lower, -1).T
    of_ones = inverse.sum(axis=1)
    without_mean = inverse - np.outer(of_ones, of_ones) / of_ones.sum()
    residual = without_mean @ y
    value = 2 * np.log(np.diag(factor)).sum() + np.log(of_ones.sum()) + y @ residual
    by_residual = np.trace(without_mean) - residual @ residual
    by_blocks = (without_mean * products).sum(axis=(1, 2)) - residual @ products @ residual
    return value, 2 * np.array([residual_sd**2 * by_residual, *(np.square(by_block) * by_blocks)])
