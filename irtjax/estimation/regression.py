"""Ridge regression of difficulties on features of items, with all variances estimated (empirical Bayes)."""

from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.types import AnyArray, Float

LEAST, MOST = 1e-3, 1e2  # of a standard deviation, in logits
NEVER = 1e8  # variance of what says nothing


class Regression(NamedTuple):
    """b = mean + Σ_k w_k (x_k - centre_k) / scale_k + residual, in logits.

    Attributes:
        mean: () of the items.
        weights: (F,) posterior means of w.
        covariance: (F + 1, F + 1) of the mean and the weights.
        centre, scale: (F,) of the features; scale 1 where a feature is the same for all items.
        residual_sd: () τ, of what features do not tell.
        weight_sd: () ω, of the weights.
    """

    mean: AnyArray
    weights: AnyArray
    covariance: AnyArray
    centre: AnyArray
    scale: AnyArray
    residual_sd: AnyArray
    weight_sd: AnyArray

    def predict(self, features: Float[AnyArray, "I F"]) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
        """Difficulties of items that nobody has answered: means and standard deviations (I,), residual included.

        Raises:
            InputError: another number of features, or values that are not finite.
        """
        features = np.asarray(features, np.float64)
        if features.ndim != 2 or features.shape[1] != len(self.weights):
            raise InputError(f"features of shape {features.shape}, expected {len(self.weights)} columns")
        if not np.isfinite(features).all():
            raise InputError("features that are not finite")
        design = _design((features - self.centre) / self.scale)
        variance = np.einsum("if,fg,ig->i", design, self.covariance, design)
        return design @ np.append(self.mean, self.weights), np.sqrt(variance + self.residual_sd**2)

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
    difficulty: Float[AnyArray, " I"], variance: Float[AnyArray, " I"], features: Float[AnyArray, "I F"]
) -> Regression:
    """Estimates a regression from difficulties that are known with errors.

        y_i = mean + w' z_i + r_i + e_i,    w_k ~ N(0, ω²),    r_i ~ N(0, τ²),    e_i ~ N(0, v_i)

    for features z in standard deviations; the mean has no prior. τ and ω are those under which y is likeliest, w and
    the mean integrated out (type II maximum likelihood; MacKay 1992), found by L-BFGS.

    Args:
        difficulty: (I,) y.
        variance: (I,) v, of their errors; infinite where nothing is known.
        features: (I, F) x.
    """
    import scipy.optimize  # takes a while to import, and few need it

    y, features = np.asarray(difficulty, np.float64), np.asarray(features, np.float64)
    noise = np.minimum(np.asarray(variance, np.float64), NEVER)
    y = np.where(noise < NEVER, y, 0.0)
    centre, scale = features.mean(0), features.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    design = _design((features - centre) / scale)
    usual = max(float(np.std(y[noise < NEVER])), 10 * LEAST)
    begin = np.log([usual, usual / np.sqrt(max(features.shape[1], 1))])
    bounds = [(np.log(LEAST), np.log(MOST))] * 2
    found = scipy.optimize.minimize(
        lambda logs: _minus_evidence(logs, y, noise, design), begin, jac=True, method="L-BFGS-B", bounds=bounds
    )
    residual_sd, weight_sd = np.exp(found.x)
    coefficients, covariance = _posterior(residual_sd, weight_sd, y, noise, design)[:2]
    mean, of_residual, of_weights = (np.asarray(value) for value in (coefficients[0], residual_sd, weight_sd))
    return Regression(mean, coefficients[1:], covariance, centre, scale, of_residual, of_weights)


def _design(standardised: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(standardised)), standardised])


def _posterior(
    residual_sd: float, weight_sd: float, y: np.ndarray, noise: np.ndarray, design: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Coefficients, their covariance, the precision of each y, and the log-determinant of their precision."""
    import scipy.linalg

    precision = 1 / (residual_sd**2 + noise)
    penalty = np.full(design.shape[1], weight_sd**-2.0)
    penalty[0] = 0
    factor = scipy.linalg.cho_factor((design * precision[:, None]).T @ design + np.diag(penalty), lower=True)
    covariance = scipy.linalg.cho_solve(factor, np.eye(design.shape[1]))
    return covariance @ (design.T @ (precision * y)), covariance, precision, 2 * np.log(np.diag(factor[0])).sum()


def _minus_evidence(logs: np.ndarray, y: np.ndarray, noise: np.ndarray, design: np.ndarray) -> tuple[float, np.ndarray]:
    """-2 log p(y | τ, ω) up to a constant, and its gradient in log τ and log ω."""
    residual_sd, weight_sd = np.exp(logs)
    coefficients, covariance, precision, log_determinant = _posterior(residual_sd, weight_sd, y, noise, design)
    rest, weights = y - design @ coefficients, coefficients[1:]
    number, of_weights = len(weights), covariance[1:, 1:].trace() + weights @ weights
    value = -np.log(precision).sum() + log_determinant + 2 * number * logs[1]
    value += (precision * rest**2).sum() + weights @ weights / weight_sd**2
    leverage = ((design @ covariance) * design).sum(1)
    by_variance = precision - precision**2 * (leverage + rest**2)
    gradient = np.array([2 * residual_sd**2 * by_variance.sum(), 2 * number - 2 * of_weights / weight_sd**2])
    return value, gradient
