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
from irtjax.integration.sparse_answers import sparse_answers
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.responses.compressed_rows import grouped, rows_of
from irtjax.scale.answer_means import DENSE, AnswerMeans
from irtjax.scale.posteriors import OF_ANSWER, Nodes
from irtjax.scale.response_curves import category_curves, parameter_derivatives
from irtjax.scale.tested import ENTRIES, Tested, of_fit, specification_of
from irtjax.types import Bool, Float, Int

WIDE = 6.0  # standard deviations of the populations that nodes reach beyond their means
PER_SD = 16  # nodes in the narrowest standard deviation, or error of an ability
MOST_NODES = 401
LARGEST_RATIO = 300.0  # nats, of probabilities: where it is more no posterior is
LEAST = 1e-300
NOWHERE = 1e-30  # weight of a node that no response of one item could bring back
TOGETHER = 64  # subjects at a time, most of them near each other
OF_ITEMS = 2**21  # numbers of the tables of some items: 16 MB
SPARSER = 8  # times as many cells as answers, up to which a product with all cells takes no longer
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
    nodes = _nodes(groups, np.asarray(anchored.ability_se, float))
    curves = _curves(tested, nodes.theta)
    order = np.argsort(np.asarray(anchored.ability, float))  # subjects that are alike reach the same nodes
    of_groups = [order[groups.member[order] == group] for group in range(len(groups.names))]
    sums = [
        _sums(tested, nodes, curves, anchors, groups.of(str(name)), rows)
        for name, rows in zip(groups.names, of_groups, strict=True)
    ]
    return _statistics(sums, free, _slopes_of_worth(curves), test)


class _Curves(NamedTuple):
    """Of all items at the nodes: probabilities of the categories, their logarithms, and the derivatives of these."""

    p: Float[np.ndarray, "Q I C"]
    log_p: Float[np.ndarray, "Q I C"]
    scores: Float[np.ndarray, "Q I C K"]


class _Sums(NamedTuple):
    """Over the subjects of a group: of scores s (I, K) of the items, and n (2,) of the group's population.

    Attributes:
        score: (I, K) Σ s.
        square: (I, K, K) Σ E[s sᵀ], expected given the responses to the other items.
        cross: (I, K, 2) Σ E[s nᵀ].
        population: (2,) Σ n.
        spread: (2, 2) Σ n nᵀ.
        mass: (Q,) Σ of the posteriors at the nodes.
    """

    score: Float[np.ndarray, "I K"]
    square: Float[np.ndarray, "I K K"]
    cross: Float[np.ndarray, "I K two"]
    population: Float[np.ndarray, " two"]
    spread: Float[np.ndarray, "two two"]
    mass: Float[np.ndarray, " Q"]


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


def _nodes(groups: FittedGroups, errors: Float[np.ndarray, " J"]) -> Nodes:
    """Abilities that reach the ends of all populations, as close as posteriors are narrow; without weights."""
    mean, sd = groups.means[:, 0], groups.sds[:, 0]
    low, high = (mean - WIDE * sd).min(), (mean + WIDE * sd).max()
    close = min(float(sd.min()), 4 * float(np.nanquantile(errors, 0.05)))
    theta = np.linspace(low, high, min(int(np.ceil((high - low) * PER_SD / 4 / close)) + 1, MOST_NODES))
    return Nodes(theta, np.zeros(theta.size))


