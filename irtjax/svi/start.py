"""Where variational inference begins: locations near the answer, scales of about the posterior's own width."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

from irtjax import processes
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.plan import SLOPE_PRIOR
from irtjax.fits.regression import regress
from irtjax.integration.normal_expectations import item_sums, subject_sums
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.answers import information
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, mesh_of, place
from irtjax.processes import fetch
from irtjax.responses.blocks import Chunks
from irtjax.responses.values import Responses, Values, counts_of
from irtjax.svi.answers import Dealt, over_blocks, sums_of_subjects
from irtjax.svi.directions import Rotation, coefficients
from irtjax.svi.guide import Normal, Start
from irtjax.types import Scalar

LEAST_SLOPE = 0.1  # a discrimination is positive here
LEAST_VARIANCE = 1e-2
LEAST_ABILITY_VARIANCE = 0.25  # few responses may leave none to maximum likelihood, from where it is a long way back
LEAST_INFORMATION = 1e-6  # about an intercept; with less the pivot tends to 0
MOST_ITERATIONS = 100  # of the MML fit that provides the start


def starting_point(
    responses: Responses,
    model: str,
    start: str,
    hyperparameters: dict[str, dist.constraints.Constraint],
    mesh: jax.sharding.Mesh | None = None,
    rotation: Rotation | None = None,
    answers: Dealt | None = None,
) -> Start:
    """Locations by `start`, and scales 1/sqrt(information) there, that of weak priors included.

    The pivot of an item (2PL) is the mean ability of its responses, each weighted by its information p (1 - p): there
    the information about intercept and slope has no cross term.

    Args:
        responses: to be fitted.
        model: "1pl" or "2pl".
        start: "mml" or "proportions".
        hyperparameters: sites of the priors; those named after a site, with `_mean` or `_precision` behind it, begin at
            the moments of its locations, others at 0 on the real line that stands for their support.
        mesh: of devices, for the fit by MML, and of single answers.
        rotation: of features of the items; their weights begin where a regression of the locations has them.
        answers: the responses on the devices, where they are single answers.
    """
    spread = mesh
    if processes.number() > 1 and mesh is not None:
        spread = mesh_of(1, mesh.size)  # which the fit of a long test needs
    if start == "mml":
        theta, a, b, ability_variance = _from_mml(responses, model, spread)
    else:
        theta, b = _prox(responses.values)
        a, ability_variance = np.ones_like(b), theta.var() + LEAST_VARIANCE
    if answers is None:
        by_subject, of_items = _information(theta, a, b, responses.values, spread)
    else:
        by_subject, of_items = _information_of_answers(theta, a, b, answers, mesh)
    by_difficulty, by_log_slope, pivots = _about_items(a, of_items)
    located: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "ability": (theta, by_subject),
        "difficulty": (b, by_difficulty),
    }
    if model == "2pl":
        located["discrimination"] = (np.log(a), by_log_slope)
    variances = {"ability": ability_variance}
    begun: dict[str, tuple[Scalar, Scalar]] = {}
    for site in located.keys() - {"ability"}:
        x, information = located[site]
        variances[site] = x.var() + LEAST_VARIANCE
        if rotation is not None:
            x, variances[site], weights = _regressed(x, information, rotation)
            located[site] = x, information
            begun |= {f"{site}_{part}": found for part, found in weights.items()}
            continue
        if f"{site}_mean" in hyperparameters:
            x, variances[site] = _shrunk(x, information)
            located[site] = x, information
    begun |= {site: (x, (information + 1 / variances[site]) ** -0.5) for site, (x, information) in located.items()}
    for name in hyperparameters.keys() - begun.keys():
        site, _, which = name.rpartition("_")
        x = located.get(site, (np.zeros(1),))[0]
        if which == "mean" and site in located:
            begun[name] = (x.mean(), math.sqrt(variances[site] / x.size))
        elif which == "precision" and site in located:
            begun[name] = (-math.log(variances[site]), math.sqrt(2 / x.size))
        else:
            begun[name] = (0.0, 0.1)
    if model == "2pl":
        _, sd = begun.pop("difficulty")
        begun["intercept"] = (a * (pivots - b), a * sd)
    sites = {site: Normal(*(jnp.asarray(np.asarray(x, np.float32)) for x in normal)) for site, normal in begun.items()}
    return Start(
        sites,
        jnp.asarray(pivots.astype(np.float32)) if model == "2pl" else None,
        None if rotation is None else rotation.directions,
    )


def _shrunk(x: np.ndarray, information: np.ndarray) -> tuple[np.ndarray, float]:
    """Estimates as a prior of their own mean and variance would have them, and that variance.

    The variance of what is estimated is that of the estimates less that of their errors.
    """
    error = 1 / np.maximum(information, LEAST_INFORMATION)
    told = error < x.var() + LEAST_VARIANCE
    if not told.any():
        return x, x.var() + LEAST_VARIANCE
    mean, variance = x[told].mean(), max(x[told].var() - error[told].mean(), LEAST_VARIANCE)
    return mean + (x - mean) * variance / (variance + error), variance


def _regressed(
    x: np.ndarray, information: np.ndarray, rotation: Rotation
) -> tuple[np.ndarray, float, dict[str, tuple[Scalar, Scalar]]]:
    """Estimates as features and their own errors would have them, the variance around features, and their weights."""
    error = 1 / np.maximum(information, LEAST_INFORMATION)
    found = regress(x, np.where(error < x.var() + LEAST_VARIANCE, error, np.inf), rotation.features)
    variance = max(float(found.residual_sd) ** 2, LEAST_VARIANCE)
    predicted, weights = found.predict(rotation.features)[0], coefficients(found, rotation)
    begun: dict[str, tuple[Scalar, Scalar]] = {
        "mean": (found.mean, math.sqrt(found.covariance[0, 0])),
        "precision": (-math.log(variance), math.sqrt(2 / x.size)),
        "weights": (weights.loc, weights.scale),
        "weight_sd": (math.log(found.weight_sd), 1 / math.sqrt(2 * weights.loc.size)),
    }
    return predicted + (x - predicted) * variance / (variance + error), variance, begun


def _from_mml(
    responses: Responses, model: str, mesh: jax.sharding.Mesh | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    fit = fit_mml(
        responses,
        "rasch" if model == "1pl" else "2pl",
        extremes="keep",
        slope_prior=SLOPE_PRIOR,
        tolerance=0.01,
        max_iterations=MOST_ITERATIONS,
        standard_errors=False,
        mesh=mesh,
    )
    slope, intercept = np.asarray(fit.parameters.slope)[:, 0], np.asarray(fit.parameters.intercept)
    a = np.maximum(slope, LEAST_SLOPE)
    # an item whose slope is moved keeps its probability of a right answer at the mean ability
    variance = max(float(np.asarray(fit.population.sd)[0]) ** 2, LEAST_ABILITY_VARIANCE)
    return fit.ability, a, np.clip(-intercept / a, -10, 10), variance


def _prox(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Logits of percent correct, expanded by PROX (Wright and Stone 1979, chapter 2).

    The logit of an item's percent correct understates its difficulty the more, the wider abilities spread, and
    the other way round. PROX expands item logits by sqrt((1 + V/2.89)/(1 - UV/8.35)) and subject logits by
    sqrt((1 + U/2.89)/(1 - UV/8.35)), where U and V are the variances of item and subject logits.
    """
    right, observed = counts_of(values, axis=1)
    theta = np.log((right + 0.5) / (observed - right + 0.5))
    theta -= theta.mean()
    right, observed = counts_of(values, axis=0)
    b = np.log((observed - right + 0.5) / (right + 0.5))
    u, v = b.var() / 2.89, theta.var() / 2.89
    shrink = max(1 - u * v, 0.1)  # past this the approximation has broken down: expand no further
    return theta * np.sqrt((1 + u) / shrink), b * np.sqrt((1 + v) / shrink)


