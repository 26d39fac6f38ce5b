"""Networks that differ in the size of their training set, for `train_crowd`."""

from collections.abc import Sequence

import numpy as np

from irtjax.crowd.members import Members
from irtjax.errors import InputError
from irtjax.training.recipe import Recipe


def half_decades(least: int, most: int) -> list[int]:
    """Sizes of training sets, evenly spaced on a log scale: `least`, √10 times as many, and so on to two digits.

    The last is `most`.
    """
    steps = least * 10 ** (np.arange(40) / 2)
    rounded = [int(float(f"{size:.2g}")) for size in steps]
    return [*(size for size in rounded if size < most), most]


def sized_members(
    sizes: Sequence[int], repeats: int, seed: int, recipe: Recipe, networks: Sequence[str] = ()
) -> Members:
    """Networks that differ in the size of their training set, with no label corrupted, for `train_crowd`.

    Members of the same size and repeat but another architecture are trained on the same examples.

    Args:
        sizes: of training sets, in examples.
        repeats: members of each size and architecture; each has examples and initial weights of its own.
        seed: of the draws.
        recipe: gives the learning rate, the width and, without `networks`, the architecture.
        networks: names of architectures.

    Raises:
        InputError: no sizes, one below 1 or twice, or no repeats.
    """
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise InputError(f"sizes {', '.join(map(str, sizes))}: expected different numbers of examples, each at least 1")
    if repeats < 1:
        raise InputError(f"{repeats} networks of each size, expected at least 1")
    networks = networks or (recipe.network,)
    seeds = np.random.default_rng(seed).choice(2**31, size=len(sizes) * repeats, replace=False)
    count = seeds.size * len(networks)
    return Members(
        number=np.arange(count),
        seed=np.tile(seeds, len(networks)),
        subset_size=np.tile(np.repeat(np.asarray(sizes, np.int32), repeats), len(networks)),
        corruption_rate=np.zeros(count, np.float32),
        learning_rate=np.full(count, recipe.learning_rate, np.float32),
        width=np.full(count, recipe.width, np.int32),
        network=np.repeat(np.asarray(networks), seeds.size),
    )
