"""The main programs as functions of their sizes: tests lower small ones, `benchmarks.compiled` compiles large ones."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from irtjax.kernels.sharding import EVERYWHERE


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    """The shape and type of an array, which stands for one."""
    return jax.ShapeDtypeStruct(shape, dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A jitted program, and what it is called with.

    Attributes:
        name: in words.
        function: jitted.
        arguments: trees of arrays, or of their shapes and types; static ones as they are.
        options: arguments by name, all static.
        products: what it multiplies: "float64", "float32" in full precision, "bfloat16", or "mixed" for bfloat16 with
            an attention or an adaptive test in float32 beside it.
        mesh: of devices; None for one.
        spread: of each argument how it lies on the mesh, a tree that its own begins with; of one for all where it is
            no tuple.
        turn: what a turn of a loop is whose number of turns only the data tell; "" where there is none.
        least_bytes: that a turn has to read and write; None for all arguments and results.
    """

    name: str
    function: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    products: str = "float32"
    mesh: jax.sharding.Mesh | None = None
    spread: Any = EVERYWHERE
    turn: str = ""
    least_bytes: int | None = None

    def traced(self, device: Any = None) -> Any:
        """The program traced, its arrays on the devices of the mesh, or on one device where it is given.

        Arrays that are given as such become shapes and types: they are arguments, not constants.
        """
        with jax.enable_x64(self.products == "float64"):
            return self.function.trace(*self.placed(device), **self.options)

    def placed(self, device: Any = None) -> tuple[Any, ...]:
        """The arguments, as shapes with their places."""
        if device is None and self.mesh is None:
            return self.arguments
        spread = self.spread if isinstance(self.spread, tuple) else (self.spread,) * len(self.arguments)
        return tuple(map(self._on(device), spread, self.arguments))

    def _on(self, device: Any) -> Any:
        def one(spec: P, leaf: Any) -> Any:
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):  # a mesh has a shape, too
                return leaf
            if self.mesh is None:
                return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=jax.sharding.SingleDeviceSharding(device))
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=jax.NamedSharding(self.mesh, spec))

        def tree(specs: Any, argument: Any) -> Any:
            return jax.tree.map(
                lambda spec, part: jax.tree.map(lambda leaf: one(spec, leaf), part),
                specs,
                argument,
                is_leaf=lambda leaf: isinstance(leaf, P),
            )

        return tree


def nbytes(tree: Any) -> int:
    """Of all arrays of a tree; random keys count as what they are made of."""

    def of(leaf: Any) -> int:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.eval_shape(jax.random.key_data, leaf)
        return leaf.size * leaf.dtype.itemsize

    return sum(of(leaf) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype") and hasattr(leaf, "size"))
