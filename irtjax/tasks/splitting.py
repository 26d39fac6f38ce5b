"""Training, validation and test splits of examples that come without, each with its share of every class."""

from collections.abc import Mapping

import numpy as np

from irtjax.errors import InputError

SHARE = 0.15  # of the examples, for validation and for test each


def draw_splits(labels: np.ndarray, num_classes: int, shares: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
    """Splits stratified by class: of n examples of a class, a split of share s has n s, rounded up or down.

    One example of each class stays in training. The n examples of a class are put in random order and get the ranks
    (i + u) / n with one uniform u for the class; those of the lowest ranks of all classes are the first split, the next
    the second, and so on (systematic sampling; Cochran 1977, chapter 8).

    Args:
        labels: (N,) numbers of classes.
        num_classes: C.
        shares: of the splits to draw beside training, by name; each has at least one example.
        seed: of the draw.

    Returns:
        Positions of the examples of training and of these splits, ascending.

    Raises:
        InputError: a share that is not between 0 and 1, shares that leave nothing to train on, or too few examples for
            one of each class and one for each split.
    """
    for name, share in shares.items():
        if not 0 < share < 1:
            raise InputError(f"`{name}_share`={share}: expected more than 0 and less than 1")
    if sum(shares.values()) >= 1:
        raise InputError(f"shares of {' and '.join(map(str, shares.values()))} leave nothing to train on")
    present = len(np.unique(labels))
    spare = labels.size - present
    if labels.size < num_classes or spare < len(shares):
        raise InputError(
            f"{labels.size} examples of {num_classes} classes are too few: training needs one of each class, and "
            f"{' and '.join(shares)} one more each"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(labels.size)
    order = order[np.argsort(labels[order], kind="stable")]  # by class, at random within
    counts = np.bincount(labels, minlength=num_classes)
    ends = np.cumsum(counts)
    within = np.arange(labels.size) - np.repeat(ends - counts, counts)
    ranks = (within + np.repeat(rng.random(num_classes), counts)) / np.repeat(counts, counts)
    ranks[ends[counts > 0] - 1] = np.inf  # stays in training
    order = order[np.argsort(ranks, kind="stable")]
    splits, begin, left = {}, 0, spare
    for at, (name, share) in enumerate(shares.items()):
        size = min(max(1, round(share * labels.size)), left - (len(shares) - at - 1))
        splits[name] = np.sort(order[begin : begin + size])
        begin, left = begin + size, left - size
    return {"train": np.sort(order[begin:]), **splits}
