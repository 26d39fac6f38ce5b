"""Where those who chose a category are on the principal axes of all choices: what slopes of categories start from."""

from typing import Any

import numpy as np
import scipy.sparse

from irtjax.types import Float

WEAK = 5.0  # responses at the middle, that draw the mean of a category there
DENSE = 2**20  # indicators of categories, up to which all axes are found


def principal_means(values: Any, top: int, number: int) -> tuple[Float[np.ndarray, "I D C"], Float[np.ndarray, "I C"]]:
    """Mean places of the subjects who chose each category, on axes of mean square 1; and how many they are.

    The axes are those of the indicators of categories, less the share of each among the answers to its item.

    Args:
        values: SciPy array (J, I) of categories from 0 to `top`, each 1 more; 0 where missing.
        top: the highest category of any item.
        number: D axes.
    """
    num_subjects, num_items = values.shape
    rows, size = scipy.sparse.csr_array(values), top + 1
    one = np.ones(rows.nnz)
    columns = rows.indices.astype(np.int64) * size + rows.data.astype(np.int64) - 1
    chosen = scipy.sparse.csr_array((one, columns, rows.indptr), (num_subjects, num_items * size))
    observed = scipy.sparse.csr_array((one, rows.indices, rows.indptr), rows.shape)
    counts = np.bincount(columns, minlength=num_items * size).reshape(num_items, size).astype(float)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes = _axes(chosen, observed, share, number) * np.sqrt(num_subjects)
    sums = (chosen.T @ axes).reshape(num_items, size, -1).swapaxes(1, 2)
    return sums / (counts + WEAK)[:, None], counts


def _axes(chosen: Any, observed: Any, share: Float[np.ndarray, "I C"], number: int) -> Float[np.ndarray, "J D"]:
    """The first left singular vectors of the centred indicators."""
    if chosen.shape[0] * chosen.shape[1] <= DENSE or number >= min(chosen.shape):
        centred = chosen.toarray() - (observed.toarray()[:, :, None] * share).reshape(chosen.shape)
        return np.linalg.svd(centred, full_matrices=False)[0][:, :number]
    from scipy.sparse.linalg import LinearOperator, svds  # takes a while to import, and few need it

    def from_columns(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " J"]:
        return chosen @ x.ravel() - observed @ (share * x.reshape(share.shape)).sum(axis=1)

    def from_rows(y: Float[np.ndarray, " J"]) -> Float[np.ndarray, " N"]:
        return chosen.T @ y.ravel() - ((observed.T @ y.ravel())[:, None] * share).ravel()

    centred = LinearOperator(chosen.shape, matvec=from_columns, rmatvec=from_rows, dtype=float)
    begin = np.random.default_rng(0).normal(size=min(chosen.shape))
    left, strength, _ = svds(centred, number, v0=begin, tol=1e-10)
    return left[:, np.argsort(-strength)]
