"""The guide: independent normal posteriors, relative to where they start."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.distributions.transforms import AffineTransform, ExpTransform, biject_to

from irtjax.svi.answers import Dealt, drawn
from irtjax.svi.model import Directions, PriorFunction, Size, hyperparameters, plate
from irtjax.types import AnyArray, Float, Int


class Normal(NamedTuple):
    """Locations and scales of independent normal distributions."""

    loc: AnyArray
    scale: AnyArray


class Start(NamedTuple):
    """Where a guide begins.

    Attributes:
        sites: of the model by name, positive ones by their logarithm; the 2PL has "intercept" in place of "difficulty".
        pivots: (I,) abilities at which intercepts are taken; None in the 1PL.
        directions: of features of the items, where there are any.
    """

    sites: dict[str, Normal]
    pivots: AnyArray | None
    directions: Directions | None = None


def guide(
    start: Start,
    responses: Int[AnyArray, "_ _"] | Dealt,
    *,
    model: str,
    priors: PriorFunction,
    subjects: Size,
    items: Size,
    mesh: jax.sharding.Mesh | None,
    sign: float | jax.Array = 1.0,
) -> None:
    """Independent normal distributions (log-normal for positive sites), their parameters relative to `start`.

    In the 2PL b_i is not independent of a_i: easy and hard items fix the logit c_i = a_i (t_i - b_i) at an ability t_i
    near those that they divide, and thereby a b that runs off as a falls. Hence c_i and log a_i are independent here,

        log a_i ~ N(., .),   c_i ~ N(m_i, s_i²),   so that   b_i | a_i ~ N(t_i - m_i / a_i, (s_i / a_i)²)

    with the pivot t_i of `start`, c in logits, t and b on the scale of ability.

    Each location is `start.loc + start.scale * shift`, each scale `start.scale * stretch`, and the parameters
    are shift and stretch: in units of the posterior's own width one step size suits an ability known to 0.05
    and an extreme item known to 2. `sign` mirrors the noise of all draws.
    """
    del mesh
    block = drawn(responses)
    for site, support in hyperparameters(priors, model, start.directions).items():
        draw(site, site, start, sign, [biject_to(support)])
    with plate("subjects", subjects, block) as rows:
        draw("ability", "ability", start, sign, [], rows)
    with plate("items", items) as columns:
        if model == "1pl":
            draw("difficulty", "difficulty", start, sign, [], columns)
        else:
            a = draw("discrimination", "discrimination", start, sign, [ExpTransform()], columns)
            assert start.pivots is not None
            pivots = start.pivots if columns is None else start.pivots[columns]
            to_difficulty = AffineTransform(pivots, -1 / a)
            draw("difficulty", "intercept", start, sign, [to_difficulty], columns)


def draw(
    site: str,
    name: str,
    start: Start,
    sign: float | jax.Array,
    transforms: list[dist.transforms.Transform],
    index: jax.Array | None = None,
    event_dims: int = 0,
) -> jax.Array:
    """A draw of a site of the model, by the posterior that `start` has under `name`; of vectors with one event axis.

    The gradient of the ELBO in the logarithm of a scale s is 1 + E x s ∂ log p, with noise x and ∂ log p = -h s x but
    for what the draw of this site has no part in: its noise is that of x². As h is near to 1/s² at the start, the term
    (x² - 1) stretch²/2, which is 0 on average, takes nearly all of it away.
    """
    begun = start.sites[name]
    shift = numpyro.param(f"{name}_shift", jnp.zeros_like(begun.loc))
    stretch = numpyro.param(f"{name}_stretch", jnp.ones_like(begun.scale), constraint=dist.constraints.positive)
    loc, scale = relative(begun, Normal(shift, stretch))
    if index is not None:
        loc, scale, stretch = loc[index], scale[index], stretch[index]
    standard = dist.Normal(jnp.zeros_like(loc), 1.0).to_event(event_dims)
    drawn = numpyro.sample(
        site, dist.TransformedDistribution(standard, [AffineTransform(loc, sign * scale), *transforms])
    )
    normal = functools.reduce(lambda value, transform: transform.inv(value), reversed(transforms), drawn)
    noise = jax.lax.stop_gradient((normal - loc) / scale)
    control = 0.5 * stretch**2 * (noise**2 - 1)
    if event_dims:
        control = control.sum(axis=-1)
    numpyro.factor(f"{site}_control", jax.lax.stop_gradient(control) - control)  # gradients only
    return drawn


def relative(start: Normal, change: Normal) -> Normal:
    """The posterior of a site from the guide's parameters, its shift and stretch."""
    return Normal(start.loc + start.scale * change.loc, start.scale * change.scale)


def item_moments(intercept: Normal, log_slope: Normal, pivots: Float[np.ndarray, " I"]) -> tuple[Normal, Normal]:
    """Location and standard deviation of slopes and difficulties (I,) in the guide of the 2PL.

    Slopes by their mean, and difficulties t - E c / E a, where the logit of mean slope and mean intercept is 0. The
    mean of b itself is further from t by a factor of exp(v), with v the variance of log a; most of that comes from its
    tails. Its variance is exact, as c and a are independent and a is log-normal:

        Var b = E c² E a⁻² - (E c E a⁻¹)² = exp(v - 2 E log a) (m² (exp(v) - 1) + s² exp(v))
    """
    variance = log_slope.scale**2
    mean = np.exp(log_slope.loc + variance / 2)
    spread = intercept.loc**2 * np.expm1(variance) + intercept.scale**2 * np.exp(variance)
    return (
        Normal(mean, mean * np.sqrt(np.expm1(variance))),
        Normal(pivots - intercept.loc / mean, np.exp(variance / 2 - log_slope.loc) * np.sqrt(spread)),
    )
