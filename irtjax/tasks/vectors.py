"""Word vectors made from a task's own training text, without labels, or drawn at random."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from irtjax.storage.cache import cached
from irtjax.tasks.task import PADDING

WINDOW = 10  # words to either side that are context
SMOOTHING = 0.75  # power of the context frequencies
_BLOCK = 32_768  # sentences counted at once


def make_vectors(
    kind: str, sentences: Sequence[np.ndarray], num_words: int, dim: int = 100, seed: int = 0
) -> np.ndarray:
    """Vectors of a vocabulary by `ppmi_vectors`, which are kept in the cache, or by `random_vectors`.

    Args:
        kind: one of `irtjax.tasks.choices.VECTORS`.
        sentences: arrays (N, L) of word numbers, the training text.
        num_words: V.
        dim: D.
        seed: of random draws.

    Returns:
        (V, D) float32, zeros for padding.
    """
    if kind == "random":
        return random_vectors(num_words, dim, seed)
    key = list(sentences), num_words, dim, seed, WINDOW, SMOOTHING
    return cached("ppmi", key, lambda: {"vectors": ppmi_vectors(sentences, num_words, dim, seed)})["vectors"]


def random_vectors(num_words: int, dim: int, seed: int) -> np.ndarray:
    """(V, D) float32 standard normal draws; zeros for padding."""
    vectors = np.random.default_rng(seed).standard_normal((num_words, dim), np.float32)
    vectors[PADDING] = 0
    return vectors


def ppmi_vectors(sentences: Sequence[np.ndarray], num_words: int, dim: int, seed: int) -> np.ndarray:
    """Truncated singular value decomposition of positive pointwise mutual information.

    With n_wc the number of times that c is within `WINDOW` words of w, and q_c proportional to (sum_w n_wc)^0.75,

        M_wc = max(0, log(n_wc / (q_c sum_c n_wc))),   M ≈ U S V',   vectors = U S^(1/2),

    scaled to a mean square of one over the words (Levy and Goldberg 2014; Levy, Goldberg and Dagan 2015, for the
    smoothed context frequencies and the power of S).

    Args:
        sentences: arrays (N, L) of word numbers, padded at the end.
        num_words: V.
        dim: D; columns beyond the rank of M are zeros.
        seed: of the randomised decomposition.

    Returns:
        (V, D) float32; zeros for padding.
    """
    from sklearn.utils.extmath import randomized_svd  # takes a second to import

    information = _ppmi(_cooccurrences(sentences, num_words))
    vectors = np.zeros((num_words, dim), np.float32)
    rank = min(dim, num_words - 1)
    if rank and information.nnz:
        with threadpool_limits(1, "blas"):  # the matrix is tall and thin: a second thread costs more time than it saves
            left, values, _ = randomized_svd(information, rank, random_state=seed)
        vectors[:, :rank] = left * np.sqrt(values)
        vectors[PADDING] = 0
        vectors /= np.sqrt(np.mean(vectors[PADDING + 1 :] ** 2, dtype=np.float64))
    return vectors


def _cooccurrences(sentences: Sequence[np.ndarray], num_words: int) -> scipy.sparse.csr_array:
    """(V, V) numbers of times that two words are within `WINDOW` words of each other, padding aside."""
    total = scipy.sparse.csr_array((num_words, num_words), dtype=np.float64)
    for rows in sentences:
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            for distance in range(1, min(WINDOW, block.shape[1] - 1) + 1):
                left, right = block[:, :-distance], block[:, distance:]
                inside = right != PADDING  # padding stands at the end only
                pair = (left[inside].astype(np.int32), right[inside].astype(np.int32))
                ones = np.ones(len(pair[0]))
                total = total + scipy.sparse.coo_array((ones, pair), total.shape).tocsr()
    return total + total.T


def _ppmi(counts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """M of `ppmi_vectors`."""
    counts = counts.tocoo()
    totals = np.asarray(counts.sum(axis=1)).ravel()
    smoothed = totals**SMOOTHING
    row, column = counts.coords
    values = np.log(counts.data * smoothed.sum() / (totals[row] * smoothed[column]))
    kept = values > 0
    return scipy.sparse.coo_array((values[kept], (row[kept], column[kept])), counts.shape).tocsr()
