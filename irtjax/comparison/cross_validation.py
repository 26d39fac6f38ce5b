"""Which model? Candidates compared by how well they predict answers that were held out of their fits."""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import LARGEST_SEED, names, whole_number
from irtjax.comparison.held_out import WAYS
from irtjax.comparison.prediction_scores import BINS, METRICS, calibration_bins, scores
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.estimation.result import Fit
from irtjax.estimation.specify import MOST_DIMS
from irtjax.fitting import ESTIMATORS, MODELS, fit
from irtjax.integration.prediction import log_likelihood_of_subjects
from irtjax.responses.convert import as_responses
from irtjax.responses.matrix import ResponseMatrix, require_estimable

BY_SVI = ("1pl", "2pl")  # the models that svi fits, in one dimension
ONE_SLOPE = ("rasch", "1pl")  # for all items: these models have one dimension
PARAMETERS = {"rasch": 1, "1pl": 1, "2pl": 2, "3pl": 3, "4pl": 4}  # of each item in one dimension


class Candidate(NamedTuple):
    """A model, the number of its dimensions, and the estimator that fits it."""

    model: str
    dims: int = 1
    estimator: str = "mml"

    def __str__(self) -> str:
        dims = f", {self.dims} dimensions" if self.dims > 1 else ""
        name = self.model.capitalize() if self.model == "rasch" else self.model.upper()
        return f"{name}{dims}{' by SVI' if self.estimator == 'svi' else ''}"

    @property
    def complexity(self) -> int:
        """Parameters of each item."""
        return PARAMETERS[self.model] + self.dims - 1


class Comparison(NamedTuple):
    """Candidates, and how well each predicts.

    Attributes:
        table: one row per way of holding out (`by`) and candidate (`model`, `dims`, `estimator`): mean over the folds
            of each of `log_loss`, `brier`, `auc` and `calibration_error`, its standard error (`_se`), its difference
            from the candidate with the lowest log-loss (`_difference`) and the standard error of that
            (`_difference_se`), both from the folds, which are the same for all candidates; `num_predicted`; of the fit
            to all responses `log_likelihood` (marginal, at the estimates), `num_parameters`, `aic`, `bic` (NaN for
            SVI), `converged` and `seconds`; and `folds_converged`, the share of the fits to folds that converged.
        folds: the scores of each fold.
        calibration: one row per `by`, candidate and bin of predicted probabilities: `number` of predictions, mean
            `predicted` probability and `observed` share of right answers.
    """

    table: pd.DataFrame
    folds: pd.DataFrame
    calibration: pd.DataFrame

    def recommended(self, by: str) -> Candidate:
        """The candidate with the fewest parameters whose log-loss is within one standard error of the lowest.

        The standard error is that of the difference between the two (the one-standard-error rule of Breiman et al.
        1984, on paired differences). Of candidates with as many parameters, it is the one with the lower log-loss.

        Raises:
            InputError: nothing was held out in this way.
        """
        rows = self.table[self.table["by"] == by].dropna(subset="log_loss")
        if rows.empty:
            raise InputError(f"no comparison by {by!r}, expected one of {', '.join(self.table['by'].unique())}")
        close = rows[rows["log_loss_difference"] <= rows["log_loss_difference_se"].fillna(0)]
        return min(
            (Candidate(*row) for row in close.sort_values("log_loss")[list(Candidate._fields)].itertuples(index=False)),
            key=lambda candidate: candidate.complexity,
        )


