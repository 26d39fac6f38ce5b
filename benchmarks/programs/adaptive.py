"""Adaptive tests of a batch of subjects."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.programs import Program, array
from irtjax.evaluation import replay
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.rules import IN_SEVERAL_DIMENSIONS, RULES
from irtjax.kernels.models import ItemParameters


def adaptive_tests(
    subjects: int, items: int, asked: int, together: int = 1, rules: dict[int, tuple[str, ...]] | None = None
) -> Iterator[Program]:
    """Tests over recorded answers, by each rule.

    Args:
        subjects: of a batch.
        items: I, of the bank.
        asked: items at most.
        together: items at a time.
        rules: by the number of dimensions; all of them where it is None.
    """
    values, keys = array(subjects, items, dtype=jnp.int8), jax.random.split(jax.random.key(0), subjects)
    for dims, names in (rules or {1: tuple(RULES), 2: tuple(IN_SEVERAL_DIMENSIONS)}).items():
        slope = np.ones((items, dims), np.float32)
        bank = ItemParameters(slope, slope[:, 0], np.full(items, -2, np.float32), np.full(items, 3, np.float32))
        groups = [at % 2 for at in range(items)]
        for rule in names:
            test = adaptive_test(bank, rule=rule, ability="map", stop=Stop(asked, change=0.1), groups=groups)
            arguments = replay._recorded, together, test, values, keys
            yield Program(f"{rule}, D={dims}", replay._one_batch, arguments, turn="an item of each subject")
