r"""Whole fits at crowd scale, in units of one pass of the likelihood kernel over the same matrix.

  python -m benchmarks.crowd_scale --num_subjects=1000 --num_items=550000
  python -m benchmarks.crowd_scale --num_subjects=11785 --num_items=36259
  python -m benchmarks.crowd_scale --num_subjects=1000 --num_items=550000 --model=1pl --estimator=svi

Simulates answers, fits them twice (the first fit compiles), and prints time, peak memory over that of the int8 matrix,
and how far abilities and difficulties are from the truth, in standard errors. Expected duration on 2 CPU cores: one
to two minutes for MML at either size, a minute and a half for each fit by SVI.
"""

import resource
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags
from scipy.special import expit
from tqdm import tqdm

import irtjax
from experiments.common import app
from irtjax.kernels.likelihood import log_likelihood_2pl

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 550_000, "I", lower_bound=2)
_MODEL = flags.DEFINE_enum("model", "2pl", ["1pl", "2pl"], "item response model")
_ESTIMATOR = flags.DEFINE_enum("estimator", "mml", irtjax.fitting.ESTIMATORS, "estimator")
_FITS = flags.DEFINE_integer("fits", 2, "fits; the first compiles", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
_BLOCK = 2**20  # responses drawn at once: the peak of memory is to be that of the fit


def simulate() -> tuple[irtjax.ResponseMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """Responses, and the abilities, discriminations and difficulties that they were drawn from."""
    num_subjects, num_items = _NUM_SUBJECTS.value, _NUM_ITEMS.value
    rng = np.random.default_rng(_SEED.value)
    theta, b = (rng.standard_normal(size, np.float32) for size in (num_subjects, num_items))
    a = np.exp(0.3 * rng.standard_normal(num_items, np.float32)) if _MODEL.value == "2pl" else np.ones_like(b)
    values = np.empty((num_subjects, num_items), np.int8)
    block = max(1, _BLOCK // num_subjects)
    for at in tqdm(range(0, num_items, block), "answers", disable=not sys.stderr.isatty()):
        part = slice(at, at + block)
        p = expit(a[part] * (theta[:, None] - b[part]))
        values[:, part] = rng.random(p.shape, np.float32) < p
    ids = (np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in (("s", num_subjects), ("i", num_items)))
    return irtjax.ResponseMatrix(values, *ids), theta, a, b


def peak_bytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Measures and prints."""
    jax.block_until_ready(jnp.zeros(1))
    before = peak_bytes()
    responses, theta, a, b = simulate()
    size = responses.values.nbytes
    options: dict[str, Any] = {"extremes": "keep"} if _ESTIMATOR.value == "mml" else {}
    times, peaks = [], []
    fit: irtjax.Fit | None = None
    for number in range(_FITS.value):
        with tqdm(desc=f"fit {number + 1}", disable=not sys.stderr.isatty()) as bar:
            report: dict[str, Any] = {
                "on_iteration" if _ESTIMATOR.value == "mml" else "on_chunk": lambda *_: bar.update()
            }
            began = time.perf_counter()
            fit = None  # the memory of one fit is measured, not that of two
            fit = irtjax.fit(responses, _MODEL.value, _ESTIMATOR.value, **options, **report)
        times.append(time.perf_counter() - began)
        peaks.append(peak_bytes())
    assert fit is not None

    kernel = jax.jit(jax.value_and_grad(log_likelihood_2pl, argnums=(0, 1, 2)))
    arguments = [jnp.asarray(x, jnp.float32) for x in (theta, a, b)] + [jnp.asarray(responses.values)]
    jax.block_until_ready(kernel(*arguments))
    began = time.perf_counter()
    jax.block_until_ready(kernel(*arguments))
    kernel_pass = time.perf_counter() - began

    print(
        f"{_MODEL.value} by {_ESTIMATOR.value}, {responses.num_subjects:,} × {responses.num_items:,} on "
        f"{jax.devices()[0].device_kind}, jax {jax.__version__}: {fit.iterations} iterations, "
        f"{'converged' if fit.converged else 'not converged'}"
    )
    for number, taken in enumerate(times):
        print(f"fit {number + 1}: {taken:8.1f} s = {taken / kernel_pass:7.1f} passes of value and gradients")
    print(
        f"peak memory {peaks[0] / 1e6:,.0f} MB = {peaks[0] / size:.2f} × the int8 matrix; "
        f"without the {before / 1e6:,.0f} MB of Python and JAX {(peaks[0] - before) / size:.2f} ×"
    )
    mean, sd = theta.mean(), theta.std() if _MODEL.value == "2pl" else 1.0
    for name, error, se in (
        ("ability", fit.ability - (theta - mean) / sd, fit.ability_se),
        ("difficulty", fit.difficulty - (b - mean) / sd, fit.difficulty_se),
    ):
        z = error / se
        print(
            f"{name}: within 1.96 standard errors {100 * np.mean(np.abs(z) < 1.96):.1f}%, median error "
            f"{np.median(np.abs(error)):.4f}, median standard error {np.median(se):.4f}"
        )


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
