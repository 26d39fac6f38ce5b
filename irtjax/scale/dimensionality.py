"""How many dimensions does a test have? Eigenvalues against those of noise, and one factor against two."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.comparison.likelihood_ratio import ratio
from irtjax.estimation.families import fit_families
from irtjax.estimation.mml import fit_mml
from irtjax.fits.result import Fit
from irtjax.kernels.quadrature import nodes_per_dimension
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.values import OnScales, on_scales
from irtjax.scale.forms import patterns
from irtjax.scale.polychoric import of_categories
from irtjax.scale.tetrachoric import positive_definite, tetrachoric
from irtjax.types import Float, Int

QUANTILE = 0.95
LONG = 100  # items
TOLERANCE = 1e-2  # of the fits, in standard errors: far below the differences of their log-likelihoods


class ParallelAnalysis(NamedTuple):
    """Eigenvalues of the tetrachoric or polychoric correlations, in descending order.

    Attributes:
        observed: of the responses.
        noise: 95% quantiles of the eigenvalues of independent items with the same margins.
        num_factors: number of observed eigenvalues above those of noise, before the first that is not.
    """

    observed: Float[np.ndarray, " I"]
    noise: Float[np.ndarray, " I"]
    num_factors: int

    @property
    def ratio(self) -> float:
        """First over second observed eigenvalue."""
        return float(self.observed[0] / self.observed[1])


@checks_types
def parallel_analysis(values: Int[np.ndarray, "J I"], seed: int = 0, replications: int = 20) -> ParallelAnalysis:
    """Compares eigenvalues with those of noise (Horn 1965).

    Noise is made from the responses: those to each item are shuffled among the subjects (Buja and Eyuboglu 1992) who
    answered the same items.

    Args:
        values: responses; each item has right and wrong answers, and every two have subjects in common. Or categories
            from 0, in order, of which an item has more than two: then correlations are polychoric.
        seed: of the shuffles.
        replications: number of shuffles.
    """
    generator = np.random.default_rng(seed)
    observed = _eigenvalues(values)
    shuffled = [_eigenvalues(_shuffled(values, generator)) for _ in range(replications)]
    noise = np.quantile(shuffled, QUANTILE, axis=0)
    below = observed <= noise
    return ParallelAnalysis(observed, noise, int(np.argmax(below)) if below.any() else len(observed))


def _shuffled(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    result = np.empty_like(values)
    for rows, _ in patterns(values):
        result[rows] = generator.permuted(values[rows], axis=0)
    return result


def _eigenvalues(values: np.ndarray) -> np.ndarray:
    correlations = tetrachoric if values.max() <= 1 else of_categories
    return np.linalg.eigvalsh(positive_definite(correlations(values)))[::-1]


class Factors(NamedTuple):
    """One factor against two.

    Attributes:
        one: the fit of one factor.
        two: that of two.
        table: one row per fit: `factors`, `log_likelihood`, `num_parameters`, `aic`, `bic`, `sabic`, `converged`.
        likelihood_ratio: twice the difference of the log-likelihoods.
        degrees_of_freedom: of the likelihood ratio.
        p_value: of the likelihood ratio.
        num_factors: 1 or 2, whichever has the lower BIC.
    """

    one: Fit
    two: Fit
    table: pd.DataFrame
    likelihood_ratio: float
    degrees_of_freedom: int
    p_value: float
    num_factors: int


@checks_types
def compare_factors(
    responses: ResponseMatrix | OnScales,
    model: str = "3pl",
    guessing: Float[np.ndarray, " I"] | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Factors:
    """Fits the compensatory model with one and with two factors, and compares the fits.

    Args:
        responses: to at least three items.
        guessing: see `irtjax.scale.procedure.ScaleOptions`.
        model: "2pl" or "3pl". The 3PL has the usual prior on guessing with one factor and with two; its log-likelihoods
            are those at the posterior modes and may be below those of the 2PL. Of `ScaledResponses` "graded" or "gpcm".
        on_step: called with a few words on what is being done.
    """
    # finer nodes, the default for long tests, take minutes and change the log-likelihoods by less than they differ
    nodes = nodes_per_dimension(2) if responses.num_items > LONG else None
    scaled = on_scales(responses)
    estimate: Callable[..., Fit] = fit_families if scaled else fit_mml
    own: dict[str, Any] = {} if scaled else {"guessing": guessing}
    one, two = (
        estimate(
            responses,
            model,
            dims=dims,
            num_nodes=number,
            tolerance=TOLERANCE,
            standard_errors=False,
            on_iteration=_saying(what, on_step),
            **own,
        )
        for dims, number, what in ((1, None, "one factor"), (2, nodes, "two factors"))
    )
    table = pd.DataFrame(
        {
            "factors": number,
            "log_likelihood": fit.log_likelihood,
            "num_parameters": fit.num_parameters,
            **fit.information_criteria(),
            "converged": fit.converged,
        }
        for number, fit in ((1, one), (2, two))
    )
    test = ratio(one, two)  # under the same priors, where there are some
    return Factors(
        one, two, table, test.statistic, test.degrees_of_freedom, test.p_value, 1 + int(np.argmin(table["bic"]))
    )


def _saying(what: str, on_step: Callable[[str], None]) -> Callable[[int, float], None]:
    """What a fit is to call at each step, so that these words and the number of the step are passed on."""
    return lambda step, _: on_step(f"{what}, step {step}")
