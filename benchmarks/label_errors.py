r"""Are wrong labels found that are wrong as people are? By difficulty, by evidence, and by cleanlab.

  python -m benchmarks.label_errors --data_dir=DIR --counts=cifar10h.npz

Plants wrong labels in the 10,000 test images of CIFAR-10: which ones, and the class they get, is drawn from the counts
of CIFAR-10H, whose annotators missed an image's label with that probability and chose that class. Networks of one
hidden layer on random-patch features (Coates and Ng 2011) are trained on these labels, those of the crowd by
cross-validation, so that each predicts every image without having seen it; and one more on all, whose checkpoints
predict what it was trained on. `--seeds` draws, each with other wrong labels, patches, weights and folds. Prints, for
each share of wrong labels, the AUC of each score and its precision among as many as are wrong, and among the first 20
and 100: means over the draws, with 95% intervals by Student's t; and how far each score is from mean confidence, draw
by draw. cleanlab is installed into an environment of its own; it sees the same predictions. Expected duration on 2 CPU
cores: one to two minutes for each draw.
"""

import functools
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from absl import flags
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

import irtjax
from benchmarks.contestants import interpreter, run, say
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax import InputError, tasks
from irtjax.types import AnyArray, Float, Int

_DATA = define_path("data_dir", "folder of prepared data sets", required=True)
_COUNTS = define_path(
    "counts", "NPZ file of CIFAR-10H: counts (10000, 10), in the order of the test images", required=True
)
_SHARES = flags.DEFINE_list("shares", ["0.05", "0.1", "0.2"], "of the labels that are wrong")
_MODELS = flags.DEFINE_integer("models", 8, "networks of the crowd", lower_bound=2)
_EPOCHS = flags.DEFINE_integer("epochs", 8, "of each training", lower_bound=2)
_SEED = flags.DEFINE_integer("seed", 0, "the first of the draws of wrong labels, weights and folds", lower_bound=0)
_SEEDS = flags.DEFINE_integer("seeds", 5, "draws", lower_bound=2)
_ENVIRONMENT = flags.DEFINE_string("environment", ".label_errors", "folder of cleanlab's virtual environment")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make that environment with")

REQUIREMENT = "cleanlab==2.9.0"
FOLDS, BATCH, RATE, HIDDEN = 4, 200, 3e-3, 64
PATCHES, SIDE, REGULARISER = 100, 6, 0.1  # random patches, their side, and what is added to variances that divide
FIRST = (20, 100)
BESIDE = {"crowd": "crowd: mean confidence (suspects)", "checkpoints": "checkpoints: mean confidence (suspects)"}


