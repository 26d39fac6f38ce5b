"""Items of a fit or a table as curves of their parameters, which can be differentiated."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.problem import as_array, as_items
from irtjax.fits.result import Fit
from irtjax.item_models.binary import BINARY
from irtjax.item_models.families import Families
from irtjax.item_models.listing import CATEGORICAL, CURVES_OF_COUNTS, MODELS
from irtjax.item_models.protocol import ItemModel, PredictorParameters
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import probabilities
from irtjax.scoring.abilities import item_table
from irtjax.scoring.family_items import known_items
from irtjax.scoring.family_worth import of_scales
from irtjax.types import AnyArray, Float, Int, Shaped

WITH_PLACES = {MODELS[name].family for name in (*CATEGORICAL, *CURVES_OF_COUNTS) if name != "nominal"}


@functools.partial(jax.tree_util.register_dataclass, data_fields=("array", "top", "worth"), meta_fields=("model",))
@dataclasses.dataclass(frozen=True)
class KnownCurves:
    """I items of one dimension.

    Attributes:
        model: of all of them.
        array: (I, K) slopes, intercepts and what else they have.
        top: (I,) the highest category of each, 1 of right/wrong items and of counts.
        worth: (I, S + 1) what category 0 … S is worth; 0 and 1 of right/wrong items and of a trial of counts.
    """

    model: ItemModel
    array: Float[AnyArray, "I K"]
    top: Int[AnyArray, " I"]
    worth: Float[AnyArray, "I C"]

    def families(self) -> list[Any]:
        """The family of each item; the model of right/wrong ones."""
        found: list[Any] = [self.model] * len(self.array)
        if isinstance(self.model, Families):
            for family, group in self.model.groups(len(found)):
                for i in group:
                    found[i] = family
        return found

    def categories(self, theta: Float[AnyArray, " Q"]) -> Float[AnyArray, "Q I S"]:
        """Probabilities of the categories 1 … S at abilities."""
        if self.model is BINARY:
            return probabilities(as_items(self.array), theta[:, None])[0][:, :, None]
        items = PredictorParameters(self.array[:, :1], self.array[:, 1], self.array[:, 2:], self.top)
        found = self.model.moments(items, theta[:, None], asymptotes=True).mean
        return found.reshape(len(theta), len(self.array), -1)

    def expected(self, theta: Float[AnyArray, " Q"]) -> Float[AnyArray, "Q I"]:
        """Expected worth of a response to each item."""
        gain = self.worth[:, 1:] - self.worth[:, :1]
        there = np.arange(gain.shape[1])[None, :] < self.top[:, None]
        return self.worth[None, :, 0] + (self.categories(theta) * (gain * there)[None]).sum(axis=2)

    def places(self) -> tuple[Float[AnyArray, " I"], Float[AnyArray, "I S"]]:
        """Discriminations (I,), and difficulties or thresholds (I, S), NaN beyond those that an item has."""
        if self.model is BINARY:
            return self.array[:, 0], -self.array[:, 1:2] / self.array[:, :1]
        array, tops = jnp.asarray(self.array), np.asarray(self.top)
        slope, found = array[:, 0], jnp.full((len(array), int(tops.max())), jnp.nan)
        for family, top in dict.fromkeys(zip(self.families(), tops.tolist(), strict=True)):
            chosen = np.flatnonzero([one is family and n == top for one, n in zip(self.families(), tops, strict=True)])
            columns = jax.vmap(lambda one, of=family, n=top: of.reported(one[:1], one[1], one[2:], n))(array[chosen])
            names = [f"threshold_{k + 1}" for k in range(top)] if "threshold_1" in columns else ["difficulty"]
            slope = slope.at[chosen].set(columns["discrimination"])
            found = found.at[chosen, : len(names)].set(jnp.stack([columns[name] for name in names], axis=1))
        return slope, found


class KnownTest(NamedTuple):
    """Items by their ids (I,), and their curves."""

    item_ids: Shaped[np.ndarray, " I"]
    curves: KnownCurves

    def take(self, places: Int[np.ndarray, " N"]) -> "KnownTest":
        """Some of them."""
        whole = self.curves
        some = KnownCurves(whole.model.take(places), whole.array[places], whole.top[places], whole.worth[places])
        return KnownTest(self.item_ids[places], some)


def known_test(items: Any) -> KnownTest:
    """The items of a fit, the folder of a saved one, a table like `items.csv`, or the path of one.

    Raises:
        InputError: items of several dimensions, shares, categories without order, or tables that cannot be read.
    """
    given = items if isinstance(items, Fit) else item_table(items)
    known = known_items(given)
    if known is None:
        table = given.items().set_index("item_id") if isinstance(given, Fit) else given
        parameters = given.parameters if isinstance(given, Fit) else from_columns(table)
        parameters = jax.tree.map(np.asarray, parameters)
        if parameters.slope.shape[1] > 1:
            raise InputError(f"the items have {parameters.slope.shape[1]} dimensions, where one scale has one")
        worth = np.tile([0.0, 1.0], (len(table), 1))
        curves = KnownCurves(BINARY, as_array(parameters), np.ones(len(table), int), worth)
        return KnownTest(table.index.to_numpy().astype(str), curves)
    for family, group in known.model.groups(len(known.item_ids)):
        if family not in WITH_PLACES and len(group):
            raise InputError(
                f"item {str(known.item_ids[group[0]])!r} is {family.name}: expected grades, counts, or right and wrong"
            )
    worth = of_scales(known)
    worth[[scale.labels is None for scale in known.scales], 1] = 1.0
    parameters = jax.tree.map(np.asarray, known.parameters)
    curves = KnownCurves(known.model, as_array(parameters), np.asarray(parameters.top), worth)
    return KnownTest(known.item_ids.astype(str), curves)
