"""Did subjects know items beforehand? Gains on items that are older than a subject's cutoff."""

import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, norm

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.scale.multiple_tests import holm
from irtjax.scale.response_curves import worth_curves, worths
from irtjax.scale.tested import Tested, of_fit, own_parts
from irtjax.storage.sources import shown
from irtjax.types import Bool, Float, Shaped

FEWEST = 10  # items on either side of a cutoff
MOST_SUBJECTS = 1000  # as a system of equations in all of them is solved for each permutation
STEP = 1e-4  # logits, of a difference quotient
NO_DATE = "no date"
OF_TODAY = re.compile(r"now|today|[\d:.]+:[\d:.]+(\s*[ap]m)?", re.IGNORECASE)


class Contamination(NamedTuple):
    """What subjects gain on items that were there before their cutoff.

    Attributes:
        subjects: one row per subject with `FEWEST` items or more on either side: `subject_id`, `cutoff`, `before` and
            `after` (items it answered), `gain` in logits of ability with its `standard_error`, `points` (the gain in
            the mean response to its items before the cutoff), `p_value` of a gain, and `p_adjusted` (Holm 1979).
        items: one row per item that some subjects could have known and others not: `item_id`, `date`, `exposed`
            (subjects whose cutoff is later), `gain` of these in logits, `standard_error`, `p_value`, and `p_adjusted`
            (false-discovery rate; Benjamini and Hochberg 1995).
        gain: that all those subjects have in common, in logits.
        standard_error: of it.
        p_value: of it.
    """

    subjects: pd.DataFrame
    items: pd.DataFrame
    gain: float
    standard_error: float
    p_value: float


@checks_types
def contamination(
    fit: Fit,
    dates: Mapping[str, Any] | pd.Series,
    cutoffs: Mapping[str, Any] | pd.Series,
    permutations: int = 999,
    seed: int = 0,
) -> Contamination:
    """How much better subjects are on items before their cutoff than on those after it, and than other subjects.

    With y_ij a response, E and V its mean and variance at the ability, and E' the derivative of E, the working
    residuals (y - E) / E' are regressed, by weights E'²/V, on a shift of each subject's ability, a shift of each
    item's difficulty, and a gain γ_j on the items before the cutoff: one scoring step from the fit without gains. So
    neither harder new items nor better new subjects look like a gain. As responses to one item may depend on each
    other, p-values and standard errors are by permutation of the dates among the items; they are one-sided.

    A gain may also have other reasons: a subject may be better at what old items ask for.

    Args:
        fit: of one dimension, of responses of any kind.
        dates: of the items, by item id; anything that `pandas.to_datetime` takes, or numbers such as 2024 or 20240131.
            Missing ones are left out.
        cutoffs: of the subjects, by subject id; those without one count as unexposed.
        permutations: of the dates.
        seed: of them.

    Raises:
        InputError: dates that cannot be read; no subject with `FEWEST` items on either side of its cutoff; more than
            1,000 subjects; or a fit of several dimensions, groups or judges.
    """
    whole_number("permutations", permutations, 19)
    test = of_fit(fit)
    subject_ids = test.responses.subject_ids.astype(str)
    if len(subject_ids) > MOST_SUBJECTS:
        raise InputError(f"{len(subject_ids):,} subjects: expected at most {MOST_SUBJECTS:,}; fit those with a cutoff")
    date = _dates(dates, test.responses.item_ids.astype(str), "dates", "item")
    cutoff = _dates(cutoffs, subject_ids, "cutoffs", "subject")
    cells = _cells(test, ~np.isnat(date))
    early = ~np.isnat(cutoff)[:, None] & (date < cutoff[:, None])
    seen = cells.weight > 0
    before, after = (early & seen).sum(axis=1), (~early & seen).sum(axis=1)
    subjects = np.flatnonzero((before >= FEWEST) & (after >= FEWEST))
    if not len(subjects):
        raise InputError(f"`cutoffs`: no subject has {FEWEST} items before its cutoff and {FEWEST} after it")
    found = _gains(cells, early, subjects)
    rng, usable = np.random.default_rng(seed), np.flatnonzero(~np.isnat(date))
    null = np.empty((permutations, len(subjects) + 1))
    for k in range(permutations):
        order = np.arange(date.size)
        order[usable] = rng.permutation(usable)
        null[k] = _gains(cells, early[:, order], subjects)
    p_value = (1 + (null >= found).sum(axis=0)) / (1 + permutations)
    error = null.std(axis=0)
    known = early[subjects] & seen[subjects]
    table = pd.DataFrame(
        {
            "subject_id": subject_ids[subjects],
            "cutoff": cutoff[subjects],
            "before": before[subjects],
            "after": after[subjects],
            "gain": found[:-1],
            "standard_error": error[:-1],
            "points": found[:-1] * np.where(known, cells.slope[subjects], 0).sum(axis=1) / before[subjects],
            "p_value": p_value[:-1],
            "p_adjusted": holm(p_value[:-1]),
        }
    )
    items = _by_item(cells, early, test.responses.item_ids.astype(str), date)
    return Contamination(table, items, float(found[-1]), float(error[-1]), float(p_value[-1]))


