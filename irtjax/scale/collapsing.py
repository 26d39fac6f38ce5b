"""Rare cells of a table of sums by categories are joined to others, by the rule of R's mirt.

1. From the lowest sum up, a sum with a single subject is joined to the next.
2. Within each sum where a cell has less than one expected response, the rarest category is joined to its rarer
   neighbour, the lower one of equal ones, until none is left or there are two categories. What is left moves to the
   front: cells of one column are then of different categories, which a sum over cells does not mind.
3. The last column is joined to the one before as long as less is expected in it than one response in every ten sums;
   another one where fewer than 5% of the sums have it.
4. As long as less than one response is expected in a cell, the lowest such sum is joined to the neighbour with fewer
   subjects.

Right/wrong items, with two columns, have steps 1 and 4 alone.
"""

import numpy as np

from irtjax.types import Float

SMALLEST_EXPECTED = 1.0
SUMS_PER_RESPONSE = 10  # of the last column
LEAST_SHARE = 0.05  # of the sums, that have a column


def collapse(observed: Float[np.ndarray, "S C"], expected: Float[np.ndarray, "S C"]) -> Float[np.ndarray, "_ _ 2"]:
    """Observed and expected numbers of the joined cells; 0 expected is no cell.

    Args:
        observed: subjects by sum and category; every sum has some.
        expected: the same; 0 where a category is impossible.
    """
    table = np.stack([observed, expected], axis=2)
    if not len(table):
        return table
    table = _without_single_subjects(table)
    if table.shape[1] > 2:
        table = _without_rare_columns(np.stack([_within(row) for row in table]))
    return _without_rare_cells(table)


def _without_single_subjects(table: np.ndarray) -> np.ndarray:
    """Step 1."""
    rows = list(table)
    at = 0
    while len(rows) > 1 and at < len(rows):
        if rows[at][:, 0].sum() == 1:
            _join(rows, at, at + 1 if at + 1 < len(rows) else at - 1)
        at += 1  # the joined sum has two subjects or more
    return np.array(rows)


def _within(row: Float[np.ndarray, "C 2"]) -> Float[np.ndarray, "C 2"]:
    """Step 2, of one sum."""
    cells = list(row)
    while len(cells) > 2:
        should = [cell[1] for cell in cells]
        if min(should) >= SMALLEST_EXPECTED:
            break
        at = max(k for k, number in enumerate(should) if number == min(should))
        if at in (0, len(cells) - 1):
            other = 1 if at == 0 else at - 1
        else:
            other = at - 1 if should[at - 1] <= should[at + 1] else at + 1
        _join(cells, at, other)
    return np.array(cells + [np.zeros(2)] * (len(row) - len(cells)))


def _without_rare_columns(table: np.ndarray) -> np.ndarray:
    """Step 3."""
    columns, least = list(table.transpose(1, 0, 2)), SMALLEST_EXPECTED * np.ceil(len(table) / SUMS_PER_RESPONSE)
    while len(columns) > 2 and columns[-1][:, 1].sum() < least:
        _join(columns, len(columns) - 2, len(columns) - 1)
    for at in range(len(columns) - 1, 0, -1):
        if (columns[at][:, 1] > 0).mean() < LEAST_SHARE:
            _join(columns, at - 1, at)
    return np.array(columns).transpose(1, 0, 2)


def _without_rare_cells(table: np.ndarray) -> np.ndarray:
    """Step 4."""
    rows = list(table)
    while len(rows) > 1:
        sparse = [k for k, row in enumerate(rows) if ((row[:, 1] > 0) & (row[:, 1] < SMALLEST_EXPECTED)).any()]
        if not sparse:
            break
        low, at, high = sparse[0] - 1, sparse[0], sparse[0] + 1
        upper = low < 0 or (high < len(rows) and rows[high][:, 0].sum() < rows[low][:, 0].sum())
        _join(rows, at, high if upper else low)
    return np.array(rows)


def _join(rows: list[np.ndarray], one: int, other: int) -> None:
    low, high = sorted((one, other))
    rows[low] = rows[low] + rows.pop(high)
