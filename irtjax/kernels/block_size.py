"""How many items of a response matrix are worked on at a time: a float array of such a block stays in cache."""

MULTIPLE, MOST = 64, 4096  # items in a block


def items_per_block(num_subjects: int, num_items: int, num_responses: int) -> int:
    """Items in a block of about `num_responses`: a multiple of 64, at most 4,096, and no more than there are."""
    block = num_responses // num_subjects // MULTIPLE * MULTIPLE
    return min(max(block, MULTIPLE), MOST, num_items)
