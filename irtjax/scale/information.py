"""How precisely a scale measures at each ability, and which few items measure best.

Items are right or wrong, `ItemParameters`, or of grades, `KnownItems`. A score is then the sum of the categories.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters, information, probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.responses.scaled import Scale
from irtjax.scale.sum_scores import of_right, sum_distribution
from irtjax.scoring.family_items import KnownItems
from irtjax.scoring.family_worth import categories_at, information_at
from irtjax.types import Float, Int, Shaped

GRID = np.linspace(-4, 4, 161)
RANGE = (-2.0, 2.0)
Items = ItemParameters | KnownItems


def of_each(items: Items, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
    """Information of each item at abilities."""
    if isinstance(items, KnownItems):
        return information_at(items, theta)
    return np.asarray(information(items, theta[:, None]))


def lowest_score(scales: Sequence[Scale]) -> int:
    """The sum of the lowest responses to items: of grades that are whole numbers, one after the other, else 0."""
    labels = [scale.labels or () for scale in scales]
    whole = all(isinstance(label, int) for each in labels for label in each)
    if not whole or any(each != tuple(range(each[0], each[0] + len(each))) for each in labels):
        return 0
    return sum(each[0] for each in labels)


def information_table(
    items: Items, item_ids: Shaped[np.ndarray, " I"], theta: Float[np.ndarray, " Q"] = GRID
) -> pd.DataFrame:
    """Information about the ability.

        I(θ) = Σ_i P_i'(θ)² / (P_i (1 - P_i)),   SE(θ) = 1/sqrt(I(θ))

    (Birnbaum 1968). The information of the population, 1, is not included.

    Returns:
        One row per ability: `theta`, `test`, `standard_error`, and one column per item.
    """
    each = of_each(items, theta)
    total = each.sum(1)
    frame = pd.DataFrame({"theta": theta, "test": total, "standard_error": total**-0.5})
    return pd.concat([frame, pd.DataFrame(each, columns=[str(item) for item in item_ids])], axis=1)


def dominant(items: Items) -> int:
    """Position of the item with the most information at the maximum of the test's."""
    each = of_each(items, GRID)
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


def marginal_reliability(items: Items) -> float:
    """Reliability of the ability given the sum score s: 1 - E Var(θ | s) in a standard normal population.

    Exact (`score_table`); the pattern of answers tells a little more than their sum.
    """
    table = score_table(items)
    return float(1 - table["share"] @ table["ability_se"] ** 2)


def short_form(
    items: Items, size: int, rule: str = "information", ability_range: tuple[float, float] = RANGE
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
    number = len(items.item_ids if isinstance(items, KnownItems) else items.intercept)
    if not 1 <= size <= number:
        raise InputError(f"a short form of {size} items, expected 1 to {number}, what the scale has")
    if rule == "information":
        worth = of_each(items, np.linspace(*ability_range, 81)).mean(0)
    elif rule == "slope":
        worth = np.asarray(items.parameters.slope if isinstance(items, KnownItems) else items.slope)[:, 0]
    else:
        raise InputError(f"unknown rule {rule!r} for the short form, expected information or slope")
    return np.argsort(-worth, kind="stable")[:size]


def score_table(items: Items) -> pd.DataFrame:
    """The ability that each number of right answers, or sum of grades, stands for.

    Returns:
        One row per score s, from the lowest (`lowest_score`) to the highest. `ability` and `ability_se` are the mean
        and standard deviation of θ given the sum score (summed-score EAP: Thissen, Pommerich, Billeaud and Williams
        1995, eq. 8), `share` is the share of the population that has the score, and `percentile` the percentage of the
        population with a lower score, plus half of those with the same score.
    """
    quadrature = rectangular()
    theta = quadrature.nodes[:, 0]
    if isinstance(items, KnownItems):
        p, top = categories_at(items, theta), np.array([scale.top for scale in items.scales])
    else:
        p = of_right(np.asarray(probabilities(items, quadrature.nodes)[0]))
        top = np.ones(p.shape[1], int)
    joint = sum_distribution(p, top) * np.exp(quadrature.log_weights)
    share = joint.sum(1)
    mean = joint @ theta / share
    sd = np.sqrt(np.maximum(joint @ theta**2 / share - mean**2, 0))
    return pd.DataFrame(
        {
            "score": np.arange(len(share)) + (lowest_score(items.scales) if isinstance(items, KnownItems) else 0),
            "ability": mean,
            "ability_se": sd,
            "share": share,
            "percentile": 100 * (np.cumsum(share) - share / 2),
        }
    )
