"""Items that are not right or wrong: one engine model out of a family for each item.

A response depends on ability by a predictor x = slope·θ + intercept, and on the item's other parameters. A family says
how (`graded`, `partial_credit`, `nominal`, `unit_interval`): statistics T of a response, η and A (`protocol`), and E T
and Cov T, elementwise in items and nodes. Derivatives of η are by automatic differentiation, so that a family is a
page. Families of categories (`Indicators`) write them out, as compilation would take longer than a fit.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.categories import Coordinates, Indicators
from irtjax.item_models.protocol import Moments, Natural, PredictorParameters
from irtjax.types import AnyArray, Float, Int, Shaped


class Family(Protocol):
    """How responses of some items depend on predictor and other parameters. Arrays are NumPy's or JAX's alike.

    Methods are told S, the most statistics that an item of the test has, and may give fewer.
    """

    def num_statistics(self, top: int) -> int:
        """S of an item whose highest category is `top`."""

    def num_others(self, top: int) -> int:
        """L of that item."""

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I S"]:
        """T of responses; of missing ones, which are negative, whatever is finite."""

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, "J I"]:
        """Log h of responses, in nats."""

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I"]]:
        """η and A, finite wherever the parameters are."""

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I S"]:
        """E T."""

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I S S"]:
        """Cov T."""

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """Mean and variance of what a response is worth: of counts one trial, as 0 or 1; of shares the share.

        That of categories is given, of as many as any item of the test has.
        """

    def start(
        self,
        values: Shaped[np.ndarray, "J I"],
        trials: Int[np.ndarray, "J I"] | None,
        top: Int[np.ndarray, " I"],
        num_others: int,
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Intercepts and others to start from, with slopes of 1.

        Answers to an item are in its column, in any order, 2,000 of them or all: rows need not be subjects.
        """

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Columns of `items.csv` of one item: numbers, out of slopes (D,), intercept and others (L,)."""

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from such columns (D = 1)."""


def padded(array: AnyArray, number: int, axes: int = 1) -> AnyArray:
    """With zeros at the end of the last axes, in place of statistics that items of other families have."""
    widths = [(0, 0)] * (array.ndim - axes) + [(0, number - array.shape[-1])] * axes
    return array if array.shape[-1] == number else array.__array_namespace__().pad(array, widths)


