"""Blocks of subjects and items that no answer links, against SciPy, and the warning of a fit."""

import numpy as np
import pytest
from scipy.sparse import bmat, csr_matrix
from scipy.sparse.csgraph import connected_components

import irtjax
from irtjax.responses import linked_blocks as module
from irtjax.responses.linked_blocks import linked_blocks


@pytest.mark.parametrize("seed", range(6))
def test_against_scipy(seed, monkeypatch):
    monkeypatch.setattr(module, "AT_A_TIME", 60)  # several parts
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((30, 20)) < 0.04 + 0.02 * seed, rng.integers(0, 2, (30, 20)), -1)
    seen = csr_matrix(values >= 0)
    number, label = connected_components(bmat([[None, seen], [seen.T, None]]), directed=False)
    known = {
        (tuple(np.flatnonzero(label[:30] == k)), tuple(np.flatnonzero(label[30:] == k)))
        for k in range(number)
        if (label[:30] == k).any() and (label[30:] == k).any()
    }
    assert {(tuple(one.subjects), tuple(one.items)) for one in linked_blocks(values)} == known


def test_an_item_that_all_answered_links_all():
    values = np.full((5, 3), -1)
    values[:, 1], values[2, 0] = 1, 0
    (one,) = linked_blocks(values)
    assert one.subjects.tolist() == [0, 1, 2, 3, 4]
    assert one.items.tolist() == [0, 1]


def test_a_fit_says_it():
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-2 * rng.normal(size=(80, 1)) - rng.normal(size=12)))
    values = (rng.random(p.shape) < p).astype(float)
    values[:50, 6:], values[50:, :6] = np.nan, np.nan
    with pytest.warns(irtjax.FitWarning, match="no answer links 2 blocks of subjects × items: 50 × 6 with '"):
        irtjax.fit(values, "1pl")
