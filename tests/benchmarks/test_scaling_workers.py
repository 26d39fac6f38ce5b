"""The workers of `benchmarks.scaling`."""

import pytest

from benchmarks.scaling import Group
from irtjax.errors import InputError


def test_a_worker_that_was_killed_is_told_as_such():
    group = Group("cpu", devices=1, processes=1)
    try:
        group._processes[0].kill()
        with pytest.raises(InputError, match="killed, most likely for lack of memory: give fewer --num_items"):
            group.ask({"name": "copy"}, 1)
    finally:
        group.close()
