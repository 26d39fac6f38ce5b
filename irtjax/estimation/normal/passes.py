"""What an iteration with normal posteriors asks of the responses."""

import dataclasses
import functools
from typing import Any, Protocol, runtime_checkable

import jax

from irtjax.estimation.problem import as_items
from irtjax.integration.normal_expectations import item_gains, item_sums, subject_sums
from irtjax.integration.normal_posterior import Posterior
from irtjax.item_models.protocol import Items
from irtjax.kernels.models import ItemParameters
from irtjax.responses.blocks import Chunks
from irtjax.types import AnyArray

jitted_subject_sums = jax.jit(subject_sums, static_argnames=("asymptotes", "mesh"))


@runtime_checkable
class Passes(Protocol):
    """Passes over all responses; arrays of items and subjects are padded as these are.

    Attributes:
        asymptotes: whether any item has one, so that several steps are tried.
        mesh: of devices; None for one.
        compiled: whether sums of items are JAX's, and their steps compiled; else they are NumPy's.
    """

    @property
    def asymptotes(self) -> bool: ...  # noqa: D102

    @property
    def mesh(self) -> jax.sharding.Mesh | None: ...  # noqa: D102

    @property
    def compiled(self) -> bool: ...  # noqa: D102

    def item_sums(self, items: Items, posterior: Posterior) -> tuple[Any, ...]:
        """Gradient (I, K) and expected information (I, K, K); with asymptotes the observed one too."""

    def subject_sums(self, items: Items, posterior: Posterior) -> tuple[Any, Any]:
        """Gradient (J, D) and curvature (J, D, D) of the log-likelihood in each ability."""

    def item_gains(self, steps: AnyArray, items: Items, posterior: Posterior) -> Any:
        """How much higher (I, S) the log-likelihood of each item is with parameters (I, S, K); with asymptotes."""


@dataclasses.dataclass(frozen=True)
class ScoredPasses:
    """Those over right and wrong answers."""

    chunks: Chunks
    asymptotes: bool
    mesh: jax.sharding.Mesh | None
    compiled: bool = True

    def item_sums(self, items: ItemParameters, posterior: Posterior) -> tuple[Any, ...]:
        """Without asymptotes expected and observed information are the same."""
        sums = functools.partial(_item_sums, asymptotes=self.asymptotes, mesh=self.mesh)
        return self.chunks.by_item(sums, items, posterior)

    def subject_sums(self, items: ItemParameters, posterior: Posterior) -> tuple[Any, Any]:
        """As `normal_expectations.subject_sums`."""
        sums = functools.partial(jitted_subject_sums, asymptotes=self.asymptotes, mesh=self.mesh)
        return self.chunks.by_subject(sums, items, posterior)

    def item_gains(self, steps: AnyArray, items: ItemParameters, posterior: Posterior) -> Any:
        """As `normal_expectations.item_gains`."""
        return self.chunks.by_item(functools.partial(_item_gains, mesh=self.mesh), (steps, items), posterior)


@functools.partial(jax.jit, static_argnames=("asymptotes", "mesh"))
def _item_sums(
    items: ItemParameters,
    posterior: Posterior,
    blocks: jax.Array,
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None,
) -> tuple[jax.Array, ...]:
    sums = item_sums(items, posterior, blocks, asymptotes=asymptotes, mesh=mesh)
    return sums if asymptotes else sums[:2]


@functools.partial(jax.jit, static_argnames="mesh")
def _item_gains(
    steps_and_items: tuple[AnyArray, ItemParameters],
    posterior: Posterior,
    blocks: jax.Array,
    *,
    mesh: jax.sharding.Mesh | None,
) -> jax.Array:
    steps, items = steps_and_items
    tried = jax.vmap(as_items, in_axes=1, out_axes=1)(steps)
    return item_gains(tried, items, posterior, blocks, mesh=mesh)
