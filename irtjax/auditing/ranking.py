"""Which subjects can be told apart? Ranks with simultaneous ranges, and the probability that A beats B."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import norm, rankdata

from irtjax.arguments import checks_types
from irtjax.auditing.told_apart import enough, number_below
from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.types import Float, Int, Shaped

LEAST_VARIANCE = 1e-300  # so that equal abilities without error are not told apart
MOST_COMPARED = 5000  # subjects with each other: a table of 200 MB


class Ranks(NamedTuple):
    """Ranks of subjects, 1 for the highest.

    Attributes:
        rank: (J,) by ability.
        best: (J,) the best rank that differences of abilities leave open, all such ranges at once.
        worst: (J,) the worst.
    """

    rank: Int[np.ndarray, " J"]
    best: Int[np.ndarray, " J"]
    worst: Int[np.ndarray, " J"]


def ranks(ability: Float[np.ndarray, " J"], error: Float[np.ndarray, " J"], level: float = 0.95) -> Ranks:
    """Ranks with simultaneous ranges: with probability `level` or more all true ranks are in theirs.

    Two subjects are told apart where (θ_A - θ_B) / √(se_A² + se_B²) is above a bound. It is the lowest at which no
    more than 1 - `level` of the orders so claimed are expected to be wrong, Σ Φ(-z) over their pairs, so that all of
    them hold at once with that probability (Bonferroni's inequality). The best rank of a subject is one more than the
    number of those above it, the worst J less the number of those below (Al Mohamad, Goeman and van Zwet 2022, with
    posterior probabilities in place of tests).

    Of more than 8,192 subjects the bound is by a grid of abilities and errors, and a little too high
    (`irtjax.auditing.told_apart.enough`): ranges are never too narrow, and wider by about a hundredth, by up to a
    twentieth where a few errors are far smaller than the others.

    Args:
        ability: means of posteriors; NaN for those who are not ranked: they have rank 0.
        error: standard deviations of independent normal posteriors.
        level: probability, 0 to 1.

    Raises:
        InputError: the level is out of range.
    """
    if not 0 < level < 1:
        raise InputError(f"`level` {level:g}: expected a number between 0 and 1")
    known = np.flatnonzero(np.isfinite(ability) & np.isfinite(error))
    theta, variance = ability[known], np.maximum(error[known] ** 2, LEAST_VARIANCE)
    far = enough(theta, variance, level)
    found = Ranks(*np.zeros((3, len(ability)), int))
    found.rank[known] = len(known) + 1 - rankdata(theta, method="max").astype(int)
    found.best[known] = 1 + number_below(-theta, variance, far)
    found.worst[known] = len(known) - number_below(theta, variance, far)
    return found


@checks_types
def ranking(fit: Fit, level: float = 0.95) -> pd.DataFrame:
    """Subjects by ability, with what the responses say of their ranks.

    Args:
        fit: of one dimension.
        level: probability with which all ranges of ranks, and all intervals of differences, hold at once.

    Returns:
        One row per subject, the most able first: `subject_id`, `rank`, `best_rank` and `worst_rank` (see `ranks`),
        `ability` and `ability_se` in logits, `lower` and `upper` of its 95% interval, and `p_beats_next`, the
        probability that it is more able than the next (`beats`).

    Raises:
        InputError: the fit has several dimensions, or the level is out of range.
    """
    ability, error = _abilities(fit)
    found = ranks(ability, error, level)
    order = np.argsort(-ability, kind="stable")
    following = np.append(order[1:], order[-1:])
    ahead = _above(ability[order], error[order], ability[following], error[following])
    ahead[-1:] = np.nan
    return pd.DataFrame(
        {
            "subject_id": fit.responses.subject_ids.astype(str)[order],
            "rank": found.rank[order],
            "best_rank": found.best[order],
            "worst_rank": found.worst[order],
            "ability": ability[order],
            "ability_se": error[order],
            "lower": (ability - norm.ppf(0.975) * error)[order],
            "upper": (ability + norm.ppf(0.975) * error)[order],
            "p_beats_next": ahead,
        }
    )


@checks_types
def beats(fit: Fit, subjects: Sequence[str | int] | None = None) -> pd.DataFrame:
    """P(θ_A > θ_B) of pairs of subjects: Φ((θ_A - θ_B) / √(se_A² + se_B²)), from their posteriors.

    It is about abilities on what all items measure. Scores on a few items differ by chance as well.

    Args:
        fit: of one dimension.
        subjects: ids of those to compare; None for all, up to 5,000.

    Returns:
        A square table by subject: the row beats the column. 1/2 on the diagonal.

    Raises:
        InputError: the fit has several dimensions, an id that is not there, or too many subjects.
    """
    ability, error = _abilities(fit)
    at = places(fit.responses.subject_ids, subjects)
    names = fit.responses.subject_ids.astype(str)[at]
    ability, error = ability[at], error[at]
    return pd.DataFrame(_above(ability[:, None], error[:, None], ability, error), names, names)


def _above(ability: np.ndarray, error: np.ndarray, other: np.ndarray, other_error: np.ndarray) -> np.ndarray:
    """Probability that the one ability is above the other."""
    return ndtr((ability - other) / np.sqrt(error**2 + other_error**2))


def _abilities(fit: Fit) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Abilities and their standard errors.

    Raises:
        InputError: the fit has several dimensions.
    """
    if fit.ability.ndim > 1:
        raise InputError(f"the fit has {fit.ability.shape[1]} dimensions: subjects are ranked by one")
    return np.asarray(fit.ability, float), np.asarray(fit.ability_se, float)


def places(ids: Shaped[np.ndarray, " J"], subjects: Sequence[str | int] | None) -> Int[np.ndarray, " N"]:
    """Where subjects are.

    Raises:
        InputError: one is not there, or there are too many.
    """
    index = pd.Index(ids.astype(str))
    if subjects is None:
        at = np.arange(len(index))
    else:
        at = index.get_indexer([str(one) for one in subjects])
        if (at < 0).any():
            raise InputError(f"no subject '{list(subjects)[int(np.argmax(at < 0))]}'")
    if len(at) > MOST_COMPARED:
        raise InputError(f"{len(at):,} subjects are compared with each other: name up to {MOST_COMPARED:,} `subjects`")
    return at
