"""A task on the device."""

import jax
import numpy as np
from conftest import mesh_of

from irtjax import tasks
from irtjax.training.data import to_device


def test_cores_share_one_copy():
    task = tasks.load("digits")
    data = to_device(task, mesh_of(4))
    np.testing.assert_array_equal(data.inputs, task.train.inputs)
    for leaf in jax.tree.leaves(data):
        assert len({shard.data.unsafe_buffer_pointer() for shard in leaf.addressable_shards}) == 1
