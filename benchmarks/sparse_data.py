"""Simulated answers of many subjects to few items each, drawn as learners, tests and annotators draw them."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

import irtjax
from irtjax.responses.compressed_rows import sorted_answers

SELECTIONS = ("random", "adaptive", "ability")
POPULARITY = 0.8  # exponent of the power law: the r-th most popular item is asked in proportion to r^-0.8
STAGES = 5  # of an adaptive test, after each of which the next items are chosen by the answers so far
WIDTH, SPREAD = 0.5, 0.7  # logits: of the difficulties of items among which popularity chooses, and of their centres
TOGETHER = 50_000  # subjects drawn at once


class Simulated(NamedTuple):
    """Answers, and what they were drawn from.

    Attributes:
        responses: of J subjects.
        theta: (J,) abilities.
        a: (I,) discriminations.
        b: (I,) difficulties.
    """

    responses: irtjax.SparseResponses
    theta: np.ndarray
    a: np.ndarray
    b: np.ndarray


def simulate(
    num_subjects: int, num_items: int, each: int, selection: str = "adaptive", model: str = "2pl", seed: int = 0
) -> Simulated:
    """Answers of the 1PL or 2PL: θ and b from N(0, 1), log a from N(0, 0.3²).

    Args:
        num_subjects: J.
        num_items: I.
        each: items that a subject is asked; one that is drawn twice is asked once.
        selection: "random", by popularity alone; "adaptive", near an estimate of ability from the answers so far, in
            stages: what is asked depends on what was answered; or "ability", near the ability itself, as learners do
            who know what they can: what is asked tells more than the answers do.
        model: "1pl" or "2pl".
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    theta, b = rng.standard_normal(num_subjects), rng.standard_normal(num_items)
    a = np.exp(0.3 * rng.standard_normal(num_items)) if model == "2pl" else np.ones(num_items)
    popularity = rng.permutation(np.arange(1, num_items + 1)) ** -POPULARITY
    order = np.argsort(b)
    ends = np.concatenate([[0.0], np.cumsum(popularity[order])])
    parts = []
    for at in range(0, num_subjects, TOGETHER):
        abilities = theta[at : at + TOGETHER]
        items, right = _asked(rng, abilities, a, b, order, ends, each, selection)
        subjects = np.repeat(np.arange(len(abilities), dtype=np.int32), each)
        starts, items, right = sorted_answers(subjects, items.ravel(), right.ravel(), (len(abilities), num_items))
        first = np.ones(len(items), bool)
        first[1:] = items[1:] != items[:-1]
        first[starts[:-1]] = True
        lengths = np.add.reduceat(first, starts[:-1])
        parts.append((lengths, items[first], right[first]))
    lengths, items, right = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    subject_ids, item_ids = (
        np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in (("s", num_subjects), ("i", num_items))
    )
    responses = irtjax.SparseResponses(starts, items, right, subject_ids, item_ids)
    asked = np.bincount(items, minlength=num_items) > 0
    if asked.all():
        return Simulated(responses, theta, a, b)
    return Simulated(responses.choose_items(asked), theta, a[asked], b[asked])


def _asked(
    rng: np.random.Generator,
    theta: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    order: np.ndarray,
    ends: np.ndarray,
    each: int,
    selection: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Items (J, each) of some subjects, and whether they answered them right; a second answer is the first."""
    in_order, size = b[order], len(theta)
    items, right = np.empty((size, each), np.int32), np.empty((size, each), np.int8)
    stages = np.array_split(np.arange(each), STAGES if selection == "adaptive" else 1)
    score, expected = np.zeros(size), np.ones(size)  # of a posterior mode by one step: N(0, 1) is worth one answer
    for stage in stages:
        low, high = np.zeros((size, len(stage)), int), np.full((size, len(stage)), len(b))
        if selection == "ability" or (selection == "adaptive" and stage[0] > 0):
            centre = (theta if selection == "ability" else score / expected)[:, None]
            centre = centre + SPREAD * rng.standard_normal(low.shape)
            centre = np.clip(centre, in_order[0], in_order[-1])
            low = np.searchsorted(in_order, centre - WIDTH / 2)
            high = np.maximum(np.searchsorted(in_order, centre + WIDTH / 2), low + 1)
        drawn = ends[low] + rng.random(low.shape) * (ends[np.minimum(high, len(b))] - ends[low])
        chosen = order[np.minimum(np.searchsorted(ends, drawn, side="right") - 1, len(b) - 1)]
        p = expit(a[chosen] * (theta[:, None] - b[chosen]))
        items[:, stage], right[:, stage] = chosen, rng.random(p.shape) < p
        at = (score / expected)[:, None]
        guess = expit(a[chosen] * (at - b[chosen]))
        information = (a[chosen] ** 2 * guess * (1 - guess)).sum(axis=1)
        score = score + (a[chosen] * (right[:, stage] - guess)).sum(axis=1) + information * at[:, 0]
        expected = expected + information
    return items, right
