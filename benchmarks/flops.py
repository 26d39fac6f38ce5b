"""Floating-point operations of the matrix products in a JAX function, and the rate at which a machine does them."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr
from jax.interpreters import partial_eval as pe

from irtjax.networks.layers import compute_dtype


def of_products(function: Callable, *arguments: Any) -> int:
    """Twice the multiplications of all matrix products and convolutions that a call performs; loops of known length.

    Neither elementwise work nor products whose result is unused are counted. So a program's share of the product rate
    says how close it comes to consisting of products alone.
    """
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    return _count(pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0])


def _count(jaxpr: Jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        if name == "dot_general":
            (left, _), (batch, _) = parameters["dimension_numbers"]
            del batch
            shape = _shape(equation.invars[0])
            total += 2 * math.prod(_shape(equation.outvars[0])) * math.prod(shape[axis] for axis in left)
        elif name == "conv_general_dilated":
            kernel = _shape(equation.invars[1])
            outputs = kernel[parameters["dimension_numbers"].rhs_spec[0]]
            total += 2 * math.prod(_shape(equation.outvars[0])) * math.prod(kernel) // outputs
        repeats = parameters["length"] if name == "scan" else 1
        inner = [value for value in jax.tree.leaves(list(parameters.values()), is_leaf=_is_jaxpr) if _is_jaxpr(value)]
        total += repeats * sum(_count(getattr(value, "jaxpr", value)) for value in inner)
    return total


def _shape(variable: Any) -> tuple[int, ...]:
    """Of an operand or a result; abstract values of other kinds than arrays have none."""
    return variable.aval.shape


def _is_jaxpr(value: object) -> bool:
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


def product_rate(repeats: int = 5) -> float:
    """Operations per second of one large product, on all cores of a CPU or one other device; the best of several."""
    size = 2048 if jax.default_backend() == "cpu" else 16_384
    a = jax.random.normal(jax.random.key(0), (size, size), compute_dtype(jnp.float32))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(a, a))
    best = math.inf
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(multiply(a, a))
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best