def _dates(given: Any, ids: Shaped[np.ndarray, " N"], name: str, noun: str) -> Shaped[np.ndarray, " N"]:
    """Dates in the order of the ids, NaT where there is none.

    Raises:
        InputError: one cannot be read, or no id has one.
    """
    by_id = pd.Series(given)
    by_id.index = by_id.index.astype(str)
    if by_id.index.has_duplicates:
        raise InputError(f"`{name}`: {noun} '{by_id.index[by_id.index.duplicated()][0]}' is there twice")
    ordered = by_id.reindex(ids)
    cells = ordered.map(_readable)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that each format has to be guessed
        read = pd.to_datetime(cells, errors="coerce", utc=True).dt.tz_localize(None)
    wrong = read.isna() & cells.notna()
    if wrong.any():
        value = by_id[ids[wrong][0]]
        value = value.item() if isinstance(value, np.generic) else value
        raise InputError(f"`{name}`: {noun} '{ids[wrong][0]}' has {shown(value)}, expected a date")
    if read.isna().all():
        raise InputError(f"`{name}`: no {noun} of the fit has a date")
    return read.to_numpy("datetime64[ns]")


def _readable(value: Any) -> Any:
    """A cell as pandas is to read it; None where nothing is in it.

    Numbers such as 2024 or 20240131 are read by their digits, not as nanoseconds since 1970, and what would be a date
    of the day on which it is read, as "now" or 10:30, is none.
    """
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return None
    if isinstance(value, int | float | np.number | np.bool_):
        return f"{value:.0f}" if value == int(value) > 1 else NO_DATE
    if isinstance(value, str):
        return NO_DATE if OF_TODAY.fullmatch(value.strip()) else value.strip() or None
    return value


class _Cells(NamedTuple):
    """By response (J, I), 0 where it is missing: information E'²/V, score E'(y - E)/V, and E'."""

    weight: Float[np.ndarray, "J I"]
    score: Float[np.ndarray, "J I"]
    slope: Float[np.ndarray, "J I"]


def _cells(test: Tested, dated: Bool[np.ndarray, " I"]) -> _Cells:
    """At the abilities of the fit, of items that are dated."""
    single, ability = test.single, np.asarray(test.fit.ability, float)
    cells, of_answers = np.zeros((3, single.num_subjects, single.num_items)), ability[single.subjects]
    y, trials = worths(test), test.effective * dated[single.items]
    for at in own_parts(test, np.ones(len(y), bool), 4 * (int(test.top.max()) + 1)):
        alone = test.alone(at, of_answers[at])
        here, above, below = (worth_curves(alone, np.array([step])) for step in (0.0, STEP, -STEP))
        slope, times = (above.mean - below.mean)[0] / (2 * STEP), trials[at] / here.variance[0]
        score = np.where(times > 0, times * slope * (y[at] - here.mean[0]), 0.0)
        cells[:, single.subjects[at], single.items[at]] = times * slope**2, score, slope
    return _Cells(*cells)


def _gains(cells: _Cells, early: Bool[np.ndarray, "J I"], subjects: np.ndarray) -> Float[np.ndarray, " M"]:
    """Of each of the subjects, and last the gain that they have in common."""
    x = early[subjects].astype(float)
    rows = np.concatenate([cells.weight[subjects] * x, cells.weight])  # of the gains, and of the shifts of subjects
    number, of_items = len(subjects), np.maximum(cells.weight.sum(axis=0), 1e-12)
    matrix = -(rows / of_items) @ rows.T
    gains = np.arange(number)
    matrix[gains, gains] += rows[:number].sum(axis=1)
    shifts = number + np.arange(len(cells.weight))
    matrix[shifts, shifts] += cells.weight.sum(axis=1)
    matrix[gains, number + subjects] += rows[:number].sum(axis=1)
    matrix[number + subjects, gains] += rows[:number].sum(axis=1)
    right = np.concatenate([(cells.score[subjects] * x).sum(axis=1), cells.score.sum(axis=1)])
    right -= (rows / of_items) @ cells.score.sum(axis=0)
    # what the shifts of the subjects leave; all of these are known but for a constant
    kept = np.linalg.lstsq(matrix[number:, number:], np.column_stack([matrix[number:, :number], right[number:]]))[0]
    information = matrix[:number, :number] - matrix[:number, number:] @ kept[:, :-1]
    score = right[:number] - matrix[:number, number:] @ kept[:, -1]
    return np.append(np.linalg.lstsq(information, score)[0], score.sum() / information.sum())


def _by_item(cells: _Cells, early: np.ndarray, ids: np.ndarray, date: np.ndarray) -> pd.DataFrame:
    """Gains of the subjects that could have known an item, over the others, at the abilities of the fit."""
    share = (cells.weight * early).sum(axis=0) / np.maximum(cells.weight.sum(axis=0), 1e-12)
    apart = early - share
    information = (cells.weight * apart**2).sum(axis=0)
    seen = cells.weight > 0
    some = (information > 0) & (early & seen).any(axis=0) & (~early & seen).any(axis=0)
    gain = (cells.score * apart).sum(axis=0)[some] / information[some]
    error = information[some] ** -0.5
    p_value = norm.sf(gain / error)
    return pd.DataFrame(
        {
            "item_id": ids[some],
            "date": date[some],
            "exposed": (early & seen).sum(axis=0)[some],
            "gain": gain,
            "standard_error": error,
            "p_value": p_value,
            "p_adjusted": false_discovery_control(p_value) if some.any() else p_value,
        }
    )
