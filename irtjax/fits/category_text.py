"""What a fit says of its grades and categories: which there are, which nobody was given, which only once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irtjax.responses.scaled import Scale
from irtjax.responses.values import OnScales

SHOWN = 3  # scales, or labels of an item, that a text names
DISPERSED = 1.5  # times the mean squares of independent trials, from which on a fit says so


def said(scales: Sequence[Scale], noun: str = "grades", of_counts: bool = False) -> str:
    """What responses are, such as "grades 1 to 10"."""
    kinds = list(dict.fromkeys(_said(scale, noun, of_counts) for scale in scales))
    more = f" and {len(kinds) - SHOWN} other scales" if len(kinds) > SHOWN else ""
    return ", ".join(kinds[:SHOWN]) + more


def _said(scale: Scale, noun: str, of_counts: bool) -> str:
    labels = scale.labels
    if labels is None:
        return "counts" if of_counts else "shares"
    if labels == (0, 1):
        return "right and wrong"
    steps = np.diff(scale.worth)
    if np.ptp(steps) > 0:
        return f"{len(labels)} {noun} from {labels[0]} to {labels[-1]}"
    return f"{noun} {labels[0]} to {labels[-1]}" + ("" if steps[0] == 1 else f" in steps of {steps[0]:g}")


def _noun(models: Sequence[str]) -> str:
    return "categories" if set(models) == {"nominal"} else "grades"


def read_as(given: OnScales, models: Sequence[str] = ()) -> str:
    """What was read, such as "grades 1 to 10, the means of up to 3 each"."""
    text = said(given.scales, _noun(models), given.trials is not None)
    if given.trials is not None and any(scale.labels is None for scale in given.scales):
        text += f" of up to {np.asarray(given.trials).max():,} trials"
    return text if given.averaged == 1 else f"{text}, each the mean of up to {given.averaged:,}"


def record(given: OnScales, fitted: OnScales, models: Sequence[str]) -> dict[str, Any]:
    """Entries of `fit.json`: what was read, and by item the categories that nobody was given, and those given once.

    Args:
        given: as they were read.
        fitted: without the categories that were taken out.
        models: of the items.
    """
    entries: dict[str, Any] = {"read_as": read_as(given, models)}
    categorical = np.array([scale.labels is not None for scale in given.scales])
    if not categorical.any():
        return entries
    frequencies = given.choose_items(categorical).frequencies()
    never: dict[str, list[Any]] = {}
    once: dict[str, list[Any]] = {}
    for counts, i in zip(frequencies, np.flatnonzero(categorical), strict=True):
        labels = given.scales[i].labels or ()
        for found, number in ((never, 0), (once, 1)):
            if chosen := [label for label, count in zip(labels, counts, strict=False) if count == number]:
                found[str(given.item_ids[i])] = chosen
    if never:
        entries |= {"never_given": never, "taken_out": fitted.scales != given.scales}
    return entries | ({"given_once": once} if once else {})


def notes(details: Mapping[str, Any], num_items: int) -> list[str]:
    """Notes on categories that nobody was given or that were given once, on overdispersed counts, and on judges."""
    lines, noun = [], _noun(details.get("models", ()))
    if never := details.get("never_given"):
        end = (
            "they are not among the categories of these items"
            if details["taken_out"]
            else "what is estimated of them comes from the prior"
        )
        lines.append(f"{_which(never, num_items)} {noun} that nobody was given, {_such_as(never)}: {end}")
    if (ratio := details.get("dispersion", 0.0)) > DISPERSED:
        lines.append(
            f"counts are {ratio:.2g} times as far from the model, in mean squares, as independent trials would be: "
            f"standard errors are about {ratio**0.5:.2g} times too small, of items and of abilities; "
            "`beta_binomial` allows for it"
        )
    if alone := details.get("facet", {}).get("no_common_subjects"):
        lines.append(
            f"judges with no subject in common with the others, such as '{alone[0]}' ({len(alone):,} of "
            f"{len(details['facet']['ids']):,}): their severity rests on subjects being as able as those of the others"
        )
    if once := details.get("given_once"):
        lines.append(
            f"{_which(once, num_items)} {noun} that were given once, {_such_as(once)}: little is known of them"
        )
    return lines


def _which(found: Mapping[str, Any], num_items: int) -> str:
    return f"{len(found):,} of {num_items:,} items {'has' if len(found) == 1 else 'have'}"


def _such_as(found: Mapping[str, list[Any]]) -> str:
    item, labels = next(iter(found.items()))
    more = ", …" if len(labels) > SHOWN else ""
    return f"such as {', '.join(map(str, labels[:SHOWN]))}{more} of '{item}'"
