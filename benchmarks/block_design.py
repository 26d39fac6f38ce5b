r"""What does a block design lose against a complete one, and which differences do small groups show? By simulation.

  python -m benchmarks.block_design

Blocks: `--items` items of three choices in three blocks, `--people` for each pair of blocks. The same people answer all
items (complete), or two of three blocks. Prints, for guessing held at 1/3 and not held (2PL), errors of difficulties,
slopes and abilities against the truth, and how often tests of fit reject, over `--seeds` samples; then which of four
faulty items elimination finds, and how many good ones it removes.

Groups: a baseline of 41 people and treatments of 29 and 27 that are 0.2 and 0.54 logits more able answer a short form
of 14 items; the share of `--replications` samples in which Welch's test finds them (power), by raw scores and by
abilities.
Expected duration on 2 CPU cores: two minutes.
"""

import warnings

import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit
from scipy.stats import ttest_ind
from tqdm import tqdm

import irtjax
from experiments.common import app
from experiments.reports import markdown
from irtjax import FitWarning, ResponseMatrix
from irtjax.kernels.quadrature import of_test
from irtjax.scale.elimination import eliminate
from irtjax.scale.item_fit import item_fit
from irtjax.scale.overall_fit import overall_fit

_ITEMS = flags.DEFINE_integer("items", 83, "items of the block design", lower_bound=9)
_PEOPLE = flags.DEFINE_integer("people", 250, "people for each pair of blocks", lower_bound=30)
_SEEDS = flags.DEFINE_integer("seeds", 20, "samples of people", lower_bound=2)
_SCALES = flags.DEFINE_integer("scales", 5, "samples that a scale is built from", lower_bound=1)
_REPLICATIONS = flags.DEFINE_integer("replications", 2000, "samples of groups", lower_bound=100)
BLOCKS, GUESSING = 3, 1 / 3
SIZES, DIFFERENCES = (41, 29, 27), (0.0, 0.2, 0.54)
SHORT_FORM, LEVEL = 14, 0.05
FAULTY = ("flat", "flat", "reversed", "copy")


