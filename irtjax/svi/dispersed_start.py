"""Where variational inference of counts whose trials agree begins: as of independent ones, and precisions by moments.

With r = k - n P at the start of the binomial model, E Σ r² = Σ n P (1 - P) (1 + (n - 1) ρ) over the counts of an item,
which is solved for ρ = 1 / (1 + φ).
"""

import jax.numpy as jnp
import numpy as np
from scipy.special import expit, logit

from irtjax.svi.family_model import ModelOfItems
from irtjax.svi.family_start import Begun, of_others
from irtjax.svi.guide import Normal, Start
from irtjax.types import Float

LEAST, MOST = 0.01, 0.95  # ρ


def dispersed(begun: Begun, name: str, hierarchical: bool) -> Begun:
    """The start of the binomial model with a precision for each item, and as much wider as its counts are.

    Args:
        begun: of the binomial model.
        name: of the model of counts whose trials agree.
        hierarchical: whether precisions have a common mean and variance.
    """
    model, responses = ModelOfItems(name, 1, 1), begun.responses
    sites = {site: Normal(*(np.asarray(leaf, float) for leaf in normal)) for site, normal in begun.start.sites.items()}
    slope, pivots = np.exp(sites["discrimination"].loc), np.asarray(begun.start.pivots, float)
    x = sites["ability"].loc[:, None] * slope + sites["intercept"].loc - slope * pivots
    rho, number = _correlations(begun, expit(x))
    others, free = -logit(rho)[:, None], np.ones((responses.num_items, 1), bool)
    found = of_others(others, number[:, None] / 4, free, model, hierarchical)
    spread = np.sqrt(1 + (np.mean(np.asarray(responses.trials)[responses.observed]) - 1) * rho.mean())
    for site in ("ability", "discrimination", "intercept"):
        sites[site] = sites[site]._replace(scale=sites[site].scale * spread)
    sites |= {site: Normal(*(np.asarray(leaf) for leaf in normal)) for site, normal in found.items()}
    in_float32 = {site: Normal(*(jnp.asarray(leaf, jnp.float32) for leaf in normal)) for site, normal in sites.items()}
    cells = begun.cells._replace(free=jnp.asarray(free), held=jnp.zeros(free.shape, jnp.float32))
    return Begun(responses, model, cells, Start(in_float32, begun.start.pivots))


def _correlations(begun: Begun, p: Float[np.ndarray, "J I"]) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Of two trials of a response to each item, and numbers of responses."""
    there = begun.responses.observed
    k, n = (np.where(there, np.asarray(leaf), 0.0) for leaf in (begun.responses.values, begun.responses.trials))
    of_one = n * p * (1 - p)
    more = ((k - n * p) ** 2 - of_one).sum(axis=0)
    of_pairs = (of_one * np.maximum(n - 1, 0)).sum(axis=0)
    rho = np.divide(more, of_pairs, out=np.full(len(more), LEAST), where=of_pairs > 0)
    return np.clip(rho, LEAST, MOST), there.sum(axis=0).astype(float)
