"""The NumPyro model of responses, and its priors."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers

from irtjax.kernels import answers
from irtjax.kernels.likelihood import log_likelihood_1pl, log_likelihood_2pl
from irtjax.svi.answers import Block, Dealt, drawn
from irtjax.types import AnyArray, Int


class Priors(NamedTuple):
    """Distributions of one ability, one difficulty, and (2PL) one discrimination, which is positive."""

    ability: dist.Distribution
    difficulty: dist.Distribution
    discrimination: dist.Distribution


PriorFunction = Callable[[str], Priors]


def vague(model: str) -> Priors:
    """θ ~ N(0, 1), b ~ N(0, 10³), log a ~ N(0, 1); normal distributions by their variance.

    Source: Lalor, Wu and Yu (2019), section 2, for the 1PL. The prior of log a covers 0.14 to 7.
    """
    del model
    return Priors(dist.Normal(0.0, 1.0), dist.Normal(0.0, math.sqrt(1e3)), dist.LogNormal(0.0, 1.0))


def hierarchical(model: str) -> Priors:
    """θ ~ N(m_t, 1/u_t), b ~ N(m_b, 1/u_b), log a ~ N(m_a, 1/u_a), each m ~ N(0, 10⁶), u ~ Gamma(1, 1).

    Source: Lalor, Wu and Yu (2019), section 2, for the 1PL. In the 2PL θ ~ N(0, 1), as the unit of the scale is free.
    """
    if model == "1pl":
        return Priors(dist.Normal(*population("ability")), dist.Normal(*population("difficulty")), dist.Delta(1.0))
    return Priors(
        dist.Normal(0.0, 1.0), dist.Normal(*population("difficulty")), dist.LogNormal(*population("discrimination"))
    )


def population(site: str) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of a hierarchical prior, drawn."""
    mean = numpyro.sample(f"{site}_mean", dist.Normal(0.0, math.sqrt(1e6)))
    return mean, numpyro.sample(f"{site}_precision", dist.Gamma(1.0, 1.0)) ** -0.5


PRIORS: dict[str, PriorFunction] = {"vague": vague, "hierarchical": hierarchical}


class Directions(NamedTuple):
    """Features of items in uncorrelated directions (`svi.directions`).

    Attributes:
        values: (I, K) of mean square 1.
        spread: (K,) standard deviations of these directions.
    """

    values: AnyArray
    spread: AnyArray


def effects(model: Any, directions: Directions | None) -> dict[str, jax.Array]:
    """What features add to each difficulty, and to each log discrimination (I,): Z c, c_k ~ N(0, ω² s_k²)."""
    if directions is None:
        return {}
    found = {}
    for site in ("difficulty", "discrimination")[: 1 if model == "1pl" else 2]:
        sd = numpyro.sample(f"{site}_weight_sd", dist.HalfNormal(1.0))
        c = numpyro.sample(f"{site}_weights", dist.Normal(0.0, sd * directions.spread))
        found[site] = directions.values @ c
    return found


def hyperparameters(
    priors: Callable[[Any], Any], model: Any, directions: Directions | None = None
) -> dict[str, dist.constraints.Constraint]:
    """The sites that a prior function draws for itself, and those of the weights of features, and their supports.

    Args:
        priors: of `model`, which is a name, or that of items that are not right or wrong (`svi.family_model`).
        model: that they are of.
        directions: of features of right/wrong items.
    """
    with handlers.block(), handlers.trace() as trace, handlers.seed(rng_seed=0):
        jax.eval_shape(
            lambda: (priors(model), effects(model, directions))
        )  # to draw from a gamma distribution takes seconds to compile
    return {name: site["fn"].support for name, site in trace.items() if site["type"] == "sample"}


class Size(NamedTuple):
    """How many subjects or items there are, how many a step takes, and how many arrays have, with padding at the end.

    Attributes:
        number: J or I.
        batch: of a step, drawn at random; None for all.
        padded: as spread over devices.
    """

    number: int
    batch: int | None
    padded: int


