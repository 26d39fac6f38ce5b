r"""Default fits of leaderboards of language models: likelihoods, held-out prediction, and how far two halves agree.

  python -m benchmarks.leaderboard_defaults --data_dir=DIR

Prints of each fit its log-likelihood, the error that it reports, iterations and nodes; differences of held-out log-loss
between two models (`irtjax.compare`); how far variational inference is from marginal maximum likelihood, in standard
errors; and root mean square differences, over items and the population, of response functions that two random halves
of the subjects give. Expected duration on 2 CPU cores: a quarter of an hour.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from absl import flags

import irtjax
from experiments.common import app
from irtjax.errors import InputError
from irtjax.kernels.models import probabilities
from irtjax.kernels.quadrature import rectangular

_DATA_DIR = flags.DEFINE_string("data_dir", "../shared/llm_responses", "folder with SET.npz")
_HALVINGS = flags.DEFINE_integer("halvings", 3, "random halvings of the subjects", lower_bound=1)

FITS = (  # model and dimensions
    ("metabench_arc", "2pl", 1),
    ("metabench_gsm8k", "2pl", 1),
    ("metabench_mmlu", "3pl", 1),
    ("metabench_arc_v2", "4pl", 1),
    ("swebench_verified_bash_only", "2pl", 1),
    ("mmlu_pro", "2pl", 1),
    ("mmlu_pro", "2pl", 2),
    ("metabench_arc", "2pl", 2),
    ("metabench_arc", "2pl", 3),
)
VARIATIONAL = tuple(name for name, _, dims in FITS if dims == 1)
COMPARISONS = (
    ("metabench_mmlu", ("2pl", "3pl"), ("cells", "subjects")),
    ("metabench_arc_v2", ("2pl", "4pl"), ("cells", "subjects")),
    ("swebench_verified_bash_only", ("1pl", "2pl"), ("cells",)),
    ("mmlu_pro", ("1pl", "2pl"), ("cells",)),
)
HALVES = (("metabench_mmlu", "2pl"), ("metabench_mmlu", "3pl"), ("metabench_arc_v2", "4pl"))
LEAST_SLOPE = 0.1  # of an item that counts as rising
WORST = 3  # items that are left out in the last column


def main() -> None:
    """Fits, compares, halves."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    for name, model, dims in FITS:
        fit = irtjax.fit(load(name), model, dims=dims)
        steepest, nodes = np.abs(fit.parameters.slope).max(), fit.details.get("nodes", fit.details["posteriors"])
        print(
            f"{name}, {model}, D = {dims}: log-likelihood {fit.log_likelihood:,.1f}, "
            f"error {fit.log_likelihood_error:.2g}, {fit.status}, {fit.iterations} iterations, nodes {nodes}, "
            f"largest slope {steepest:.1f}",
            flush=True,
        )
    for name, models, ways in COMPARISONS:
        table = irtjax.compare(load(name), models, by=ways).table
        columns = ["by", "model", "log_loss", "log_loss_difference", "log_loss_difference_se"]
        print(f"\n{name}\n{table[columns].to_string(index=False)}", flush=True)
    print()
    for name in VARIATIONAL:
        for model in ("1pl", "2pl"):
            print(f"{name}, {model}, svi against mml: {distances(load(name), model)}", flush=True)
    for name, model in HALVES:
        print(f"\n{name}, {model}, halves: ", end="")
        for rms, rest in halves(load(name), model):
            print(f"{rms:.4f} (without the {WORST} worst items {rest:.4f})  ", end="", flush=True)
    print()


def load(name: str) -> irtjax.ResponseMatrix:
    """The responses of a set."""
    path = Path(_DATA_DIR.value) / f"{name}.npz"
    if not path.is_file():
        raise InputError(f"{path}: no such file; --data_dir names the folder with the leaderboards")
    values = np.asarray(np.load(path, allow_pickle=False)["responses"]).astype(np.int8)
    return irtjax.ResponseMatrix(values, *(np.arange(size).astype(str) for size in values.shape))


def distances(responses: irtjax.ResponseMatrix, model: str) -> str:
    """Root mean square differences of two estimators in standard errors, over items that rise and are not extreme."""
    mml, svi = irtjax.fit(responses, "rasch" if model == "1pl" else model), irtjax.fit(responses, model, "svi")
    rising = (mml.parameters.slope[:, 0] > LEAST_SLOPE) & ~mml.extreme
    columns = ["difficulty"] if model == "1pl" else ["difficulty", "discrimination"]
    off = {
        name: ((svi.item_columns[name] - mml.item_columns[name]) / mml.item_columns[f"{name}_se"])[rising]
        for name in columns
    }
    off["ability"] = (svi.ability - mml.ability + mml.ability.mean()) / mml.ability_se
    rms = ", ".join(f"{name} {np.sqrt(np.mean(z**2)):.2f}" for name, z in off.items())
    ratio = np.median(svi.ability_se / mml.ability_se)
    falling = int((mml.parameters.slope[:, 0] <= 0).sum())
    return f"{rms}; standard errors of ability x {ratio:.2f}; {svi.iterations} steps, {svi.status}; {falling} falling"


def halves(responses: irtjax.ResponseMatrix, model: str) -> Iterator[tuple[float, float]]:
    """Of each halving the root mean square difference of response functions, with all items and without the worst."""
    quadrature = rectangular(241)
    weights = np.exp(quadrature.log_weights)
    for seed in range(_HALVINGS.value):
        half = np.random.default_rng(seed).permutation(responses.num_subjects) % 2 == 0
        curves = []
        for chosen in (half, ~half):
            part = irtjax.ResponseMatrix(responses.values[chosen], responses.subject_ids[chosen], responses.item_ids)
            fit = irtjax.fit(part, model, standard_errors=False)
            curves.append(np.asarray(probabilities(fit.parameters, quadrature.nodes)[0]))
        of_items = np.sort(weights @ (curves[0] - curves[1]) ** 2)
        yield float(np.sqrt(of_items.mean())), float(np.sqrt(of_items[:-WORST].mean()))


if __name__ == "__main__":
    app.run(main)
