"""How programs are formulated for the kind of device at hand, or for another that a caller names.

The same sums over a response matrix want another program on each kind of device:

* A **CPU** walks blocks of items, whose float arrays stay in its caches, and sums by matrix products.
* A **TPU**'s compiler fuses everything that follows from a response into the read of it, and keeps no float array. A
  loop only adds a copy of each block.
* A **GPU**'s compiler writes float arrays before it multiplies them. Kernels written for its registers
  (`kernels.likelihood_tiles`) do not. What has none walks blocks that are large enough for what a kernel's start costs.
"""

import dataclasses
from contextlib import AbstractContextManager

import jax

ACCELERATORS = ("gpu", "tpu")
_named = jax.make_user_context(None)  # part of what compiled programs are remembered by


@dataclasses.dataclass(frozen=True)
class Formulation:
    """What programs go by.

    Attributes:
        in_caches: whether blocks are to stay in caches, and products are to be those of a CPU.
        fuses: whether the compiler fuses elementwise work into all the sums that read it.
        block_responses: how many responses passes work on at a time; None for as many as stay in the caches.
        numbers: how many numbers other loops work on at a time (`kernels.loops`); None likewise.
        tiles: whether likelihoods are kernels written by hand where there are any.
    """

    in_caches: bool
    fuses: bool
    block_responses: int | None
    numbers: int | None
    tiles: bool


ALL = 2**62  # responses, more than there are
OF_BACKEND = {  # float32 arrays of 2²⁴ numbers have 64 MB
    "cpu": Formulation(in_caches=True, fuses=False, block_responses=None, numbers=None, tiles=False),
    "gpu": Formulation(in_caches=False, fuses=False, block_responses=2**24, numbers=2**24, tiles=True),
    "tpu": Formulation(in_caches=False, fuses=True, block_responses=ALL, numbers=2**24, tiles=False),
}


def formulated_for(backend: str | None) -> AbstractContextManager[None]:
    """Within it, programs are traced as for a backend, "cpu", "gpu" or "tpu"; None for the one at hand.

    So a program for an accelerator can be lowered, counted and tested where there is none.
    """
    return _named(backend)


def formulation() -> Formulation:
    """The one for the backend that is named, or at hand."""
    return OF_BACKEND.get(_named.value or jax.default_backend(), OF_BACKEND["cpu"])


def kept(array: jax.Array) -> jax.Array:
    """An array that several sums read: computed once, or in each of them where nothing has to be written then."""
    return array if formulation().fuses else jax.lax.optimization_barrier(array)


def for_accelerator() -> bool:
    """Whether products are formulated for a GPU or TPU, else for a CPU."""
    return not formulation().in_caches
