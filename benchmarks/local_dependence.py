r"""How often are pairs of independent items called dependent, and how often are dependent ones?

  python -m benchmarks.local_dependence

Simulates 2PL tests without local dependence, of abilities that are normally distributed, skewed or of two kinds of
subjects, and with sparse, hard items; fits them, and tests all pairs as `experiments.build_scale` does. Prints in how
many tests any pair is flagged after Holm's adjustment, which should be at most 5%, by the exact test of X² alone, by Q3
alone, and by both. Then the same with one pair planted, of which some subjects copy the answer to the first item to the
second, and in how many tests it is found. Expected duration on 2 CPU cores: 15 minutes.
"""

import warnings

import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit
from scipy.stats import binomtest

import irtjax
from experiments.common import app
from irtjax import ResponseMatrix
from irtjax.kernels.quadrature import of_test
from irtjax.scale.dependence import pair_dependence
from irtjax.scale.item_tests import RightWrong
from irtjax.scale.multiple_tests import holm

_TESTS = flags.DEFINE_integer(
    "tests", 100, "simulated tests of each row; a tenth of it from 1,000 × 200", lower_bound=1
)
LEVEL = 0.05
NULL = (
    (20, 100, "normal"), (100, 40, "hard items"), (300, 30, "normal"), (1000, 30, "normal"), (1000, 30, "skewed"),
    (1000, 30, "two kinds"), (2000, 100, "two kinds"), (5000, 500, "normal"),
)  # fmt: skip
PLANTED = ((100, 30, 0.5), (300, 30, 0.3), (1000, 30, 0.15), (1000, 30, 0.3), (1000, 100, 0.3))
LARGE = 2000 * 100


def simulate(seed: int, num_subjects: int, num_items: int, population: str, copied: float) -> ResponseMatrix:
    """Responses, without items that all subjects answered alike."""
    rng = np.random.default_rng(seed)
    theta = {
        "skewed": lambda: (rng.chisquare(2, num_subjects) - 2) / 2,
        "two kinds": lambda: np.where(rng.random(num_subjects) < 0.3, -1.5, 0.65) + rng.normal(0, 0.4, num_subjects),
    }.get(population, lambda: rng.normal(size=num_subjects))()
    slope, difficulty = rng.lognormal(0.1, 0.3, num_items), rng.normal(size=num_items)
    if population == "hard items":
        difficulty = rng.uniform(2.0, 4.0, num_items)
    values = (rng.random((num_subjects, num_items)) < expit(slope * (theta[:, None] - difficulty))).astype(np.int8)
    copies = rng.random(num_subjects) < copied
    values[copies, 1] = values[copies, 0]
    varied = values.min(axis=0) != values.max(axis=0)
    ids = np.array([f"i{k}" for k in range(num_items)])[varied]
    return ResponseMatrix(values[:, varied], [f"s{j}" for j in range(num_subjects)], ids)


def flagged(responses: ResponseMatrix) -> dict[str, pd.DataFrame]:
    """The pairs that each way calls dependent, by id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irtjax.FitWarning)
        fit = irtjax.fit(responses, "2pl")
    exact = pair_dependence(responses.values, fit.parameters, of_test(responses.num_items))
    ids = responses.item_ids
    exact = exact.assign(
        first=ids[exact["first"]], second=ids[exact["second"]], p_holm=holm(exact["p_value"].to_numpy())
    )
    tables = {"X²": exact, "Q3": irtjax.local_dependence(fit), "both": RightWrong().pairs(fit)}
    return {name: table[table["p_holm"] < LEVEL] for name, table in tables.items()}


def row(num_subjects: int, num_items: int, population: str, copied: float) -> dict[str, object]:
    """Shares of tests in which others than the planted pair are flagged, and in which that is."""
    number = max(1, _TESTS.value // (10 if num_subjects * num_items >= LARGE else 1))
    false, found = (dict.fromkeys(("X²", "Q3", "both"), 0) for _ in range(2))
    for seed in range(number):
        for name, pairs in flagged(simulate(seed, num_subjects, num_items, population, copied)).items():
            planted = pairs["first"].isin(["i0", "i1"]) & pairs["second"].isin(["i0", "i1"]) & (copied > 0)
            false[name] += bool((~planted).any())
            found[name] += bool(planted.any())
    interval = binomtest(false["both"], number).proportion_ci()
    return {
        "subjects": num_subjects, "items": num_items, "abilities": population, "copied": copied, "tests": number,
        **{f"false, {name}": f"{count / number:.0%}" for name, count in false.items()},
        "95% interval": f"{interval.low:.0%} to {interval.high:.0%}",
        **({f"found, {name}": f"{count / number:.0%}" for name, count in found.items()} if copied else {}),
    }  # fmt: skip


def main() -> None:
    """Prints both tables."""
    for title, cases in (
        ("No dependence", [(*case, 0.0) for case in NULL]),
        ("One pair planted", [(subjects, items, "normal", copied) for subjects, items, copied in PLANTED]),
    ):
        print(f"\n{title}", flush=True)
        for at, case in enumerate(cases):
            table = pd.DataFrame([row(*case)])
            print(table.to_csv(index=False, header=at == 0, sep="|").strip(), flush=True)


if __name__ == "__main__":
    app.run(main)
