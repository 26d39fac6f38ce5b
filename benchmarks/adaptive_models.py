r"""How many items does an adaptive test save on a real benchmark? Each model is left out, tested, and compared.

  python -m benchmarks.adaptive_models --responses=mmlu_pro.npz --categories=mmlu_pro_categories.csv

Models are held out one at a time, or in --folds parts; the items are calibrated on the others (2PL). Then the held-out
models are tested by their recorded answers: adaptively, by random items, and by a fixed form of the items that are most
informative at the mean ability; all keep the shares of the categories. Prints the number of items until each standard
error, in units of a random test's, and the mean absolute error of the predicted share right over the whole bank (the
answers given, and the posterior probabilities of the others), in points, after several numbers of items. Expected
duration on 2 CPU cores for 28 models and 12,032 items: 10 minutes.
"""

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

import irtjax
from experiments.common import app
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.replay import Replayed, replay
from irtjax.evaluation.score_posterior import score_posterior
from irtjax.kernels.models import information
from irtjax.populations.normal import Population
from irtjax.responses.folds import folds_of
from irtjax.responses.matrix import MISSING
from irtjax.storage.tables import read_table

ERRORS = (0.3, 0.2, 0.1)
SIZES = (10, 20, 50, 100, 200)
WAYS = ("random", "fixed", "information", "variance", "score")

_RESPONSES = flags.DEFINE_string("responses", None, "file of scored responses", required=True)
_CATEGORIES = flags.DEFINE_string("categories", None, "CSV of item_id and category")
_FOLDS = flags.DEFINE_integer("folds", 0, "parts of the models; 0 for one at a time", lower_bound=0)
_SEED = flags.DEFINE_integer("seed", 0, "of the parts and of random tests", lower_bound=0, upper_bound=2**31 - 1)


def test_of(way: str, fit: irtjax.Fit, groups: np.ndarray | None, longest: int) -> AdaptiveTest:
    """One of the kinds of test, of a fixed number of items."""
    population = Population(*(float(np.squeeze(x)) for x in fit.population))
    items = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), fit.parameters)
    start, rule = None, way
    if way == "fixed":
        known = np.asarray(information(fit.parameters, np.array([[population.mean]])))[0]
        start, rule = in_turn(np.argsort(-known, kind="stable"), groups, longest), "information"
    return adaptive_test(
        items, rule=rule, population=population, stop=Stop(max_items=longest), groups=groups, start=start
    )


def in_turn(order: np.ndarray, groups: np.ndarray | None, number: int) -> np.ndarray:
    """The best items, the groups in turn by their shares."""
    if groups is None:
        return order[:number]
    place = np.empty(order.size)
    for group in np.unique(groups):
        own = order[groups[order] == group]
        place[own] = (np.arange(own.size) + 0.5) / own.size  # evenly over the test
    return np.argsort(place, kind="stable")[:number]


def predicted(fit: irtjax.Fit, run: Replayed, size: int) -> np.ndarray:
    """Share right over the bank, after so many items: posterior mean given the answers to these."""
    values = np.full((len(run.number), fit.responses.num_items), MISSING, np.int8)
    np.put_along_axis(values, np.asarray(run.items[:, :size]), run.answers[:, :size], axis=1)
    return score_posterior(fit, values).mean


def report(found: dict[str, list[Replayed]], scores: dict[str, list[np.ndarray]], truth: np.ndarray) -> None:
    """Prints the two tables."""
    whole = {way: jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts) for way, parts in found.items()}
    longest = whole["random"].items.shape[1]
    print(f"\n{'items until a standard error of':<34}" + "".join(f"{error:>24}" for error in ERRORS))
    first: dict[float, float] = {}
    for way, run in whole.items():
        cells = ""
        for error in ERRORS:
            reached = run.standard_error <= error
            number = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, np.inf)
            median = float(np.median(number))
            first.setdefault(error, median)
            ratio = f"× {median / first[error]:.2f}" if np.isfinite(median) and np.isfinite(first[error]) else ""
            shown = f"{median:,.0f}" if np.isfinite(median) else f"over {longest:,}"
            cells += f"{shown:>12}{ratio:>7}{np.isfinite(number).mean():5.0%}"
        print(f"{way:<34}{cells}")
    print("(median, in units of random, share of models that reached it)")
    sizes = [size for size in SIZES if size <= longest]
    print(f"\n{'error of the share right, points':<34}" + "".join(f"{size:>10,}" for size in sizes))
    for way, parts in scores.items():
        error = 100 * np.abs(np.concatenate(parts) - truth[:, None]).mean(axis=0)
        print(f"{way:<34}" + "".join(f"{one:10.2f}" for one in error))
    count = np.arange(1, longest + 1)
    raw = 100 * np.abs((whole["random"].answers == 1).cumsum(axis=1) / count - truth[:, None]).mean(axis=0)
    print(f"{'random, share right of the asked':<34}" + "".join(f"{raw[size - 1]:10.2f}" for size in sizes))


def main() -> None:
    """Calibrates without each part, tests it, and prints."""
    try:
        responses = irtjax.read_responses(_RESPONSES.value, sparse=False)
        groups = None
        if _CATEGORIES.value:
            table = read_table(_CATEGORIES.value, "item_id", text=True).set_index("item_id")
            groups = table.loc[responses.item_ids.astype(str), "category"].to_numpy(str)
    except InputError as error:
        sys.exit(f"error: {error}")
    longest = min(max(SIZES), responses.num_items)
    parts = _FOLDS.value or responses.num_subjects
    fold = folds_of(responses.num_subjects, parts, _SEED.value)
    found: dict[str, list[Replayed]] = {way: [] for way in WAYS}
    scores: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
    sizes = [size for size in SIZES if size <= longest]
    order = []
    for part in range(parts):
        held = np.flatnonzero(fold == part)
        order.append(held)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", irtjax.FitWarning)
            fit = irtjax.fit(responses.choose_subjects(fold != part))
        for way in WAYS:
            test = test_of(way, fit, groups, longest)
            run = replay(test, responses.values[held], jax.random.key(_SEED.value + part))
            found[way].append(run)
            scores[way].append(np.stack([predicted(fit, run, size) for size in sizes], axis=1))
        print(f"\r{part + 1} of {parts} parts", end="", file=sys.stderr, flush=True)
    values = responses.values[np.concatenate(order)]
    print(f"{responses}\n{parts} parts, 2PL, seed {_SEED.value}, jax {jax.__version__}")
    report(found, scores, (values == 1).sum(axis=1) / (values >= 0).sum(axis=1))


if __name__ == "__main__":
    app.run(main)