def features(images: AnyArray, key: jax.Array) -> Float[jax.Array, "N F"]:
    """Rectified responses to whitened random patches, both signs, summed over quadrants of an image; standardised."""
    rng, values = np.random.default_rng(np.asarray(jax.random.key_data(key))), np.asarray(images, np.float32) / 255
    at = rng.integers(0, 32 - SIDE, (20_000, 2))
    some = np.stack([values[rng.integers(len(values)), y : y + SIDE, x : x + SIDE].reshape(-1) for y, x in at])
    some = (some - some.mean(1, keepdims=True)) / np.sqrt(some.var(1, keepdims=True) + 10 / 255**2)
    variances, axes = np.linalg.eigh(np.cov(some, rowvar=False))
    whiten = (axes / np.sqrt(variances + REGULARISER)) @ axes.T
    chosen = (some[:PATCHES] - some.mean(0)) @ whiten
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    filters = jnp.asarray((chosen @ whiten.T).reshape(PATCHES, SIDE, SIDE, 3).transpose(1, 2, 3, 0), jnp.float32)
    ones = jnp.ones((SIDE, SIDE, 3, 1), jnp.float32) / (SIDE * SIDE * 3)
    conv = functools.partial(
        jax.lax.conv_general_dilated, window_strides=(1, 1), padding="VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )

    @jax.jit
    def of_block(block: jax.Array) -> jax.Array:
        mean = conv(block, ones)
        spread = jnp.sqrt(jnp.maximum(conv(block**2, ones) - mean**2, 0) + 10 / 255**2)
        found = (conv(block, filters) - mean * filters.sum((0, 1, 2))) / spread
        both = jnp.concatenate([jax.nn.relu(found - 0.5), jax.nn.relu(-found - 0.5)], axis=3)
        half = both.shape[1] // 2
        parts = [
            both[:, y, x].sum((1, 2))
            for y in (slice(half), slice(half, None))
            for x in (slice(half), slice(half, None))
        ]
        return jnp.concatenate(parts, axis=1)

    whole = jnp.concatenate([of_block(jnp.asarray(block)) for block in np.array_split(values, len(values) // 100)])
    return (whole - whole.mean(0)) / (whole.std(0) + 1e-3)


def initial(key: jax.Array, inputs: int, classes: int) -> tuple[jax.Array, ...]:
    """Weights of one hidden layer; the number of inputs that a network reads is random, so that some are better."""
    first, second, used, number = jax.random.split(key, 4)
    share = jax.random.uniform(number, minval=0.1, maxval=1.0)
    mask = (jax.random.uniform(used, (inputs, 1)) < share).astype(jnp.float32)
    weights = mask * jax.random.normal(first, (inputs, HIDDEN)) * jnp.sqrt(2 / (share * inputs))
    return mask, weights, jnp.zeros(HIDDEN), jax.random.normal(second, (HIDDEN, classes)) / 8, jnp.zeros(classes)


def logits(parameters: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
    """Of a network."""
    mask, first, bias, second, end = parameters
    return jax.nn.relu(x @ (mask * first) + bias) @ second + end


@functools.partial(jax.jit, static_argnames=("classes", "epochs", "every"))
def trained(
    key: jax.Array, x: jax.Array, labels: jax.Array, order: Int[jax.Array, " K"], classes: int, epochs: int, every: bool
) -> jax.Array:
    """Probabilities (N, C) of all examples, or (E, N, C) after each epoch, of a network trained on those in `order`."""
    optimizer = optax.adam(RATE)
    parameters = initial(key, x.shape[1], classes)

    def loss(parameters: Any, at: jax.Array) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits(parameters, x[at]), labels[at]).mean()

    def step(carry: Any, at: jax.Array) -> tuple[Any, None]:
        parameters, state = carry
        updates, state = optimizer.update(jax.grad(loss)(parameters, at), state)
        return (optax.apply_updates(parameters, updates), state), None

    def epoch(carry: Any, number: jax.Array) -> tuple[Any, Any]:
        shuffled = jax.random.permutation(jax.random.fold_in(key, number), order)
        carry, _ = jax.lax.scan(step, carry, shuffled[: order.size // BATCH * BATCH].reshape(-1, BATCH))
        return carry, jax.nn.softmax(logits(carry[0], x)) if every else None

    (parameters, _), found = jax.lax.scan(epoch, (parameters, optimizer.init(parameters)), jnp.arange(epochs))
    return found if every else jax.nn.softmax(logits(parameters, x))


def out_of_sample(x: jax.Array, labels: jax.Array, classes: int, key: jax.Array) -> Float[np.ndarray, "M N C"]:
    """Probabilities by networks that were not trained on the example; each has folds of its own."""
    number, found = len(labels), []
    for member in range(_MODELS.value):
        own = jax.random.fold_in(key, member)
        folds = np.asarray(jax.random.permutation(own, number)).reshape(FOLDS, -1)
        probabilities = np.empty((number, classes), np.float32)
        for fold in range(FOLDS):
            order = jnp.asarray(np.delete(folds, fold, axis=0).reshape(-1))
            of_all = trained(own, x, labels, order, classes, _EPOCHS.value, False)
            probabilities[folds[fold]] = np.asarray(of_all)[folds[fold]]
        found.append(probabilities)
    return np.stack(found)


def plant(
    labels: Int[np.ndarray, " N"], counts: Int[np.ndarray, "N C"], share: float, rng: np.random.Generator
) -> Int[np.ndarray, " N"]:
    """Labels of which a share is wrong, as people are: an image with the probability that they missed it."""
    others = counts.astype(float)
    others[np.arange(len(labels)), labels] = 0
    missed = others.sum(axis=1) / counts.sum(axis=1)
    chosen = rng.choice(len(labels), round(share * len(labels)), replace=False, p=missed / missed.sum())
    wrong = labels.copy()
    wrong[chosen] = [rng.choice(counts.shape[1], p=others[at] / others[at].sum()) for at in chosen]
    return wrong


def of_cleanlab(probabilities: Float[np.ndarray, "M N C"], labels: Int[np.ndarray, " N"]) -> dict[str, np.ndarray]:
    """Its scores, high for a wrong label."""
    python = interpreter("cleanlab", REQUIREMENT, _ENVIRONMENT.value, _PYTHON.value)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.npz")
        np.savez(data, probabilities=probabilities, labels=labels)
        result = run("cleanlab", python, {"data": str(data)})
    if "error" in result:
        raise InputError(f"cleanlab: {result['error']}")
    return {f"cleanlab, {one['label']}": -np.asarray(one["scores"]) for one in result["runs"]}


def measures(score: Float[np.ndarray, " N"], wrong: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """AUC, and precision at k and at `FIRST`, ties in any order."""
    order = np.lexsort([rng.random(score.size), -score])
    finite = np.nan_to_num(score, posinf=1e9)
    return {
        "AUC": roc_auc_score(wrong, finite),
        "precision at k": wrong[order[: wrong.sum()]].mean(),
        **{f"precision at {first}": wrong[order[:first]].mean() for first in FIRST},
    }


def scores_of(x: jax.Array, labels: Int[np.ndarray, " N"], classes: int, key: jax.Array) -> dict[str, np.ndarray]:
    """All scores, high for a wrong label."""
    crowd = out_of_sample(x, jnp.asarray(labels), classes, key)
    say(f"share of the labels that the crowd predicts {np.mean(crowd.argmax(2) == labels):.3f}")
    table = irtjax.difficulty(crowd, labels).table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irtjax.FitWarning)
        steep = irtjax.difficulty(crowd, labels, model="2pl").table
    found = {
        "crowd: probability of the label": -table.label_probability,
        "crowd: evidence": table.evidence,
        "crowd: evidence, 2pl": steep.evidence,
        "crowd: difficulty": table.difficulty,
        "crowd: difficulty, 2pl": steep.difficulty,
        "crowd: mean confidence (suspects)": -table.mean_confidence,
    } | of_cleanlab(crowd, labels)
    every = jnp.arange(len(labels))
    checkpoints = np.asarray(trained(key, x, jnp.asarray(labels), every, classes, _EPOCHS.value, True))
    say(f"share of the labels that the last checkpoint knows {np.mean(checkpoints[-1].argmax(1) == labels):.3f}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irtjax.FitWarning)
        table = irtjax.difficulty(checkpoints, labels, in_order=True).table
    found |= {
        "checkpoints: evidence": table.evidence,
        "checkpoints: difficulty": table.difficulty,
        "checkpoints: mean confidence (suspects)": -table.mean_confidence,
        "checkpoints: variability": table.variability,
        "checkpoints: forgetting events": table.forgetting_events,
    }
    return {name: np.asarray(score, float) for name, score in found.items()}


def of_seed(
    images: AnyArray, labels: Int[np.ndarray, " N"], counts: Int[np.ndarray, "N C"], seed: int
) -> list[dict[str, Any]]:
    """The measures of all scores, at each share of wrong labels, of one draw."""
    key, rows = jax.random.key(seed), []
    x = features(images, key)
    for share in map(float, _SHARES.value):
        rng = np.random.default_rng((seed, round(1000 * share)))
        shown = plant(labels, counts, share, rng)
        wrong = shown != labels
        for name, score in scores_of(x, shown, counts.shape[1], key).items():
            rows.append({"score": name, "wrong": f"{wrong.mean():.0%}", "seed": seed, **measures(score, wrong, rng)})
        say(f"seed {seed}, {share:.0%} done")
    return rows


def intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds with the half-widths of their 95% intervals, as text: scores × (measure, share)."""
    groups = table.groupby(["score", "wrong"], sort=False)
    half = groups.sem() * student.ppf(0.975, groups.size().iloc[0] - 1)
    shown = groups.mean().map("{:.3f}".format) + half.map(" ± {:.3f}".format)
    wide = shown.unstack("wrong").reindex(dict.fromkeys(table["score"]))
    return wide.reindex(columns=list(dict.fromkeys(table["wrong"])), level="wrong")


def main() -> None:
    """Plants, trains, scores, prints."""
    task = tasks.load("cifar10", data_dir=_DATA.value)
    with np.load(_COUNTS.value) as arrays:
        counts = arrays["counts"]
    labels, classes = np.asarray(task.test.labels), len(task.classes)
    if counts.shape != (len(labels), classes):
        raise InputError(f"{_COUNTS.value}: counts {counts.shape}, expected {(len(labels), classes)}")
    rows = []
    for seed in range(_SEED.value, _SEED.value + _SEEDS.value):
        rows += of_seed(np.asarray(task.test.inputs), labels, counts, seed)
    table = pd.DataFrame(rows)
    print(intervals(table.drop(columns="seed")).to_string())
    values = table.set_index(["score", "wrong", "seed"]).unstack(["wrong", "seed"])
    values = values.reindex(list(dict.fromkeys(table["score"])))
    beside = [BESIDE.get(name.split(":")[0], BESIDE["crowd"]) for name in values.index]  # cleanlab sees the crowd
    apart = values - values.loc[beside].to_numpy()
    apart = apart.stack(["wrong", "seed"], future_stack=True).reset_index().drop(columns="seed")
    print("\nApart from mean confidence, draw by draw:")
    print(intervals(apart[~apart["score"].isin(BESIDE.values())]).to_string())


if __name__ == "__main__":
    app.run(main)