def item_parameters(number: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and difficulties of a rather easy test, as of understanding one's own medical notes."""
    return rng.lognormal(0.2, 0.35, number), rng.normal(-0.8, 0.9, number)


def answer(theta: np.ndarray, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Responses (J, I) to items of three choices."""
    p = GUESSING + (1 - GUESSING) * expit(a * (theta[:, None] - b))
    return (rng.random(p.shape) < p).astype(np.int8)


def two_of_three(values: np.ndarray) -> np.ndarray:
    """The same responses, a third of them not asked for."""
    block, left_out = np.arange(values.shape[1]) * BLOCKS // values.shape[1], np.arange(len(values)) % BLOCKS
    return np.where(left_out[:, None] == block, -1, values).astype(np.int8)


def named(values: np.ndarray) -> ResponseMatrix:
    """A matrix with ids."""
    subjects, items = (
        np.char.mod(form, np.arange(size)) for form, size in zip(("s%d", "i%d"), values.shape, strict=True)
    )
    return ResponseMatrix(values, subjects, items)


def recovery() -> pd.DataFrame:
    """Errors of each design and model, over all samples."""
    a, b = item_parameters(_ITEMS.value, np.random.default_rng(1))
    rows = []
    for seed in tqdm(range(_SEEDS.value), "recovery", leave=False):
        rng = np.random.default_rng(1000 + seed)
        theta = rng.normal(size=BLOCKS * _PEOPLE.value)
        complete = answer(theta, a, b, rng)
        for design, values in (("complete", complete), ("two of three blocks", two_of_three(complete))):
            for what, guessing in (("held", GUESSING), ("none", None)):
                fit = irtjax.fit(named(values), guessing=guessing)
                slope, usual = fit.item_columns["discrimination"], np.abs(b) < 2
                z = (fit.difficulty - b) / fit.difficulty_se
                num_free = np.full(len(b), 2)
                tests = item_fit(values, fit.parameters, of_test(len(b)), num_free)["p_value"].to_numpy()
                rows.append(
                    {
                        "design": design,
                        "guessing": what,
                        "rmse of b": np.sqrt(np.mean((fit.difficulty - b)[usual] ** 2)),
                        "95% interval of b holds": np.mean(np.abs(z[usual]) < 1.96),
                        "rmse of log a": np.sqrt(np.mean(np.log(np.maximum(slope, 0.01) / a)[usual] ** 2)),
                        "rmse of ability": np.sqrt(np.mean((fit.ability - theta) ** 2)),
                        "S-X2 below 0.05": np.nanmean(tests < LEVEL),
                        "S-X2 below 0.01": np.nanmean(tests < LEVEL / 5),
                        "M2 below 0.05": overall_fit(fit).p_value < LEVEL,
                    }
                )
    return pd.DataFrame(rows).groupby(["design", "guessing"], sort=False).mean().round(3)


def elimination() -> pd.DataFrame:
    """What becomes of faulty and of good items, by design."""
    rows = []
    for seed in tqdm(range(_SCALES.value), "elimination", leave=False):
        rng = np.random.default_rng(2000 + seed)
        a, b = item_parameters(_ITEMS.value, rng)
        faulty = rng.choice(_ITEMS.value, len(FAULTY) + 1, replace=False)
        a[faulty[:3]] = 0.0, 0.0, -1.0
        complete = answer(rng.normal(size=BLOCKS * _PEOPLE.value), a, b, rng)
        twin = complete[:, faulty[4]]
        complete[:, faulty[3]] = np.where(rng.random(len(twin)) < 0.85, twin, 1 - twin)
        for design, values in (("complete", complete), ("two of three blocks", two_of_three(complete))):
            held = dict.fromkeys(np.char.mod("i%d", np.arange(_ITEMS.value)).tolist(), GUESSING)
            removed = set(eliminate(named(values), guessing=held).removals["item_id"])
            found = [f"i{at}" in removed for at in faulty[:3]] + [bool({f"i{at}" for at in faulty[3:]} & removed)]
            good = np.setdiff1d(np.arange(_ITEMS.value)[a / 1.702 > 0.42], faulty)  # communality above 0.15
            lost = sum(f"i{at}" in removed for at in good)
            rows.append({"design": design, "faulty found, of 4": sum(found), "good removed": lost, "good": len(good)})
    return pd.DataFrame(rows).groupby("design", sort=False).mean().round(2)


def power() -> pd.DataFrame:
    """How often Welch's test finds each treatment."""
    rng = np.random.default_rng(3)
    a, b = item_parameters(SHORT_FORM, np.random.default_rng(5))
    ids = np.char.mod("i%d", np.arange(SHORT_FORM))
    items = pd.DataFrame({"item_id": ids, "difficulty": b, "discrimination": a, "guessing": GUESSING})
    count = _REPLICATIONS.value
    group = np.tile(np.repeat(np.arange(len(SIZES)), SIZES), count)
    theta = rng.normal(size=group.size) + np.array(DIFFERENCES)[group]
    values = answer(theta, a, b, rng)
    scores = {"raw score": values.sum(axis=1), "ability": irtjax.score(items, named(values))["ability"].to_numpy()}
    rows = []
    for treatment in (1, 2):
        row = {"people": f"{SIZES[treatment]} against {SIZES[0]}", "true difference": DIFFERENCES[treatment]}
        for name, each in scores.items():
            one, other = (each[group == k].reshape(count, -1) for k in (treatment, 0))
            row |= {
                f"{name}: power": np.mean(ttest_ind(one, other, axis=1, equal_var=False).pvalue < LEVEL),
                f"{name}: mean difference": np.mean(one.mean(axis=1) - other.mean(axis=1)),
            }
        row["ability known: power"] = _known(theta, group, treatment, count)
        row["people per group for 80%"] = _needed(scores["ability"], group, treatment)
        rows.append(row)
    return pd.DataFrame(rows).set_index("people").round(3)


def _known(theta: np.ndarray, group: np.ndarray, treatment: int, count: int) -> float:
    one, other = (theta[group == k].reshape(count, -1) for k in (treatment, 0))
    return float(np.mean(ttest_ind(one, other, axis=1, equal_var=False).pvalue < LEVEL))


def _needed(score: np.ndarray, group: np.ndarray, treatment: int) -> int:
    """People per group for 80% power: 2 (1.96 + 0.84)² (sd / difference)², by the scores of all replications."""
    one, other = (score[group == k] for k in (treatment, 0))
    return int(np.ceil((1.96 + 0.84) ** 2 * (one.var() + other.var()) / (one.mean() - other.mean()) ** 2))


def main() -> None:
    """Prints the three tables."""
    warnings.simplefilter("ignore", FitWarning)
    for title, table in (("Recovery", recovery), ("Elimination", elimination), ("Power", power)):
        found = table().reset_index()
        print(f"\n{title}\n{markdown.table(list(found), found.to_numpy().tolist())}", flush=True)


if __name__ == "__main__":
    app.run(main)
