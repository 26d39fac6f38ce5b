"""Where variational inference of counts whose trials agree begins: as of independent ones, and precisions by moments.

With r = k - n P at the start of the binomial model, E Σ r² = Σ n P (1 - P) (1 + (n - 1) ρ) over the counts of an item,
which is solved for ρ = 1 / (1 + φ).
"""

import jax.numpy as jnp
import numpy as np
from scipy.special import expit, logit

from irtjax.responses.scaled import Answered
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
    answered = responses.answered()
    assert answered.trials is not None
    x = sites["ability"].loc[answered.subjects] * slope[answered.items]
    x += (sites["intercept"].loc - slope * pivots)[answered.items]
    rho, number = _correlations(answered, expit(x), responses.num_items)
    others, free = -logit(rho)[:, None], np.ones((responses.num_items, 1), bool)
    found = of_others(others, number[:, None] / 4, free, model, hierarchical)
    spread = np.sqrt(1 + (np.mean(answered.trials) - 1) * rho.mean())
    for site in ("ability", "discrimination", "intercept"):
        sites[site] = sites[site]._replace(scale=sites[site].scale * spread)
    sites |= {site: Normal(*(np.asarray(leaf) for leaf in normal)) for site, normal in found.items()}
    in_float32 = {site: Normal(*(jnp.asarray(leaf, jnp.float32) for leaf in normal)) for site, normal in sites.items()}
    cells = begun.cells._replace(free=jnp.asarray(free), held=jnp.zeros(free.shape, jnp.float32))
    return Begun(responses, model, cells, Start(in_float32, begun.start.pivots))


def _correlations(
    answered: Answered, p: Float[np.ndarray, " N"], num_items: int
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Of two trials of a response to each item, and numbers of responses."""
    k, n = np.asarray(answered.values, float), np.asarray(answered.trials, float)
    of_one = n * p * (1 - p)
    more = np.bincount(answered.items, (k - n * p) ** 2 - of_one, num_items)
    of_pairs = np.bincount(answered.items, of_one * np.maximum(n - 1, 0), num_items)
    rho = np.divide(more, of_pairs, out=np.full(len(more), LEAST), where=of_pairs > 0)
    return np.clip(rho, LEAST, MOST), np.bincount(answered.items, minlength=num_items).astype(float)
