r"""DIF by score tests: one fit with equal items says of each item whether it should differ between the groups.

With s_j the derivative of the log-likelihood of subject j by the parameters of an item, the sums over the groups,
Σ_{j in g} s_j, are zero on average if the item is the same for all. What the estimation of the item's own parameters
and of the populations takes from them is regressed out (Rao 1948; Neyman 1959; of item response models Glas 1998).
Variances are those that are expected of each response given the subject's other ones, so that they hold in small groups
too. No item is fitted anew.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.estimation.problem import layout
from irtjax.fits.result import Fit
from irtjax.groups.score_sums import LEAST, Curves, Sums, curves_of, nodes_of, sums_of
from irtjax.populations.groups import FittedGroups
from irtjax.scale.tested import Tested, of_fit, specification_of
from irtjax.types import Bool, Float, Int

RELATIVE = 1e-9  # of a variance: below it a group says nothing of a parameter


class ScoreTest(NamedTuple):
    """Of each item (I,).

    Attributes:
        statistic: chi-square.
        df: its degrees of freedom: parameters that could differ, less those that a group says nothing of.
        effect: the difference of expected responses of subjects of the same ability, averaged over the group that
            differs most from the first, by one step from equal parameters; in points of the item.
    """

    statistic: Float[np.ndarray, " I"]
    df: Int[np.ndarray, " I"]
    effect: Float[np.ndarray, " I"]


def score_test(fit: Fit, anchored: Fit, test: str = "both") -> ScoreTest:
    """Tests of all items.

    Args:
        fit: of all items, equal in all groups.
        anchored: of the anchors alone, or `fit`. Abilities and populations are by these; an item that is no anchor is
            tested beside them, at the parameters that it has in `fit`. Subjects who answered no anchor are not in it,
            and have no part in the tests.
        test: "both", "uniform" (all parameters but slopes) or "nonuniform" (slopes, beside the others).
    """
    groups = anchored.population
    assert isinstance(groups, FittedGroups)
    if len(groups.member) < fit.responses.num_subjects:
        there = np.isin(fit.responses.subject_ids, anchored.responses.subject_ids)
        fit = dataclasses.replace(fit, responses=fit.responses.choose_subjects(there))
    tested = of_fit(_of_one_population(fit))
    tested = _with_items_of(tested, of_fit(_of_one_population(anchored)))
    anchors = np.isin(tested.responses.item_ids, anchored.responses.item_ids)
    places = layout(specification_of(tested)).items
    often = np.bincount(places[places >= 0], minlength=1)
    places = places[tested.places]
    free = (places >= 0) & (often[places] == 1)  # a slope, or steps, of all items are no item's own
    nodes = nodes_of(groups, np.asarray(anchored.ability_se, float))
    curves = curves_of(tested, nodes.theta)
    order = np.argsort(np.asarray(anchored.ability, float))  # subjects that are alike reach the same nodes
    of_groups = [order[groups.member[order] == group] for group in range(len(groups.names))]
    sums = [
        sums_of(tested, nodes, curves, anchors, groups.of(str(name)), rows)
        for name, rows in zip(groups.names, of_groups, strict=True)
    ]
    return _statistics(sums, free, _slopes_of_worth(curves), test)


def _of_one_population(fit: Fit) -> Fit:
    """The same items, with the population that sets the scale."""
    return dataclasses.replace(fit, population=fit.reference)


def _with_items_of(test: Tested, anchors: Tested) -> Tested:
    """With the parameters of the anchors as they were fitted without the others."""
    places = pd.Index(anchors.responses.item_ids).get_indexer(test.responses.item_ids)
    known = places >= 0

    def merged(own: np.ndarray, other: np.ndarray) -> np.ndarray:
        if own.ndim == 2 and other.shape[1] < own.shape[1]:  # fewer categories
            other = np.pad(other, ((0, 0), (0, own.shape[1] - other.shape[1])))
        return np.where(known.reshape(-1, *[1] * (own.ndim - 1)), other[places], own)

    return test._replace(items=jax.tree.map(merged, test.items, anchors.items))


def _slopes_of_worth(curves: Curves) -> Float[np.ndarray, "Q I K"]:
    """Derivatives of the expected response, of categories 0 … C."""
    return np.einsum("c,qic,qick->qik", np.arange(curves.p.shape[2], dtype=float), curves.p, curves.scores)


def _statistics(sums: list[Sums], free: Bool[np.ndarray, "I K"], slopes: np.ndarray, test: str) -> ScoreTest:
    """Chi-squares with what is estimated regressed out."""
    number, kinds = sums[0].score.shape
    others = len(sums) - 1
    score, information = _system(sums)
    known = np.pad(free[:, :kinds], ((0, 0), (0, max(kinds - free.shape[1], 0))))
    is_slope = np.arange(kinds) == 0
    differs = {"both": np.ones(kinds, bool), "uniform": ~is_slope, "nonuniform": is_slope}[test]
    beside = np.ones(kinds, bool) if test == "nonuniform" else differs
    statistic, df, effect = np.full(number, np.nan), np.zeros(number, int), np.full(number, np.nan)
    patterns, of_pattern = np.unique(known, axis=0, return_inverse=True)
    for at, pattern in enumerate(patterns):  # items with the same free parameters together
        items = np.flatnonzero(of_pattern.ravel() == at)
        tested = np.flatnonzero(np.tile(differs & pattern, others))
        if not len(tested):
            continue
        kept = np.concatenate([np.tile(beside & pattern, others), pattern, np.ones(2 * others, bool)])
        nuisance = np.setdiff1d(np.flatnonzero(kept), tested)
        variance, gain = _project(information[items], score[items], tested, nuisance)
        scale = np.sqrt(np.maximum(np.diagonal(information[items], axis1=1, axis2=2)[:, tested], LEAST))
        variance, gain = variance / (scale[:, :, None] * scale[:, None, :]), gain / scale
        df[items] = np.linalg.matrix_rank(variance, tol=RELATIVE, hermitian=True)
        step = (np.linalg.pinv(variance, rcond=RELATIVE, hermitian=True) @ gain[:, :, None])[:, :, 0]
        some = df[items] > 0
        statistic[items] = np.where(some, (gain * step).sum(axis=1), np.nan)
        effect[items] = np.where(some, _effects(sums, slopes[:, items], tested, step / scale), np.nan)
    return ScoreTest(statistic, df, effect)


def _system(sums: list[Sums]) -> tuple[Float[np.ndarray, "I D"], Float[np.ndarray, "I D D"]]:
    """Scores and information of each item: of the differences of the other groups, its own, of their populations."""
    number, kinds = sums[0].score.shape
    others = len(sums) - 1
    own, size = kinds * others, kinds * (others + 1) + 2 * others
    score, information = np.zeros((number, size)), np.zeros((number, size, size))
    common = slice(own, own + kinds)
    for group, part in enumerate(sums):
        score[:, common] += part.score
        information[:, common, common] += part.square
        if not group:
            continue
        at = slice(kinds * (group - 1), kinds * group)
        of_population = slice(own + kinds + 2 * (group - 1), own + kinds + 2 * group)
        score[:, at], score[:, of_population] = part.score, part.population
        information[:, at, at] = part.square
        information[:, of_population, of_population] = part.spread
        for one in (at, common):
            information[:, one, of_population] = part.cross
            information[:, of_population, one] = part.cross.transpose(0, 2, 1)
        information[:, at, common] = information[:, common, at] = part.square
    return score, information


def _project(
    information: Float[np.ndarray, "I D D"],
    score: Float[np.ndarray, "I D"],
    at: Int[np.ndarray, " T"],
    nuisance: Int[np.ndarray, " N"],
) -> tuple[Float[np.ndarray, "I T T"], Float[np.ndarray, "I T"]]:
    """Variance and score of some parameters of each item with those of others regressed out."""
    size = np.sqrt(np.maximum(np.diagonal(information, axis1=1, axis2=2)[:, nuisance], 1e-300))
    inside = information[:, nuisance[:, None], nuisance] / (size[:, :, None] * size[:, None, :])
    across = information[:, at[:, None], nuisance] / size[:, None, :]
    by = across @ np.linalg.pinv(inside, rcond=RELATIVE, hermitian=True)
    left = information[:, at[:, None], at] - by @ across.transpose(0, 2, 1)
    return left, score[:, at] - (by @ (score[:, nuisance] / size)[:, :, None])[:, :, 0]


def _effects(
    sums: list[Sums],
    slopes: Float[np.ndarray, "Q I K"],
    tested: Int[np.ndarray, " T"],
    step: Float[np.ndarray, "I T"],
) -> Float[np.ndarray, " I"]:
    """The largest mean difference of expected responses among the groups, of each item."""
    kinds = slopes.shape[2]
    changes = np.zeros((len(step), kinds * (len(sums) - 1)))
    changes[:, tested] = step
    differences = np.stack(
        [
            (np.tensordot(part.mass / part.mass.sum(), slopes, 1) * changes[:, kinds * at : kinds * (at + 1)]).sum(
                axis=1
            )
            for at, part in enumerate(sums[1:])
        ]
    )
    return np.take_along_axis(differences, np.abs(differences).argmax(axis=0)[None], axis=0)[0]
