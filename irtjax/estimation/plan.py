"""What is estimated of a test: the model of each item, what is held, the priors as they were asked for."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation import empirical_priors
from irtjax.estimation.empirical_priors import DETERMINED
from irtjax.estimation.priors import GUESSING_PRIOR, INTERCEPT_PRIOR, UPPER_PRIOR, ItemPriors, NormalPrior, Priors
from irtjax.estimation.problem import Specification
from irtjax.estimation.special_items import anchored_items, held_guessing, place_anchors
from irtjax.estimation.specify import few_with_asymptotes, item_types, specify, start_items
from irtjax.integration.rules import Totals
from irtjax.kernels.models import ItemParameters
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import Responses
from irtjax.types import Bool, Float

SLOPE_PRIOR = NormalPrior(1.0, 2.0)  # on long tests, where too few items have a slope for a prior to be estimated


class Plan(NamedTuple):
    """What is to be estimated.

    Attributes:
        items: to start from.
        specification: what is free or shared; priors.
        anchored: (I,) which items are held at given parameters.
        held: (I,) lower asymptotes that are held, NaN where they are not; None for none.
        extreme: (I,) items that everyone or no one answered right.
        aside: (I,) those of them that have no part in the fit, as their intercepts have no prior.
        as_1pl: whether it is a Rasch model that is fitted as the 1PL: so the two are the same to the last digit.
    """

    items: ItemParameters
    specification: Specification
    anchored: Bool[np.ndarray, " I"]
    held: Float[np.ndarray, " I"] | None
    extreme: Bool[np.ndarray, " I"]
    aside: Bool[np.ndarray, " I"]
    as_1pl: bool


def plan_of(
    responses: Responses | ScaledResponses,
    model: str | Sequence[str],
    dims: int,
    anchors: pd.DataFrame | None,
    guessing: float | Sequence[float] | np.ndarray | None,
    asked: dict[str, Any],
    totals: Totals,
    *,
    long: bool,
) -> Plan:
    """The items to start from, and what is free of them.

    Args:
        responses: to I items.
        model: the type of all items, or of each.
        dims: D.
        anchors: a table of items that are held; None for none.
        guessing: lower asymptotes that are held, as `special_items.held_guessing` takes them.
        asked: priors by parameter, as `priors.as_given` has them.
        totals: of the responses.
        long: whether posteriors are normal, where slopes always have a prior.

    Raises:
        InputError: a model, dimensions, anchors or asymptotes that do not go together.
    """
    types = item_types(model, responses.num_items)
    right, observed, _ = totals
    anchored = np.zeros(right.size, bool) if anchors is None else anchored_items(responses, anchors)
    held = None if guessing is None else held_guessing(guessing, responses.item_ids)
    asked = dict(asked)
    # normal posteriors of few subjects follow priors of intercepts and of free asymptotes, estimated together, to where
    # guessing explains most of what is right
    trade = few_with_asymptotes(types, held) or (long and bool(set(types) & {"3pl", "4pl"}))
    if asked["intercept"] == "auto" and (trade or empirical_priors.intercepts_determined(right, observed) > DETERMINED):
        asked["intercept"] = None
    extreme = ((right == 0) | (right == observed)) & ~anchored & (asked["intercept"] in (None, "auto"))
    aside = extreme & (asked["intercept"] is None)
    if held is not None:
        held[aside] = np.nan
    start = {
        "slope": SLOPE_PRIOR if long else None,
        "intercept": INTERCEPT_PRIOR,
        "guessing": GUESSING_PRIOR,
        "upper": UPPER_PRIOR,
    }
    priors = {name: start[name] if prior == "auto" else prior for name, prior in asked.items()}
    estimated = [name for name, prior in asked.items() if prior == "auto" and (name != "slope" or long or dims == 1)]
    as_1pl = types[0] == "rasch" and not anchored.any()
    if as_1pl and not isinstance(priors["slope"], ItemPriors):  # which specify refuses
        priors["slope"] = None
    specification = specify(
        ("1pl",) * len(types) if as_1pl else types,
        dims=dims,
        anchored=anchored,
        guessing=held,
        priors=Priors(**priors),
        estimate=estimated,
    )
    items = start_items(specification, right, observed, held)
    if anchors is not None:
        items = place_anchors(items, anchors, responses.item_ids, anchored)
    return Plan(items, specification, anchored, held, extreme, aside, as_1pl)


def check_extremes(responses: Responses, extreme: Bool[np.ndarray, " I"], choice: str) -> None:
    """Refuses extreme items where the choice is to refuse them, or where there are no others.

    Raises:
        InputError: no other items, an unknown choice, or refused items; it names the first five.
    """
    if extreme.all():
        raise InputError("every item was answered right by everyone or by no one: they tell no one from another")
    if choice not in ("refuse", "keep"):
        raise InputError(f"unknown choice {choice!r} for extreme items, expected refuse or keep")
    if choice == "refuse" and extreme.any():
        names = ", ".join(f"'{item}'" for item in responses.item_ids[extreme][:5])
        more = f" and {extreme.sum() - 5} more" if extreme.sum() > 5 else ""
        raise InputError(
            f"everyone or no one answered {names}{more} right, so their difficulty has no finite maximum: "
            "remove them, or keep them (`extremes=keep`)"
        )
