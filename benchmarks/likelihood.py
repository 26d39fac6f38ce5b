r"""The 1PL likelihood kernel against automatic differentiation, and against what the machine could do at best.

  python -m benchmarks.likelihood --num_subjects=1000 --num_items=10000

Prints nanoseconds a response for value and gradients, beside two references measured in the same run: automatic
differentiation of the log-probability of a Bernoulli distribution, and three transcendentals a response with one read
of the matrix. Expected duration: half a minute.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from absl import app, flags

from irtjax.likelihood import log_likelihood_1pl

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=1)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 10_000, "I", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 10, "runs, of which the fastest counts", lower_bound=1)


def seconds(function: Callable, *arguments: jax.Array) -> float:
    """Fastest of several runs, after one that compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(_REPEATS.value):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def autodiff(theta: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """The likelihood as one would write it without a kernel."""
    logits = theta[:, None] - difficulty[None, :]
    return dist.Bernoulli(logits=logits).log_prob(responses.astype(jnp.float32)).sum()


def floor(theta: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """One read of the matrix and three transcendentals a response, summed: no likelihood."""
    x = theta[:, None] - difficulty[None, :] + responses.astype(jnp.float32)
    return (jnp.exp(x) + jnp.log(x * x + 1) + jnp.tanh(x)).sum()


def main(_: list[str]) -> None:
    """Measures and prints."""
    rng = np.random.default_rng(0)
    shape = (_NUM_SUBJECTS.value, _NUM_ITEMS.value)
    theta, difficulty = (jnp.asarray(rng.normal(0, 1.5, size), jnp.float32) for size in shape)
    responses = jnp.asarray(rng.integers(0, 2, shape).astype(np.int8))
    count = responses.size
    programs = {
        "kernel": jax.jit(jax.value_and_grad(log_likelihood_1pl, argnums=(0, 1))),
        "autodiff of Bernoulli": jax.jit(jax.value_and_grad(autodiff, argnums=(0, 1))),
        "floor: three transcendentals": jax.jit(floor),
    }
    times = {name: seconds(program, theta, difficulty, responses) for name, program in programs.items()}
    print(f"{shape[0]:,} subjects × {shape[1]:,} items on {jax.devices()[0].device_kind}")
    for name, taken in times.items():
        print(f"{name:<30} {1e9 * taken / count:7.2f} ns a response {taken / times['kernel']:7.2f} × kernel")


if __name__ == "__main__":
    app.run(main)
