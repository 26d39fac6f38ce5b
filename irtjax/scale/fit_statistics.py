"""Fit of items, subjects, pairs and the whole test, for a fit of responses of any kind, from one call each."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.problem import layout
from irtjax.fits.result import Fit
from irtjax.kernels.quadrature import LONG_TEST, STANDARD_NODES, rectangular
from irtjax.responses.sparse import SparseResponses
from irtjax.scale import tested
from irtjax.scale.forms import FEWEST, forms_of_answers
from irtjax.scale.item_fit import s_x2
from irtjax.scale.local_dependence import Residuals, pair_table, pairs, with_saddlepoint
from irtjax.scale.log_likelihoods import most_values, terms_at
from irtjax.scale.margins import features
from irtjax.scale.mean_squares import at_abilities, integrated
from irtjax.scale.multiple_tests import holm
from irtjax.scale.overall_fit import Curves, OverallFit, fit_of_margins, of_free
from irtjax.scale.overall_fit import overall_fit as m2_of_fit
from irtjax.scale.person_fit import PersonFit, Terms, standardised
from irtjax.scale.response_curves import category_curves, parameter_derivatives, worth_curves, worths
from irtjax.scale.summed_responses import highest_sums, summed_curves
from irtjax.scale.tested import Tested, informative, own_parts
from irtjax.scoring.abilities import abilities
from irtjax.scoring.choices import METHODS
from irtjax.scoring.family_scores import family_abilities
from irtjax.scoring.sparse_scores import abilities_by_answer
from irtjax.types import Float

C2, M2_STAR = "c2", "m2*"
STEP = 1e-4  # logits, of a difference quotient


@checks_types
def item_fit(
    fit: Any, responses: Any = None, method: str | None = None, *, columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Fit of each item: S-X2, infit and outfit.

    S-X2 (`irtjax.scale.item_fit.s_x2`) compares the shares of the categories at each sum of the responses. It needs
    items with categories, or counts of as many trials for all subjects (up to 500 of all items together), and 30
    subjects who answered the same items: other subjects do not count for it. Of shares there is none. Infit and
    outfit (`irtjax.scale.mean_squares`) are of responses of any kind, and take all that there are. Where the responses
    are those that were fitted, both allow for the estimation of the item's parameters; anchors count as estimated.

    Args:
        fit: a `Fit` of one dimension, or the folder of one.
        responses: to items of the fit, as of `irtjax.score`; by default those that were fitted.
        method: None integrates abilities out of infit and outfit, so that they are 1 on average under the model. "eap",
            "map", "ml" or "wle" take them at these estimates, as other programs do; then they are below 1.
        columns: of responses in a long table with other names, as of `irtjax.fit`.

    Returns:
        One row per item: `item_id`, `num_responses`; `s_x2`, `degrees_of_freedom`, `p_value`, `p_holm` (Holm 1979),
        `rmsd`, NaN where there is no S-X2; `infit`, `infit_t`, `outfit`, `outfit_t`, of which t is about standard
        normal under the model; NaN of items with few responses other than the commonest one, and of fits by variational
        inference with slopes of each item, whose error is not known well enough.

    Raises:
        InputError: no fit; several dimensions, groups or judges; an unknown method; or responses that do not go with
            the fit.
    """
    test = tested.of_fit(fit, responses, columns)
    free = tested.num_free(test)
    if method is None:
        found = integrated(test, tested.own_parameters(test))[0]
    else:
        found = at_abilities(test, _abilities(test, method))[0]
    of_sums = _s_x2(test, free)
    return pd.DataFrame(
        {
            "item_id": test.responses.item_ids,
            "num_responses": np.bincount(test.single.items, minlength=len(test.top)),
            **{name: of_sums[name] for name in ("s_x2", "degrees_of_freedom", "p_value")},
            "p_holm": holm(of_sums["p_value"].to_numpy(float)),
            "rmsd": of_sums["rmsd"],
            **found._asdict(),
        }
    )