def _sums(
    test: Tested,
    nodes: Nodes,
    curves: _Curves,
    anchors: Bool[np.ndarray, " I"],
    normal: Population,
    members: Int[np.ndarray, " N"],
) -> _Sums:
    """Sums over one group of subjects, from the least able to the most.

    With w the posterior by the anchors, a response c to another item has the chance m_c = E_w[P_c] and the score
    E_w[P_c ∂log P_c] / m_c; to an anchor, whose response y is in w, the same with P_c / P_y in place of P_c.
    """
    mean, sd = normal.mean[0], normal.sd[0]
    z = (nodes.theta - mean) / sd
    of_population = np.stack([z / sd, z**2 - 1], axis=1)
    eta, log_normalizer = (
        np.asarray(leaf) for leaf in test.model.natural(test.items, nodes.theta[:, None], asymptotes=True)
    )
    number, kinds = len(test.top), curves.scores.shape[3]
    score, products = np.zeros((number, kinds)), np.zeros((number, kinds, kinds + 2))
    population, spread, mass, parts = np.zeros(2), np.zeros((2, 2)), np.zeros(len(z)), []
    starts, at = rows_of(test.single.starts, members)
    places, categories = test.single.items[at], test.single.answers[at].astype(int)
    answers = sparse_answers(starts, places, test.codes[at], number, test.model)
    table = answers.table(eta, log_normalizer)
    table[~anchors[answers.cells.item]] = 0.0
    full = len(places) * SPARSER >= len(members) * len(table)
    size = TOGETHER if test.single.density >= DENSE else max(TOGETHER, ENTRIES // (len(z) + OF_ANSWER))
    for rows in (slice(first, first + size) for first in range(0, len(members), size)):
        matrix = answers.rows(rows).matrix()
        weights = _normalised((matrix.toarray() if full else matrix) @ table - 0.5 * z**2)
        own, near = weights @ of_population, _reached(weights)
        population, spread, mass = population + own.sum(axis=0), spread + own.T @ own, mass + weights.sum(axis=0)
        mine = slice(starts[rows.start], starts[rows.start + len(weights)])
        order = grouped(places[mine], number)[1]  # so that those of some items are side by side
        subjects = np.repeat(np.arange(len(weights)), np.diff(starts[rows.start : rows.start + len(weights) + 1]))
        parts.append(_Part(near, weights[:, near], subjects[order], places[mine][order], categories[mine][order]))
    reach = slice(min(part.near.start for part in parts), max(part.near.stop for part in parts))
    size = max(1, OF_ITEMS // (len(z) * curves.p.shape[2] * (kinds + 3)))
    for items in (slice(first, min(first + size, number)) for first in range(0, number, size)):
        for y in range(curves.p.shape[2]):
            at_nodes = _expected(curves, anchors, items, y, of_population, reach)
            for part in parts:
                some = slice(*np.searchsorted(part.items, [items.start, items.stop]))
                chosen = part.categories[some] == y
                if not chosen.any():
                    continue
                own_items = part.items[some][chosen] - items.start
                heads = np.flatnonzero(np.diff(own_items, prepend=-1))
                there = items.start + own_items[heads]
                near = slice(part.near.start - reach.start, part.near.stop - reach.start)
                of = AnswerMeans(part.weights, part.subjects[some][chosen], own_items)
                found = [np.stack(of.of(list(one[near].transpose(1, 0, 2)))) for one in at_nodes]
                total = np.maximum(sum(one[0] for one in found), LEAST)
                of_y = found[y][1 : 1 + kinds] / np.maximum(found[y][0], LEAST)
                score[there] += np.add.reduceat(of_y, heads, axis=1).T
                for one in found:  # means of the sums have the chance in them: m s = E[P ∂log P]
                    weighted = one[1 : 1 + kinds] / (total * np.maximum(one[0], LEAST))
                    for k in range(kinds):
                        products[there, k] += np.add.reduceat(weighted[k] * one[1:], heads, axis=1).T
    return _Sums(score, products[:, :, :kinds], products[:, :, kinds:], population, spread, mass)


class _Part(NamedTuple):
    """Some subjects, the nodes that they reach and their posteriors there; and their answers, item by item."""

    near: slice
    weights: Float[np.ndarray, "B Q"]
    subjects: Int[np.ndarray, " n"]
    items: Int[np.ndarray, " n"]
    categories: Int[np.ndarray, " n"]


def _expected(
    curves: _Curves,
    anchors: Bool[np.ndarray, " I"],
    items: slice,
    y: int,
    of_population: Float[np.ndarray, "Q 2"],
    reach: slice,
) -> list[Float[np.ndarray, "R parts I"]]:
    """What means of the posterior are of, for each category c: P_c, P_c ∂log P_c, and P_c times ∂ of the population.

    Of anchors with P_c / P_y in place of P_c. At the nodes within reach.
    """
    p, log_p, found = curves.p[reach, items], curves.log_p[reach, items], []
    for c in range(p.shape[2]):
        with np.errstate(invalid="ignore"):  # of categories that an item has not
            ratio = np.exp(np.minimum(log_p[:, :, c] - log_p[:, :, y], LARGEST_RATIO))
        ratio = np.where(anchors[items], np.where(np.isfinite(log_p[:, :, y]), ratio, 0.0), p[:, :, c])[:, None]
        by_item = ratio * curves.scores[reach, items, c].transpose(0, 2, 1)
        found.append(np.concatenate([ratio, by_item, ratio * of_population[reach, :, None]], axis=1))
    return found


def _reached(weights: Float[np.ndarray, "J Q"]) -> slice:
    """The nodes at which some of these subjects may be."""
    some = np.flatnonzero(weights.max(axis=0) > NOWHERE)
    return slice(some[0], some[-1] + 1)


def _normalised(height: Float[np.ndarray, "J Q"]) -> Float[np.ndarray, "J Q"]:
    weights = np.exp(height - height.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _curves(test: Tested, theta: Float[np.ndarray, " Q"]) -> _Curves:
    """See there. Scores are by the parameters of the item."""
    found = category_curves(test.model, test.items, theta)
    by = [
        np.pad(one.reshape(*found.p.shape[:2], -1), ((0, 0), (0, 0), (1, 0)))
        for one in parameter_derivatives(test.model, test.items, theta)
    ]
    each = np.stack(by, axis=3)
    return _Curves(found.p, found.log_p, each - np.einsum("qic,qick->qik", found.p, each)[:, :, None])


def _slopes_of_worth(curves: _Curves) -> Float[np.ndarray, "Q I K"]:
    """Derivatives of the expected response, of categories 0 … C."""
    return np.einsum("c,qic,qick->qik", np.arange(curves.p.shape[2], dtype=float), curves.p, curves.scores)


def _statistics(sums: list[_Sums], free: Bool[np.ndarray, "I K"], slopes: np.ndarray, test: str) -> ScoreTest:
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


def _system(sums: list[_Sums]) -> tuple[Float[np.ndarray, "I D"], Float[np.ndarray, "I D D"]]:
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
    sums: list[_Sums],
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
