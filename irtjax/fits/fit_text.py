"""What a fit says of itself: a line for each kind of estimate."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.types import Bool, Float, Shaped

WIDTH = 17  # of the names of rows
MANY = 4  # parameters of a kind, beyond which the summary leaves out those between the first and the last
MOST_GROUPS = 15  # that the summary shows
NAMED = 3  # items named at either end of the scale


class Text(str):
    """A text that shows its lines where Python shows values."""

    def __repr__(self) -> str:
        return str(self)


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def row(name: str, text: str) -> str:
    """A line of a table."""
    return f"  {name:<{WIDTH}}{text}"


def model_name(model: str) -> str:
    """The name of a model as texts have it: 2PL, Rasch."""
    return model.upper() if model[0].isdigit() else model.capitalize()


def without_extremes(log_likelihood: float, num_parameters: int, number: int) -> str:
    """The line of a log-likelihood without extreme items, of which there are so many."""
    text = f"{log_likelihood:,.2f} with {num_parameters:,} parameters, without {counted(number, 'extreme item')}"
    return row("", text)


def of_priors(priors: Mapping[str, Mapping[str, Any]]) -> str:
    """The line of the priors of items, as `fit.json` has them."""
    kinds = {True: "estimated from the items", False: "given"}
    texts = [
        ", ".join(_of_prior(group) for group in _together(priors) if group[0][1].get("estimated", False) is kind)
        for kind in kinds
    ]
    said = [f"{text} ({what})" for text, what in zip(texts, kinds.values(), strict=True) if text]
    return row("priors", "; ".join(said) or "none of all items")


def _together(priors: Mapping[str, Mapping[str, Any]]) -> list[list[tuple[str, Mapping[str, Any]]]]:
    """Priors one by one; those of many steps as one group, as they share a standard deviation."""
    groups: dict[Any, list[tuple[str, Mapping[str, Any]]]] = {}
    for name, prior in priors.items():
        stem = _stem(name)
        groups.setdefault((stem, prior["sd"], prior.get("estimated", False)) if stem else name, []).append(
            (name, prior)
        )
    return [part for group in groups.values() for part in ([group] if len(group) > MANY else [[one] for one in group])]


def _of_prior(group: list[tuple[str, Mapping[str, Any]]]) -> str:
    """One prior, or the range of the means of several."""
    (first, prior), (last, _) = group[0], group[-1]
    if len(group) == 1:
        return f"{prior.get('scale', first)} ~ N({prior['mean']:.2f}, {prior['sd']:.2f}²)"
    means = [one["mean"] for _, one in group]
    return f"{first} to {last} ~ N({min(means):.2f} to {max(means):.2f}, {prior['sd']:.2f}²)"


def of_items(columns: Mapping[str, Float[np.ndarray, " I"]]) -> list[str]:
    """Ranges of item parameters, by the names of `items.csv`; of many thresholds the first and the last."""
    names = [name for name in columns if not name.endswith("_se")]
    several = {stem: [name for name in names if name.rpartition("_")[0] == stem] for stem in map(_stem, names)}
    shown = [
        name
        for name in names
        if len(several[_stem(name)]) <= MANY or name in (several[_stem(name)][0], several[_stem(name)][-1])
    ]
    return [row(name, _range(columns[name], columns.get(f"{name}_se"))) for name in shown]


def _stem(name: str) -> str:
    """What stands before the number of a parameter; empty of one without a number."""
    stem, _, number = name.rpartition("_")
    return stem if number.isdigit() else ""


def of_abilities(ability: Float[np.ndarray, "J ..."], error: Float[np.ndarray, "J ..."]) -> list[str]:
    """Ranges of abilities, and their reliability: Var θ̂ / (Var θ̂ + mean SE²)."""
    lines = []
    for number, (values, errors) in enumerate(zip(np.atleast_2d(ability.T), np.atleast_2d(error.T), strict=True), 1):
        variance, noise = values.var(), np.mean(errors**2)
        reliability = f", reliability {variance / (variance + noise):.2f}" if variance + noise > 0 else ""
        lines.append(row("ability" if ability.ndim == 1 else f"ability_{number}", _range(values, errors) + reliability))
    return lines


def of_groups(groups: pd.DataFrame) -> list[str]:
    """Mean and standard deviation of each group, with their standard errors; the first fifteen of many groups."""
    lines = []
    for group in groups.head(MOST_GROUPS).to_dict("records"):
        figures = [_with_error(str(name), group) for name in groups.columns[2::2]]
        size = counted(group["num_subjects"], "subject")
        lines.append(row(f"group {group['group']}"[: WIDTH - 1], f"{', '.join(figures)} ({size})"))
    if len(groups) > MOST_GROUPS:
        lines.append(row("", f"and {len(groups) - MOST_GROUPS:,} more groups"))
    return lines


def of_covariates(found: FittedLatentRegression) -> list[str]:
    """The coefficient of each predictor, with its standard error; and what they explain together."""
    lines = []
    for name, values, errors in zip(found.names, found.coefficients, found.coefficients_se, strict=True):
        figures = [
            f"{value:.2f} ± {error:.2f}" if error > 0 else f"{value:.2f}"
            for value, error in zip(values, errors, strict=True)
        ]
        lines.append(row(str(name)[: WIDTH - 1], ", ".join(figures)))
    lines = lines[:MOST_GROUPS] + [row("", f"and {len(lines) - MOST_GROUPS:,} more")] * (len(lines) > MOST_GROUPS)
    shares = ", ".join(f"{share:.0%}" for share in found.explained)
    return [*lines, row("covariates", f"explain {shares} of the variance of ability")]


def _with_error(name: str, figures: Mapping[str, Any]) -> str:
    """A figure and its standard error, if it has one."""
    error = figures[f"{name}_se"]
    return f"{name.replace('_', ' ')} {figures[name]:.2f}{f' ± {error:.2f}' if error > 0 else ''}"


def of_narrow_groups(groups: FittedGroups) -> list[str]:
    """Which groups have no spread, by the estimate."""
    narrow = (np.isnan(groups.sds_se) & ~np.isnan(groups.means_se)).any(axis=1)
    return [
        f"group '{name}' is likeliest with a standard deviation of ability of 0: it is held at {sd:.3g}, the least "
        "that nodes tell"
        for name, sd in zip(groups.names[narrow], groups.sds[narrow].min(axis=1), strict=True)
    ]


def of_ends(item_ids: Shaped[np.ndarray, " I"], difficulty: Float[np.ndarray, " I"]) -> list[str]:
    """The easiest and the hardest items."""
    order = np.argsort(difficulty, kind="stable")
    return [
        row(name, ", ".join(f"{item_ids[i]} ({difficulty[i]:.2f})" for i in which))
        for name, which in (("easiest items", order[:NAMED]), ("hardest items", order[::-1][:NAMED]))
    ]


def _range(values: Float[np.ndarray, " N"], errors: Float[np.ndarray, " N"] | None) -> str:
    """Lowest, highest and median value, and median error; those that were estimated, where some were held."""
    if errors is not None and (errors == 0).any():
        held = errors == 0
        if held.all():
            return f"{_span(values)} (held)"
        values, errors = values[~held], errors[~held]
    text = _span(values)
    if errors is None or not np.isfinite(errors).any() or not np.isfinite(values).any():
        return text
    number = np.median(errors[np.isfinite(errors)])
    return f"{text}, standard error {number:.2f}" + ("" if _equal(values) else " (median)")


def _span(values: Float[np.ndarray, " N"]) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "none is finite"
    low, high, middle = np.round([finite.min(), finite.max(), np.median(finite)], 2) + 0.0  # no -0.00
    return f"{middle:.2f} for all items" if _equal(finite) else f"{low:.2f} to {high:.2f}, median {middle:.2f}"


def _equal(values: Float[np.ndarray, " N"]) -> bool:
    return bool(values.size > 1 and np.ptp(values) == 0)


def of_starts(details: Mapping[str, Any]) -> list[str]:
    """A note where searches from several starts disagree; none where they agree, or there was one."""
    if details.get("starts_agree", True):
        return []
    ends = ", ".join(f"{elbo:,.1f} from {start}" for start, elbo in details["elbo_by_start"].items())
    return [
        f"the ELBO depends on where the fit began ({ends}): the estimates are those of the start "
        f"{details['start']}, and there may be better ones"
    ]


def of_extremes(
    extreme: Bool[np.ndarray, " I"], right: Shaped[np.ndarray, " I"], placed: bool, scored: bool = True
) -> list[str]:
    """A note on items that everyone or no one answered right, or where all responses are at one end of the scale.

    Args:
        extreme: which these are; at least one.
        right: right answers.
        placed: whether a rule put them where they are, and not a prior.
        scored: whether responses are right or wrong.
    """
    verb = "was" if extreme.sum() == 1 else "were"
    number, all_right = int(extreme.sum()), int((right > 0)[extreme].sum())
    why = (
        "they are placed as if 0.3 of an answer had been of the other kind"
        if placed
        else "their difficulties come from the prior"
    )
    ends = (
        f"{verb} answered right by everyone ({all_right:,}) or by no one ({number - all_right:,})"
        if scored
        else f"{'has' if number == 1 else 'have'} the highest response only ({all_right:,}) or the lowest only "
        f"({number - all_right:,})"
    )
    return [f"{number:,} of {len(extreme):,} items {ends}: {why} (column extreme)"]


def of_slopes(
    item_ids: Shaped[np.ndarray, " I"],
    slope: Float[np.ndarray, " I"],
    discriminates: Bool[np.ndarray, " I"],
    extreme: Bool[np.ndarray, " I"],
    scored: bool = True,
) -> list[str]:
    """Notes on items whose slope cannot be told from 0, and on those where it is negative.

    Args:
        item_ids: of all items.
        slope: of each.
        discriminates: whether it can be told from 0.
        extreme: which everyone or no one answered right.
        scored: whether responses are right or wrong, and not grades.
    """
    lines, flat, negative = [], ~discriminates & ~extreme, discriminates & (slope < 0)
    if flat.any():
        lines.append(
            f"{_of(flat)} a discrimination that cannot be told from 0: difficulties mean nothing there "
            "(column discriminates)"
        )
    if negative.any():
        names = ", ".join(f"'{item}'" for item in item_ids[negative][:5])
        lines.append(
            f"{_of(negative)} a negative discrimination, such as {names}: "
            + (
                "the able are more often wrong there; look for wrong keys"
                if scored
                else "their grades run against those of the other items; reverse them if they are worded so, or fit "
                "groups of items on their own"
            )
        )
    return lines


def _of(chosen: Bool[np.ndarray, " I"]) -> str:
    return f"{chosen.sum():,} of {chosen.size:,} items {'has' if chosen.sum() == 1 else 'have'}"
