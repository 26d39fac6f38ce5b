"""The loop of docs/guide/ddaclae.md, as it is printed there, against the library."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax import tasks
from irtjax.selection import compare_curricula

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "ddaclae.md"


@pytest.mark.slow
def test_the_loop_of_the_guide_trains_as_the_library_does():
    task = tasks.load("digits")
    # easier for a network that has learned little: the ink of a digit, in logits
    ink = task.train.inputs.reshape(len(task.train.labels), -1).sum(1)
    difficulty = (2 * (ink - ink.mean()) / ink.std()).astype(np.float32)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert blocks[0].split("def ddaclae")[1].strip().count("\n") <= 42, "the page promises forty lines"
    names: dict = {}
    exec(compile(blocks[0], str(PAGE), "exec"), names)
    # the second block, but for the difficulties, which it reads from a run
    given = re.sub(r"(items|difficulty) = .*\n", "", blocks[1])
    names["difficulty"] = jnp.asarray(difficulty)
    exec(compile(given, str(PAGE), "exec"), names)
    found = names["history"]
    table = compare_curricula(task, difficulty, ["DDaCLAE"], num_seeds=1)
    assert len(table) == len(found)
    shares, accuracies = ([epoch[name] for epoch in found] for name in ("share", "accuracy"))
    np.testing.assert_allclose(shares, table.share, atol=0.005)
    np.testing.assert_allclose(accuracies, table.dev_accuracy, atol=0.01)
    assert table.share.min() < 0.9  # it selects
    assert np.ptp(accuracies) > 0.1  # and learns
