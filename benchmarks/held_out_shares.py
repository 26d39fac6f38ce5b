r"""Do models of counts and shares predict held-out ones better than a cut at one half, or means?

  python -m benchmarks.held_out_shares --responses=evalperf_counts.npz --name=passes --trials=samples
  python -m benchmarks.held_out_shares --responses=livecodebench_generation_2025.npz --name=pass_at_1

Reads an array of shares, subjects × items, NaN where missing, or of successes, with an array of trials. A tenth of the
cells is held out in turn, and predicted by

* item rates: how often each of eleven steps 0, 0.1, …, 1 was given to the item, for every subject alike;
* means: subject mean + item mean, and a normal distribution of the residuals, cut to the steps, mixed with 2% of all;
* cut at 1/2: the 2PL of whether a share is more than one half, which knows nothing else;
* the models by default, with the ability integrated out;
* torch_measure: its Beta-2PL in an environment of its own, by its defaults (φ 10) and by the φ of 1, 3, 10 and
  30 that has the least loss in training; it is given 0 and 1 as 0.005 and 0.995.

Prints, with differences from the first model and their standard errors over the folds: the root mean squared error of
the expected share; the log-loss (nats) of the step that a share is rounded to, each step with at least 1e-6; and that
of whether the share is more than one half, where a way says so.

Expected duration on 2 CPU cores: two to ten minutes a set.
"""

import dataclasses
import sys

import jax
import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit
from scipy.stats import beta, betabinom, binom
from tqdm import tqdm

import irtjax
from benchmarks import contestants, held_out
from experiments.common import app
from irtjax.estimation.families import fit_families
from irtjax.fits.result import Fit
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.prediction import predict
from irtjax.integration.reach import reaching
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.listing import OF_SHARES, model_of
from irtjax.responses.folds import folds_of_cells
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.scaled import ScaledResponses

_RESPONSES = flags.DEFINE_string("responses", None, "NPZ file", required=True)
_NAME = flags.DEFINE_string("name", None, "array in it, of shares or of successes", required=True)
_TRIALS = flags.DEFINE_string("trials", None, "array of trials in it: of each response or each subject; 0 is missing")
_FOLDS = flags.DEFINE_integer("folds", 10, "parts that are held out in turn", lower_bound=2)
_MODELS = flags.DEFINE_list("models", None, "models; of counts binomial and those of shares, of shares ordered_beta")
_RIVALS = flags.DEFINE_list("rivals", [], "torch_measure")
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_grades", "folder of the rival's virtual environment")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make it with")
REQUIREMENT, DEFAULT_PHI, PHIS, MARGIN = "torch_measure==0.1.0", 10.0, [1.0, 3.0, 10.0, 30.0], 0.005
STEPS = np.arange(11) / 10
EDGES = (STEPS[1:] + STEPS[:-1]) / 2
HALF, LEAST = 0.5, 1e-6


@dataclasses.dataclass(frozen=True)
class Predicted:
    """What a way says of all cells: NaN where it says nothing.

    Attributes:
        step: (J, I, 11) probabilities of the steps.
        high: (J, I) that the share is more than one half.
        mean: (J, I) expected share.
    """

    step: np.ndarray
    high: np.ndarray
    mean: np.ndarray


def main() -> None:
    """Reads responses, holds them out, predicts and prints."""
    responses = read()
    shares = responses.worths()
    fold_of, rows = folds_of_cells(np.where(responses.observed, 1, -1), _FOLDS.value, seed=0), []
    models = _MODELS.value or (["binomial", "ordered_beta"] if _TRIALS.value else ["ordered_beta"])
    for fold in tqdm(range(_FOLDS.value), "folds", disable=not sys.stderr.isatty()):
        held = fold_of == fold
        train = dataclasses.replace(responses, values=np.where(held, -1, responses.values))
        rows += [{"way": name, "fold": fold, **scores(way, shares, held)} for name, way in ways(train, models).items()]
    print(
        f"{responses.num_subjects:,} subjects × {responses.num_items:,} items, {responses.observed.sum():,} responses"
    )
    metrics = "rmse", "log_loss_step", "log_loss_half"
    print(held_out.summary(pd.DataFrame(rows), metrics, models[0]).to_string(), flush=True)