def compare(
    responses: Any,
    models: str | Sequence[str] = ("1pl", "2pl", "3pl", "4pl"),
    *,
    dims: int | Sequence[int] = (1,),
    estimators: str | Sequence[str] = ("mml",),
    by: str | Sequence[str] = ("cells",),
    folds: int = 5,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Compares models by cross-validation: how well does each predict answers that its fit has not seen?

    Every fold is held out once, and its answers are predicted with each subject's ability integrated out:

    * `cells`: random responses. The items are fitted to the others, and each response is predicted from the subject's
      other responses. It asks how well the model fills gaps.
    * `subjects`: random subjects. The items are fitted to the other subjects. `log_loss` is minus the marginal
      log-likelihood of a held-out subject's responses per response: the log-loss of predicting them one after the
      other, each from those before it. For the other scores a held-out subject's responses are split at random into as
      many parts as there are folds, and each part is predicted from the others. It asks whether the items are right for
      new subjects.
    * `items`: random items. The other items are fitted to all subjects. The held-out items' parameters are then
      estimated on a random half of the subjects, whose abilities are known from the other items
      (`irtjax.comparison.calibration.calibrate`), and the responses of the other half are predicted from their
      responses to the other items. It asks how well new items can be added.

    Items that everyone or no one answered right in a fold are kept under their prior.

    Args:
        responses: whatever `irtjax.fit` takes, with at least one observed response of each subject and item.
        models: of `irtjax.fit`, one or several.
        dims: one or several numbers of dimensions.
        estimators: "mml", "svi" or both. Candidates are all combinations of models, dimensions and estimators that
            exist: a Rasch model or 1pl has one dimension, and svi fits the 1pl and 2pl in one dimension.
        by: what is held out.
        folds: number of parts.
        seed: of the random parts, and of svi.
        columns: of a long table with other names, as of `irtjax.fit`.
        on_progress: called with the number of fits done, of all fits, and what is fitted next.

    Returns:
        A `Comparison`. Two calls with the same seed hold out the same responses.

    Raises:
        InputError: no or unknown candidates, or more folds than subjects or items.
    """
    responses = as_responses(responses, columns=columns)
    require_estimable(responses)
    by = names("by", by)
    chosen = candidates(models, dims, estimators)
    _check_ways(by)
    require_folds(responses, folds)
    whole_number("seed", seed, 0, LARGEST_SEED)
    total, done = len(chosen) * (1 + len(by) * folds), itertools.count()

    def report(what: str) -> None:
        if on_progress is not None:
            on_progress(next(done), total, what)

    of_folds, of_bins, of_fits = [], [], []
    for candidate in chosen:
        fit_it = functools.partial(_fit, candidate=candidate, seed=seed)
        report(f"{candidate}, all responses")
        of_fits.append({**candidate._asdict(), **_of_all(fit_it(responses))})
        for way in by:
            where = {"by": way, **candidate._asdict()}
            held_out, bins = WAYS[way](responses, fit_it, folds, seed), []
            for fold in range(1, folds + 1):
                report(f"{candidate}, {way} {fold} of {folds}")
                held = next(held_out)
                found = scores(held.right, held.probability)
                if held.log_loss is not None:
                    found["log_loss"] = held.log_loss
                counted = {"num_predicted": held.right.size, "converged": held.converged}
                of_folds.append({**where, "fold": fold, **found, **counted})
                bins.append(calibration_bins(held.right, held.probability))
            of_bins.append(pd.DataFrame(where, index=range(BINS)).join(_calibration(np.sum(bins, axis=0))))
    if on_progress is not None:
        on_progress(total, total, "done")
    per_fold, calibration = pd.DataFrame(of_folds), pd.concat(of_bins, ignore_index=True)
    return Comparison(
        table=_summary(per_fold).merge(pd.DataFrame(of_fits), on=list(Candidate._fields), how="left"),
        folds=per_fold,
        calibration=calibration[calibration["number"] > 0].reset_index(drop=True),
    )


def candidates(
    models: str | Sequence[str], dims: int | Sequence[int], estimators: str | Sequence[str]
) -> tuple[Candidate, ...]:
    """All combinations that can be fitted, each once.

    Raises:
        InputError: an unknown model or estimator, a number of dimensions out of range, or no combination that can be
            fitted.
    """
    models, estimators = names("models", models), names("estimators", estimators)
    for what, given, known in (("model", models, MODELS), ("estimator", estimators, ESTIMATORS)):
        for name in given:
            if name not in known:
                raise InputError(f"unknown {what} {name!r}, expected one of {', '.join(known)}")
    dims = list(dims) if isinstance(dims, Iterable) else [dims]
    for number in dims:
        whole_number("dims", number, 1, MOST_DIMS)
    every = dict.fromkeys(
        Candidate(model, number, estimator)
        for estimator, number, model in itertools.product(estimators, dims, models)
        if _exists(Candidate(model, number, estimator))
    )
    if not every:
        raise InputError(
            "no candidates: name at least one model; svi fits the 1pl and 2pl with dims 1, mml the 2pl to 4pl with more"
        )
    return tuple(every)


def _exists(candidate: Candidate) -> bool:
    if candidate.estimator == "svi":
        return candidate.model in BY_SVI and candidate.dims == 1
    return candidate.dims == 1 or candidate.model not in ONE_SLOPE


def require_folds(responses: ResponseMatrix, folds: int) -> None:
    """Refuses a number of folds that the responses cannot be split into.

    Raises:
        InputError: fewer than two folds, or more than there are subjects or items.
    """
    most = min(responses.num_subjects, responses.num_items)
    if not 2 <= whole_number("folds", folds) <= most:
        raise InputError(f"`folds`={folds}, expected 2 to {most}: no more than there are subjects, and items")


def _check_ways(by: Sequence[str]) -> None:
    for way in by:
        if way not in WAYS:
            raise InputError(f"unknown way of holding out {way!r}, expected one of {', '.join(WAYS)}")
    if not by:
        raise InputError(f"nothing to hold out, expected `by` with one or more of {', '.join(WAYS)}")


def _fit(responses: ResponseMatrix, candidate: Candidate, seed: int) -> Fit:
    options: dict[str, Any] = {"seed": seed}
    if candidate.estimator == "mml":
        options = {"dims": candidate.dims, "extremes": "keep", "standard_errors": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # whether it converged is a column of the table
        return fit(responses, candidate.model, candidate.estimator, **options)


def _of_all(found: Fit) -> dict[str, Any]:
    """Likelihood and information criteria of the fit to all responses."""
    responses, number = found.responses, found.num_parameters
    each = log_likelihood_of_subjects(found.parameters, responses.read().values, *found.population)
    log_likelihood, is_maximum = float(each.sum()), found.estimator == "mml"
    return {
        "log_likelihood": log_likelihood,
        "num_parameters": number if is_maximum else np.nan,
        "aic": 2 * number - 2 * log_likelihood if is_maximum else np.nan,
        "bic": np.log(responses.num_subjects) * number - 2 * log_likelihood if is_maximum else np.nan,
        "converged": found.converged,
        "seconds": found.seconds,
    }


def _calibration(bins: np.ndarray) -> pd.DataFrame:
    """Number of predictions, mean prediction and share right of each bin, from sums (3, B)."""
    number, predicted, observed = bins
    with np.errstate(invalid="ignore"):
        return pd.DataFrame(
            {"number": number.astype(int), "predicted": predicted / number, "observed": observed / number}
        )


def _summary(folds: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds, standard errors, and paired differences from the lowest log-loss."""
    rows = []
    for _, of_way in folds.groupby("by", sort=False):
        groups = dict(list(of_way.groupby(list(Candidate._fields), sort=False)))
        best = min(groups, key=lambda key: _least(groups[key]["log_loss"]))
        for key, group in groups.items():
            row = {"by": group["by"].iloc[0], **dict(zip(Candidate._fields, key, strict=True))}
            for metric in METRICS:
                here = group[metric].to_numpy(float)
                difference = here - groups[best][metric].to_numpy(float)
                row |= dict(zip((metric, f"{metric}_se"), _mean_and_error(here), strict=True))
                row |= dict(
                    zip((f"{metric}_difference", f"{metric}_difference_se"), _mean_and_error(difference), strict=True)
                )
            row |= {"num_predicted": int(group["num_predicted"].sum()), "folds_converged": group["converged"].mean()}
            rows.append(row)
    return pd.DataFrame(rows)


def _least(log_loss: pd.Series) -> float:
    return np.inf if log_loss.isna().all() else float(log_loss.mean())


def _mean_and_error(of_folds: np.ndarray) -> tuple[float, float]:
    """Mean over the folds that have the score, and its standard error."""
    known = of_folds[~np.isnan(of_folds)]
    if not known.size:
        return np.nan, np.nan
    return float(known.mean()), float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else np.nan
