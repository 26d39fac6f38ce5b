"""How precisely a scale measures at each ability, and which few items measure best."""

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters, information, probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.scale.sum_scores import score_distribution
from irtjax.types import Float, Int, Shaped

GRID = np.linspace(-4, 4, 161)
RANGE = (-2.0, 2.0)


def information_table(
    items: ItemParameters, item_ids: Shaped[np.ndarray, " I"], theta: Float[np.ndarray, " Q"] = GRID
) -> pd.DataFrame:
    """Information about the ability.

        I(θ) = Σ_i P_i'(θ)² / (P_i (1 - P_i)),   SE(θ) = 1/sqrt(I(θ))

    (Birnbaum 1968). The information of the population, 1, is not included.

    Returns:
        One row per ability: `theta`, `test`, `standard_error`, and one column per item.
    """
    each = np.asarray(information(items, theta[:, None]))
    total = each.sum(1)
    frame = pd.DataFrame({"theta": theta, "test": total, "standard_error": total**-0.5})
    return pd.concat([frame, pd.DataFrame(each, columns=[str(item) for item in item_ids])], axis=1)


def dominant(items: ItemParameters) -> int:
    """Position of the item with the most information at the maximum of the test's."""
    each = np.asarray(information(items, GRID[:, None]))
    return int(each[each.sum(1).argmax()].argmax())


def range_above(table: pd.DataFrame, least: float) -> tuple[float, float] | None:
    """Lowest and highest ability of the widest range with more information than `least`; None if there is none.

    Args:
        table: from `information_table`.
        least: information; its standard error is 1/sqrt(least).
    """
    above = np.concatenate([[0], (table["test"].to_numpy() > least).astype(int), [0]])
    begins, ends = np.flatnonzero(np.diff(above) == 1), np.flatnonzero(np.diff(above) == -1)
    if not begins.size:
        return None
    widest, theta = int((ends - begins).argmax()), table["theta"].to_numpy()
    return float(theta[begins[widest]]), float(theta[ends[widest] - 1])


def marginal_reliability(items: ItemParameters) -> float:
    """Reliability of the ability given the number s of right answers: 1 - E Var(θ | s) in a standard normal population.

    Exact (`score_table`); the pattern of answers tells a little more than their number.
    """
    table = score_table(items)
    return float(1 - table["share"] @ table["ability_se"] ** 2)


def short_form(
    items: ItemParameters, size: int, rule: str = "information", ability_range: tuple[float, float] = RANGE
) -> Int[np.ndarray, " size"]:
    """Positions of the items that measure best, the best first.

    Args:
        items: of the scale.
        size: number of items, at least 1 and at most all.
        rule: "information", the largest mean information over the range of abilities, or "slope", the largest slopes.
        ability_range: lowest and highest ability that the short form is for.

    Raises:
        InputError: the size is impossible, or the rule unknown.
    """
    number = len(items.intercept)
    if not 1 <= size <= number:
        raise InputError(f"a short form of {size} items, expected 1 to {number}, what the scale has")
    if rule == "information":
        worth = np.asarray(information(items, np.linspace(*ability_range, 81)[:, None])).mean(0)
    elif rule == "slope":
        worth = np.asarray(items.slope)[:, 0]
    else:
        raise InputError(f"unknown rule {rule!r} for the short form, expected information or slope")
    return np.argsort(-worth, kind="stable")[:size]


def score_table(items: ItemParameters) -> pd.DataFrame:
    """The ability that each number of right answers stands for.

    Returns:
        One row per score s = 0 … I. `ability` and `ability_se` are the mean and standard deviation of θ given the sum
        score (summed-score EAP: Thissen, Pommerich, Billeaud and Williams 1995, eq. 8), `share` is the share of the
        population that has the score, and `percentile` the percentage of the population with a lower score, plus half
        of those with the same score.
    """
    quadrature = rectangular()
    p = np.asarray(probabilities(items, quadrature.nodes)[0])
    theta = quadrature.nodes[:, 0]
    joint = score_distribution(p) * np.exp(quadrature.log_weights)
    share = joint.sum(1)
    mean = joint @ theta / share
    sd = np.sqrt(np.maximum(joint @ theta**2 / share - mean**2, 0))
    return pd.DataFrame(
        {
            "score": np.arange(len(share)),
            "ability": mean,
            "ability_se": sd,
            "share": share,
            "percentile": 100 * (np.cumsum(share) - share / 2),
        }
    )
