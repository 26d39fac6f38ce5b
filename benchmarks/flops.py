"""Operations of a JAX function, of matrix products and all others; and the rate at which a machine multiplies."""

import dataclasses
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
    return work_of(jax.make_jaxpr(function)(*arguments).jaxpr).products


TRANSCENDENTAL = {  # one of a special unit each, or of several instructions
    *("exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "sin", "cos", "tan", "sqrt", "rsqrt", "cbrt", "pow"),
    *("erf", "erfc", "erf_inv", "lgamma", "digamma", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh"),
}
ARITHMETIC = {
    *("add", "sub", "mul", "div", "max", "min", "neg", "abs", "sign", "floor", "ceil", "round", "rem", "clamp"),
    *("select_n", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "square", "integer_pow", "add_any"),
    *("convert_element_type", "shift_left", "shift_right_logical", "is_finite"),
}
REDUCTIONS = {"reduce_sum", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "cumsum", "cumlogsumexp", "argmax"}


@dataclasses.dataclass(frozen=True)
class Work:
    """Operations of a call; those of a loop whose turns only the data tell count once.

    Attributes:
        products: of matrix products and convolutions, twice the multiplications.
        elementwise: all other arithmetic, one for each number; random numbers are left out.
        transcendental: exponentials, logarithms, roots and their like.
    """

    products: int = 0
    elementwise: int = 0
    transcendental: int = 0

    def plus(self, other: "Work", times: int = 1) -> "Work":
        """This, and so many times the other."""
        return Work(
            self.products + times * other.products,
            self.elementwise + times * other.elementwise,
            self.transcendental + times * other.transcendental,
        )


def work_of(jaxpr: Jaxpr) -> Work:
    """What a call comes to, without what no result needs; over a mesh, on all devices together."""
    return _count(pe.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0])


def _count(jaxpr: Jaxpr) -> Work:
    total = Work()
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        if name == "dot_general":
            (left, _), (batch, _) = parameters["dimension_numbers"]
            del batch
            shape = _shape(equation.invars[0])
            made = 2 * math.prod(_shape(equation.outvars[0])) * math.prod(shape[axis] for axis in left)
            total = total.plus(Work(products=made))
        elif name == "conv_general_dilated":
            kernel = _shape(equation.invars[1])
            outputs = kernel[parameters["dimension_numbers"].rhs_spec[0]]
            made = 2 * math.prod(_shape(equation.outvars[0])) * math.prod(kernel) // outputs
            total = total.plus(Work(products=made))
        elif name in ARITHMETIC:
            total = total.plus(Work(elementwise=math.prod(_shape(equation.outvars[0]))))
        elif name in TRANSCENDENTAL:
            total = total.plus(Work(transcendental=math.prod(_shape(equation.outvars[0]))))
        elif name in REDUCTIONS:
            total = total.plus(Work(elementwise=math.prod(_shape(equation.invars[0]))))
        if name == "pallas_call":
            continue  # XLA's form, which stands beside each kernel written by hand, is counted for it
        inner = [
            _count(_open(value))
            for value in jax.tree.leaves(list(parameters.values()), is_leaf=_is_jaxpr)
            if _is_jaxpr(value)
        ]
        if name == "cond":
            inner = [max(inner, key=dataclasses.astuple)]
        for part in inner:
            total = total.plus(part, _repeats(name, parameters))
    return total


def _repeats(name: str, parameters: dict[str, Any]) -> int:
    """How often a primitive does what is within it."""
    if name == "shard_map":
        return parameters["mesh"].size
    return parameters["length"] if name == "scan" else 1


def _shape(variable: Any) -> tuple[int, ...]:
    """Of an operand or a result; abstract values of other kinds than arrays have none."""
    return variable.aval.shape


def _open(value: Any) -> Any:
    """The jaxpr itself, of a closed one."""
    return getattr(value, "jaxpr", value)


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
