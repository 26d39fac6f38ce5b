"""What the folds of a comparison come to, and what their fits warned of."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.comparison.candidates import Candidate
from irtjax.estimation.diagnostics import held_back


@contextlib.contextmanager
def keeping(where: Mapping[str, Any], said: list[dict[str, Any]]) -> Iterator[None]:
    """Keeps the warnings of fits, with where they arose; others are given as ever."""
    messages: list[str] = []
    with held_back(messages):
        yield
    said.extend({**where, "message": message} for message in messages)


def summary(folds: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Means over the folds, standard errors, and paired differences from the lowest log-loss."""
    rows = []
    for _, of_way in folds.groupby("by", sort=False):
        groups = dict(list(of_way.groupby(list(Candidate._fields), sort=False)))
        best = min(groups, key=lambda key: _least(groups[key]["log_loss"]))
        for key, group in groups.items():
            row = {"by": group["by"].iloc[0], **dict(zip(Candidate._fields, key, strict=True))}
            for metric in metrics:
                here = group[metric].to_numpy(float)
                difference = here - groups[best][metric].to_numpy(float)
                row |= dict(zip((metric, f"{metric}_se"), _mean_and_error(here), strict=True))
                row |= dict(
                    zip((f"{metric}_difference", f"{metric}_difference_se"), _mean_and_error(difference), strict=True)
                )
            row |= {"num_predicted": int(group["num_predicted"].sum()), "folds_converged": group["converged"].mean()}
            rows.append(row)
    return pd.DataFrame(rows)


def _least(log_loss: pd.Series) -> float:
    return np.inf if log_loss.isna().all() else float(log_loss.mean())


def _mean_and_error(of_folds: np.ndarray) -> tuple[float, float]:
    """Mean over the folds that have the score, and its standard error."""
    known = of_folds[~np.isnan(of_folds)]
    if not known.size:
        return np.nan, np.nan
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.nan
