"""Fits as R's package mirt has them: responses as integers, and parameters in its own terms."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.responses.matrix import MISSING
from irtjax.storage.files import whole_results
from irtjax.storage.sources import expanded

RESPONSES, VALUES = "responses.csv", "values.csv"
ITEMTYPES = {
    "rasch": "Rasch", "1pl": "2PL", "2pl": "2PL", "3pl": "3PL", "4pl": "4PL",
    "graded": "graded", "gpcm": "gpcm", "pcm": "Rasch", "rsm": "Rasch", "nominal": "nominal",
}  # fmt: skip


@checks_types
def to_mirt_csv(fit: Fit, directory: str | os.PathLike) -> None:
    """Writes `responses.csv` and `values.csv`, which R reads for `mirt::mirt`.

    `responses.csv` has a column per item, with categories from 0 and NA. `values.csv` has a row per parameter: `item`,
    `itemtype`, `name` and `value`. Of one dimension, with slope a, difficulty b or thresholds b_k:

    * Rasch, 1PL to 4PL: P = g + (u - g) σ(a1 θ + d),    a1 = a,  d = -a b
    * graded: P(y ≥ k) = σ(a1 θ + d_k),    d_k = -a b_k; an item of two categories is "2PL", with d
    * gpcm, pcm, rsm: P(y = k) ∝ exp(k a1 θ + d_k),    d_k = -a Σ_{v ≤ k} b_v,  d_0 = 0
    * nominal, of slopes s_k and intercepts c_k: P(y = k) ∝ exp(ak_k a1 θ + d_k),    a1 = (s_K - s_0) / K,
      ak_k = (s_k - s_0) / a1,  d_k = c_k - c_0

    The row of item GROUP has COV_11, the variance of the population.

    Args:
        fit: by MML or SVI, in one dimension, of right and wrong answers, grades or categories.
        directory: made where missing.

    Raises:
        InputError: a fit of several dimensions, or of counts or shares, which mirt does not have; or the folder cannot
            be written to.
    """
    if fit.parameters.slope.shape[1] > 1:
        raise InputError("the fit has several dimensions: parameters of one are written for mirt")
    models = fit.item_models
    unknown = next((name for name in models if name not in ITEMTYPES), None)
    if unknown is not None:
        raise InputError(f"model {unknown}: mirt has {', '.join(ITEMTYPES)}")
    table = fit.items()
    rows: list[tuple[str, str, str, float]] = []
    for model, (_, row) in zip(models, table.iterrows(), strict=True):
        values = parameters(model, row.to_dict())
        kind = "2PL" if model == "graded" and "d" in values else ITEMTYPES[model]
        rows += [(str(row["item_id"]), kind, name, value) for name, value in values.items()]
    rows.append(("GROUP", "", "COV_11", float(np.squeeze(fit.population.sd)) ** 2))
    responses = fit.responses.read()
    codes = pd.DataFrame(np.asarray(responses.values[:, :]), columns=[str(item) for item in responses.item_ids])
    with whole_results(expanded(directory)) as folder:
        codes.astype("Int64").mask(codes == MISSING).to_csv(folder / RESPONSES, index=False, na_rep="NA")
        pd.DataFrame(rows, columns=["item", "itemtype", "name", "value"]).to_csv(folder / VALUES, index=False)


def parameters(model: str, row: Mapping[str, Any]) -> dict[str, float]:
    """Those of an item by mirt's names, out of its row in `items.csv` (`to_mirt_csv`)."""
    if model == "nominal":
        slopes, intercepts = (_numbered(row, name) for name in ("slope_", "intercept_"))
        top = len(slopes) - 1
        a = (slopes[-1] - slopes[0]) / top
        ak = {f"ak{k}": float((s - slopes[0]) / a) for k, s in enumerate(slopes)}
        return {"a1": float(a), **ak, **{f"d{k}": float(c - intercepts[0]) for k, c in enumerate(intercepts)}}
    a = float(row.get("discrimination", 1.0))
    if f"threshold_{1}" not in row:
        ends = {"g": row.get("guessing", 0.0), "u": row.get("upper", 1.0)} if model in ("3pl", "4pl") else {}
        return {"a1": a, "d": -a * float(row["difficulty"])} | {name: float(value) for name, value in ends.items()}
    d = -a * np.array(_numbered(row, "threshold_"))
    if model == "graded":
        return {"a1": a} | ({"d": float(d[0])} if len(d) == 1 else {f"d{k}": float(x) for k, x in enumerate(d, 1)})
    if len(d) == 1:
        return {"a1": a, "d": float(d[0])}
    return {"a1": a, "d0": 0.0} | {f"d{k}": float(x) for k, x in enumerate(d.cumsum(), 1)}


def _numbered(row: Mapping[str, Any], name: str) -> list[float]:
    """What an item has of columns with a number at the end, in order."""
    found = {int(key[len(name) :]): row[key] for key in row if key.startswith(name) and key[len(name) :].isdigit()}
    return [float(found[k]) for k in sorted(found) if np.isfinite(found[k])]
