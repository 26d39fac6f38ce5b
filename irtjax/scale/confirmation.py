"""Does a scale hold for new subjects? Item parameters are held, and only the population is estimated anew."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.mml import fit_mml
from irtjax.fits.result import Fit
from irtjax.kernels.quadrature import Quadrature, of_test
from irtjax.responses.matrix import ResponseMatrix, proportion_correct
from irtjax.scale.dependence import pair_dependence
from irtjax.scale.elimination import LEAST_ITEMS
from irtjax.scale.item_fit import item_fit
from irtjax.scale.multiple_tests import holm
from irtjax.scale.overall_fit import OverallFit, overall_fit

FEWEST_SUBJECTS = 30  # a population of fewer has no mean and standard deviation to speak of


class Confirmation(NamedTuple):
    """How a scale fits fresh responses.

    P-values take the held parameters as known, although they are estimates. With as many fresh subjects as the
    parameters were estimated from, the tests reject a true scale more often than not. Judge by the effect sizes
    instead: RMSEA, CFI and each item's `rmsd`.

    Attributes:
        fit: with all items held; `population` has the mean and standard deviation of the new population.
        overall: M2 and its indices, with two free parameters.
        item_fit: S-X2 with no parameter estimated, and `p_holm`.
        dependence: of pairs, with three degrees of freedom, and `p_holm`.
        left_out: ids of items of the scale that nobody was asked, or that all subjects answered alike.
    """

    fit: Fit
    overall: OverallFit
    item_fit: pd.DataFrame
    dependence: pd.DataFrame
    left_out: tuple[str, ...]


def require_enough(fresh: ResponseMatrix) -> None:
    """Refuses responses of too few subjects to confirm a scale on.

    Raises:
        InputError: there are fewer than 30.
    """
    if fresh.num_subjects < FEWEST_SUBJECTS:
        raise InputError(f"{fresh.num_subjects} subjects, the confirmation of a scale needs {FEWEST_SUBJECTS} or more")


def confirm(fresh: ResponseMatrix, items: pd.DataFrame) -> Confirmation:
    """Tests a scale on responses that it was not built from.

    Args:
        fresh: responses to the scale's items, or to most of them, complete or missing by design.
        items: the `items.csv` of the scale.

    Raises:
        InputError: fewer than 30 subjects, or fewer than four items of the scale have right and wrong answers.
    """
    require_enough(fresh)
    wanted = items["item_id"].astype(str).to_numpy()
    varied = ~np.isin(proportion_correct(fresh.values, axis=0), (0, 1))
    chosen = np.isin(fresh.item_ids, wanted) & varied
    if chosen.sum() < LEAST_ITEMS:
        raise InputError(
            f"{chosen.sum()} items of the scale have right and wrong answers, its confirmation needs {LEAST_ITEMS}"
        )
    responses = fresh.choose_items(chosen).with_responses()
    fit = fit_mml(responses, "2pl", anchors=items)
    nodes = _of_population(fit)
    fits = item_fit(responses.values, fit.parameters, nodes, np.zeros(responses.num_items, int))
    pairs = pair_dependence(responses.values, fit.parameters, nodes)
    pairs = pairs.assign(first=responses.item_ids[pairs["first"]], second=responses.item_ids[pairs["second"]])
    left_out = tuple(item for item in wanted.tolist() if item not in set(responses.item_ids.tolist()))
    return Confirmation(
        fit,
        overall_fit(fit, held=True),
        fits.assign(p_holm=holm(fits["p_value"].to_numpy())),
        pairs.assign(p_holm=holm(pairs["p_value"].to_numpy())),
        left_out,
    )


def _of_population(fit: Fit) -> Quadrature:
    standard = of_test(fit.responses.num_items)
    mean, sd = (float(np.asarray(leaf)[0]) for leaf in fit.population)
    return standard._replace(nodes=mean + sd * standard.nodes)
