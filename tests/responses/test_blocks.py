"""Chunks of blocks on each kind of device: every response is in one of them, and no chunk is larger than asked for."""

import numpy as np
import pytest

from irtjax.kernels.formulation import formulated_for
from irtjax.responses.blocks import Chunks
from irtjax.responses.matrix import MISSING

SUBJECTS, ITEMS = 5, 700


@pytest.mark.parametrize("backend", ["cpu", "gpu", "tpu"])
@pytest.mark.parametrize("chunk_bytes", [None, SUBJECTS * 300])
def test_every_response_is_in_a_block(backend, chunk_bytes):
    values = np.random.default_rng(0).integers(-1, 2, (SUBJECTS, ITEMS)).astype(np.int8)
    with formulated_for(backend):
        chunks = Chunks(values, chunk_bytes=chunk_bytes)
        parts = [np.array(part) for part in chunks.walk(lambda _, part: part, None)]
    if chunk_bytes is None:
        assert len(parts) == 1
    elif backend != "cpu":
        assert [part.shape for part in parts] == [(1, SUBJECTS, 256)] * 3  # of at most 300 items, as many in each
    laid_out = np.concatenate([block for part in parts for block in part], axis=1)
    np.testing.assert_array_equal(laid_out[:, :ITEMS], values)
    assert (laid_out[:, ITEMS:] == MISSING).all()
    assert laid_out.shape[1] == chunks.num_items
