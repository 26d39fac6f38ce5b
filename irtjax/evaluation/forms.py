"""Small forms of a benchmark: which items to ask, and how much each counts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from irtjax.arguments import checks_types, whole_number
from irtjax.choices import of_each
from irtjax.errors import InputError
from irtjax.evaluation import choices
from irtjax.evaluation.answer_regression import answer_moments, most_telling
from irtjax.evaluation.bank import Bank
from irtjax.types import Float, Int, Shaped

STARTS = 10  # of k-means


class Form(NamedTuple):
    """A small form of a benchmark.

    Attributes:
        items: (K,) positions in the bank, in the order in which they were chosen.
        weights: (K,) of the items in the form's mean, which sum to 1.
    """

    items: Int[np.ndarray, " K"]
    weights: Float[np.ndarray, " K"]


@checks_types
def choose_form(bank: Bank, num_items: int, way: str = "variance", seed: int = 0) -> Form:
    """Chooses the items of a form.

    * `random`: with equal weights.
    * `stratified`: one at random of each of K strata of difficulty, which have equal numbers of items.
    * `anchors`: the items nearest to the centres of K clusters of (slope, intercept), by k-means; the weight is the
      share of items in the cluster (Maia Polo et al. 2024, section 3.2).
    * `information`: the items with the greatest Fisher information, averaged over the subjects of the calibration.
    * `variance`: one after the other, the item that leaves the least variance of the score, given the answers to those
      chosen before (`irtjax.evaluation.answer_regression`).

    With categories each keeps its share of the items, rounded so that the numbers sum to K (largest remainders).

    Args:
        bank: calibrated.
        num_items: K.
        way: one of these.
        seed: of `random`, `stratified` and `anchors`.

    Raises:
        InputError: another way, or more items than there are.
    """
    if way not in WAYS:
        raise InputError(f"`way` {way!r:.100}, expected one of {', '.join(WAYS)}")
    whole_number("num_items", num_items, 1, bank.num_items)
    groups = np.zeros(bank.num_items, int) if bank.categories is None else codes(bank.categories)
    return WAYS[way](bank, groups, quotas(groups, num_items), seed)


def codes(categories: Shaped[np.ndarray, " I"]) -> Int[np.ndarray, " I"]:
    """Numbers from 0 for categories, in alphabetical order."""
    return np.unique(categories, return_inverse=True)[1].ravel()


def quotas(groups: Int[np.ndarray, " I"], num_items: int) -> Int[np.ndarray, " G"]:
    """How many items of each group a form of so many has: its share, by largest remainders."""
    exact = np.bincount(groups) * num_items / groups.size
    number = np.floor(exact).astype(int)
    order = np.argsort(number - exact, kind="stable")
    number[order[: num_items - number.sum()]] += 1
    return number


def _random(bank: Bank, groups: np.ndarray, number: np.ndarray, seed: int) -> Form:
    rng = np.random.default_rng(seed)
    parts = [rng.choice(np.flatnonzero(groups == g), k, replace=False) for g, k in enumerate(number) if k]
    return _equal(np.concatenate(parts))


def _stratified(bank: Bank, groups: np.ndarray, number: np.ndarray, seed: int) -> Form:
    rng = np.random.default_rng(seed)
    items, weights = [], []
    # percent correct orders items as difficulty does, and is there for items that hardly discriminate as well
    easiness = bank.answers.mean(axis=0)
    for g, k in enumerate(number):
        members = np.flatnonzero(groups == g)
        members = members[np.argsort(-easiness[members], kind="stable")]
        for stratum in np.array_split(members, k) if k else ():
            items.append(rng.choice(stratum))
            weights.append(stratum.size)
    return _weighted(np.array(items), np.array(weights))


def _anchors(bank: Bank, groups: np.ndarray, number: np.ndarray, seed: int) -> Form:
    parameters = np.zeros((bank.num_items, 2))  # 0 for items that all subjects answered alike
    fitted = slice(None) if bank.scaled is None else bank.scaled.fitted
    parameters[fitted] = np.column_stack([bank.fit.parameters.slope[:, 0], bank.fit.parameters.intercept])
    items, weights = [], []
    for g, k in enumerate(number):
        members = np.flatnonzero(groups == g)
        if not k:
            continue
        points = parameters[members]
        found = KMeans(k, n_init=STARTS, random_state=seed).fit(points)
        away = ((points[:, None, :] - found.cluster_centers_[None]) ** 2).sum(axis=2)
        taken = np.zeros(members.size, bool)
        for cluster in range(k):
            nearest = np.where(taken, np.inf, away[:, cluster]).argmin()  # two clusters may have one nearest item
            taken[nearest] = True
            items.append(members[nearest])
            weights.append((found.labels_ == cluster).sum())
    return _weighted(np.array(items), np.array(weights))


def _information(bank: Bank, groups: np.ndarray, number: np.ndarray, seed: int) -> Form:
    known = bank.information(bank.fit.ability).mean(axis=0)
    order = np.argsort(-known, kind="stable")
    parts = [order[groups[order] == g][:k] for g, k in enumerate(number)]
    chosen = np.concatenate(parts)
    return _equal(chosen[np.argsort(-known[chosen], kind="stable")])


def _variance(bank: Bank, groups: np.ndarray, number: np.ndarray, seed: int) -> Form:
    return _equal(most_telling(answer_moments(bank), groups, number))


def _equal(items: np.ndarray) -> Form:
    return Form(items, np.full(items.size, 1 / items.size))


def _weighted(items: np.ndarray, weights: np.ndarray) -> Form:
    return Form(items, weights / weights.sum())


WAYS: dict[str, Callable[[Bank, np.ndarray, np.ndarray, int], Form]] = of_each(
    choices.WAYS,
    {
        "random": _random,
        "stratified": _stratified,
        "anchors": _anchors,
        "information": _information,
        "variance": _variance,
    },
)
