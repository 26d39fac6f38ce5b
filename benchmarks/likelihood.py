r"""The likelihood kernels against automatic differentiation, and against what the machine could do at best.

  python -m benchmarks.likelihood --num_subjects=1000 --num_items=100000

Prints nanoseconds a response for value and gradients in the 1PL and the 2PL, and the memory that the programs need
beside their arguments. References, measured in the same run: automatic differentiation of the log-probability of a
Bernoulli distribution; one copy of the matrix; three transcendentals a response. Expected duration: a minute.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from absl import flags

from experiments.common import app
from irtjax.kernels.likelihood import log_likelihood_1pl, log_likelihood_2pl

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=1)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 10_000, "I", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 10, "runs, of which the fastest counts", lower_bound=1)
_AUTODIFF = flags.DEFINE_bool("autodiff", True, "run that reference too; it needs 12 bytes or more a response")


def seconds(function: Callable, *arguments: jax.Array) -> float:
    """Fastest of several runs, after one that compiles."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(_REPEATS.value):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)


def plain_1pl(theta: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """The likelihood as one would write it without a kernel."""
    logits = theta[:, None] - difficulty[None, :]
    return dist.Bernoulli(logits=logits).log_prob(responses.astype(jnp.float32)).sum()


def plain_2pl(theta: jax.Array, slope: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """Likewise with discriminations."""
    logits = slope[None, :] * (theta[:, None] - difficulty[None, :])
    return dist.Bernoulli(logits=logits).log_prob(responses.astype(jnp.float32)).sum()


def transcendentals(theta: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """One read of the matrix and three transcendentals a response, summed: no likelihood."""
    x = theta[:, None] - difficulty[None, :] + responses.astype(jnp.float32)
    return (jnp.exp(x) + jnp.log(x * x + 1) + jnp.tanh(x)).sum()


def main() -> None:
    """Measures and prints."""
    rng = np.random.default_rng(0)
    shape = (_NUM_SUBJECTS.value, _NUM_ITEMS.value)
    theta, difficulty = (jnp.asarray(rng.normal(0, 1.5, size), jnp.float32) for size in shape)
    slope = jnp.asarray(rng.lognormal(0, 0.3, shape[1]), jnp.float32)
    responses = jnp.asarray(rng.integers(0, 2, shape, np.int8))
    one, two = (theta, difficulty, responses), (theta, slope, difficulty, responses)

    def with_gradients(function: Callable, parameters: int) -> jax.stages.Wrapped:
        return jax.jit(jax.value_and_grad(function, argnums=tuple(range(parameters))))

    programs: dict[str, tuple[jax.stages.Wrapped, tuple[jax.Array, ...]]] = {
        "1PL kernel": (with_gradients(log_likelihood_1pl, 2), one),
        "2PL kernel": (with_gradients(log_likelihood_2pl, 3), two),
        "2PL kernel, gradients only": (jax.jit(jax.grad(log_likelihood_2pl, argnums=(0, 1, 2))), two),
    }
    if _AUTODIFF.value:
        programs["1PL, autodiff of Bernoulli"] = (with_gradients(plain_1pl, 2), one)
        programs["2PL, autodiff of Bernoulli"] = (with_gradients(plain_2pl, 3), two)
    programs["one copy of the matrix"] = (jax.jit(lambda y: 1 - y), (responses,))
    programs["three transcendentals"] = (jax.jit(transcendentals), one)

    times = {name: seconds(program, *arguments) for name, (program, arguments) in programs.items()}
    print(f"{shape[0]:,} subjects × {shape[1]:,} items on {jax.devices()[0].device_kind}, jax {jax.__version__}")
    print(f"{'':<28}{'ns a response':>14}{'× 2PL kernel':>14}{'MB beside the matrix':>22}")
    for name, (program, arguments) in programs.items():
        memory = program.lower(*arguments).compile().memory_analysis()
        extra = "?" if memory is None else f"{(memory.temp_size_in_bytes + memory.output_size_in_bytes) / 1e6:,.1f}"
        taken = times[name]
        print(f"{name:<28}{1e9 * taken / responses.size:>14.2f}{taken / times['2PL kernel']:>14.2f}{extra:>22}")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
