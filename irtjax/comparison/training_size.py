"""A regression of right answers on difficulty and training-set size.

    logit P(right) = β0 + β1 b + β2 log n + β3 b log n

for a network that was trained on n examples and an item of difficulty b (Lalor, Wu, Munkhdalai and Yu 2018, 2.3).
"""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.stats import norm
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int, Shaped

TERMS = ("intercept", "difficulty", "log size", "difficulty × log size")
TENFOLD = float(np.log(10))
GROUPS = 10  # of items by difficulty


class LogOdds(NamedTuple):
    """A regression of right answers on difficulty and training-set size; sizes count examples, logs are natural.

    Attributes:
        estimate: (4,) β, in the order of `TERMS`.
        covariance: (4, 4) of the estimate, with errors clustered by network and by item.
        plain_standard_error: (4,) as if all answers were independent, which the published regression supposes.
        answers: that it was fitted to.
    """

    estimate: Float[np.ndarray, "4"]
    covariance: Float[np.ndarray, "4 4"]
    plain_standard_error: Float[np.ndarray, "4"]
    answers: int

    @property
    def standard_error(self) -> Float[np.ndarray, "4"]:
        """(4,) clustered."""
        return np.sqrt(np.diag(self.covariance))

    def at(self, difficulty: AnyArray | float, size: AnyArray | int | float) -> np.ndarray:
        """The log-odds of a right answer; arguments broadcast."""
        return np.tensordot(self.estimate, _terms(difficulty, size), 1)

    def of_tenfold(self, difficulty: float) -> "Contrast":
        """What ten times as many examples add to the log-odds of an item: (β2 + β3 b) log 10."""
        return self._contrast(np.array([0, 0, TENFOLD, TENFOLD * difficulty]))

    def of_logit(self, size: int | float) -> "Contrast":
        """What an item harder by one logit adds to the log-odds of a network: β1 + β3 log n."""
        return self._contrast(np.array([0, 1, 0, np.log(size)]))

    def coefficient(self, term: str) -> "Contrast":
        """One of the β, by its name in `TERMS`."""
        return self._contrast(np.eye(len(TERMS))[TERMS.index(term)])

    def table(self) -> pd.DataFrame:
        """One row per term.

        Columns `term, estimate, standard_error, plain_standard_error`, the ends `low` and `high` of the 95% interval by
        clustered errors, and `answers`.
        """
        contrasts = [self.coefficient(term) for term in TERMS]
        return pd.DataFrame(
            {
                "term": TERMS,
                "estimate": self.estimate,
                "standard_error": self.standard_error,
                "plain_standard_error": self.plain_standard_error,
                "low": [contrast.low for contrast in contrasts],
                "high": [contrast.high for contrast in contrasts],
                "answers": self.answers,
            }
        )

    def _contrast(self, weights: np.ndarray) -> "Contrast":
        half = float(norm.ppf(0.975) * np.sqrt(weights @ self.covariance @ weights))
        value = float(weights @ self.estimate)
        return Contrast(value, value - half, value + half)


class Contrast(NamedTuple):
    """A sum of coefficients with its 95% interval, by errors clustered by network and by item."""

    value: float
    low: float
    high: float


@checks_types
def regress(correct: Shaped[AnyArray, "J I"], difficulty: Float[AnyArray, " I"], sizes: Int[AnyArray, " J"]) -> LogOdds:
    """Fits the regression by maximum likelihood, all answers weighted alike.

    Standard errors are clustered in two ways, as the answers of one network, and those to one item, depend on each
    other: V = V_network + V_item (Cameron, Gelbach and Miller 2011, eq. 2.10, but for a term that they subtract: it is
    small where networks and items are many, and could make variances negative where they are few).

    Args:
        correct: (J, I) 1 right, 0 wrong.
        difficulty: (I,) b in logits, from elsewhere: not from these networks.
        sizes: (J,) n, examples that each network was trained on.

    Raises:
        InputError: fewer than two sizes or difficulties, or answers that are all right, all wrong, or told apart
            without error, so that there is no finite maximum.
    """
    correct, difficulty, sizes = np.asarray(correct, float), np.asarray(difficulty, float), np.asarray(sizes)
    for what, values in (("sizes", sizes), ("difficulties", difficulty)):
        if np.unique(values).size < 2:
            raise InputError(f"all {what} are the same: a regression on them needs two or more")
    if not np.isfinite(difficulty).all():
        raise InputError(f"difficulty of item number {int(np.argmin(np.isfinite(difficulty))) + 1}: not a number")
    if correct.min() == correct.max():
        raise InputError(f"all answers are {'right' if correct.max() else 'wrong'}: nothing to regress")
    network, item = (grid.ravel() for grid in np.indices(correct.shape))
    design = _terms(difficulty[item], sizes[network]).T
    model = sm.GLM(correct.ravel(), design, family=sm.families.Binomial())
    with warnings.catch_warnings(category=PerfectSeparationWarning, action="error"), np.errstate(over="ignore"):
        try:
            plain = model.fit()
            clustered = [
                model.fit(start_params=plain.params, cov_type="cluster", cov_kwds={"groups": groups}).cov_params()
                for groups in (network, item)
            ]
        except PerfectSeparationWarning as error:
            raise InputError("difficulty and size tell all right answers from all wrong ones") from error
    return LogOdds(plain.params, sum(clustered), plain.bse, correct.size)


def accuracy_by_size(correct: Shaped[AnyArray, "J I"], sizes: Int[AnyArray, " J"]) -> pd.DataFrame:
    """Shares of right answers by training-set size, the index: `mean` over its networks, their `std` and `size`."""
    return pd.Series(np.asarray(correct).mean(axis=1)).groupby(np.asarray(sizes)).agg(["mean", "std", "size"])


def observed_shares(
    model: LogOdds, correct: Shaped[AnyArray, "J I"], difficulty: Float[AnyArray, " I"], sizes: Int[AnyArray, " J"]
) -> pd.DataFrame:
    """Shares of right answers by training-set size and group of items, beside those of the regression.

    There are `GROUPS` groups of items, equally wide in logits; those without items are left out.

    Args:
        model: the regression.
        correct: (J, I), as in `regress`, as are the others.
        difficulty: (I,).
        sizes: (J,).

    Returns:
        One row per size and group: `size`; `low` and `high`, the difficulties at the ends of the group; `items` in it;
        `share` of right answers to them; and `by_regression`, the mean probability of a right answer by the model.
    """
    ends = np.linspace(difficulty.min(), difficulty.max(), GROUPS + 1)
    group = np.clip(np.searchsorted(ends, difficulty, side="right") - 1, 0, GROUPS - 1)
    rows = []
    for size in np.unique(sizes).tolist():
        right = correct[sizes == size].mean(0)
        for at in np.unique(group):
            chosen = group == at
            by_regression = (1 / (1 + np.exp(-model.at(difficulty[chosen], size)))).mean()
            rows.append((size, ends[at], ends[at + 1], int(chosen.sum()), right[chosen].mean(), by_regression))
    return pd.DataFrame(rows, columns=["size", "low", "high", "items", "share", "by_regression"])


def _terms(difficulty: AnyArray | float, size: AnyArray | int | float) -> np.ndarray:
    difficulty, log_size = np.broadcast_arrays(np.asarray(difficulty, float), np.log(np.asarray(size, float)))
    return np.stack([np.ones_like(log_size), difficulty, log_size, difficulty * log_size])
