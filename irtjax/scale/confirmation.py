"""Does a scale hold for new subjects? Its parameters held, only the population estimated anew."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.inference import Fit
from irtjax.inference.mml import fit_mml
from irtjax.inference.quadrature import Quadrature, of_test
from irtjax.responses import ResponseMatrix
from irtjax.scale.dependence import pair_dependence
from irtjax.scale.item_fit import item_fit
from irtjax.scale.multiple_tests import holm
from irtjax.scale.overall_fit import OverallFit, overall_fit


class Confirmation(NamedTuple):
    """How a scale fits fresh responses.

    Attributes:
        fit: all items held, mean and standard deviation of the new population in `details`.
        overall: M2 and its indices, with two free parameters.
        item_fit: S-X2 with no parameter estimated, `p_holm` beside it.
        dependence: of pairs, `p_holm` beside it.
    """

    fit: Fit
    overall: OverallFit
    item_fit: pd.DataFrame
    dependence: pd.DataFrame


def confirm(fresh: ResponseMatrix, items: pd.DataFrame) -> Confirmation:
    """Tests a scale on responses that it was not built from.

    Args:
        fresh: complete responses to at least all items of the scale.
        items: its `items.csv`.

    Raises:
        InputError: an item of the scale that the responses lack.
    """
    wanted = items["item_id"].astype(str).to_numpy()
    missing = [item for item in wanted if item not in set(fresh.item_ids.tolist())]
    if missing:
        raise InputError(f"no responses to item '{missing[0]}' of the scale (1 of {len(missing)} such)")
    responses = fresh.choose_items(np.isin(fresh.item_ids, wanted))
    fit = fit_mml(responses, "2pl", anchors=items)
    nodes = _of_population(fit)
    fits = item_fit(responses.values, fit.parameters, nodes, np.zeros(responses.num_items, int))
    pairs = pair_dependence(responses.values, fit.parameters, nodes)
    return Confirmation(
        fit,
        overall_fit(fit, held=True),
        fits.assign(p_holm=holm(fits["p_value"])),
        pairs.assign(p_holm=holm(pairs["p_value"])),
    )


def _of_population(fit: Fit) -> Quadrature:
    standard = of_test(fit.responses.num_items)
    mean, sd = fit.details["population_mean"][0], fit.details["population_sd"][0]
    return standard._replace(nodes=mean + sd * standard.nodes)
