"""Do anchors contradict the responses? What their parameters and the abilities expect, beside what was answered.

A shift of all anchors together is another scale, and is what they are for; one that is wrong by itself is not.
"""

import numpy as np
from scipy.special import expit

from irtjax import processes
from irtjax.fits.result import Fit
from irtjax.item_models.coded_counts import effective_trials
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import mine, on_scales
from irtjax.scoring.family_items import known_items
from irtjax.scoring.family_worth import of_scales, worth_at
from irtjax.types import Bool, Float, Int

SOME = 64  # anchors that are looked at
MANY = 0.1  # share of them that speaks against the scale
CONTRADICTED, BEYOND = 0.1, 4.0  # share of the range of a response from the expected one, and in its standard errors
ENDS = ("guessing", 0.0), ("upper", 1.0)
POSTERIOR_NODES = np.polynomial.hermite_e.hermegauss(9)
POINTS = 201  # at which curves of grades, counts and shares are computed, between which they are straight


def misfit(fit: Fit) -> str | None:
    """What is to be said of anchors whose mean responses are not those that their parameters expect."""
    held = np.flatnonzero(_held(fit))[:SOME]
    if not held.size or fit.parameters.slope.shape[1] > 1:
        return None
    scaled = on_scales(fit.responses)
    answers, observed, expected, variance = (_of_worth if scaled else _of_right_answers)(fit, held)
    number = np.maximum(answers, 1)
    observed, expected, spread = observed / number, expected / number, np.sqrt(variance) / number
    off = (np.abs(observed - expected) > CONTRADICTED) & (np.abs(observed - expected) > BEYOND * spread)
    if off.sum() <= MANY * held.size:
        return None
    worst = int(np.abs(observed - expected).argmax())
    how, unit = ("higher or lower", "of the range") if scaled else ("right more or less often", "right")
    return (
        f"of {held.size} anchors {off.sum()} are answered {how} than their parameters say, by over "
        f"{100 * CONTRADICTED:.0f} points and beyond chance, such as '{fit.responses.item_ids[held[worst]]}' "
        f"({observed[worst]:.0%} {unit}, {expected[worst]:.0%} expected): are they of these items, and on this scale?"
    )


def _held(fit: Fit) -> Bool[np.ndarray, " I"]:
    """Items all of whose parameters have an error of 0; those that an item of a family does not have are NaN."""
    errors = {name: error for name, error in fit.item_columns.items() if name.endswith("_se")}
    held = np.full(fit.responses.num_items, bool(errors))
    for name, error in errors.items():
        known = error == 0
        if on_scales(fit.responses):
            known |= np.isnan(fit.item_columns[name.removesuffix("_se")])
        held &= known
    return held


def _of_right_answers(fit: Fit, items: Int[np.ndarray, " K"]) -> Float[np.ndarray, "4 K"]:
    """Answers (K,), right ones, those that curves expect at the posteriors, and their variance; of all processes."""
    right, answers = (count[items] for count in fit.responses.counts(axis=0))
    sums, sparse = np.zeros((2, items.size)), isinstance(fit.responses, SparseResponses)
    own, part = (slice(None), slice(None)) if sparse else mine(fit.responses.values)
    for k, item in enumerate(items.tolist()):
        if item not in range(*part.indices(fit.responses.num_items)):
            continue
        if isinstance(fit.responses, SparseResponses):
            subjects = fit.responses.subjects[fit.responses.items == item]
        else:
            first = own.indices(fit.responses.num_subjects)[0]
            subjects = first + np.flatnonzero(np.asarray(fit.responses.values[own, item : item + 1])[:, 0] >= 0)
        ability, weights = _posteriors(fit, subjects)
        logit = float(fit.parameters.slope[item, 0]) * ability + float(fit.parameters.intercept[item])
        least, most = (float(fit.item_columns[name][item]) if name in fit.item_columns else end for name, end in ENDS)
        p = (least + (most - least) * expit(logit)) @ weights
        sums[:, k] = p.sum(), (p * (1 - p)).sum()
    return np.stack([answers, right, *(sums if sparse else processes.total(sums))])


def _of_worth(fit: Fit, items: Int[np.ndarray, " K"]) -> Float[np.ndarray, "4 K"]:
    """Responses (K,), what they are worth as a share of their range, what curves expect of that, and its variance."""
    known, given = known_items(fit), fit.responses.answered(np.isin(np.arange(fit.responses.num_items), items))
    assert known is not None
    known, at = known.take(items), np.searchsorted(items, given.items)
    graded = np.array([scale.labels is not None for scale in known.scales])
    worth = of_scales(known)
    for k in np.flatnonzero(graded).tolist():
        own = worth[k, : known.scales[k].top + 1]
        own[:] = (own - own.min()) / np.ptp(own)
    trials = np.ones(len(at)) if given.trials is None else np.where(graded[at], 1, given.trials).astype(float)
    observed = np.where(graded[at], worth[at, np.where(graded[at], given.values, 0).astype(int)], given.values / trials)
    if not len(at):
        return np.zeros((4, len(items)))
    ability, weights = _posteriors(fit, given.subjects)
    theta = np.linspace(ability.min(), ability.max(), POINTS)
    curves, sums = worth_at(known, theta, worth), np.zeros((4, len(items)))
    for k in range(len(items)):
        own = at == k
        mean, variance = (np.interp(ability[own], theta, curve[:, k]) @ weights for curve in curves)
        others = np.asarray(known.parameters.others)[k : k + 1]
        independent = effective_trials(known.model.take(np.array([k])), others, trials[own, None])[:, 0]
        sums[:, k] = own.sum(), observed[own].sum(), mean.sum(), (variance / independent).sum()
    return sums


def _posteriors(fit: Fit, subjects: Int[np.ndarray, " n"]) -> tuple[Float[np.ndarray, "n Q"], Float[np.ndarray, " Q"]]:
    """Abilities on normal posteriors, and weights that sum to 1."""
    nodes, weights = POSTERIOR_NODES
    return fit.ability[subjects, None] + fit.ability_se[subjects, None] * nodes, weights / weights.sum()
