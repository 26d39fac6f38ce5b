r"""A step of variational inference over single answers, against what the machine could do at best.

  python -m benchmarks.sparse_svi --num_subjects=200000 --num_items=5000 --answers=56

Prints nanoseconds an answer for the gradients of the likelihood in the 1PL and the 2PL; a step of a fit takes two of
them, at draws that are mirror images. References, measured in the same run: automatic differentiation; gathers and
segment sums answer by answer; and the limit, one read of all codes with one gather for each. Then the bytes of codes.
`benchmarks.sparse` has whole fits. Expected duration: a minute.
"""

import timeit
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from benchmarks.sparse_data import simulate
from experiments.common import app
from irtjax.kernels.answers import Answers, Rows, value_and_sums
from irtjax.svi.answers import dealt

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 100_000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 2000, "I", lower_bound=2)
_ANSWERS = flags.DEFINE_integer("answers", 50, "of each subject", lower_bound=1)


def one_pl(theta: jax.Array, a: jax.Array, b: jax.Array, answers: Answers) -> tuple[jax.Array, ...]:
    """Gradients in abilities and difficulties of the 1PL."""
    del a
    return value_and_sums(theta, None, -b, answers)[1:]


def two_pl(theta: jax.Array, a: jax.Array, b: jax.Array, answers: Answers) -> tuple[jax.Array, ...]:
    """The sums that the gradients of the 2PL are made of."""
    return value_and_sums(theta, a, -a * b, answers)[1:]


def by_answer(
    theta: jax.Array, b: jax.Array, subjects: jax.Array, items: jax.Array, right: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gradients of the 1PL as segment sums of single answers, which lie in the order of subjects."""
    residual = right - jax.nn.sigmoid(theta[subjects] - b[items])
    by_subject = jax.ops.segment_sum(residual, subjects, len(theta), indices_are_sorted=True)
    return by_subject, -jax.ops.segment_sum(residual, items, len(b))


def autodiff(
    theta: jax.Array, b: jax.Array, subjects: jax.Array, items: jax.Array, right: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The same as one would write it without a kernel."""

    def log_likelihood(theta: jax.Array, b: jax.Array) -> jax.Array:
        logit = theta[subjects] - b[items]
        return (right * logit - jax.nn.softplus(logit)).sum()

    return jax.grad(log_likelihood, (0, 1))(theta, b)


def gathers(theta: jax.Array, b: jax.Array, answers: Answers) -> tuple[jax.Array, jax.Array]:
    """One read of all codes and a gather for each, summed: no likelihood."""

    def of(other: jax.Array, rows: Rows) -> jax.Array:
        ones = jnp.ones(rows.codes.shape[-1], jnp.float32)
        return jax.lax.map(lambda codes: other.at[codes >> 2].get(mode="promise_in_bounds") @ ones, rows.codes)

    return of(b, answers.by_subject), of(theta, answers.by_item)


def seconds(function: Callable, *arguments: object) -> float:
    """Fastest of several runs, after one that compiles."""
    jax.block_until_ready(function(*arguments))
    return min(timeit.repeat(lambda: jax.block_until_ready(function(*arguments)), number=1, repeat=10))


def main() -> None:
    """Measures and prints."""
    simulated = simulate(_NUM_SUBJECTS.value, _NUM_ITEMS.value, _ANSWERS.value, "random")
    responses = simulated.responses
    theta, a, b = (jnp.asarray(x, jnp.float32) for x in simulated[1:])
    answers = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), dealt(responses).answers)
    single = tuple(map(jnp.asarray, (responses.subjects, responses.items, np.asarray(responses.answers, np.float32))))
    programs: dict[str, tuple[Callable, tuple]] = {
        "1PL": (one_pl, (theta, a, b, answers)),
        "2PL": (two_pl, (theta, a, b, answers)),
        "1PL, segment sums by answer": (by_answer, (theta, b, *single)),
        "1PL, autodiff": (autodiff, (theta, b, *single)),
        "limit: reads and gathers": (gathers, (theta, b, answers)),
    }
    times = {name: seconds(jax.jit(program), *arguments) for name, (program, arguments) in programs.items()}
    number = responses.num_answers
    print(f"{responses}: {number:,} answers; {jax.devices()[0].device_kind}, jax {jax.__version__}")
    print(f"{'':<30}{'ns an answer':>14}{'× limit':>10}")
    for name, taken in times.items():
        print(f"{name:<30}{1e9 * taken / number:>14.2f}{taken / times['limit: reads and gathers']:>10.2f}")
    size = sum(side.codes.nbytes + side.keys.nbytes for side in answers)
    widths = [side.codes.shape[-1] for side in answers]
    print(
        f"{size / number:.1f} bytes an answer are read, in rows of {widths[0]} by subject and of {widths[1]} by item: "
        f"{size / times['1PL'] / 1e9:.1f} GB/s"
    )


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
