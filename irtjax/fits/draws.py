"""Draws from the posterior that stochastic variational inference has found, for ArviZ and other tools."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.arguments import LARGEST_SEED, whole_number
from irtjax.errors import InputError
from irtjax.responses.values import on_scales
from irtjax.types import Float, Shaped

Draws = dict[str, Float[np.ndarray, "draws N"]]


class ItemPosterior(NamedTuple):
    """What SVI says of items in the 2PL: c_i ~ N and log a_i ~ N, independent, with b_i = t_i - c_i / a_i.

    Attributes:
        pivot: (I,) t, on the scale of ability.
        logit: (I,) means of c, the logit at ability t.
        logit_sd: (I,).
        log_discrimination: (I,) means of log a.
        log_discrimination_sd: (I,).
    """

    pivot: Float[np.ndarray, " I"]
    logit: Float[np.ndarray, " I"]
    logit_sd: Float[np.ndarray, " I"]
    log_discrimination: Float[np.ndarray, " I"]
    log_discrimination_sd: Float[np.ndarray, " I"]


def normal_draws(
    mean: Float[np.ndarray, " N"], sd: Float[np.ndarray, " N"], num_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draws N"]:
    """Independent normal draws."""
    return mean + sd * rng.standard_normal((num_draws, len(mean)))


def item_draws(items: ItemPosterior, num_draws: int, rng: np.random.Generator) -> Draws:
    """Draws of difficulty and discrimination (draws, I) in the 2PL."""
    slope = np.exp(normal_draws(items.log_discrimination, items.log_discrimination_sd, num_draws, rng))
    difficulty = items.pivot - normal_draws(items.logit, items.logit_sd, num_draws, rng) / slope
    return {"difficulty": difficulty, "discrimination": slope}


def draws_of(fit: Any, num_draws: int, seed: int) -> Draws:
    """Draws of the abilities and items of a `Fit` by SVI.

    Raises:
        InputError: the fit is not by SVI, or the numbers are out of range.
    """
    whole_number("num_draws", num_draws, 1)
    whole_number("seed", seed, 0, LARGEST_SEED)
    if fit.estimator != "svi":
        raise InputError(f"a fit by {fit.estimator} has standard errors, and no posterior of items: use svi")
    rng, of = np.random.default_rng(seed), fit.item_columns
    draws = {"ability": normal_draws(fit.ability, fit.ability_se, num_draws, rng)}
    if on_scales(fit.responses):
        names = [name for name in of if f"{name}_se" in of]
        return draws | {name: normal_draws(of[name], of[f"{name}_se"], num_draws, rng) for name in names}
    if fit.item_posterior is not None:
        return draws | item_draws(fit.item_posterior, num_draws, rng)
    return draws | {"difficulty": normal_draws(fit.difficulty, fit.difficulty_se, num_draws, rng)}


def to_arviz(draws: Draws, subject_ids: Shaped[np.ndarray, " J"], item_ids: Shaped[np.ndarray, " I"]) -> Any:
    """Draws as ArviZ wants them: one chain, with ids as coordinates.

    Args:
        draws: of "ability" (draws, J), and of item parameters (draws, I).
        subject_ids: of the J subjects.
        item_ids: of the I items.

    Returns:
        An `arviz.InferenceData`, or a `xarray.DataTree` by ArviZ from version 1 on.

    Raises:
        InputError: ArviZ is not installed.
    """
    try:
        import arviz  # no requirement of the library, and slow to import
    except ImportError as error:
        raise InputError("to_arviz needs the package arviz: pip install arviz") from error
    posterior = {name: array[None] for name, array in draws.items()}
    coords = {"subject": subject_ids, "item": item_ids}
    dims = {name: ["subject" if name == "ability" else "item"] for name in posterior}
    if hasattr(arviz, "InferenceData"):
        return arviz.from_dict(posterior=posterior, coords=coords, dims=dims)
    return arviz.from_dict({"posterior": posterior}, coords=coords, dims=dims)