def read() -> ScaledResponses:
    """The responses of the file."""
    with np.load(_RESPONSES.value, allow_pickle=False) as file:
        table = np.asarray(file[_NAME.value], float)
        trials = None if _TRIALS.value is None else np.asarray(file[_TRIALS.value], float)
    ids = [f"s{j}" for j in range(len(table))], [f"i{i}" for i in range(table.shape[1])]
    if trials is None:
        return of_shares(table, *ids)
    trials = np.broadcast_to(trials[:, None] if trials.ndim == 1 else trials, table.shape)
    return of_counts(np.where(trials > 0, table, np.nan), np.maximum(trials, 1), *ids)


def ways(train: ScaledResponses, models: list[str]) -> dict[str, Predicted]:
    """Predictions of all cells by each way."""
    shares = train.worths()
    steps = of_grades(
        np.where(np.isnan(shares), np.nan, STEPS[place_of(shares)]),
        train.subject_ids,
        train.item_ids,
        labels=STEPS.tolist(),
    )
    as_shares = of_shares(shares, train.subject_ids, train.item_ids)
    found = {}
    for name in models:
        given = as_shares if name in OF_SHARES else train
        found[name] = by_model(fit_families(given, name, standard_errors=False), given.trials)
    high = held_out.item_rates(of_grades(high_of(shares), train.subject_ids, train.item_ids, labels=[0, 1]), 2)[..., 1]
    found["item rates"] = dataclasses.replace(of_steps(held_out.item_rates(steps, len(STEPS))), high=high)
    found["means"] = of_steps(held_out.of_means(steps, STEPS))
    found["cut at 1/2"] = by_cut(shares, train)
    if "torch_measure" in _RIVALS.value:
        found |= by_torch_measure(shares)
    return found


def of_steps(step: np.ndarray) -> Predicted:
    """Of what knows steps alone, one of which is cut by one half."""
    return Predicted(step, np.full(step.shape[:2], np.nan), step @ STEPS)


def place_of(shares: np.ndarray) -> np.ndarray:
    """The step of each share: one at an edge goes down, as distribution functions have it."""
    return np.searchsorted(EDGES, np.nan_to_num(shares))


def high_of(shares: np.ndarray) -> np.ndarray:
    """1 where a share is more than one half, 0 where not, NaN where it is missing."""
    return np.where(np.isnan(shares), np.nan, shares > HALF)


def by_cut(shares: np.ndarray, train: ScaledResponses) -> Predicted:
    """Of the 2PL of shares that are more than one half."""
    values = np.nan_to_num(high_of(shares), nan=-1).astype(np.int8)
    fit = irtjax.fit(
        irtjax.ResponseMatrix(values, train.subject_ids, train.item_ids), model="2pl", standard_errors=False
    )
    high = predict(fit.parameters, values, *fit.one_population)
    nothing = np.full((*values.shape, len(STEPS)), np.nan)
    return Predicted(nothing, high, nothing[:, :, 0])


