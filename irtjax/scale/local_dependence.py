"""Do two items share more than the ability explains? Correlations of residuals (Q3)."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.stats import norm

from irtjax.errors import InputError
from irtjax.responses.compressed_rows import grouped
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import MOST_CELLS
from irtjax.scale.forms import FEWEST as FEWEST_OF_TEST
from irtjax.scale.multiple_tests import holm
from irtjax.scale.residual_products import product_p_values
from irtjax.types import Bool, Float, Int, Shaped

FEWEST = 4  # subjects that a correlation needs
DOUBTFUL = 0.05  # p-values below which the tails of a normal distribution are not trusted
LEAST_VARIANCE = 1e-12
MANY = 2**22  # pairs, beyond which those that have no p-value are left out
MOST = 2**25  # pairs of a table, of 2 GB
DENSE = 0.1  # share of the cells from which on products of whole matrices are faster
ENTRIES = 2**22  # of a block of pairs


class Residuals(NamedTuple):
    """Of N responses one by one, at the estimated abilities.

    Attributes:
        y: less what is expected.
        slope: what is expected, by ability.
        variance: of one trial.
        trials: of each response.
    """

    y: Float[np.ndarray, " N"]
    slope: Float[np.ndarray, " N"]
    variance: Float[np.ndarray, " N"]
    trials: Float[np.ndarray, " N"]


class Pairs(NamedTuple):
    """Of P pairs of items.

    Attributes:
        first: its number.
        second: that of the other, which is higher.
        number: of subjects who answered both.
        q3: correlation of the residuals over these; NaN of fewer than four, or where a residual does not vary.
        expected: what it is of locally independent items.
    """

    first: Int[np.ndarray, " P"]
    second: Int[np.ndarray, " P"]
    number: Int[np.ndarray, " P"]
    q3: Float[np.ndarray, " P"]
    expected: Float[np.ndarray, " P"]


def pairs(single: SparseResponses, residuals: Residuals, population_sd: float) -> Pairs:
    """Q3 (Yen 1984) of each pair of items, and its expectation since abilities are estimated from the responses.

    To first order θ̂ - θ = (Σ_i s_i - (θ - mean) / σ²) / T with the scores s and T = Σ_i E_i'² / V_i + 1 / σ², so that
    the residuals y - E(θ̂) of two items have the covariance -E_i' E_j' / T and variances V_i - E_i'² / T. These are
    averaged over the subjects. It is about -1 / (I - 1), more for items that discriminate.

    Of more than `MANY` pairs there are those that at least 30 subjects answered both.

    Args:
        single: the responses.
        residuals: of each.
        population_sd: σ; infinite where abilities are not drawn towards a population.

    Raises:
        InputError: more than `MOST` pairs.
    """
    number = single.num_items
    least = 0 if number * (number - 1) // 2 <= MANY else FEWEST_OF_TEST
    columns = _columns(single, residuals, population_sd)
    found: list[Pairs] = []
    size, listed = max(1, ENTRIES // number), 0
    for start in range(0, number, size):
        block = _pairs_of(columns, start, min(start + size, number), least)
        listed += len(block.first)
        if listed > MOST:
            raise InputError(
                f"more than {MOST:,} pairs of the {number:,} items have {least} subjects in common: take fewer items "
                "(`choose_items`)"
            )
        found.append(block)
    return Pairs(*(np.concatenate(each) for each in zip(*found, strict=True)))


class _Columns(NamedTuple):
    """By subject and item, arrays (J, I) of NumPy or SciPy, 0 where there is no response.

    Attributes:
        seen: 1.
        residual: less its mean over the subjects of the item.
        square: of that.
        part: E' / √T.
        own: V - E'² / T.
    """

    seen: Any
    residual: Any
    square: Any
    part: Any
    own: Any

    def items(self, some: slice) -> "_Columns":
        return _Columns(*(leaf[:, some] for leaf in self))


def _columns(single: SparseResponses, residuals: Residuals, population_sd: float) -> _Columns:
    items, subjects = single.items, single.subjects
    answered = np.bincount(items, minlength=single.num_items)
    x = residuals.y - (np.bincount(items, residuals.y, single.num_items) / np.maximum(answered, 1))[items]
    variance = residuals.variance / residuals.trials
    information = residuals.slope**2 / np.maximum(variance, LEAST_VARIANCE)
    total = np.bincount(subjects, information, single.num_subjects) + population_sd**-2.0
    with np.errstate(invalid="ignore", divide="ignore"):
        part = residuals.slope / np.sqrt(total)[subjects]
    leaves = (np.ones(len(x)), x, x**2, part, np.maximum(variance - part**2, 0.0))
    shape = single.num_subjects, single.num_items
    if single.density >= DENSE and shape[0] * shape[1] <= MOST_CELLS:
        return _Columns(*(_filled(leaf, subjects, items, shape) for leaf in leaves))
    return _Columns(*(scipy.sparse.csr_array((leaf, items, single.starts), shape).tocsc() for leaf in leaves))


def _filled(leaf: np.ndarray, subjects: np.ndarray, items: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    found = np.zeros(shape)
    found[subjects, items] = leaf
    return found


def _pairs_of(columns: _Columns, start: int, stop: int, least: int) -> Pairs:
    """Those of some items with the items after each."""
    one, other = columns.items(slice(start, stop)), columns.items(slice(start, None))

    def sums(of_one: Any, of_other: Any) -> Float[np.ndarray, "n m"]:
        found = of_one.T @ of_other
        return found if isinstance(found, np.ndarray) else found.toarray()

    n = sums(one.seen, other.seen)
    listed = np.triu(n >= least, 1)
    first, second = np.nonzero(listed)
    n = n[listed]
    products = [(one.residual, other.seen), (one.seen, other.residual), (one.square, other.seen)]
    products += [(one.seen, other.square), (one.residual, other.residual)]
    products += [(one.part, other.part), (one.own, other.seen), (one.seen, other.own)]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, mean_other, square, square_other, both, shared, own, own_other = (
            sums(*of_both)[listed] / n for of_both in products
        )
        square, square_other = square - mean**2, square_other - mean_other**2
        q3 = (both - mean * mean_other) / np.sqrt(square * square_other)
        expected = -shared / np.sqrt(own * own_other)
    q3 = np.where((n >= FEWEST) & (square > 0) & (square_other > 0), q3, np.nan)
    return Pairs(first + start, second + start, n.astype(int), q3, expected)


def pair_table(found: Pairs, tested: Bool[np.ndarray, " I"]) -> pd.DataFrame:
    """One row per pair, the most dependent first: `q3`, its excess over what is expected, and how sure that is.

    The p-value is by Fisher's z, (atanh Q3 - atanh of the expected) sqrt(n - 3), as if residuals were a normal sample.
    Pairs with an item that is not `tested`, and those that fewer than 30 subjects answered, have none, and come last.
    """
    first, second, n, values, model = found
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (np.arctanh(values) - np.arctanh(model)) * np.sqrt(n - 3)
    z = np.where(tested[first] & tested[second] & (n >= FEWEST_OF_TEST), z, np.nan)
    p_value = 2 * norm.sf(np.abs(z))
    table = pd.DataFrame(
        {
            "first": first,
            "second": second,
            "num_subjects": n,
            "q3": values,
            "q3_excess": values - model,
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    )
    order = np.lexsort([-np.nan_to_num(np.abs(values - model), nan=-1.0), -np.nan_to_num(np.abs(z), nan=-1.0)])
    return table.iloc[order].reset_index(drop=True)


def with_saddlepoint(
    table: pd.DataFrame, single: SparseResponses, p: Float[np.ndarray, " N"], residuals: Float[np.ndarray, " N"]
) -> pd.DataFrame:
    """The table of `pair_table` of right and wrong answers, with p-values below `DOUBTFUL` by the saddlepoint.

    The sum of the products of the residuals, less what is expected, is compared with its distribution given the
    probabilities (`residual_products`). Elsewhere Fisher's z is near enough.

    Args:
        table: of all pairs.
        single: the answers.
        p: chance that each is right.
        residuals: of each.
    """
    doubtful = np.flatnonzero(table["p_value"] < DOUBTFUL)
    first, second, number = (table[name].to_numpy()[doubtful] for name in ("first", "second", "num_subjects"))
    expected = (table["q3"] - table["q3_excess"]).to_numpy()[doubtful]
    p_value = table["p_value"].to_numpy(copy=True)
    for some, one, other in _in_common(single, first, second, number):
        seen = one >= 0
        x, x_other = (np.where(seen, residuals[at], 0.0) for at in (one, other))
        norm_of = np.sqrt((x**2).sum(axis=0) * (x_other**2).sum(axis=0))
        total = (x * x_other).sum(axis=0) - expected[some] * norm_of
        chance, chance_other = (np.where(seen, p[at], 0.5) for at in (one, other))
        found = product_p_values(chance, chance_other, seen, total)
        p_value[doubtful[some]] = np.maximum(found, p_value[doubtful[some]])
    return table.assign(p_value=p_value, p_holm=holm(p_value))


def _in_common(
    single: SparseResponses,
    first: Int[np.ndarray, " P"],
    second: Int[np.ndarray, " P"],
    number: Int[np.ndarray, " P"],
) -> Iterator[tuple[Int[np.ndarray, " p"], Int[np.ndarray, "L p"], Int[np.ndarray, "L p"]]]:
    """Some pairs with about as many subjects at a time: which, and the answers of these to both items; -1 for none."""
    ends, by_item = grouped(single.items, single.num_items)
    place = np.full(single.num_subjects, -1)
    length = 2 ** np.ceil(np.log2(np.maximum(number, 1))).astype(int)
    order = np.lexsort([second, first, length])
    for alike in np.split(order, np.flatnonzero(np.diff(length[order])) + 1):
        most = int(number[alike].max(initial=1))
        size = max(1, ENTRIES // (4 * most))
        for start in range(0, len(alike), size):
            some = alike[start : start + size]
            both = np.full((2, most, len(some)), -1)
            own: Shaped[np.ndarray, " n"] = np.zeros(0, int)
            for column, pair in enumerate(some):
                if not column or first[pair] != first[some[column - 1]]:
                    place[single.subjects[own]] = -1
                    own = by_item[ends[first[pair]] : ends[first[pair] + 1]]
                    place[single.subjects[own]] = own
                others = by_item[ends[second[pair]] : ends[second[pair] + 1]]
                at = place[single.subjects[others]]
                there = at >= 0
                both[:, : there.sum(), column] = at[there], others[there]
            place[single.subjects[own]] = -1
            yield some, both[0], both[1]
