"""Which items of a benchmark deserve a look, and why."""

from typing import Any

import numpy as np
import pandas as pd

from irtjax.auditing.contamination import Contamination
from irtjax.auditing.reasons import (
    DEPENDENT,
    DOUBTFUL,
    FALLING,
    FLAT,
    HIGHEST,
    KNOWN,
    LOWEST,
    MISFIT,
    REASONS,
)
from irtjax.fits.result import Z_95, Fit
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.values import on_scales
from irtjax.scale.information import of_each
from irtjax.scoring.family_items import known_items
from irtjax.types import Bool, Float

FLATTER = 0.3  # logits in a standard deviation of the population, that the interval of a flat slope is below
DEPARTS = 0.1  # root mean square difference of observed and expected curves (Köhler, Robitzsch and Hartig 2020)
SHARES = 0.2  # of Q3 above its expectation (Christensen, Makransky and Horton 2017)
ENOUGH = 0.01  # of reliability, which items that are not needed may cost


def findings(
    fit: Fit,
    keys: pd.DataFrame | None,
    fits: pd.DataFrame | None,
    pairs: pd.DataFrame | None,
    exposed: Contamination | None,
    level: float,
) -> pd.DataFrame:
    """Items with what is known of them, and reasons to look at them.

    Args:
        fit: of the responses, of one dimension.
        keys: of `irtjax.auditing.wrong_keys.wrong_keys`.
        fits: of `irtjax.item_fit`.
        pairs: of `irtjax.local_dependence`.
        exposed: of `irtjax.auditing.contamination.contamination`.
        level: of adjusted p-values.

    Returns:
        One row per item in the order of the fit; the columns are those of `irtjax.auditing.audit.Audit.items`.
    """
    ids = fit.responses.item_ids.astype(str)
    share, needed = information_shares(fit)
    slope = fit.item_columns.get("discrimination", np.full(len(ids), np.nan))
    error = fit.item_columns.get("discrimination_se", np.full(len(ids), np.nan))
    mean = _means(fit)
    table = pd.DataFrame(
        {
            "item_id": ids,
            "reasons": "",
            "mean_response": mean,
            "difficulty": fit.item_columns.get("difficulty", np.full(len(ids), np.nan)),
            "discrimination": slope,
            "discrimination_se": error,
            "information": share,
            "needed": needed,
        }
    )
    extreme = fit.extreme
    flat = (np.abs(slope) + Z_95 * error) * float(np.squeeze(fit.reference.sd)) < FLATTER
    reasons: dict[str, Bool[np.ndarray, " I"]] = {
        FALLING: slope + Z_95 * error < 0,
        FLAT: flat & ~extreme,
        LOWEST: extreme & (mean < np.nanmean(mean)),
        HIGHEST: extreme & (mean >= np.nanmean(mean)),
    }
    if keys is not None:
        table = table.join(keys.set_index("item_id"), on="item_id")
        reasons[DOUBTFUL] = (keys["p_wrong_key"] > 0.5).to_numpy()
    if fits is not None:
        table["p_misfit"] = fits["p_holm"].to_numpy()
        reasons[MISFIT] = ((fits["p_holm"] < level) & (fits["rmsd"] > DEPARTS)).to_numpy()
    if pairs is not None:
        table["depends_on"] = _most_dependent(pairs, ids, level)
        reasons[DEPENDENT] = (table["depends_on"] != "").to_numpy()
    if exposed is not None:
        gains = exposed.items.set_index("item_id")
        table["gain"] = gains["gain"].reindex(ids).to_numpy()
        reasons[KNOWN] = (gains["p_adjusted"].reindex(ids) < level).to_numpy()
    given = [[name for name in REASONS if name in reasons and reasons[name][i]] for i in range(len(ids))]
    return table.assign(reasons=["; ".join(one) for one in given])


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Items by what speaks against them: by the first of their reasons, then by the evidence of a wrong key."""
    first = table["reasons"].str.split("; ").str[0].map({name: k for k, name in enumerate(REASONS)})
    evidence = table.get("evidence", pd.Series(0.0, table.index))
    order = np.lexsort([-evidence, first.fillna(len(REASONS))])
    return table.iloc[order].reset_index(drop=True)


def count(table: pd.DataFrame) -> dict[str, int]:
    """How many items have each of the reasons."""
    return {name: int(table["reasons"].str.split("; ").apply(lambda some, n=name: n in some).sum()) for name in REASONS}


def information_shares(fit: Fit) -> tuple[Float[np.ndarray, " I"], Bool[np.ndarray, " I"]]:
    """What share of the mean information in the population each item has, and which are needed.

    Needed are the fewest items, the most informative first, with reliability E[I / (I + 1/σ²)] within `ENOUGH` of that
    of all.
    """
    population, rule = fit.reference, gauss_hermite(21)
    sd = float(np.squeeze(population.sd))
    theta, weights = float(np.squeeze(population.mean)) + sd * rule.nodes[:, 0], np.exp(rule.log_weights)
    each = np.nan_to_num(of_each(known_items(fit) or fit.parameters, theta))
    mean = weights @ each
    order = np.argsort(-mean, kind="stable")
    total = np.cumsum(each[:, order], axis=1)
    reliability = weights @ (total / (total + sd**-2.0))
    number = int(np.argmax(reliability >= reliability[-1] - ENOUGH)) + 1
    needed = np.zeros(len(order), bool)
    needed[order[:number]] = True
    return mean / max(mean.sum(), 1e-300), needed


def _means(fit: Fit) -> Float[np.ndarray, " I"]:
    """Mean responses; right and wrong ones are 1 and 0."""
    responses: Any = fit.responses
    if on_scales(responses):
        return responses.mean(axis=0)
    right, observed = responses.counts(axis=0)
    return right / np.maximum(observed, 1)


def _most_dependent(pairs: pd.DataFrame, ids: np.ndarray, level: float) -> np.ndarray:
    """(I,) of each item the other one of the pair that is the clearest; empty where none is clear."""
    clear = pairs[(pairs["p_holm"] < level) & (pairs["q3_excess"] > SHARES)]
    both = pd.concat(
        [clear[["first", "second", "p_value"]], clear.rename(columns={"first": "second", "second": "first"})]
    )
    other = both.sort_values("p_value", kind="stable").drop_duplicates("first").set_index("first")["second"]
    return other.reindex(ids).fillna("").to_numpy(str)
