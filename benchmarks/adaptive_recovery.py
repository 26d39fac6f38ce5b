r"""Are abilities from adaptive tests right, and as sure as they say? Bias, errors and coverage at known abilities.

  python -m benchmarks.adaptive_recovery

A bank of the 3PL, simulated tests at abilities from -3 to 3, each until the standard error is 0.3 or 100 items are
asked. Prints one row per rule and ability: mean error, root mean square error beside the mean standard error that the
tests report, the coverage of 90% intervals, and the number of items in units of a random test's.
Expected duration on 2 CPU cores: one minute.
"""

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from experiments.common import app
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.replay import simulate
from irtjax.kernels.models import ItemParameters

Z_90 = 1.6449

_NUM_ITEMS = flags.DEFINE_integer("num_items", 500, "I, items of the bank", lower_bound=100)
_TESTS = flags.DEFINE_integer("tests", 1000, "tests at each ability", lower_bound=10)
_RULES = flags.DEFINE_list("rules", ["random", "information", "variance"], "the first is the reference")
_ABILITY = flags.DEFINE_enum("ability", "eap", ["eap", "map", "ml"], "how abilities are estimated")
_SEED = flags.DEFINE_integer("seed", 0, "of bank and answers", lower_bound=0, upper_bound=2**31 - 1)


def bank(rng: np.random.Generator, size: int) -> ItemParameters:
    """A lognormal, b normal with sd 1.5, c uniform up to 0.25."""
    a, b, c = rng.lognormal(0.2, 0.3, size), rng.normal(0, 1.5, size), rng.uniform(0.01, 0.25, size)
    leaves = a[:, None], -a * b, np.log(c) - np.log1p(-c), np.full(size, np.inf)
    return ItemParameters(*(jnp.asarray(leaf, jnp.float32) for leaf in leaves))


def main() -> None:
    """Simulates and prints."""
    items = bank(np.random.default_rng(_SEED.value), _NUM_ITEMS.value)
    grid = np.linspace(-3, 3, 7)
    theta = np.repeat(grid, _TESTS.value)
    print(
        f"{_NUM_ITEMS.value:,} items, {_TESTS.value:,} tests at each ability, {_ABILITY.value}, jax {jax.__version__}"
    )
    print(f"{'rule':<14}{'ability':>8}{'bias':>8}{'RMSE':>8}{'mean SE':>9}{'90% hold':>10}{'items':>8}{'× first':>9}")
    first = None
    for rule in _RULES.value:
        test = adaptive_test(items, rule=rule, ability=_ABILITY.value, stop=Stop(max_items=100, standard_error=0.3))
        found = simulate(test, theta, jax.random.key(_SEED.value))
        ability, error = found.last()
        away = ability - theta
        number = found.number.reshape(len(grid), -1).mean(axis=1)
        first = number if first is None else first
        for at, true in enumerate(grid):
            some = theta == true
            held = (np.abs(away[some]) <= Z_90 * error[some]).mean()
            rmse = np.sqrt((away[some] ** 2).mean())
            print(
                f"{rule:<14}{true:8.1f}{away[some].mean():8.3f}{rmse:8.3f}{error[some].mean():9.3f}{held:10.1%}"
                f"{number[at]:8.1f}{number[at] / first[at]:9.2f}"
            )


if __name__ == "__main__":
    app.run(main)
