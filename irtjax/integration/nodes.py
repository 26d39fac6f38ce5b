"""Responses as the maps over nodes read them, and where the nodes are."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.binary import BINARY
from irtjax.item_models.protocol import ItemModel, Items, Moments, Natural
from irtjax.kernels import handwritten
from irtjax.kernels.formulation import formulation
from irtjax.kernels.quadrature import Quadrature
from irtjax.populations.kinds import Populations
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int, Shaped

COMPILED = 2**20  # curves at nodes, beyond which compilation is worth it


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfPopulation:
    """Which population each subject is of.

    Attributes:
        member: (J, 1) of each subject, the number of its group; None where there is one population.
        predictors: (J, C) of each subject's mean ability, where it depends on covariates.
    """

    member: Any = None
    predictors: Any = None

    def weighed(self, log_weights: Float[AnyArray, "Q ..."]) -> Float[AnyArray, "J Q"]:
        """Of the nodes (Q,), those of each group (Q, G), or those by predictors (Q, 1 + C), for each subject."""
        if self.predictors is not None:
            xp, for_all = log_weights.__array_namespace__(), log_weights[:, :1]
            return for_all.T + self.predictors @ xp.where(for_all > -xp.inf, log_weights[:, 1:], 0.0).T
        return log_weights[None, :] if self.member is None else log_weights.T[self.member[:, 0]]

    def of_population(self, number: int) -> Shaped[AnyArray, "J columns"] | None:
        """What multiplies scores of populations at nodes: membership in each of so many groups; predictors and 1."""
        if self.predictors is not None:
            xp = self.predictors.__array_namespace__()
            return xp.concatenate([self.predictors, xp.ones_like(self.predictors[:, :1])], axis=1)
        return None if self.member is None else (self.member == jnp.arange(number)[None, :])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbers(OfPopulation):
    """What the two linear maps multiply, of J subjects.

    Attributes:
        statistics: (J, M) T of each response.
        observed: (J, I) trials of each, 0 where it is missing; None where all are 1.
    """

    statistics: Any
    observed: Any

    def log_likelihoods(
        self, eta: Float[AnyArray, "Q M"], log_normalizer: Float[AnyArray, "Q I"]
    ) -> Float[AnyArray, "J Q"]:
        """Of each subject at nodes, in nats, but for log h."""
        if self.observed is None:
            return self.statistics @ eta.T - log_normalizer.sum(axis=1)[None, :]
        return self.statistics @ eta.T - self.observed @ log_normalizer.T

    def rows(self, rows: Int[np.ndarray, " n"]) -> "Numbers":
        """Those of some subjects."""
        observed, member, predictors = (
            None if leaf is None else leaf[rows] for leaf in (self.observed, self.member, self.predictors)
        )
        return Numbers(statistics=self.statistics[rows], observed=observed, member=member, predictors=predictors)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("values", "trials", "member", "predictors"),
    meta_fields=("model", "complete"),
)
@dataclasses.dataclass(frozen=True)
class Answers(OfPopulation):
    """Responses of J subjects to I items, a byte each: the numbers in the two linear maps are made where they are read.

    Attributes:
        values: (J, I) as the model encodes them; negative where missing.
        model: what they say of ability.
        complete: whether all were observed.
        trials: (J, I) of each response; None for one.
    """

    values: Any
    model: ItemModel
    complete: bool
    trials: Any = None

    def on_host(self) -> "Answers":
        """As NumPy arrays."""
        return jax.tree.map(np.asarray, self)

    def log_base(self) -> Float[np.ndarray, " J"]:
        """Σ log h of each subject, in nats."""
        trials = None if self.trials is None else np.asarray(self.trials)
        return self.model.log_base(np.asarray(self.values), trials)

    def log_likelihoods(
        self, eta: Float[AnyArray, "Q M"], log_normalizer: Float[AnyArray, "Q I"]
    ) -> Float[AnyArray, "J Q"]:
        """Of each subject at nodes, in nats, but for log h."""

        def by_xla(values: AnyArray, eta: AnyArray, log_normalizer: AnyArray) -> AnyArray:
            return dataclasses.replace(self, values=values).numbers().log_likelihoods(eta, log_normalizer)

        tiles = self._tiles(eta)
        if tiles is None:
            return by_xla(self.values, eta, log_normalizer)
        kernel = functools.partial(tiles.at_nodes, complete=self.complete)
        return jax.lax.platform_dependent(self.values, eta, log_normalizer, cuda=kernel, default=by_xla)

    def expected(self, weights: Float[AnyArray, "J Q"]) -> tuple[Float[AnyArray, "Q M"], Float[AnyArray, "Q _"]]:
        """Statistics and answers that posteriors expect at each node; answers are the same for all if complete."""

        def by_xla(weights: AnyArray, values: AnyArray) -> tuple[AnyArray, AnyArray]:
            some = dataclasses.replace(self, values=values)
            observed = some.observed()
            answers = weights.sum(axis=0)[:, None] if observed is None else weights.T @ observed
            return weights.T @ some.statistics(), answers

        tiles = self._tiles(weights)
        if tiles is None:
            return by_xla(weights, self.values)
        kernel = functools.partial(tiles.of_items, complete=self.complete)
        return jax.lax.platform_dependent(weights, self.values, cuda=kernel, default=by_xla)

    def _tiles(self, numbers: AnyArray) -> Any:
        """The module of kernels for GPUs, where both maps are for them; else None."""
        if self.model != BINARY or self.trials is not None or not isinstance(numbers, jax.Array):
            return None
        if not (formulation().tiles and handwritten.available()):
            return None
        from irtjax.kernels import node_tiles as tiles

        known = tiles.both_maps, tiles.both_by_xla, tiles.small_problems
        return tiles if tiles.takes(self.values, numbers) and handwritten.is_right_here(*known) else None

    def numbers(self) -> Numbers:
        """What is multiplied, eight bytes each."""
        return Numbers(
            statistics=self.statistics(), observed=self.observed(), member=self.member, predictors=self.predictors
        )

    def statistics(self) -> Float[AnyArray, "J M"]:
        """T of each response."""
        return self.model.statistics(self.values)

    def observed(self) -> Float[AnyArray, "J I"] | None:
        """Trials of each response, 0 where it is missing; None where all are 1."""
        if self.complete and self.trials is None:
            return None
        observed = (self.values >= 0).astype(float)
        return observed if self.trials is None else observed * self.trials

    def rows(self, rows: AnyArray | slice) -> "Answers":
        """Those of some subjects; none, where there is no such subject."""

        def of(leaf: AnyArray) -> AnyArray:
            if isinstance(rows, slice) or isinstance(leaf, np.ndarray):
                return leaf[rows]
            return leaf.at[rows].get(mode="fill", fill_value=MISSING)

        return jax.tree.map(of, self)

    def of_items(self, items: slice) -> "Answers":
        """Those to some items."""
        trials = None if self.trials is None else self.trials[:, items]
        model = self.model.take(np.arange(self.num_items)[items])
        return dataclasses.replace(self, values=self.values[:, items], model=model, trials=trials)

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.values.shape[0]

    @property
    def num_items(self) -> int:
        """I."""
        return self.values.shape[1]


def place_nodes(population: Populations, quadrature: Quadrature) -> Float[np.ndarray, "Q D"]:
    """The nodes (Q, D) on the scale of ability."""
    return population.place(quadrature.nodes)


def natural(model: ItemModel, items: Items, nodes: Float[np.ndarray, "Q D"]) -> Natural:
    """What an answer adds to log-likelihoods at nodes, as NumPy arrays."""
    asymptotes = items.has_others()
    if _many(items, nodes):
        return Natural(*map(np.asarray, _natural(model, asymptotes, items, nodes)))
    return Natural(*map(np.asarray, model.natural(items, nodes, asymptotes=asymptotes)))


def moments(model: ItemModel, items: Items, nodes: Float[np.ndarray, "Q D"], *, asymptotes: bool) -> Moments:
    """The statistics of one trial at nodes, as NumPy arrays; without `asymptotes` their derivatives are left out."""
    if _many(items, nodes):
        return jax.tree.map(np.asarray, _moments(model, asymptotes, items, nodes))
    return jax.tree.map(np.asarray, model.moments(items, nodes, asymptotes=asymptotes))


def _many(items: Items, nodes: Float[np.ndarray, "Q D"]) -> bool:
    """Whether compilation is worth it: not with thousands of numbers; with millions it is five times as fast."""
    return len(nodes) * len(items.intercept) > COMPILED


@functools.partial(jax.jit, static_argnums=(0, 1))
def _natural(model: ItemModel, asymptotes: bool, items: Items, nodes: jax.Array) -> Natural:
    return model.natural(jax.tree.map(jnp.asarray, items), nodes, asymptotes=asymptotes)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _moments(model: ItemModel, asymptotes: bool, items: Items, nodes: jax.Array) -> Moments:
    return model.moments(jax.tree.map(jnp.asarray, items), nodes, asymptotes=asymptotes)