@contextlib.contextmanager
def plate(name: str, size: Size, block: Block | None = None) -> Iterator[jax.Array | None]:
    """A plate of NumPyro in which padding does not count; yields the indices of a batch, or None for all.

    Args:
        name: of the plate.
        size: of its axis.
        block: of single answers, whose subjects are the batch.
    """
    if block is not None and block.subjects is not None:
        there = handlers.mask(mask=block.subjects >= 0)
        with handlers.scale(scale=float(block.number)), numpyro.plate(name, len(block.subjects)), there:
            yield jnp.maximum(block.subjects, 0)
    elif size.batch is not None:
        with numpyro.plate(name, size.number, subsample_size=size.batch) as index:
            yield index
    elif size.padded == size.number:
        with numpyro.plate(name, size.number):
            yield None
    else:
        with numpyro.plate(name, size.padded), handlers.mask(mask=jnp.arange(size.padded) < size.number):
            yield None


def batch_of(
    responses: Any, drawn: tuple[jax.Array | None, jax.Array | None], sizes: tuple[Size, Size]
) -> tuple[Any, float]:
    """The responses of the subjects and items drawn, and how many of all each of them stands for.

    They are indexed only where they must be: a gather by all indices moves the whole matrix.

    Args:
        responses: a tree of arrays (J, I).
        drawn: rows and columns; None for all.
        sizes: of subjects and items.
    """
    (rows, columns), (subjects, items), scale = drawn, sizes, 1.0
    if rows is not None:
        responses, scale = jax.tree.map(lambda leaf: leaf[rows], responses), scale * subjects.number / rows.size
    if columns is not None:
        responses, scale = jax.tree.map(lambda leaf: leaf[:, columns], responses), scale * items.number / columns.size
    return responses, scale


def response_model(
    responses: Int[AnyArray, "_ _"] | Dealt,
    *,
    model: str,
    priors: PriorFunction,
    subjects: Size,
    items: Size,
    mesh: jax.sharding.Mesh | None = None,
    directions: Directions | None = None,
    with_value: bool | jax.Array = True,
) -> None:
    """Responses (J, I) by p_ji = σ(θ_j - b_i) (1PL) or σ(a_i (θ_j - b_i)) (2PL); batches stand for all.

    The responses are a matrix, or single answers in blocks, one of which stands for all.

    Without `with_value` the log-likelihood is 0 and only its gradients are right: a step of the fit needs no more, and
    is spared the logarithm of each probability.
    """
    given, moved, block = priors(model), effects(model, directions), drawn(responses)
    with plate("subjects", subjects, block) as rows:
        theta = numpyro.sample("ability", given.ability)
    with plate("items", items) as columns:
        if columns is not None:
            moved = {site: effect[columns] for site, effect in moved.items()}
        b = numpyro.sample("difficulty", _moved(given.difficulty, moved.get("difficulty")))
        of_slope = _moved(given.discrimination, moved.get("discrimination"))
        a = numpyro.sample("discrimination", of_slope) if model == "2pl" else None
    both: tuple[Any, Any]
    of_responses: Any
    if block is not None:
        of_responses, scale = block.answers, float(block.number)
        both = answers.log_likelihood_1pl, answers.log_likelihood_2pl
    else:
        mesh = mesh if rows is None and columns is None else None
        of_responses, scale = batch_of(responses, (rows, columns), (subjects, items))
        both = log_likelihood_1pl, log_likelihood_2pl
    of_1pl, of_2pl = (functools.partial(of, mesh=mesh) for of in both)
    log_likelihood, parameters = (of_1pl, (theta, b)) if a is None else (of_2pl, (theta, a, b))
    without = functools.partial(without_value, log_likelihood)
    with handlers.scale(scale=scale):
        value = jax.lax.cond(with_value, log_likelihood, without, *parameters, of_responses)
        numpyro.factor("responses", value)


def _moved(prior: dist.Distribution, by: jax.Array | None) -> dist.Distribution:
    """A normal or log-normal distribution with another location."""
    return prior if by is None else type(prior)(prior.loc + by, prior.scale)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def without_value(function: Callable, *arguments: Any) -> jax.Array:
    """A function of value 0 that has the gradients of another."""
    return jnp.zeros_like(function(*arguments))


def _without_value_forward(function: Callable, *arguments: Any) -> tuple[jax.Array, Callable]:
    value, gradients = jax.vjp(function, *arguments)
    return jnp.zeros_like(value), gradients


without_value.defvjp(_without_value_forward, lambda _, gradients, cotangent: gradients(cotangent))
