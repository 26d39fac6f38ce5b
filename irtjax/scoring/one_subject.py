"""The methods of scoring right and wrong answers, for one subject."""

from collections.abc import Callable
from typing import Any

from irtjax.errors import InputError
from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_means import ability_eap
from irtjax.kernels.ability_modes import ability_mode
from irtjax.kernels.ability_weighted import ability_wle
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.roots import NUM_POINTS
from irtjax.populations.normal import Population


def by_method(
    method: str, num_nodes: int, population: Population, scale: Any = None
) -> Callable[[Any, ItemParameters], Ability]:
    """A function of responses (I,) and the parameters of these items.

    Args:
        method: one of `METHODS`.
        num_nodes: of "eap" in one dimension.
        population: of "eap" and "map".
        scale: origin and unit in which "ml" and "wle" look; None for those of the items.
    """
    return {
        "ml": lambda row, items: ability_mode(row, items, scale=scale),
        "map": lambda row, items: ability_mode(row, items, population),
        "wle": lambda row, items: ability_wle(row, items, scale),
        "eap": lambda row, items: ability_eap(row, items, population, num_nodes),
    }[method]


def num_points(method: str, num_nodes: int) -> int:
    """At how many abilities a method looks at once, in one dimension."""
    return {"wle": NUM_POINTS, "eap": num_nodes}.get(method, 1)


def require_one_dimension(method: str, items: ItemParameters) -> None:
    """Refuses "wle" of items in several dimensions.

    Raises:
        InputError: it is asked for.
    """
    if method == "wle" and items.slope.shape[1] > 1:
        raise InputError(f"method 'wle' has one dimension, and the items have {items.slope.shape[1]}: use map or ml")
