"""Kernels that are written by hand for GPUs, in Pallas: whether there are any, and whether the GPU at hand agrees.

Pallas is experimental, and nobody has run these kernels on a GPU yet. So a process that has one tries each of them
first, once, on small arguments. Where it fails or differs, and where Pallas cannot be imported, the form for XLA is
used.
"""

import functools
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from irtjax.types import AnyArray

ADDRESSES = 2**31  # bytes from which Pallas would need 64 bits for addresses, but takes them only from twice as many on


@functools.cache
def available() -> bool:
    """Whether there is Pallas; a second to import."""
    try:
        from jax.experimental.pallas import triton  # noqa: F401
    except ImportError:
        return False
    return True


def addressable(*arrays: AnyArray | jax.ShapeDtypeStruct) -> bool:
    """Whether a kernel finds its way in arrays of such sizes."""
    sizes = (array.size * array.dtype.itemsize for array in arrays)
    return all(size < ADDRESSES or size > 2 * ADDRESSES for size in sizes)


@functools.cache
def is_right_here(
    kernel: Callable[..., Any], reference: Callable[..., Any], problems: Callable[[], Iterable[tuple[Any, ...]]]
) -> bool:
    """Whether a kernel gives on the GPU at hand what XLA's form gives; true where there is none to run it on.

    Args:
        kernel: written by hand.
        reference: XLA's form, of the same arguments.
        problems: small arguments to try.
    """
    if jax.default_backend() != "gpu":
        return True
    with ThreadPoolExecutor(1) as apart:  # from the program that is being traced
        return apart.submit(agrees, kernel, reference, problems).result()


def agrees(
    kernel: Callable[..., Any], reference: Callable[..., Any], problems: Callable[[], Iterable[tuple[Any, ...]]]
) -> bool:
    """Whether two forms give the same; warns if not."""
    for arguments in problems():
        wide = any(getattr(leaf, "dtype", None) == np.float64 for leaf in arguments)
        rtol, atol = (1e-10, 1e-9) if wide else (1e-4, 1e-3)
        try:
            with jax.enable_x64(wide), jax.default_matmul_precision("highest"):
                ours, theirs = (jax.tree.leaves(jax.jit(form)(*arguments)) for form in (kernel, reference))
            close = (np.allclose(*pair, rtol=rtol, atol=atol) for pair in zip(ours, theirs, strict=True))
            fault = "" if all(close) else "its sums differ"
        except Exception as error:  # whatever a compiler or a driver raises
            fault = f"{type(error).__name__}: {error}"
        if fault:
            warnings.warn(
                f"a kernel of our own for GPUs is left aside on this one, for a slower form ({fault:.300})",
                RuntimeWarning,
                stacklevel=2,
            )
            return False
    return True
