"""Which model? Candidates compared by how well they predict answers that were held out of their fits."""

import functools
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from irtjax.arguments import LARGEST_SEED, checks_types, names, whole_number
from irtjax.comparison import held_out, held_out_answers
from irtjax.comparison.candidates import RATES, Candidate, candidates
from irtjax.comparison.grades import compare_grades
from irtjax.comparison.item_rates import ItemRates, item_rates
from irtjax.comparison.prediction_scores import BINS, METRICS, calibration_bins, scores
from irtjax.comparison.result import Comparison
from irtjax.comparison.summary import keeping, summary
from irtjax.errors import InputError
from irtjax.fits.reading import is_scaled, read
from irtjax.fits.result import Fit
from irtjax.fitting import fit
from irtjax.integration.prediction import log_likelihood_of_subjects
from irtjax.responses.convert import as_matrix_or_sparse
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales


@checks_types
def compare(
    responses: Any,
    models: str | Collection[str] | None = None,
    *,
    dims: int | Collection[int] = (1,),
    estimators: str | Collection[str] = ("mml",),
    by: str | Collection[str] = ("cells",),
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

    One row is no model: the item rates, which predict the same for every subject. A model that does not beat them has
    found no difference between subjects.

    Args:
        responses: whatever `irtjax.fit` takes, with at least one observed response of each subject and item; read as
            grades where the models are those of grades.
        models: of `irtjax.fit`, one or several; None for the 1PL to 4PL or, of `ScaledResponses`, the graded model and
            both partial credit models (`irtjax.comparison.grades.compare_grades`, where cells are held out).
        dims: one or several numbers of dimensions.
        estimators: "mml", "svi" or both. Candidates are all combinations of models, dimensions and estimators that
            exist: a Rasch model or 1pl has one dimension, and svi fits the 1pl and 2pl in one dimension.
        by: what is held out.
        folds: number of parts.
        seed: of the random parts, and of svi.
        columns: of a long table with other names, as of `irtjax.fit`.
        on_progress: called with the number of fits done, of all fits, and what is fitted next.

    Returns:
        A `Comparison`. Two calls with the same seed hold out the same responses. Warnings of the fits are in it, and
        are not given otherwise.

    Raises:
        InputError: no or unknown candidates, or more folds than subjects or items.
    """
    named = () if models is None else tuple(names(models))
    if is_scaled(named):
        responses, _ = read(responses, named[0], columns=columns, sparse=None)
    if on_scales(responses):
        _only_cells(dims, estimators, by)
        return compare_grades(
            responses, named or ("graded", "gpcm", "pcm"), folds=folds, seed=seed, on_progress=on_progress
        )
    responses = as_matrix_or_sparse(responses, columns=columns)
    require_estimable(responses)
    by = names(by)
    chosen = candidates(named or ("1pl", "2pl", "3pl", "4pl"), dims, estimators)
    _check_ways(by)
    require_folds(responses, folds)
    whole_number("seed", seed, 0, LARGEST_SEED)
    ways = held_out_answers.WAYS if isinstance(responses, SparseResponses) else held_out.WAYS
    total, done = len(chosen) * (1 + len(by) * folds), itertools.count()

    def report(what: str) -> None:
        if on_progress is not None:
            on_progress(next(done), total, what)

    of_folds, of_bins, of_fits = [], [], []
    said: list[dict[str, Any]] = []
    for candidate in chosen:
        fit_it = functools.partial(_fit, candidate=candidate, seed=seed)
        report(f"{candidate}, all responses")
        with keeping({**candidate._asdict(), "by": "", "fold": 0}, said):
            of_fits.append({**candidate._asdict(), **_of_all(fit_it(responses))})
        for way in by:
            where = {"by": way, **candidate._asdict()}
            predicted, bins = ways[way](responses, fit_it, folds, seed), []
            for fold in range(1, folds + 1):
                report(f"{candidate}, {way} {fold} of {folds}")
                with keeping({**where, "fold": fold}, said):
                    held = next(predicted)
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
        table=summary(per_fold, METRICS).merge(pd.DataFrame(of_fits), on=list(Candidate._fields), how="left"),
        folds=per_fold,
        calibration=calibration[calibration["number"] > 0].reset_index(drop=True),
        warnings=pd.DataFrame(said, columns=[*Candidate._fields, "by", "fold", "message"]),
    )


def require_folds(responses: ResponseMatrix | SparseResponses, folds: int) -> None:
    """Refuses a number of folds that the responses cannot be split into.

    Raises:
        InputError: fewer than two folds, or more than there are subjects or items.
    """
    most = min(responses.num_subjects, responses.num_items)
    if not 2 <= whole_number("folds", folds) <= most:
        raise InputError(f"`folds`={folds}, expected 2 to {most}: no more than there are subjects, and items")


def _only_cells(dims: int | Collection[int], estimators: str | Collection[str], by: str | Collection[str]) -> None:
    """Refuses what models of grades are not compared by.

    Raises:
        InputError: it names the argument.
    """
    for name, given, only in (("dims", dims, (1,)), ("estimators", estimators, ("mml",)), ("by", by, ("cells",))):
        if (tuple(given) if isinstance(given, Collection) and not isinstance(given, str) else (given,)) != only:
            raise InputError(f"`{name}` {given!r}: models of grades are compared with {only[0]!r} only")


def _check_ways(by: Collection[str]) -> None:
    for way in by:
        if way not in held_out.WAYS:
            raise InputError(f"unknown way of holding out {way!r}, expected one of {', '.join(held_out.WAYS)}")
    if not by:
        raise InputError(f"nothing to hold out, expected `by` with one or more of {', '.join(held_out.WAYS)}")


def _fit(responses: ResponseMatrix | SparseResponses, candidate: Candidate, seed: int) -> Fit | ItemRates:
    if candidate.model == RATES:
        return item_rates(responses)
    options: dict[str, Any] = {"seed": seed}
    if candidate.estimator == "mml":
        options = {"dims": candidate.dims, "extremes": "keep", "standard_errors": False}
    return fit(responses, candidate.model, candidate.estimator, **options)


def _of_all(found: Fit | ItemRates) -> dict[str, Any]:
    """Likelihood and information criteria of the fit to all responses."""
    responses, number = found.responses, found.num_parameters
    values = responses.values if isinstance(responses, SparseResponses) else responses.read().values
    each = log_likelihood_of_subjects(found.parameters, values, *found.population)
    log_likelihood, is_maximum = float(each.sum()), found.maximum_likelihood
    return {
        "log_likelihood": log_likelihood,
        "priors": not is_maximum,
        "num_parameters": number if found.estimator == "mml" else np.nan,
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
