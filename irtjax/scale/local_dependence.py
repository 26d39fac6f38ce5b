"""Do two items share more than the ability explains? Correlations of residuals (Q3)."""

import numpy as np
import pandas as pd
from scipy.stats import norm

from irtjax.scale.forms import FEWEST as FEWEST_OF_TEST
from irtjax.scale.multiple_tests import holm
from irtjax.scale.residual_products import product_p_values
from irtjax.types import Bool, Float

FEWEST = 4  # subjects that a correlation needs
DOUBTFUL = 0.05  # p-values below which the tails of a normal distribution are not trusted
LEAST_VARIANCE = 1e-12


def q3(residuals: Float[np.ndarray, "J I"], observed: Bool[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """Correlations of residuals of two items over the subjects that answered both (Yen 1984).

    Args:
        residuals: responses less what is expected at the estimated abilities.
        observed: which responses there are.

    Returns:
        NaN where fewer than four subjects answered both, or a residual does not vary.
    """
    seen = observed.astype(float)
    x = np.where(observed, residuals, 0.0)
    x = x - np.where(observed, x.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.0)
    n = seen.T @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (x.T @ seen) / n
        square = (x**2).T @ seen / n - mean**2
        found = (x.T @ x / n - mean * mean.T) / np.sqrt(square * square.T)
    return np.where((n >= FEWEST) & (square > 0) & (square.T > 0), found, np.nan)


def expected_q3(
    slope: Float[np.ndarray, "J I"],
    variance: Float[np.ndarray, "J I"],
    observed: Float[np.ndarray, "J I"],
    population_sd: float,
) -> Float[np.ndarray, "I I"]:
    """What Q3 of locally independent items is, since abilities are estimated from the responses.

    To first order θ̂ - θ = (Σ_i s_i - (θ - mean) / σ²) / T with the scores s and T = Σ_i E_i'² / V_i + 1 / σ², so that
    the residuals y - E(θ̂) of two items have the covariance -E_i' E_j' / T and variances V_i - E_i'² / T. These are
    averaged over the subjects. It is about -1 / (I - 1), more for items that discriminate.

    Args:
        slope: E', what is expected by ability.
        variance: V of a response.
        observed: trials of each response, 0 where there is none.
        population_sd: σ; infinite where abilities are not drawn towards a population.
    """
    seen = (observed > 0).astype(float)
    variance = np.where(observed > 0, variance / np.maximum(observed, 1.0), 1.0)
    slope = slope * seen
    total = (slope**2 / np.maximum(variance, LEAST_VARIANCE)).sum(axis=1) + population_sd**-2.0
    n = seen.T @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        part = slope / np.sqrt(total)[:, None]
        own = np.maximum(seen * variance - part**2, 0.0)
        return -(part.T @ part) / n / np.sqrt((own.T @ seen / n) * (seen.T @ own / n))


def with_saddlepoint(
    table: pd.DataFrame,
    p: Float[np.ndarray, "J I"],
    residuals: Float[np.ndarray, "J I"],
    expected: Float[np.ndarray, "I I"],
    observed: Bool[np.ndarray, "J I"],
) -> pd.DataFrame:
    """The table of `pair_table` of right and wrong answers, with p-values below `DOUBTFUL` by the saddlepoint.

    The sum of the products of the residuals, less what is expected, is compared with its distribution given the
    probabilities (`residual_products`). Elsewhere Fisher's z is near enough.
    """
    doubtful = np.flatnonzero(table["p_value"] < DOUBTFUL)
    first, second = (table[name].to_numpy()[doubtful] for name in ("first", "second"))
    x, both = np.where(observed, residuals, 0.0), observed.astype(float)
    total, norm_of = np.empty(len(first)), np.empty(len(first))
    for at, (i, k) in enumerate(zip(first, second, strict=True)):
        seen = observed[:, i] & observed[:, k]
        total[at] = x[seen, i] @ x[seen, k]
        norm_of[at] = np.sqrt((x[seen, i] @ x[seen, i]) * (x[seen, k] @ x[seen, k]))
    p_value = table["p_value"].to_numpy(copy=True)
    found = product_p_values(p, both, first, second, total - expected[first, second] * norm_of)
    p_value[doubtful] = np.maximum(found, p_value[doubtful])
    return table.assign(p_value=p_value, p_holm=holm(p_value))


def pair_table(
    correlations: Float[np.ndarray, "I I"],
    expected: Float[np.ndarray, "I I"],
    observed: Bool[np.ndarray, "J I"],
    tested: Bool[np.ndarray, " I"],
) -> pd.DataFrame:
    """One row per pair, the most dependent first: `q3`, its excess over what is expected, and how sure that is.

    The p-value is by Fisher's z, (atanh Q3 - atanh of the expected) sqrt(n - 3), as if residuals were a normal sample.
    Pairs with an item that is not `tested`, and those that fewer than 30 subjects answered, have none, and come last.
    """
    first, second = np.triu_indices(len(correlations), 1)
    values, model = correlations[first, second], expected[first, second]
    seen = observed.astype(float)
    n = (seen.T @ seen)[first, second]
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (np.arctanh(values) - np.arctanh(model)) * np.sqrt(n - 3)
    z = np.where(tested[first] & tested[second] & (n >= FEWEST_OF_TEST), z, np.nan)
    p_value = 2 * norm.sf(np.abs(z))
    table = pd.DataFrame(
        {
            "first": first,
            "second": second,
            "num_subjects": n.astype(int),
            "q3": values,
            "q3_excess": values - model,
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    )
    order = np.lexsort([-np.nan_to_num(np.abs(values - model), nan=-1.0), -np.nan_to_num(np.abs(z), nan=-1.0)])
    return table.iloc[order].reset_index(drop=True)