@dataclasses.dataclass(frozen=True)
class Families:
    """The model of a test whose items have families.

    Attributes:
        families: that occur.
        of_items: (I,) which family each item has; one number for all.
        per_item: S, the most that any item has.
    """

    families: tuple[Any, ...]
    of_items: tuple[int, ...]
    per_item: int
    name: str = "families"

    def groups(self, num_items: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Each family with its items."""
        kinds = np.broadcast_to(np.array(self.of_items), num_items)
        for kind, family in enumerate(self.families):
            yield family, np.flatnonzero(kinds == kind)

    def take(self, items: np.ndarray) -> "Families":
        """Those of some of the items."""
        if len(self.of_items) == 1:
            return self
        return dataclasses.replace(self, of_items=tuple(np.array(self.of_items)[items].tolist()))

    def statistics(self, values: AnyArray) -> Float[AnyArray, "J M"]:
        """T of responses, 0 where they are missing."""
        xp = values.__array_namespace__()
        found = self._by_family(
            values.shape[1],
            lambda family, items: padded(family.statistics(values[:, items], self.per_item), self.per_item),
        )
        return xp.where((values >= 0)[:, :, None], found, 0.0).reshape(values.shape[0], -1)

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """Σ log h over the responses of each subject."""
        found = self._by_family(
            values.shape[1],
            lambda family, items: family.log_base(values[:, items], None if trials is None else trials[:, items]),
        )
        return np.where(values >= 0, found, 0.0).sum(axis=1)

    def natural(self, items: PredictorParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Natural:
        """η and A at abilities."""
        del asymptotes
        x = theta @ items.slope.T + items.intercept[None, :]
        return Natural(*self._natural(Coordinates(x, items.others, items.top, theta)))

    def moments(self, items: PredictorParameters, theta: Float[AnyArray, "Q D"], *, asymptotes: bool) -> Moments:
        """Means, covariances and derivatives of the statistics."""
        del asymptotes
        x = theta @ items.slope.T + items.intercept[None, :]
        at = Coordinates(x, items.others, items.top, theta)
        return self._moments(at) if self.has_indicators else Moments(*_moments(self, at))

    def worth(
        self, items: PredictorParameters, theta: Float[AnyArray, "Q D"], of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """Mean and variance of what a response is worth, as `Family.worth`."""
        at = Coordinates(theta @ items.slope.T + items.intercept[None, :], items.others, items.top)
        return self._by_family(at.x.shape[1], lambda family, some: family.worth(_some(at, some), of_categories[some]))

    def curvature(
        self, items: PredictorParameters, theta: Float[AnyArray, "Q D"], residual: Float[AnyArray, "Q M"]
    ) -> Float[AnyArray, "Q I K K"]:
        """Σ_s residual_s ∂²η_s by predictor and others."""
        x = theta @ items.slope.T + items.intercept[None, :]
        at = Coordinates(x, items.others, items.top, theta)
        if not self.has_indicators:
            return _curvature(self, at, residual)
        xp = x.__array_namespace__()
        own = xp.where(self._present(at.top)[None] > 0, residual.reshape(*x.shape, -1), 0.0)
        return self._by_family(x.shape[1], lambda family, chosen: family.curvature(_some(at, chosen), own[:, chosen]))

    def others_of_steeper(
        self, others: Float[np.ndarray, "I L"], share: Float[np.ndarray, " I"]
    ) -> Float[np.ndarray, "I L"]:
        """The others of items so many times as steep whose thresholds stay where they are."""
        result = others.copy()
        for family, items in self.groups(len(others)):
            if isinstance(family, Indicators):
                result[items] = family.others_of_steeper(others[items], share[items])
        return result

    @property
    def has_indicators(self) -> bool:
        """Whether all statistics are indicators of categories."""
        return all(isinstance(family, Indicators) for family in self.families)

    def _natural(self, at: Coordinates) -> tuple[Float[AnyArray, "Q M"], Float[AnyArray, "Q I"]]:
        num_nodes, num_items = at.x.shape

        def of_family(family: Any, items: AnyArray | slice) -> tuple[AnyArray, AnyArray]:
            some = _some(at, items)
            eta, log_normalizer = family.natural(some, self.per_item)
            if isinstance(family, Indicators):
                present = family.present(some.top, self.per_item)[None] > 0
                eta = eta.__array_namespace__().where(present, eta, 0.0)
            return padded(eta, self.per_item), log_normalizer

        eta, log_normalizer = self._by_family(num_items, of_family)
        return eta.reshape(num_nodes, -1), log_normalizer

    def _moments(self, at: Coordinates) -> Moments:
        """Those of indicators."""
        xp, num_nodes = at.x.__array_namespace__(), at.x.shape[0]
        eta, log_normalizer = self._natural(at)
        weight = self._present(at.top)[None]
        own = weight > 0
        p = xp.exp(eta.reshape(*at.x.shape, -1) - log_normalizer[:, :, None]) * weight
        by_x, by_others = self._by_family(
            at.x.shape[1], lambda family, items: family.derivatives(_some(at, items), self.per_item)
        )
        by_x, by_others = xp.where(own, by_x, 0.0), xp.where(own[..., None], by_others, 0.0)
        mean, size = p.reshape(num_nodes, -1), at.others.shape[1]
        covariance = mean * (1 - mean) if self.per_item == 1 else p
        return Moments(mean, covariance, by_x.reshape(num_nodes, -1), by_others.reshape(*mean.shape, size))

    def _present(self, top: AnyArray) -> AnyArray:
        """(I, S) weights of all categories."""

        def of_family(family: Any, items: AnyArray | slice) -> AnyArray:
            return family.present(top[items], self.per_item)[None]

        return self._by_family(len(top), of_family)[0]

    def _by_family(self, num_items: int, function: Callable[[Any, Any], Any]) -> Any:
        """Arrays with an axis 1 of items, out of those of each family."""
        if len(self.families) == 1:
            return function(self.families[0], slice(None))
        groups = list(self.groups(num_items))
        order = np.argsort(np.concatenate([items for _, items in groups]))

        def join(*parts: AnyArray) -> AnyArray:
            return parts[0].__array_namespace__().concatenate(parts, axis=1)[:, order]

        return jax.tree.map(join, *(function(family, items) for family, items in groups))


def _some(at: Coordinates, items: AnyArray | slice) -> Coordinates:
    return Coordinates(at.x[:, items], at.others[items], at.top[items], at.theta)


@functools.partial(jax.jit, static_argnums=0)
def _moments(model: Families, at: Coordinates) -> tuple[jax.Array, ...]:
    num_nodes, num_items = at.x.shape

    def moment(name: str, axes: int) -> jax.Array:
        def of_family(family: Any, items: AnyArray | slice) -> AnyArray:
            return padded(getattr(family, name)(_some(at, items), model.per_item), model.per_item, axes)

        return model._by_family(num_items, of_family)

    derivatives = _derivatives(lambda at: model._natural(at)[0], at)
    covariance = moment("covariance", 2)
    return (
        moment("mean", 1).reshape(num_nodes, -1),
        covariance[:, :, 0, 0] if model.per_item == 1 else covariance,
        derivatives[0],
        jnp.moveaxis(derivatives[1:], 0, 2),
    )


@functools.partial(jax.jit, static_argnums=0)
def _curvature(model: Families, at: Coordinates, residual: jax.Array) -> jax.Array:
    def weighted(at: Coordinates) -> AnyArray:
        return (residual * model._natural(at)[0]).reshape(*at.x.shape, -1).sum(axis=2)

    second = _derivatives(functools.partial(_derivatives, weighted), at)
    return jnp.moveaxis(second, (0, 1), (2, 3))


def _derivatives(function: Callable[[Coordinates], Any], at: Coordinates) -> jax.Array:
    """Derivatives (1 + L, ...) of what is elementwise in items and nodes, by predictor and each of the others."""

    def by(tangent: jax.Array) -> jax.Array:
        of_x, of_others = tangent[0], tangent[1:]

        def moved(x: jax.Array, others: jax.Array) -> jax.Array:
            return function(Coordinates(x, others, at.top, at.theta))

        tangents = jnp.full_like(at.x, of_x), jnp.broadcast_to(of_others, at.others.shape)
        return jax.jvp(moved, (at.x, at.others), tangents)[1]

    return jax.vmap(by)(jnp.eye(1 + at.others.shape[1], dtype=at.x.dtype))