def _information(
    theta: np.ndarray, a: np.ndarray, b: np.ndarray, values: Values, mesh: jax.sharding.Mesh | None
) -> tuple[np.ndarray, ...]:
    """Fisher information of the responses about each θ (J,), and Σ w (1, θ, θ²) (3, I) of items, with w = p (1 - p)."""
    num_subjects, num_items = values.shape
    chunks = Chunks(values, mesh)
    slope, intercept = (np.pad(x, (0, chunks.num_items - num_items)) for x in (a, -a * b))
    edge = np.zeros(slope.size, np.float32)
    items = ItemParameters(slope[:, None].astype(np.float32), intercept.astype(np.float32), edge, edge)
    theta = np.pad(theta, (0, chunks.num_subjects - num_subjects)).astype(np.float32)
    posterior = Posterior(theta[:, None], np.zeros((len(theta), 1, 1), np.float32))
    if mesh is None:
        items, posterior = jax.device_put((items, posterior))
    items, posterior = place(items, mesh, BY_ITEM), place(posterior, mesh, BY_SUBJECT)
    sums_of_items, sums_of_subjects = (
        functools.partial(sums, mesh=mesh) for sums in (_item_information, _subject_information)
    )
    by_item = fetch(chunks.by_item(sums_of_items, items, posterior)).astype(float)[:num_items]
    by_subject = fetch(chunks.by_subject(sums_of_subjects, items, posterior)).astype(float)[:num_subjects]
    return by_subject[:, 0, 0], np.stack([by_item[:, 1, 1], by_item[:, 0, 1], by_item[:, 0, 0]])


def _information_of_answers(
    theta: np.ndarray, a: np.ndarray, b: np.ndarray, answers: Dealt, mesh: jax.sharding.Mesh | None
) -> tuple[np.ndarray, np.ndarray]:
    """As `_information`, of single answers."""
    items = a.astype(np.float32), (-a * b).astype(np.float32)
    found = [(*fetch(one), subjects) for one, subjects in over_blocks(information, theta, items, answers, mesh)]
    by_subject = sums_of_subjects([(one, subjects) for one, _, subjects in found], len(theta))
    return by_subject, np.sum([one for _, one, _ in found], axis=0, dtype=float).T


def _about_items(a: np.ndarray, of_items: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Information about each b and each log a (I,), and the pivots (I,), from slopes and Σ w (1, θ, θ²).

    That about log a is for a given logit at the pivot, of which it is independent in the guide of the 2PL.
    """
    by_intercept, crossed, by_slope = of_items
    pivots = crossed / np.maximum(by_intercept, LEAST_INFORMATION)
    # a step of log a, the logit at t held, moves slope and intercept by a and -a t
    by_log_slope = a**2 * (by_slope - 2 * pivots * crossed + pivots**2 * by_intercept)
    return a**2 * by_intercept, np.maximum(by_log_slope, 0), pivots


@functools.partial(jax.jit, static_argnames="mesh")
def _item_information(
    items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, mesh: jax.sharding.Mesh | None
) -> jax.Array:
    return item_sums(items, posterior, blocks, asymptotes=False, mesh=mesh)[1]


@functools.partial(jax.jit, static_argnames="mesh")
def _subject_information(
    items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, mesh: jax.sharding.Mesh | None
) -> jax.Array:
    return subject_sums(items, posterior, blocks, asymptotes=False, mesh=mesh)[1]
