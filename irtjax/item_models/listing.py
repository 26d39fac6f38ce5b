"""The models of items that are not right or wrong, by the names that users write."""

import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.beta_binomial import BETA_BINOMIAL
from irtjax.item_models.binomial import BINOMIAL
from irtjax.item_models.binomial_curves import BINOMIAL_CURVE
from irtjax.item_models.families import Families
from irtjax.item_models.graded import GRADED
from irtjax.item_models.nominal import NOMINAL
from irtjax.item_models.nominal_dimensions import NominalInDimensions
from irtjax.item_models.partial_credit import PARTIAL_CREDIT
from irtjax.item_models.protocol import PredictorParameters
from irtjax.item_models.unit_interval import BETA, ORDERED_BETA
from irtjax.types import Float, Int


class Listed(NamedTuple):
    """A model.

    Attributes:
        family: how a response depends on predictor and others.
        own_slopes: whether each item has a slope of its own. Else all have one, or are 1.
        common_steps: whether all items have the same steps between categories.
    """

    family: Any
    own_slopes: bool = True
    common_steps: bool = False


MODELS = {
    "graded": Listed(GRADED),
    "gpcm": Listed(PARTIAL_CREDIT),
    "pcm": Listed(PARTIAL_CREDIT, own_slopes=False),
    "rsm": Listed(PARTIAL_CREDIT, own_slopes=False, common_steps=True),
    "nominal": Listed(NOMINAL),
    "binomial": Listed(BINOMIAL),
    "binomial_1pl": Listed(BINOMIAL, own_slopes=False),
    "binomial_3pl": Listed(BINOMIAL_CURVE),
    "binomial_4pl": Listed(BINOMIAL_CURVE),
    "beta_binomial": Listed(BETA_BINOMIAL),
    "beta": Listed(BETA),
    "ordered_beta": Listed(ORDERED_BETA),
}
# of trials that are independent given the ability, by the curve that each right/wrong item has
CURVES_OF_COUNTS = {"binomial": "2pl", "binomial_1pl": "1pl", "binomial_3pl": "3pl", "binomial_4pl": "4pl"}
WITH_ASYMPTOTES = ("binomial_3pl", "binomial_4pl")
OF_COUNTS, OF_SHARES = (*CURVES_OF_COUNTS, "beta_binomial"), ("ordered_beta", "beta")  # the usual one first
CATEGORICAL = tuple(name for name in MODELS if name not in (*OF_COUNTS, *OF_SHARES))


def model_of(models: tuple[str, ...], top: Int[np.ndarray, " I"], dims: int = 1) -> Families:
    """The model of a test in D dimensions, out of that of each item and its highest category."""
    families: tuple[Any, ...] = tuple(dict.fromkeys(MODELS[name].family for name in models))
    which = tuple(families.index(MODELS[name].family) for name in models)
    if dims > 1:
        families = tuple(NominalInDimensions(dims) if one is NOMINAL else one for one in families)
    per_item = max(family.num_statistics(int(top.max())) for family in families)
    return Families(families, which if len(families) > 1 else (0,), per_item)


def num_others(model: Families) -> int:
    """L, of the items of a model."""
    return max(family.num_others(model.per_item) for family in model.families)


def columns(
    model: Families, items: PredictorParameters, covariances: Float[np.ndarray, "I K K"]
) -> dict[str, Float[np.ndarray, " I"]]:
    """Estimates and standard errors in the terms of `items.csv`, NaN where an item has no such parameter.

    Standard errors are by the delta method; that of a parameter that was held is 0.
    """
    num_items, dims = items.slope.shape
    found: dict[str, np.ndarray] = {}
    for family, group in model.groups(num_items):
        for top in np.unique(items.top[group]):
            chosen = group[items.top[group] == top]
            array = np.concatenate([items.slope, items.intercept[:, None], items.others], axis=1)[chosen]

            with jax.enable_x64(True):
                values, by = _reported(family, int(top), dims, jnp.asarray(array))
            for name, value in values.items():
                gradient = np.asarray(by[name])
                # what does not enter may have no variance
                held = np.where(gradient[:, :, None] * gradient[:, None, :] == 0, 0.0, covariances[chosen])
                variance = np.einsum("ik,ikl,il->i", gradient, held, gradient)
                for column, result in ((name, np.asarray(value)), (f"{name}_se", np.sqrt(np.maximum(variance, 0.0)))):
                    found.setdefault(column, np.full(num_items, np.nan))[chosen] = result
    return dict(sorted(found.items(), key=lambda column: _by_number(column[0])))


def _by_number(name: str) -> list[str | int]:
    """What puts threshold_2 before threshold_10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _reported(family: Any, top: int, dims: int, array: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """Columns (I,) of items with one highest category, and their derivatives (I, K)."""

    def of_one(one: jax.Array) -> dict[str, jax.Array]:
        return family.reported(one[:dims], one[dims], one[dims + 1 :], top)

    return jax.vmap(of_one)(array), jax.vmap(jax.jacfwd(of_one))(array)
