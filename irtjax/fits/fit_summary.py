"""What a fit says of itself, put together: a few lines, a summary, notes."""

from typing import Any

import numpy as np

from irtjax.fits import category_text, fit_text
from irtjax.populations.groups import FittedGroups
from irtjax.populations.latent_regression import FittedLatentRegression
from irtjax.responses.values import on_scales

Fit = Any  # `irtjax.fits.result.Fit`, whose methods call these


def short(fit: Fit) -> str:
    """The main figures, and notes."""
    of_items = fit_text.of_items(fit.item_columns)[:2]
    lines = [*_headline(fit), *of_items, fit_text.of_abilities(fit.ability, fit.ability_se)[0]]
    return "\n".join([*lines, *_of_groups(fit), *(f"note: {note}" for note in notes(fit))])


def long(fit: Fit) -> fit_text.Text:
    """All item parameters and abilities in one line each, the easiest and hardest items, and notes."""
    lines = [*_headline(fit), *fit_text.of_items(fit.item_columns)]
    lines += [*fit_text.of_abilities(fit.ability, fit.ability_se), *_of_groups(fit)]
    if fit.estimator == "mml":
        lines.append(fit_text.of_priors(fit.details.get("priors", {})))
    if "difficulty" in fit.item_columns:
        lines += fit_text.of_ends(*_placed(fit))
    return fit_text.Text("\n".join([*lines, *(f"note: {note}" for note in notes(fit))]))


def _placed(fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Items and their difficulties; of grades those alone whose difficulty has a meaning."""
    ids, told = fit.responses.item_ids, fit.discriminates
    if not on_scales(fit.responses) or told is None:
        return ids, fit.difficulty
    chosen = told & (fit.item_columns["discrimination"] > 0)
    return ids[chosen], fit.difficulty[chosen]


def _headline(fit: Fit) -> list[str]:
    dims, criteria = fit.parameters.slope.shape[1], fit.information_criteria()
    without: tuple[float, int] | None = fit.without_extremes() if "without_extremes" in fit.details else None
    several = f" in {dims} dimensions" if dims > 1 else ""
    compared = (
        f", AIC {criteria['aic']:,.1f}, BIC {criteria['bic']:,.1f}" if fit.maximum_likelihood else ", under priors"
    )
    read_as = f" of {fit.details['read_as']}" if "read_as" in fit.details else ""
    end = "converged" if fit.converged else f"not converged ({fit.status.value})"
    return [
        f"{fit.model} by {fit.estimator}{read_as}{several}: {fit.responses.num_subjects:,} subjects × "
        f"{fit.responses.num_items:,} items, {end} after {fit_text.counted(fit.iterations, 'iteration')}",
        fit_text.row(
            "log-likelihood",
            f"{fit.log_likelihood:,.2f} with {fit.num_parameters:,} parameters{compared}",
        ),
        *_of_answers(fit),
        *([] if without is None else [fit_text.without_extremes(*without, int(fit.extreme.sum()))]),
    ]


def _of_answers(fit: Fit) -> list[str]:
    """That a fit went by single answers."""
    if "num_answers" not in fit.details:
        return []
    number = fit.details["num_answers"]
    share = number / (fit.responses.num_subjects * fit.responses.num_items)
    return [fit_text.row("responses", f"{number:,} answers in {share:.2%} of all cells, fitted answer by answer")]


def _of_groups(fit: Fit) -> list[str]:
    if isinstance(fit.population, FittedLatentRegression):
        return fit_text.of_covariates(fit.population)
    return fit_text.of_groups(fit.groups()) if isinstance(fit.population, FittedGroups) else []


def notes(fit: Fit) -> list[str]:
    """What a reader of the items should know, one line each."""
    lines, scored = fit_text.of_starts(fit.details), not on_scales(fit.responses)
    if isinstance(fit.population, FittedGroups):
        lines += fit_text.of_narrow_groups(fit.population)
    if isinstance(fit.population, FittedLatentRegression) and fit.details.get("standard_errors") == "each item":
        lines.append("coefficients of covariates have no standard errors, as those of all items together are not known")
    if fit.extreme.any():
        right = fit.responses.counts(axis=0)[0]
        lines += fit_text.of_extremes(fit.extreme, right, fit.details.get("extremes") == "placed", scored)
    if fit.discriminates is not None:
        slope = fit.item_columns["discrimination"]
        lines += fit_text.of_slopes(fit.responses.item_ids, slope, fit.discriminates, fit.extreme, scored)
    return lines + category_text.notes(fit.details, fit.responses.num_items)
