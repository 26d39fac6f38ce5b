"""Passes over responses to items of families (`item_models.families`), each family by itself."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.driver import Problem
from irtjax.estimation.normal.ability_step import not_negative
from irtjax.integration import family_expectations as expectations
from irtjax.integration.family_expectations import Cells
from irtjax.integration.normal_posterior import Posterior, root
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.loops import at_once
from irtjax.kernels.quadrature import Quadrature, gauss_hermite
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int, Shaped

NUMBER = 3  # nodes of a subject, in each dimension
TOGETHER = 2**22  # numbers of a block that are held at a time: 16 MB, some times
MOST_ITEMS = 1024  # of a block
COMPILED = 2**20  # items at nodes, beyond which compilation of what is done once is worth it


class Group(NamedTuple):
    """The items of one family.

    Attributes:
        model: of these items.
        places: (I',) where they are in the test; the last one again, as padding without responses.
        cells: their responses, in blocks.
    """

    model: Families
    places: Int[np.ndarray, " I"]
    cells: Cells


@dataclasses.dataclass(frozen=True)
class FamilyPasses:
    """Passes over all of them, as `normal.passes.Passes`.

    Attributes:
        groups: of items.
        order: (I,) where each item is in the items of all groups, one after the other.
        rule: nodes of a subject, around its posterior.
    """

    groups: tuple[Group, ...]
    order: Int[np.ndarray, " I"]
    rule: Quadrature
    asymptotes: bool = False  # derivatives in all parameters are those of the groups
    mesh: jax.sharding.Mesh | None = None
    compiled: bool = False  # steps of items

    def item_sums(self, items: PredictorParameters, posterior: Posterior) -> tuple[Any, ...]:
        """Gradient (I, K) and expected information (I, K, K)."""
        return self._by_item(expectations.item_sums, items, around(posterior, self.rule), self.weights)

    def observed_information(self, items: PredictorParameters, posterior: Posterior) -> Any:
        """(I, K, K) of each item by itself."""
        theta = around(posterior, self.rule)
        if theta.size * len(self.order) > COMPILED:
            return self._by_item(expectations.compiled_information, items, theta, self.weights)[0]
        plain = dataclasses.replace(
            self, groups=tuple(group._replace(cells=jax.tree.map(np.asarray, group.cells)) for group in self.groups)
        )
        return plain._by_item(expectations.observed_information, items, theta, self.weights)[0]

    def subject_sums(self, items: PredictorParameters, posterior: Posterior) -> tuple[Any, Any]:
        """Expected gradient g (J, D) in each ability, and minus its expected derivative (J, D, D).

        By Stein's lemma the latter is -E g(m + L z) z' L⁻¹.
        """
        slopes = self._by_subject(expectations.slopes_of_subjects, items, around(posterior, self.rule))
        slopes, width = np.asarray(slopes, float), root(posterior)
        inverse = np.linalg.inv(width) if width.shape[1] > 1 else 1 / width
        by_z = np.einsum("q,qjk,ql->jkl", self.weights, slopes, self.rule.nodes)
        curvature = -by_z @ inverse
        return np.einsum("q,qjk->jk", self.weights, slopes), not_negative((curvature + curvature.swapaxes(1, 2)) / 2)

    def item_gains(self, steps: AnyArray, items: PredictorParameters, posterior: Posterior) -> Any:
        """Of no use: without asymptotes one step is tried."""
        raise TypeError("only one step of items of families is tried")

    def log_likelihoods(self, items: PredictorParameters, theta: Float[AnyArray, "Q J D"]) -> Float[AnyArray, "Q J"]:
        """Of each subject at abilities, without log h, in nats."""
        return self._by_subject(expectations.log_likelihoods, items, theta)

    @property
    def weights(self) -> Float[np.ndarray, " Q"]:
        """Of the nodes of a subject."""
        return np.exp(self.rule.log_weights)

    def _by_item(self, function: Callable, items: PredictorParameters, *arguments: Any) -> tuple[Any, ...]:
        parts = [function(group.model, _some(items, group), group.cells, *arguments) for group in self.groups]
        return tuple(np.concatenate(leaves).astype(float)[self.order] for leaves in zip(*parts, strict=True))

    def _by_subject(self, function: Callable, items: PredictorParameters, theta: AnyArray) -> Any:
        first, *rest = (function(group.model, _some(items, group), group.cells, theta) for group in self.groups)
        return sum(rest, first)


def passes_over(problem: Problem, number: int, dtype: Any) -> FamilyPasses:
    """Lays out the responses of a problem for so many abilities of each subject, and numbers of this type."""
    model = problem.model
    assert isinstance(model, Families)
    values, top, size = np.asarray(problem.values), np.asarray(problem.items.top), problem.items.others.shape[1]
    groups, starts, order = [], 0, np.empty(len(top), int)
    for family, items in model.groups(len(top)):
        if not len(items):
            continue
        per_item = max(family.num_statistics(int(k)) for k in np.unique(top[items]))
        each = len(values) * number * per_item * (size + 2)
        block = int(np.clip(at_once(TOGETHER // each, each), 1, min(MOST_ITEMS, len(items))))
        places = np.pad(items, (0, -len(items) % block), mode="edge")
        order[items] = starts + np.arange(len(items))
        starts += len(places)
        trials = None if problem.trials is None else np.asarray(problem.trials)[:, items]
        cells = Cells(
            _blocks(_numbers(values[:, items], dtype), block, MISSING),
            None if trials is None else _blocks(trials.astype(np.int32), block, 0),
        )
        groups.append(Group(Families((family,), (0,), per_item), places, cells))
    return FamilyPasses(tuple(groups), order, gauss_hermite(NUMBER, problem.specification.dims))


def around(posterior: Posterior, rule: Quadrature) -> Float[np.ndarray, "Q J D"]:
    """Nodes m + L z of each subject."""
    return np.asarray(posterior.mean, float)[None] + np.einsum("jkl,ql->qjk", root(posterior), rule.nodes)


def _some(items: PredictorParameters, group: Group) -> PredictorParameters:
    return PredictorParameters(*(np.asarray(leaf)[group.places] for leaf in items))


def _numbers(values: Shaped[np.ndarray, "J I"], dtype: Any) -> Shaped[np.ndarray, "J I"]:
    """Categories and counts in as few bytes as they need; shares so that none becomes exactly 1 by rounding."""
    if values.dtype.kind == "f":
        inner = (values > 0) & (values < 1)
        if inner.any():
            ends = np.finfo(dtype).tiny, 1 - np.finfo(dtype).epsneg
            return np.where(inner, np.clip(values, *ends), values).astype(dtype)
    kinds = (np.int8, np.int16, np.int32)
    return values.astype(next(kind for kind in kinds if values.max(initial=0) <= np.iinfo(kind).max))


def _blocks(array: Shaped[np.ndarray, "J I"], size: int, fill: int) -> jax.Array:
    """(N, J, size), filled up."""
    padded = np.pad(array, ((0, 0), (0, -array.shape[1] % size)), constant_values=fill)
    return jnp.asarray(padded.reshape(len(array), -1, size).swapaxes(0, 1))
