"""What a long test's fit reports of its maximum: information of items and scale, and the marginal likelihood."""

import functools
from typing import NamedTuple

import jax
import numpy as np

from irtjax.estimation.anchor_scale import anchors_only
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.normal.passes import jitted_subject_sums
from irtjax.estimation.normal.scale import LatentScale, by_scale
from irtjax.estimation.problem import Specification, as_array
from irtjax.integration.normal_expectations import item_sums, missing_information, subject_expansion
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.models import ItemParameters
from irtjax.processes import fetch
from irtjax.responses.blocks import Chunks
from irtjax.types import Float


class AtMaximum(NamedTuple):
    """Everything in float64, with padding.

    Attributes:
        information: (I, K, K) of each item given the abilities, priors included.
        anchor_information: (2, 2), of the anchors about origin and log unit of the scale; None without anchors.
        values: (J,) log-likelihood of each subject at the posterior mean, with the fourth-order term.
        third: (J, D³) third derivatives there.
    """

    information: np.ndarray
    anchor_information: np.ndarray | None
    values: np.ndarray
    third: np.ndarray


def at_maximum(
    state: LatentScale,
    chunks: Chunks,
    specification: Specification,
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None,
) -> AtMaximum:
    """Passes over the responses at the estimate."""
    items, posterior = state.items, state.posterior
    observed, unknown = chunks.by_item(
        functools.partial(_observed_information, asymptotes=asymptotes, mesh=mesh), items, posterior
    )
    size = observed.shape[1]
    information = np.array(fetch(observed), np.float64)
    information[:, : unknown.shape[1], : unknown.shape[1]] -= fetch(unknown)
    # on the host, where nothing is compiled
    held, known = jax.tree.map(fetch, (items, specification))
    information[:, np.arange(size), np.arange(size)] += priors_of(as_array(held)[:, :size], known).information
    anchor_information = None
    if not specification.mean_fixed:
        sums = functools.partial(jitted_subject_sums, asymptotes=asymptotes, mesh=mesh)
        of_anchors = chunks.by_subject(sums, anchors_only(items, specification), posterior)
        anchor_information = np.asarray(fetch(by_scale(posterior, of_anchors)[1]), np.float64)
    values, third = np.zeros(()), np.zeros(())
    for by_block, part in chunks.walk(
        functools.partial(_expansion, asymptotes=asymptotes, mesh=mesh), items, posterior
    ):
        values = values + fetch(by_block).astype(np.float64).sum(axis=0)
        third = third + fetch(part).astype(np.float64)
    return AtMaximum(information, anchor_information, values, third)


_expansion = jax.jit(subject_expansion, static_argnames=("asymptotes", "mesh"))


@functools.partial(jax.jit, static_argnames=("asymptotes", "mesh"))
def _observed_information(
    items: ItemParameters,
    posterior: Posterior,
    blocks: jax.Array,
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None,
) -> tuple[jax.Array, jax.Array]:
    _, _, information = item_sums(items, posterior, blocks, asymptotes=asymptotes, mesh=mesh)
    return information, missing_information(items, posterior, blocks, asymptotes=asymptotes, mesh=mesh)


def marginal_log_likelihoods(
    state: LatentScale, values: Float[np.ndarray, " J"], third: Float[np.ndarray, "J cubes"]
) -> Float[np.ndarray, " J"]:
    """Marginal log-likelihoods (J,) from an expansion of each subject's log-likelihood at the posterior mean.

    With z normal of mean 0 and covariance Σ, the remainder h(z) of the expansion beyond second order adds E h + Var h/2
    (Tierney and Kadane 1986): `values` holds log-likelihood and E h. The mean is such that third-order terms in h have
    no part along z, so that their variance is the full contraction of `third` with Σ, thrice, over 6.
    """
    m, covariance = state.posterior
    dims = m.shape[1]
    cubes = third.reshape(-1, dims, dims, dims).astype(float)
    distance = (m - state.mean) / state.sd
    log_prior_density = -0.5 * (distance**2).sum(axis=1) - np.log(state.sd).sum()
    skewness = np.einsum("jabc,jdef,jad,jbe,jcf->j", cubes, cubes, covariance, covariance, covariance, optimize=True)
    return values + log_prior_density + 0.5 * np.linalg.slogdet(covariance)[1] + skewness / 12