def _s_x2(test: Tested, free: np.ndarray) -> pd.DataFrame:
    """S-X2 of items with categories or counts, NaN where there are others, or too few subjects for it."""
    top = highest_sums(test)
    forms = forms_of_answers(test.single) if top is not None else []
    if top is None or not forms:
        none = np.full(len(test.top), np.nan)
        return pd.DataFrame({"s_x2": none, "degrees_of_freedom": 0, "p_value": none, "rmsd": none})
    nodes = rectangular(STANDARD_NODES if top.sum() < LONG_TEST else 2 * STANDARD_NODES - 1)
    mean, sd = test.population
    p = summed_curves(test, float(mean) + float(sd) * nodes.nodes[:, 0], top)
    return s_x2(forms, p, np.exp(nodes.log_weights), top, free)


@checks_types
def person_fit(
    fit: Any, responses: Any = None, method: str = "map", *, columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Fit of each subject: lz, lz*, infit and outfit, of responses of any kind.

    Of shares lz is by their density, of counts by the binomial distribution of each. Where responses are further apart
    than the model says, as trials that agree more than chance, lz* is low for all subjects.

    Args:
        fit: a `Fit` of one dimension, or the folder of one.
        responses: to items of the fit, as of `irtjax.score`; by default those that were fitted.
        method: of the ability at which lz and lz* are: "map", "ml", "wle" or "eap". By "ml" there are none of subjects
            whose responses are all at one end.
        columns: of responses in a long table with other names, as of `irtjax.fit`.

    Returns:
        One row per subject: `subject_id`, `num_responses`, `ability`; `lz`, `lz_star` and `p_value`, the chance of a
        lower lz* under the model (`irtjax.scale.person_fit`); `infit` and `outfit`, with abilities integrated out
        (`irtjax.scale.mean_squares`). What cannot be computed is NaN.

    Raises:
        InputError: as of `item_fit`.
    """
    test = tested.of_fit(fit, responses, columns)
    ability = _abilities(test, method)
    found = _log_likelihoods(test, ability)
    squares = integrated(test, None)[1]
    return pd.DataFrame(
        {
            "subject_id": test.responses.subject_ids,
            "num_responses": np.diff(test.single.starts),
            "ability": ability,
            "lz": found.lz,
            "lz_star": found.lz_star,
            "p_value": norm.cdf(found.lz_star),
            "infit": squares.infit,
            "outfit": squares.outfit,
        }
    )


def _log_likelihoods(test: Tested, ability: Float[np.ndarray, " J"]) -> PersonFit:
    subjects, sums = test.single.subjects, Terms(*np.zeros((5, len(ability))))
    known = np.isfinite(ability)
    for at in own_parts(test, known[subjects], most_values(test) * 4):
        for total, part in zip(sums, terms_at(test, at, ability[subjects[at]]), strict=True):
            total += np.bincount(subjects[at], part, len(total))
    return PersonFit(*(np.where(known, leaf, np.nan) for leaf in standardised(sums)))


def _abilities(test: Tested, method: str) -> Float[np.ndarray, " J"]:
    """Estimates of the abilities.

    Raises:
        InputError: an unknown method.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
    if test.known is None and isinstance(test.responses, SparseResponses):
        found = abilities_by_answer(test.responses, test.items, method, test.population)
    elif test.known is None:
        found = abilities(test.values, test.items, method, test.population)
    else:
        found = family_abilities(test.responses, test.known, method, test.population)
    return np.asarray(found.ability)


@checks_types
def local_dependence(
    fit: Any, responses: Any = None, method: str = "eap", *, columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Q3 of each pair of items: the correlation of their residuals at the estimated abilities (Yen 1984).

    Args:
        fit: a `Fit` of one dimension, or the folder of one.
        responses: to items of the fit, as of `irtjax.score`; by default those that were fitted.
        method: of the abilities: "eap", "map", "ml" or "wle". Subjects without a finite one do not count.
        columns: of responses in a long table with other names, as of `irtjax.fit`.

    Returns:
        One row per pair, the most dependent first: `first`, `second`, `num_subjects` that answered both, `q3`,
        `q3_excess` over what it is without local dependence, `p_value` and `p_holm`
        (`irtjax.scale.local_dependence`). Of more than 4 million pairs there are those that 30 subjects answered both.

    Raises:
        InputError: as of `item_fit`; more than 33 million such pairs.
    """
    test = tested.of_fit(fit, responses, columns)
    ability = _abilities(test, method)
    single, number = test.single, test.single.num_answers
    of_answers = ability[single.subjects]
    known = np.isfinite(of_answers)
    mean, slope, variance = np.zeros((3, number))
    for at in own_parts(test, known, 4 * (int(test.top.max()) + 1)):
        alone = test.alone(at, of_answers[at])
        here, above, below = (worth_curves(alone, np.array([step])) for step in (0.0, STEP, -STEP))
        mean[at], variance[at] = here.mean[0], here.variance[0]
        slope[at] = (above.mean - below.mean)[0] / (2 * STEP)
    spread = float(test.population.sd) if method in ("eap", "map") else np.inf
    single = single.choose_answers(known)
    residuals = Residuals(*(leaf[known] for leaf in (worths(test) - mean, slope, variance, test.effective)))
    table = pair_table(pairs(single, residuals, spread), informative(test))
    if test.right_wrong:
        table = with_saddlepoint(table, single, mean[known], residuals.y)
    ids = np.asarray(test.responses.item_ids)
    return table.assign(first=ids[table["first"]], second=ids[table["second"]])


@checks_types
def overall_fit(
    fit: Any, responses: Any = None, statistic: str | None = None, *, columns: Mapping[str, str] | None = None
) -> OverallFit:
    """Fit of the whole test by its one- and two-way margins: M2 of right/wrong items, C2 of items with more categories.

    C2 (Cai and Monroe 2014) is of the shares of all categories and the mean products of the responses to two items; M2*
    (Cai and Hansen 2013), of the mean responses alone in place of the shares, has fewer degrees of freedom and is
    refused where these margins do not tell the parameters apart. Both are computed as M2 is
    (`irtjax.scale.overall_fit.overall_fit`). Indices are the same: RMSEA with its 90% interval, SRMSR of correlations,
    TLI and CFI. A fit under priors is not at the maximum of the likelihood, which makes its
    statistic a little too large.

    Args:
        fit: a `Fit` of items with categories, or the folder of one; of right/wrong items in any number of dimensions.
        responses: to items of the fit, as of `irtjax.score`; by default those that were fitted. Of other responses
            nothing was estimated: the fit is then also that of the population.
        statistic: None, "c2" or "m2*".
        columns: of responses in a long table with other names, as of `irtjax.fit`.

    Raises:
        InputError: counts or shares; fewer than 30 subjects who answered the same items; or no degrees of freedom.
    """
    if statistic not in (None, C2, M2_STAR):
        raise InputError(f"unknown statistic {statistic!r}, expected {C2} or {M2_STAR}")
    found = tested.fit_in(fit)
    if responses is None and statistic is None and found.parameters.slope.shape[1] > 1:
        return _of_dimensions(found)
    test = tested.of_fit(found, responses, columns)
    name = "M2" if test.right_wrong and statistic is None else (statistic or C2).upper()
    test.require_categories(name)
    if test.num_subjects < FEWEST:
        raise InputError(f"{name} needs {FEWEST} subjects, and there are {test.num_subjects}")
    of = features(test.top, indicators=statistic != M2_STAR)
    return fit_of_margins(test.values.astype(int), _curves(test), of, name)


def _of_dimensions(fit: Fit) -> OverallFit:
    if not hasattr(fit.parameters, "lower"):
        raise InputError("the fit has several dimensions: C2 is of one dimension")
    return m2_of_fit(fit, tested.types_of(fit))


def _curves(test: Tested) -> Curves:
    """The items in the standard normal population, and what is free of them."""
    mean, sd = (float(x) for x in test.population)
    items = test.items._replace(
        slope=test.items.slope * sd, intercept=test.items.intercept + mean * test.items.slope[:, 0]
    )
    nodes = rectangular(2 * STANDARD_NODES - 1)
    z = nodes.nodes[:, 0]
    p = category_curves(test.model, items, z).p
    by = [
        np.pad(one.reshape(*p.shape[:2], -1), ((0, 0), (0, 0), (1, 0)))
        for one in parameter_derivatives(test.model, items, z)
    ]
    each = np.stack(by, axis=3)
    each = p[..., None] * (each - np.einsum("qic,qick->qik", p, each)[:, :, None])
    index = np.full((len(test.top), each.shape[3]), -1)
    if test.fitted:
        found = layout(tested.specification_of(test)).items[test.places]
        index[:, : found.shape[1]] = found[:, : index.shape[1]]
        used, order = np.unique(index, return_inverse=True)
        index = np.where(index >= 0, order.reshape(index.shape) - (used[0] < 0), -1)
    return Curves(p, each, np.exp(nodes.log_weights), of_free(index))
