"""Items that are free by group (`estimation.free_items`) as one group has them, by their plain ids."""

from collections.abc import Collection, Sequence

import numpy as np

from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.types import Int, Shaped


def of_group(fit: Fit, name: str) -> tuple[Int[np.ndarray, " N"], Shaped[np.ndarray, " N"]]:
    """The rows of a fit that a group has, in common with others or as its own, and the ids of these items.

    Args:
        fit: of several groups.
        name: of one of them.
    """
    ids = fit.responses.item_ids.astype(str)
    groups = (
        np.asarray(fit.details["free_by_group"]["group"]) if "free_by_group" in fit.details else np.full(len(ids), "")
    )
    places = np.flatnonzero((groups == "") | (groups == name))
    own = [ids[i].removesuffix(f" ({name})") if groups[i] else ids[i] for i in places]
    return places, np.array(own)


def require_named(item_ids: Sequence[str], known: Collection[str], argument: str = "population") -> None:
    """Refuses responses to items that are free by group where nothing says which group the subjects are of.

    Args:
        item_ids: of the responses.
        known: of the items with parameters, where such an item is there as "item_07 (women)".
        argument: that names the group.

    Raises:
        InputError: names the first, and its groups.
    """
    for item in item_ids:
        if item in known:
            continue
        groups = sorted(one.removeprefix(f"{item} (")[:-1] for one in map(str, known) if one.startswith(f"{item} ("))
        if len(groups) > 1:
            raise InputError(
                f"item {item!r} has parameters of its own in {', '.join(map(repr, groups))}: name the group of these "
                f"subjects, `{argument}`={groups[0]!r}, or answers to {f'{item} ({groups[0]})'!r}"
            )
