"""Items that nobody has answered: how well are their difficulties predicted, and the answers they will get?

Difficulties are those of the Rasch model, in logits; of counts those of its binomial form, of grades the means of the
thresholds of the graded model. Items are held out fold by fold: what predicts an item has seen neither its responses
nor a fit in which they took part.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

from irtjax.errors import InputError
from irtjax.estimation import diagnostics
from irtjax.explanatory.amortised import difficulties_alone, fit_amortised
from irtjax.explanatory.family_likelihoods import family_likelihoods
from irtjax.explanatory.item_likelihoods import item_likelihoods
from irtjax.fits.item_features import ItemFeatures
from irtjax.fits.regression import Regression
from irtjax.fits.result import Z_95, Fit
from irtjax.integration.prediction import LEAST_PREDICTED
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.folds import folds_of
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales, whole
from irtjax.types import Float, Int

NORMAL = gauss_hermite(15)  # of the integral over ability and difficulty
CELLS = 2_000_000  # responses predicted at once
LEAST_INFORMATION = 1e-6  # of an intercept, from which on responses say something of it
RASCH, OF_GRADES, OF_COUNTS = "rasch", "graded", "binomial_1pl"
Answers = ResponseMatrix | ScaledResponses


class Known(NamedTuple):
    """What is known when difficulties of new items are predicted.

    Attributes:
        responses: to the other items.
        rows: (K,) positions of these items among all.
        fit: of these responses, without features.
        new: positions of the items to predict.
    """

    responses: Answers
    rows: Int[np.ndarray, " K"]
    fit: Fit
    new: Int[np.ndarray, " N"]


Predictor = Callable[[Known], tuple[np.ndarray, np.ndarray]]  # means and standard deviations of the new items


class Predictions(NamedTuple):
    """Difficulties that were predicted while their items were held out.

    Attributes:
        mean, sd: (I, P) in logits, one column per predictor.
        fold: (I,) in which each item was held out.
        log_loss: (P,) of the responses to held-out items, in nats per response; NaN of grades and counts.
    """

    mean: pd.DataFrame
    sd: pd.DataFrame
    fold: Int[np.ndarray, " I"]
    log_loss: pd.Series


def model_of_difficulties(responses: Answers | SparseResponses) -> str:
    """The model whose difficulties are predicted: the Rasch model, of counts its binomial form, of grades the graded.

    Raises:
        InputError: shares, or responses of several kinds.
    """
    if not on_scales(responses):
        return RASCH
    with_grades = [scale.labels is not None for scale in responses.scales]
    if all(with_grades):
        return OF_GRADES
    if responses.trials is None or any(with_grades):
        item = responses.item_ids[with_grades.index(False)]
        raise InputError(
            f"item {str(item)!r} has shares, or counts beside grades: expected grades alone or counts alone"
        )
    return OF_COUNTS


def with_features(responses: Answers, features: ItemFeatures) -> Fit:
    """The model of `fit_amortised`, of the subjects who have responses; warns where it has not converged."""
    fit = fit_amortised(responses.with_responses(), model_of_difficulties(responses), features=features)
    if not fit.converged:
        diagnostics.warn(fit)
    return fit


def without_features(responses: Answers) -> Fit:
    """The same model with b_i ~ N(μ, τ²), both estimated: what features are compared with."""
    return with_features(responses, no_features(responses.num_items))


def no_features(num_items: int) -> ItemFeatures:
    """A feature that is the same for all items."""
    return ItemFeatures(np.zeros((num_items, 1)), np.zeros(1, int))


def regression(fit: Fit) -> Regression:
    """The regression of a fit that has one."""
    assert fit.regression is not None
    return fit.regression


def by_mean(known: Known) -> tuple[np.ndarray, np.ndarray]:
    """A predictor: the mean of the other items, and how much they differ."""
    return regression(known.fit).predict(np.zeros((len(known.new), 1)))


def by_features(features: ItemFeatures) -> Predictor:
    """The model of `fit_amortised`, fitted to the other items."""

    def predict(known: Known) -> tuple[np.ndarray, np.ndarray]:
        fit = with_features(known.responses, features.choose(known.rows))
        return regression(fit).predict(features.values[known.new])

    return predict


def hold_out(
    responses: Answers,
    predictors: Mapping[str, Predictor],
    folds: int = 5,
    seed: int = 0,
    on_progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Predictions:
    """Predicts each item from the items of the other folds.

    Args:
        responses: of at least two items for each fold.
        predictors: by name.
        folds: random ones, which differ in size by one item at most.
        seed: of the folds.
        on_progress: called with the number of predictions done, that of all, and what is done now.

    Raises:
        InputError: there are fewer than two items in a fold.
    """
    responses = whole(responses)
    require_folds(responses.num_items, folds)
    fold_of = folds_of(responses.num_items, folds, seed)
    mean, sd = (pd.DataFrame(np.nan, responses.item_ids, list(predictors)) for _ in range(2))
    loss, number, done = dict.fromkeys(predictors, 0.0), int((np.asarray(responses.values) >= 0).sum()), 0
    for fold in range(folds):
        on_progress(done, folds * len(predictors), f"fold {fold + 1}")
        new, rows = (np.flatnonzero(chosen) for chosen in (fold_of == fold, fold_of != fold))
        others = responses.choose_items(rows)
        known = Known(others, rows, without_features(others), new)
        ability, ability_sd = abilities(known.fit, responses)
        for name, predict in predictors.items():
            on_progress(done, folds * len(predictors), f"fold {fold + 1}, {name}")
            found, deviation = predict(known)
            mean.loc[mean.index[new], name], sd.loc[sd.index[new], name] = found, deviation
            if isinstance(responses, ResponseMatrix):
                loss[name] += total_log_loss(responses.values[:, new], ability, ability_sd, found, deviation)
            else:
                loss[name] = np.nan
            done += 1
    on_progress(done, done, "done")
    return Predictions(mean, sd, fold_of, pd.Series(loss) / number)


def require_folds(num_items: int, folds: int) -> None:
    """Refuses folds that have fewer than two items each.

    Raises:
        InputError: names both numbers.
    """
    if num_items < 2 * folds:
        raise InputError(f"`folds`={folds} of {num_items} items, expected two items or more in each")


def abilities(fit: Fit, responses: Answers) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Abilities of subjects and their standard deviations; those of the population where a fit does not have them."""
    at = pd.Index(fit.responses.subject_ids).get_indexer(pd.Index(responses.subject_ids))
    population_mean, population_sd = (float(np.ravel(leaf)[0]) for leaf in fit.one_population)
    return np.where(at >= 0, fit.ability[at], population_mean), np.where(at >= 0, fit.ability_se[at], population_sd)


