"""Which subjects and which items does a model not describe? Person fit and item fit, whatever answers are missing."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.fits.result import Fit
from irtjax.integration.posteriors import expectations, posteriors
from irtjax.item_models.binary import BINARY
from irtjax.kernels.ability_modes import ability_mode
from irtjax.kernels.loops import SEARCHES, mapped
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales
from irtjax.scale.fit_statistics import item_fit, person_fit
from irtjax.scale.person_fit import standardised_log_likelihoods
from irtjax.scale.response_curves import category_curves
from irtjax.storage.files import whole_results, write_csv
from irtjax.types import Float, Int

RESPONSES = 2**20  # worked on at a time, in float64


class Misfit(NamedTuple):
    """Statistics of misfit of a fit, NaN where there is nothing to compute them from.

    Attributes:
        items: one row per item: `infit`, `outfit`.
        subjects: one row per subject: `infit`, `outfit` and, in one dimension, `lz`.
    """

    items: pd.DataFrame
    subjects: pd.DataFrame


def misfit(fit: Fit) -> Misfit:
    """Infit and outfit of items and subjects, and lz of subjects (`mean_squares`, `lz`).

    Of items that are not right/wrong, and of single answers in one dimension, by `irtjax.scale.fit_statistics`; lz of
    those that all have categories.
    """
    sparse = isinstance(fit.responses, SparseResponses) and fit.parameters.slope.shape[1] == 1
    if on_scales(fit.responses) or sparse:
        return _by_response(fit)
    values, population = fit.responses.read().values, fit.population
    of_items, of_subjects = mean_squares(fit.parameters, values, *population)
    if fit.parameters.slope.shape[1] == 1:
        of_subjects = of_subjects.assign(lz=lz(fit.parameters, values, *population))
    return Misfit(of_items, of_subjects)


def _by_response(fit: Fit) -> Misfit:
    of_items = item_fit(fit)[["infit", "outfit"]]
    of_subjects = person_fit(fit)[["infit", "outfit", "lz_star"]].rename(columns={"lz_star": "lz"})
    return Misfit(of_items, of_subjects if of_subjects["lz"].notna().any() else of_subjects.drop(columns="lz"))


def write_misfit(fit: Fit, directory: str | Path) -> None:
    """Writes `items.csv` and `subjects.csv` anew, with the columns of `misfit` after those of the fit.

    Raises:
        InputError: the directory cannot be written to.
    """
    found = misfit(fit)
    with whole_results(directory) as folder:
        write_csv(fit.items().join(found.items), folder / "items.csv")
        write_csv(fit.subjects().join(found.subjects), folder / "subjects.csv")


def mean_squares(
    items: ItemParameters, values: Int[np.ndarray, "J I"], mean: Float[np.ndarray, " D"], sd: Float[np.ndarray, " D"]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Infit and outfit mean squares (Wright and Masters 1982) of items and of subjects, abilities integrated out.

    With E_j the expectation over the posterior of subject j's ability, and sums over the observed responses of an item
    or of a subject,

        outfit = Σ E_j[(y_ji - P_i)² / (P_i (1 - P_i))] / n,     infit = Σ E_j[(y_ji - P_i)²] / Σ E_j[P_i (1 - P_i)].

    Under the model both have the expectation 1 on tests of any length, which they have not at estimated abilities:
    there they are too small. The terms of the outfit are (1 - p) / p with p the probability of the response given the
    subject's other ones. Above 1 responses are more random than the model says, below 1 less. A mean square has no
    standardised form here: those in use take abilities as known.

    Args:
        items: of I items in D dimensions.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population.

    Returns:
        Tables with the columns `infit` and `outfit`, one row per item and one row per subject.
    """
    of_items, of_subjects = np.zeros((4, values.shape[1])), np.zeros((4, values.shape[0]))
    for found in posteriors(items, values, mean, sd):
        step = max(1, RESPONSES // values.shape[1])
        for at in range(0, len(found.rows), step):
            part = found.choose(slice(at, at + step))
            y = values[part.rows]
            observed, right = y != MISSING, y == 1
            p, square, odds, against = expectations(_moments, part, items)
            terms = (
                np.where(right, 1 - 2 * p + square, square),
                p - square,
                np.where(right, against, odds),
                np.ones_like(p),
            )
            for k, term in enumerate(terms):
                term = np.where(observed, term, 0.0)
                of_items[k] += term.sum(axis=0)
                of_subjects[k, part.rows] = term.sum(axis=1)
    return _ratios(of_items), _ratios(of_subjects)


def _moments(p: jax.Array, q: jax.Array) -> tuple[jax.Array, ...]:
    return p, p**2, p / q, q / p


def _ratios(sums: np.ndarray) -> pd.DataFrame:
    residual, variance, standardised, number = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame({"infit": residual / variance, "outfit": standardised / number})


def lz(
    items: ItemParameters, values: Int[np.ndarray, "J I"], mean: Float[np.ndarray, " 1"], sd: Float[np.ndarray, " 1"]
) -> Float[np.ndarray, " J"]:
    """Standardised log-likelihood of each subject's responses, corrected for the estimated ability; D = 1.

    It is lz* of `irtjax.scale.person_fit` at the posterior mode (Magis, Raîche and Béland 2012). Under the model it is
    about standard normal. Far below 0 responses do not go with the ability, such as those of a subject who guesses or
    copies; above 0 they go with it better than by chance.

    Args:
        items: of I items.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population.

    Returns:
        (J,), NaN where the responses could not be other than they are, as with a single one.
    """
    with jax.enable_x64(True):
        known = ItemParameters(*(jnp.asarray(leaf, jnp.float64) for leaf in items))
        ability = np.asarray(_modes(jnp.asarray(values), known, float(mean[0]), float(sd[0])))
    known = ItemParameters(*(np.asarray(leaf, float) for leaf in items))
    result, step = np.empty(len(values)), max(1, RESPONSES // values.shape[1])
    for at in range(0, len(values), step):
        rows = slice(at, at + step)
        curves = category_curves(BINARY, known, ability[rows])
        result[rows] = standardised_log_likelihoods(values[rows], curves).lz_star
    return result


@jax.jit
def _modes(values: jax.Array, items: ItemParameters, mean: jax.Array, sd: jax.Array) -> jax.Array:
    population = Population(mean, sd)
    return mapped(lambda y: ability_mode(y, items, population).ability, values, items.slope.size, SEARCHES)
