r"""Does building a scale find bad items and leave good ones alone, and how long does it take on a long test?

  python -m benchmarks.scale

Simulates 2PL tests of 1,000 subjects with planted bad items: flat items, items whose curve turns down again, and pairs
that depend on each other, of which one must go. Prints how many were found and how many good items were removed. Then
runs the whole procedure on 1,000 subjects and 300 items. Expected duration on 2 CPU cores: six minutes.
"""

import time
from collections import Counter

import numpy as np
from absl import flags

from experiments.common import app
from irtjax import ResponseMatrix
from irtjax.scale.elimination import eliminate
from irtjax.scale.procedure import build_scale

_SEEDS = flags.DEFINE_integer("seeds", 20, "number of simulated tests", lower_bound=0)
_ITEMS = flags.DEFINE_integer("items", 80, "items of each simulated test, 5% of them bad", lower_bound=40)
_LONG = flags.DEFINE_integer("long", 300, "items of the test that is timed; 0 for none")
SUBJECTS = 1000


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def simulate(seed: int, num_items: int) -> tuple[ResponseMatrix, dict[str, list[set[str]]]]:
    """Responses, and by kind the bad items: sets of ids, of each of which at least one should be removed."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(SUBJECTS, 1))
    slope, difficulty = rng.lognormal(0.2, 0.25, num_items), rng.normal(0, 1, num_items)
    p = sigmoid(slope * (theta - difficulty))
    num_bad = round(0.05 * num_items)
    chosen = rng.choice(num_items, num_bad + num_bad // 3, replace=False)
    kinds: dict[str, list[set[str]]] = {"flat": [], "not monotone": [], "dependent": []}
    at = 0
    for number in range(num_bad):
        kind = list(kinds)[number % 3]
        item = chosen[at]
        at += 1
        kinds[kind].append({f"i{item:03d}"})
        if kind == "flat":
            p[:, item] = sigmoid(0.2 * theta[:, 0] + rng.normal(0, 0.5))
        elif kind == "not monotone":  # as if the key were wrong for those who know more
            p[:, item] = 0.25 + 0.6 * np.exp(-((theta[:, 0] - 0.3) ** 2) / 0.8)
        else:
            kinds[kind][-1].add(f"i{chosen[at]:03d}")
            at += 1
    values = (rng.random(p.shape) < p).astype(np.int8)
    for pair in kinds["dependent"]:  # seven of ten subjects copy their answer to the first item
        first, second = (int(item[1:]) for item in sorted(pair))
        copied = rng.random(SUBJECTS) < 0.7
        values[copied, second] = values[copied, first]
    ids = [f"i{i:03d}" for i in range(num_items)]
    return ResponseMatrix(values, [f"s{j}" for j in range(SUBJECTS)], ids), kinds


def main() -> None:
    """Runs both."""
    if _SEEDS.value:
        find_planted(_SEEDS.value, _ITEMS.value)
    if _LONG.value:
        time_procedure(_LONG.value)


def find_planted(num_tests: int, num_items: int) -> None:
    """Prints how many of the planted items are found, and how many good ones removed."""
    found: Counter[str] = Counter()
    planted: Counter[str] = Counter()
    false = good = 0
    for seed in range(num_tests):
        responses, kinds = simulate(seed, num_items)
        removed = set(eliminate(responses).removals["item_id"])
        bad = set().union(*(item for items in kinds.values() for item in items))
        for kind, items in kinds.items():
            planted[kind] += len(items)
            found[kind] += sum(bool(item & removed) for item in items)
        false += len(removed - bad)
        good += len(set(responses.item_ids.tolist()) - bad)
        print(f"seed {seed}: removed {len(removed)}, of them good {len(removed - bad)}", flush=True)
    print("found:", ", ".join(f"{kind} {found[kind]} of {planted[kind]}" for kind in planted))
    recall = found.total() / planted.total()
    print(f"recall {recall:.1%}; good items removed {false / good:.2%} ({false} of {good})")


def time_procedure(num_items: int) -> None:
    """Prints when each step of the whole procedure begins, and how long it takes in all."""
    responses, _ = simulate(0, num_items)
    began = time.perf_counter()

    def on_step(step: str) -> None:
        if not step.startswith("guessing,"):
            print(f"  {time.perf_counter() - began:6.1f} s  {step}", flush=True)

    build_scale(responses, on_step=on_step)
    print(f"whole procedure, {SUBJECTS:,} × {num_items}: {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
