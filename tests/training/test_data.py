"""A task on the device."""

import jax
import numpy as np
import pytest
from conftest import mesh_of

from irtjax import tasks
from irtjax.tasks.task import Split, TextFormat
from irtjax.training.data import ANSWER_BLOCK, evaluation_split, to_device


def test_cores_share_one_copy():
    task = tasks.load("digits")
    data = to_device(task, mesh_of(4))
    np.testing.assert_array_equal(data.inputs, task.train.inputs)
    for leaf in jax.tree.leaves(data):
        assert len({shard.data.unsafe_buffer_pointer() for shard in leaf.addressable_shards}) == 1


@pytest.mark.parametrize("counts", [(300, 200, 50), (10, 0, 5), (0, 0, 3), (128, 256, 128), (1, 300, 0)])
def test_blocks_hold_whole_examples_and_none_but_the_last_is_filled_up(counts):
    lengths = np.random.default_rng(0).permutation(np.repeat([2, 4, 9], counts))
    rows = np.where(np.arange(9) < lengths[:, None], 2 + np.arange(lengths.size)[:, None], 0).astype(np.uint16)
    ids = np.arange(lengths.size)
    format = TextFormat(("",) * 700, np.ones((700, 3), np.float32), ((2,), (4,), (9,)))
    found = evaluation_split(Split((rows,), ids, ids.astype(str)), format)
    blocks = [part for (part,) in found.buckets]
    assert sum(map(len, blocks)) == -(-lengths.size // ANSWER_BLOCK)
    assert all(part.shape[1] == ANSWER_BLOCK for part in blocks)
    padded = np.concatenate([np.pad(part, ((0, 0), (0, 0), (0, 9 - part.shape[2]))) for part in blocks])
    np.testing.assert_array_equal(padded.reshape(-1, 9)[found.position], rows)
