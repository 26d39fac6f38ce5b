"""What variational inference compiles is the same in each process: a cache has it, and results are equal to the bit."""

import os
import subprocess
import sys

import pytest
from conftest import REPOSITORY

FIT = """
import numpy as np
import irtjax

values = np.random.default_rng(0).integers(0, 2, (50, 10)).astype(np.int8)
fit = irtjax.fit(values, "2pl", estimator="svi", max_steps=100)
print(fit.difficulty.tobytes().hex())
"""


@pytest.mark.slow
def test_the_order_of_names_in_sets_does_not_matter(tmp_path):
    own = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1"}
    found = []
    for seed in ("1", "2", "3"):  # of the order of sets of texts
        variables = os.environ | own | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-W", "ignore", "-c", FIT]
        ended = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        found.append(ended.stdout)
        assert len(list(tmp_path.glob("jit_advance-*-cache"))) == 1
    assert found[0] == found[1] == found[2]
