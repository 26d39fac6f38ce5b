"""A population whose mean depends on what is known of each subject: latent regression (Mislevy 1984)."""

import dataclasses
from typing import NamedTuple

import numpy as np

from irtjax.populations.normal import Population
from irtjax.populations.several import SeveralPopulations
from irtjax.types import AnyArray, Float, Shaped


class LatentRegression(NamedTuple):
    """Ability is θ = x'γ + ε, with predictors x of each subject and ε ~ N(0, σ²), independent in D dimensions.

    Nodes stay where they are, in units of the scale, and each subject weighs them by its own density:

        log N(θ; m, σ²) = -θ²/2σ² + m θ/σ² - m²/2σ² + constant,     m = x'γ,

    of which the middle part alone depends on both node and subject.

    Attributes:
        mean: (C, D) γ, by how much the mean differs with each predictor.
        sd: (D,) σ; 1 unless anchors set the unit.
    """

    mean: Float[np.ndarray, "C D"]
    sd: Float[np.ndarray, " D"]

    @property
    def unit(self) -> Float[np.ndarray, " D"]:
        """What nodes are laid out in: logits of the scale."""
        return np.ones(self.mean.shape[1])

    def place(self, nodes: Float[np.ndarray, "Q D"]) -> Float[np.ndarray, "Q D"]:
        """Nodes of a standard normal distribution on the scale of ability: where they are."""
        return nodes

    def log_weights(
        self, nodes: Float[np.ndarray, "Q D"], log_weights: Float[np.ndarray, " Q"]
    ) -> Float[np.ndarray, "Q columns"]:
        """Of the nodes: what all subjects have, and what each has by each of its C predictors.

        What is the same at all nodes of a subject is left out (`constants`).
        """
        for_all = log_weights + 0.5 * (nodes**2).sum(axis=1) - 0.5 * ((nodes / self.sd) ** 2).sum(axis=1)
        return np.concatenate([(for_all - np.log(self.sd).sum())[:, None], nodes / self.sd**2 @ self.mean.T], axis=1)

    def constants(self, predictors: Float[AnyArray, "J C"]) -> Float[AnyArray, " J"]:
        """-m²/2σ² of each subject, which `log_weights` leaves out."""
        return -0.5 * ((predictors @ self.mean / self.sd) ** 2).sum(axis=1)

    def rescaled(self, origin: float, unit: float) -> "LatentRegression":
        """On a scale of ability whose origin and unit are these of the present one; that of ε has its own."""
        del origin
        return self._replace(mean=self.mean / unit)

    def on(self, shift: float, unit: float) -> "LatentRegression":
        """Of abilities so many times as large, and then shifted; the first predictor is 1 of every subject."""
        mean = unit * self.mean
        mean[0] += shift
        return LatentRegression(mean, unit * self.sd)

    def of_scale(
        self, moments: Float[np.ndarray, "J two_D"], predictors: Float[np.ndarray, "J C"]
    ) -> Float[np.ndarray, "J two_D"]:
        """Means of the posteriors and of squares, of what the scale is that of: ε."""
        mean = predictors @ self.mean
        first, second = np.split(moments, 2, axis=1)
        return np.concatenate([first - mean, second - 2 * mean * first + mean**2], axis=1)

    def score(
        self, moments: Float[np.ndarray, "J two_D"], predictors: Float[np.ndarray, "J C"]
    ) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """Gradient and information of complete data, in γ and then log σ: P = C D + D.

        Σ x E ε/σ² and Σ E ε²/σ² - 1, and Σ x²/σ² and 2 J. That of predictors is diagonal where these are orthogonal.

        Args:
            moments: means of the posteriors, and of squares.
            predictors: of each subject.
        """
        first, second = np.split(self.of_scale(moments, predictors), 2, axis=1)
        by_mean = predictors.T @ first / self.sd**2
        by_log_sd = (second / self.sd**2 - 1).sum(axis=0)
        information = (predictors**2).sum(axis=0)[:, None] / self.sd**2, np.full(self.sd.shape, 2.0 * len(predictors))
        return (
            np.concatenate([by_mean.ravel(), by_log_sd]),
            np.concatenate([information[0].ravel(), information[1]]),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class FittedLatentRegression(SeveralPopulations):
    """A latent regression as a fit reports it, with standard errors.

    Attributes:
        names: (C,) of predictors: a covariate, or "covariate=category" for a category other than the first.
        origins: (C,) where each counts from: the mean of numbers, 0 of a category.
        coefficients: (C, D) in logits of the scale that is reported.
        coefficients_se: (C, D) standard errors, NaN where they are not known.
        intercept: (D,) mean ability where every predictor is at its origin; 0 unless anchors set the scale.
        intercept_se: (D,) its standard error; 0 where it is fixed.
        residual_sd: (D,) standard deviation of what predictors leave of ability.
        residual_sd_se: (D,) its standard error; 0 where the scale fixes it.
        means: (J, D) mean ability of subjects with the covariates of each one.
    """

    names: Shaped[np.ndarray, " C"]
    origins: Float[np.ndarray, " C"]
    coefficients: Float[np.ndarray, "C D"]
    coefficients_se: Float[np.ndarray, "C D"]
    intercept: Float[np.ndarray, " D"]
    intercept_se: Float[np.ndarray, " D"]
    residual_sd: Float[np.ndarray, " D"]
    residual_sd_se: Float[np.ndarray, " D"]
    means: Float[np.ndarray, "J D"]

    @property
    def first(self) -> Population:
        """That of subjects with every predictor at its origin, which sets the scale."""
        return Population(self.intercept, self.residual_sd)

    @property
    def explained(self) -> Float[np.ndarray, " D"]:
        """Share of the variance of ability among the subjects that covariates explain, Var x'β / (Var x'β + σ²)."""
        variance = self.means.var(axis=0)
        return variance / (variance + self.residual_sd**2)

    @property
    def why_several(self) -> str:
        """What a user is told who asks for the population of all subjects."""
        return "this needs a fit of one population, and in this fit it depends on covariates: fit without `covariates`"
