"""How precisely a scale measures, where, and which few items measure best."""

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters, information, probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.scale.sum_scores import score_distribution

GRID = np.linspace(-4, 4, 161)
RANGE = (-2.0, 2.0)


def information_table(items: ItemParameters, item_ids: np.ndarray, theta: np.ndarray = GRID) -> pd.DataFrame:
    """Information about the ability, a row an ability: `theta`, `test`, `standard_error`, and a column an item.

        I(θ) = Σ_i P_i'(θ)² / (P_i (1 - P_i)),   SE(θ) = 1/sqrt(I(θ))

    (Birnbaum 1968); the population's own information, 1, is not in it.
    """
    each = information(items, theta[:, None])
    total = each.sum(1)
    frame = pd.DataFrame({"theta": theta, "test": total, "standard_error": total**-0.5})
    return pd.concat([frame, pd.DataFrame(each, columns=[str(item) for item in item_ids])], axis=1)


def marginal_reliability(items: ItemParameters) -> float:
    """Reliability of the ability that a number right says, in a standard normal population: 1 - E Var(θ | s).

    Exact (`score_table`); the pattern of answers says a little more than their number.
    """
    table = score_table(items)
    return float(1 - table["share"] @ table["ability_se"] ** 2)


def short_form(
    items: ItemParameters, size: int, rule: str = "information", ability_range: tuple[float, float] = RANGE
) -> np.ndarray:
    """Positions (K,) of the K items that measure best, the best first.

    Args:
        items: of the scale.
        size: K, at least 1 and at most all.
        rule: "information", the largest mean information over the range of abilities, or "slope", the largest slopes.
        ability_range: lowest and highest ability that the short form is for.

    Raises:
        InputError: a size or a rule that is not possible.
    """
    number = len(items.intercept)
    if not 1 <= size <= number:
        raise InputError(f"a short form of {size} items, expected 1 to {number}, what the scale has")
    if rule == "information":
        worth = information(items, np.linspace(*ability_range, 81)[:, None]).mean(0)
    elif rule == "slope":
        worth = np.asarray(items.slope)[:, 0]
    else:
        raise InputError(f"unknown rule {rule!r} for the short form, expected information or slope")
    return np.argsort(-worth, kind="stable")[:size]


def choose(items: ItemParameters, positions: np.ndarray) -> ItemParameters:
    """The parameters of some items."""
    return ItemParameters(*(np.asarray(leaf)[positions] for leaf in items))


def score_table(items: ItemParameters) -> pd.DataFrame:
    """What a number of right answers says: a row a score s = 0 … I.

    `ability` and `ability_se` are the mean and standard deviation of θ given the sum score (summed-score EAP: Thissen,
    Pommerich, Billeaud and Williams 1995, eq. 8), `share` what share of the population has the score, and `percentile`
    the percentage of the population with a lower score, those with the same counted half.
    """
    quadrature = rectangular()
    p, _ = probabilities(items, quadrature.nodes)
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
