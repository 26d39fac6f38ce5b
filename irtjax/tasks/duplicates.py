"""Examples that are there more than once."""

import hashlib
from collections.abc import Mapping

import numpy as np

from irtjax.tasks.inputs import Features, Inputs, Texts

_Where = tuple[str, str, int]  # split, id, label


def note_of_duplicates(
    inputs: Mapping[str, Inputs], labels: Mapping[str, np.ndarray], ids: Mapping[str, np.ndarray]
) -> str:
    """A line on examples with the same input, by split; empty if there are none.

    Args:
        inputs: of each split, (N,) examples.
        labels: (N,) numbers of classes.
        ids: (N,) names.
    """
    places: dict[object, list[_Where]] = {}
    for split, own in inputs.items():
        for key, name, label in zip(_keys(own), ids[split].tolist(), labels[split].tolist(), strict=True):
            places.setdefault(key, []).append((split, name, label))
    several = [where for where in places.values() if len(where) > 1]
    if not several:
        return ""
    copies = sum(map(len, several)) - len(several)
    note = f"{copies:,} {'examples repeat' if copies > 1 else 'example repeats'} the input of another"
    across = [where for where in several if len({split for split, _, _ in where}) > 1]
    if across:
        first, other = across[0][0], next(place for place in across[0] if place[0] != across[0][0][0])
        note += (
            f"; {len(across):,} {'inputs lie' if len(across) > 1 else 'input lies'} in more than one split, such as "
            f"{first[1]} of {first[0]}, which is {other[1]} of {other[0]}: accuracy on them flatters"
        )
    unlike = sum(len({label for _, _, label in where}) > 1 for where in several)
    if unlike:
        note += f"; {unlike:,} {'inputs have' if unlike > 1 else 'input has'} more than one label"
    return note


def _keys(inputs: Inputs) -> list[object]:
    if isinstance(inputs, Texts):
        return list(zip(*inputs.sentences, strict=True))
    array = inputs.values if isinstance(inputs, Features) else inputs.images
    return [hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=16).digest() for row in array]
