"""How much the turns of a loop work on: what stays in the caches of a CPU, or what is worth starting a kernel for."""

from collections.abc import Callable
from typing import Any

import jax

from irtjax.kernels.formulation import formulation

MULTIPLE, MOST = 64, 4096  # items in a block that stays in caches
SEARCHES = 64  # of abilities, at a time on a CPU


def items_per_block(num_subjects: int, num_items: int, in_caches: int) -> int:
    """Items in a block of a response matrix: a multiple of 64, or all that there are.

    Args:
        num_subjects: J.
        num_items: I.
        in_caches: responses in a block whose float arrays stay in the caches of a CPU; there a block has at most 4,096
            items. Accelerators take what `formulation` says.
    """
    of_device = formulation().block_responses
    block = (in_caches if of_device is None else of_device) // num_subjects // MULTIPLE * MULTIPLE
    return min(max(block, MULTIPLE), MOST if of_device is None else num_items, num_items)


def at_once(in_caches: int, each: int) -> int:
    """How many rows or blocks a turn works on: `in_caches` on a CPU, on accelerators as many as `formulation` says.

    Args:
        in_caches: no fewer anywhere.
        each: numbers that one of them takes.
    """
    numbers = formulation().numbers
    return in_caches if numbers is None else max(in_caches, numbers // max(each, 1))


def mapped(function: Callable[[Any], Any], rows: Any, each: int, in_caches: int = 1) -> Any:
    """A function of each row, or block, of arrays that begin with one axis; so many at a time as `at_once` says."""
    number = at_once(in_caches, each)
    return jax.lax.map(function, rows, batch_size=number if number > 1 else None)


def added(part: Callable[[Any], Any], add: Callable[[Any, Any, Any], Any], sums: Any, blocks: Any, each: int) -> Any:
    """Adds up what is found of each block of arrays that begin with one axis.

    Args:
        part: what is found of one block.
        add: of sums, a block and what was found of it; or of several, each with one axis more at the front.
        sums: to begin with.
        blocks: as many at a time as `at_once` says.
        each: numbers that one takes.
    """
    length = len(jax.tree.leaves(blocks)[0])
    number = min(at_once(1, each), length)
    if number <= 1:
        return jax.lax.scan(lambda sums, block: (add(sums, block, part(block)), None), sums, blocks)[0]
    whole = length // number * number

    def several(sums: Any, some: Any) -> tuple[Any, None]:
        return add(sums, some, jax.vmap(part)(some)), None

    in_whole = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, number, *leaf.shape[1:]), blocks)
    sums = jax.lax.scan(several, sums, in_whole)[0]
    return several(sums, jax.tree.map(lambda leaf: leaf[whole:], blocks))[0] if whole < length else sums
