"""How many items of a response matrix are worked on at a time."""

from irtjax.kernels.formulation import formulation

MULTIPLE, MOST = 64, 4096  # items in a block that stays in caches


def items_per_block(num_subjects: int, num_items: int, in_caches: int) -> int:
    """Items in a block: a multiple of 64, or all that there are.

    Args:
        num_subjects: J.
        num_items: I.
        in_caches: responses in a block whose float arrays stay in the caches of a CPU; there a block has at most 4,096
            items. Accelerators take what `formulation` says.
    """
    of_device = formulation().block_responses
    block = (in_caches if of_device is None else of_device) // num_subjects // MULTIPLE * MULTIPLE
    return min(max(block, MULTIPLE), MOST if of_device is None else num_items, num_items)
