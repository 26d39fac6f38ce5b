"""Float32 products in float32: an accelerator rounds what it multiplies, unless it is asked not to."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_full_precision(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, with the products in it traced in full precision.

    By default a TPU rounds float32 operands to bfloat16, with 8 significant bits, and a GPU may round them to
    TensorFloat-32, with 11. That is enough for training networks. Estimates need more: a logit of 4 would be off by up
    to 0.015. On a CPU nothing changes.
    """

    @functools.wraps(function)
    def with_precision(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return with_precision