def by_model(fit: Fit, trials: np.ndarray | None) -> Predicted:
    """Of a model of counts or shares, the ability integrated out."""
    responses, columns = fit.responses, fit.item_columns
    grid = reaching(fit.ability, fit.ability_se, fit.one_population)
    model = model_of(fit.item_models, np.array([scale.top for scale in responses.scales]))
    given = coded(model, np.asarray(responses.values), responses.trials, np.asarray(fit.parameters.top))
    with jax.enable_x64(True):
        answers = to_answers(given.values, given.model, given.trials)
        items = fit.parameters._replace(top=given.top)
        weights = np.asarray(e_step(items, fit.one_population, answers, grid, weights=True).weights)[0]
        theta = np.asarray(place_nodes(fit.one_population, grid.nodes))[:, 0]
    edges = np.append(EDGES, HALF)
    below = np.empty((*responses.values.shape, len(edges)))
    mean = np.empty(responses.values.shape)
    for i in range(responses.num_items):
        x = columns["discrimination"][i] * (theta - columns["difficulty"][i])
        if trials is not None:
            mean[:, i] = weights @ expit(x)
            for n in np.unique(trials[:, i]):
                rows = trials[:, i] == n
                phi = columns["precision"][i] if "precision" in columns else None
                below[rows, i] = weights[rows] @ of_counts_below(int(n), edges, x, phi)
            continue
        cuts = [columns[name][i] if name in columns else end for name, end in (("cut_0", -np.inf), ("cut_1", np.inf))]
        zero, one = expit(cuts[0] - x), expit(x - cuts[1])
        phi = columns["precision"][i]
        shape = np.maximum(expit(x) * phi, 1e-9), np.maximum(expit(-x) * phi, 1e-9)
        between = beta.cdf(edges[None, :], shape[0][:, None], shape[1][:, None])
        below[:, i] = weights @ (zero[:, None] + (1 - zero - one)[:, None] * between)
        mean[:, i] = weights @ (one + (1 - zero - one) * expit(x))
    step = np.diff(below[:, :, :-1], axis=2, prepend=0.0, append=1.0)
    return Predicted(step, 1 - below[:, :, -1], mean)


def of_counts_below(n: int, edges: np.ndarray, x: np.ndarray, phi: float | None) -> np.ndarray:
    """P(k ≤ edge n) at predictors (Q,), (Q, edges): binomial, or with the precision φ beta-binomial."""
    most = np.floor(edges * n + 1e-9).astype(int)
    if phi is None:
        return binom.cdf(most[None, :], n, expit(x)[:, None])
    shape = np.maximum(expit(x) * phi, 1e-9)[:, None], np.maximum(expit(-x) * phi, 1e-9)[:, None]
    return betabinom.pmf(np.arange(n + 1)[None, :], n, *shape).cumsum(axis=1)[:, most]


def by_torch_measure(shares: np.ndarray) -> dict[str, Predicted]:
    """Of the rival, by its default and by the precision with the least loss in training."""
    python = contestants.interpreter("torch-measure", REQUIREMENT, _ENVIRONMENT.value, _PYTHON.value)
    found = held_out.by_rival("torch-measure", python, shares, {"phi": PHIS, "margin": MARGIN})
    best = int(np.argmin(found["loss"]))
    ends = np.append(EDGES, HALF)
    result = {}
    for name, at in (("default", PHIS.index(DEFAULT_PHI)), ("chosen φ", best)):
        mean, phi = np.clip(found["mean"][at].astype(float), 1e-7, 1 - 1e-7), PHIS[at]
        below = beta.cdf(ends, mean[:, :, None] * phi, (1 - mean[:, :, None]) * phi)
        step = np.diff(below[:, :, :-1], axis=2, prepend=0.0, append=1.0)
        result[f"torch_measure Beta-2PL, {name}"] = Predicted(step, 1 - below[:, :, -1], mean)
    return result


def scores(way: Predicted, shares: np.ndarray, held: np.ndarray) -> dict[str, float]:
    """Of the cells that were held out."""
    y, step, high = shares[held], way.step[held] + LEAST, np.clip(way.high[held], LEAST, 1 - LEAST)
    step /= step.sum(axis=1, keepdims=True)
    return {
        "rmse": float(np.sqrt(((way.mean[held] - y) ** 2).mean())),
        "log_loss_step": float(-np.log(step[np.arange(len(y)), place_of(y)]).mean()),
        "log_loss_half": float(-np.log(np.where(y > HALF, high, 1 - high)).mean()),
    }


if __name__ == "__main__":
    app.run(main)