def total_log_loss(
    values: Int[np.ndarray, "J I"],
    ability: Float[np.ndarray, " J"],
    ability_sd: Float[np.ndarray, " J"],
    difficulty: Float[np.ndarray, " I"],
    difficulty_sd: Float[np.ndarray, " I"],
) -> float:
    """-Σ log of the probabilities of responses, in nats, abilities and difficulties integrated out.

        P(right) = ∫ σ(z) N(z; θ_j - b_i, s_j² + s_i²) dz

    Args:
        values: 1 right, 0 wrong, -1 missing.
        ability: means θ of normal posteriors.
        ability_sd: their standard deviations.
        difficulty: means b.
        difficulty_sd: their standard deviations.
    """
    (nodes,), weights = NORMAL.nodes.T, np.exp(NORMAL.log_weights)
    total, step = 0.0, max(1, CELLS // len(values))
    for start in range(0, values.shape[1], step):
        some = slice(start, start + step)
        z = ability[:, None] - difficulty[some]
        spread = np.hypot(ability_sd[:, None], difficulty_sd[some])
        right = sum(weight * expit(z + node * spread) for node, weight in zip(nodes, weights, strict=True))
        happened = np.where(values[:, some] == 1, right, 1 - right)
        total -= np.log(np.maximum(happened, LEAST_PREDICTED))[values[:, some] != MISSING].sum()
    return float(total)


def accuracy(predictions: Predictions, reference: Fit) -> pd.DataFrame:
    """One row per predictor: how its difficulties agree with those of responses.

    Args:
        predictions: of held-out items.
        reference: `without_features` of all responses.

    Returns:
        `predictor`; `spearman`, NaN where all items of a fold have one prediction; `rmse` in logits; `r_squared`,
        1 - Σ(b - predicted)² / Σ(b - mean)²; `coverage`, the share of items whose difficulty by their responses alone
        is in the 95% interval of its prediction and its own error; `log_loss`.
    """
    b = reference.difficulty
    alone, variance = _alone(reference)
    rows = []
    for name in predictions.mean:
        mean, sd = predictions.mean[name].to_numpy(), predictions.sd[name].to_numpy()
        constant = pd.Series(mean).groupby(predictions.fold).nunique().max() == 1
        near = np.abs(alone - mean) <= Z_95 * np.sqrt(sd**2 + variance)
        rows.append(
            {
                "predictor": name,
                "spearman": np.nan if constant else float(spearmanr(b, mean).statistic),
                "rmse": rmse_of(b, mean),
                "r_squared": float(1 - ((b - mean) ** 2).sum() / ((b - b.mean()) ** 2).sum()),
                "coverage": float(near[np.isfinite(variance)].mean()),
                "log_loss": float(predictions.log_loss[name]),
            }
        )
    return pd.DataFrame(rows)


def _alone(reference: Fit) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Difficulties as the responses alone have them, and the variances of their errors; given the slopes of the fit."""
    if not on_scales(reference.responses):
        return difficulties_alone(item_likelihoods(reference))
    own_slopes = model_of_difficulties(reference.responses) == OF_GRADES
    found = family_likelihoods(reference, own_slopes=own_slopes)
    information = np.maximum(found.information[:, 1, 1], LEAST_INFORMATION)
    intercept = found.intercept + found.gradient[:, 1] / information
    slope = np.where(found.slope == 0, np.nan, found.slope)
    known = (found.information[:, 1, 1] > LEAST_INFORMATION) & np.isfinite(slope)
    alone = found.origin - found.unit * intercept / slope
    return np.where(known, alone, 0.0), np.where(known, found.unit**2 / (information * slope**2), np.inf)


def surprises(predictions: Predictions, reference: Fit, joint: Fit) -> pd.DataFrame:
    """One row per item: its difficulty by responses alone, with features, and predicted while it was held out.

    Args:
        predictions: of held-out items; the first predictor counts.
        reference: `without_features` of all responses.
        joint: `with_features` of all responses.

    Returns:
        Columns `difficulty` and `by_responses`, each with `_se`, `predicted` and `predicted_sd`; and `surprise`, how
        much harder the item is than predicted, in standard deviations of prediction and reference together.
    """
    mean, sd = (table.iloc[:, 0].to_numpy() for table in (predictions.mean, predictions.sd))
    return pd.DataFrame(
        {
            "difficulty": joint.difficulty,
            "difficulty_se": joint.difficulty_se,
            "by_responses": reference.difficulty,
            "by_responses_se": reference.difficulty_se,
            "predicted": mean,
            "predicted_sd": sd,
            "surprise": (reference.difficulty - mean) / np.hypot(sd, reference.difficulty_se),
        }
    )


def plane(vectors: Float[np.ndarray, "I D"]) -> Float[np.ndarray, "I 2"]:
    """The two directions in which vectors of items differ most (principal components)."""
    return PCA(2, svd_solver="randomized", random_state=0).fit_transform(vectors)


def rmse_of(one: np.ndarray, other: np.ndarray) -> float:
    """Root mean squared difference."""
    return float(np.sqrt(((one - other) ** 2).mean()))
