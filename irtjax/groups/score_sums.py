"""Scores of items over groups of subjects, and their variances, as one fit with equal items expects them.

A variance is that which is expected of each response given the subject's other ones (`irtjax.groups.score_test`).
"""

from typing import NamedTuple

import numpy as np

from irtjax.integration.sparse_answers import sparse_answers
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.responses.compressed_rows import grouped, rows_of
from irtjax.scale.answer_means import DENSE, AnswerMeans
from irtjax.scale.posteriors import OF_ANSWER, Nodes
from irtjax.scale.response_curves import category_curves, parameter_derivatives
from irtjax.scale.tested import ENTRIES, Tested
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


class Curves(NamedTuple):
    """Of all items at the nodes: probabilities of the categories, their logarithms, and the derivatives of these."""

    p: Float[np.ndarray, "Q I C"]
    log_p: Float[np.ndarray, "Q I C"]
    scores: Float[np.ndarray, "Q I C K"]


class Sums(NamedTuple):
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


def nodes_of(groups: FittedGroups, errors: Float[np.ndarray, " J"]) -> Nodes:
    """Abilities that reach the ends of all populations, as close as posteriors are narrow; without weights."""
    mean, sd = groups.means[:, 0], groups.sds[:, 0]
    low, high = (mean - WIDE * sd).min(), (mean + WIDE * sd).max()
    close = min(float(sd.min()), 4 * float(np.nanquantile(errors, 0.05)))
    theta = np.linspace(low, high, min(int(np.ceil((high - low) * PER_SD / 4 / close)) + 1, MOST_NODES))
    return Nodes(theta, np.zeros(theta.size))


def curves_of(test: Tested, theta: Float[np.ndarray, " Q"]) -> Curves:
    """See `Curves`. Scores are by the parameters of the item."""
    found = category_curves(test.model, test.items, theta)
    by = [
        np.pad(one.reshape(*found.p.shape[:2], -1), ((0, 0), (0, 0), (1, 0)))
        for one in parameter_derivatives(test.model, test.items, theta)
    ]
    each = np.stack(by, axis=3)
    return Curves(found.p, found.log_p, each - np.einsum("qic,qick->qik", found.p, each)[:, :, None])


def sums_of(
    test: Tested,
    nodes: Nodes,
    curves: Curves,
    anchors: Bool[np.ndarray, " I"],
    normal: Population,
    members: Int[np.ndarray, " N"],
) -> Sums:
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
    return Sums(score, products[:, :, :kinds], products[:, :, kinds:], population, spread, mass)


class _Part(NamedTuple):
    """Some subjects, the nodes that they reach and their posteriors there; and their answers, item by item."""

    near: slice
    weights: Float[np.ndarray, "B Q"]
    subjects: Int[np.ndarray, " n"]
    items: Int[np.ndarray, " n"]
    categories: Int[np.ndarray, " n"]


def _expected(
    curves: Curves,
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
