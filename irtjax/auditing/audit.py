"""Is a benchmark sound? One call from the responses of subjects to what is wrong with it."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import logit

from irtjax.arguments import checks_types
from irtjax.auditing.choices import Choices, read_choices
from irtjax.auditing.contamination import Contamination, contamination
from irtjax.auditing.findings import DOUBTFUL, FALLING, FLAT, count, findings, in_order
from irtjax.auditing.ranking import ranking
from irtjax.auditing.second_dimension import SecondDimension, second_dimension
from irtjax.auditing.wrong_keys import wrong_keys
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.fits.result import Fit
from irtjax.fitting import fit as fit_responses
from irtjax.kernels.models import probabilities
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import in_memory, on_scales, whole
from irtjax.scale.fit_statistics import item_fit, local_dependence
from irtjax.scale.tested import one_by_one, types_of
from irtjax.types import Float

MOST_COMPARED = 1000  # items, of which curves and pairs are tested
DIVISIONS = 3  # of the items into halves
MANY = 10_000  # subjects, from which on one division of shuffled responses tells their correlation to 0.01
MOST_STEPS = 100  # of a fit to shuffled responses of so many, which would come to rest after hundreds


class Audit(NamedTuple):
    """What responses say of a benchmark.

    Attributes:
        fit: of the responses.
        items: one row per item, those with a reason to look at them first: `item_id`, `reasons` (of
            `irtjax.auditing.findings.REASONS`, separated by semicolons), `mean_response`, `difficulty`,
            `discrimination`, `discrimination_se`; `information`, its share of that of all items in the population;
            `needed`, whether it is among the fewest items with a reliability within 0.01 of that of all; the columns of
            `wrong_keys`; `p_misfit` of S-X2 and `depends_on`, adjusted by Holm's method; and the `gain` of subjects who
            could have known it.
        pairs: of items, as of `irtjax.local_dependence`; None of more than 1,000 items.
        ranking: of the subjects (`irtjax.ranking`).
        contamination: with dates and cutoffs; else None.
        second: the strongest dimension besides ability; None of other responses than right and wrong.
        reliability: of the abilities (`half_to_half`).
        shuffled: the same where the responses to each item are shuffled among the subjects: the null control. Of more
            than 10,000 subjects by one division of the items, and fits that may end before they have come to rest.
        reasons: how many items have each reason.
        alarms: the same of responses that are simulated by the fit, with right keys: false alarms. None of other
            responses than right and wrong.
    """

    fit: Fit
    items: pd.DataFrame
    pairs: pd.DataFrame | None
    ranking: pd.DataFrame
    contamination: Contamination | None
    second: SecondDimension | None
    reliability: float
    shuffled: float
    reasons: dict[str, int]
    alarms: dict[str, int] | None


@checks_types
def audit(
    responses: Any = None,
    *,
    choices: pd.DataFrame | None = None,
    key: Mapping[str, str] | pd.Series | None = None,
    dates: Mapping[str, Any] | pd.Series | None = None,
    cutoffs: Mapping[str, Any] | pd.Series | None = None,
    level: float = 0.05,
    seed: int = 0,
    on_step: Callable[[str], None] = lambda step: None,
    **options: Any,
) -> Audit:
    """Looks for what is wrong with a benchmark in the responses of subjects to it.

    Args:
        responses: a fit of one dimension, or what `irtjax.fit` takes; by default the `choices`, scored by the `key`.
        choices: the option that each subject chose, by subject and item.
        key: the right option of each item, by item id.
        dates: of the items, by item id, with `cutoffs`.
        cutoffs: of the subjects, by subject id.
        level: of tests that are adjusted for their number.
        seed: of what is simulated and shuffled.
        on_step: called with a few words on what is being done.
        **options: of `irtjax.fit`, such as `model`; the model is that of `auto` if it is not given.

    Raises:
        InputError: as of the functions that it calls; neither responses nor choices; dates without cutoffs.
    """
    if (dates is None) != (cutoffs is None):
        raise InputError("`dates` of the items and `cutoffs` of the subjects are given together")
    if responses is None and choices is None:
        raise InputError("`responses` or `choices` with a `key`: expected one of them")
    if responses is None:
        responses = read_choices(choices, key).scored()
    on_step("fit")
    fit = responses if isinstance(responses, Fit) else fit_responses(responses, **({"model": "auto"} | options))
    held = in_memory(fit.responses) if choices is None else whole(fit.responses)
    fit = dataclasses.replace(fit, responses=held)
    of_ids = fit.responses.subject_ids.astype(str), fit.responses.item_ids.astype(str)
    chosen = None if choices is None else read_choices(choices, key, *of_ids)
    on_step("items")
    exposed = None if dates is None or cutoffs is None else contamination(fit, dates, cutoffs, seed=seed)
    items, pairs = _examine(fit, chosen, exposed, level)
    rng, right_wrong = np.random.default_rng(seed), not on_scales(fit.responses)
    single = one_by_one(fit.responses)
    second = second_dimension(single, _chances(fit.parameters, fit, single), seed=seed) if right_wrong else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # of what is shuffled or cut in half
        on_step("halves of the items")
        halves = half_to_half(fit, rng)
        on_step("null control")
        shuffled = half_to_half(fit, rng, shuffled=True)
        on_step("false alarms")
        alarms = count(_of_sound_items(fit, chosen, items, level, rng)) if right_wrong else None
    on_step("ranking")
    return Audit(
        fit=fit,
        items=in_order(items),
        pairs=pairs,
        ranking=ranking(fit),
        contamination=exposed,
        second=second,
        reliability=halves,
        shuffled=shuffled,
        reasons=count(items),
        alarms=alarms,
    )


def half_to_half(fit: Fit, rng: np.random.Generator, *, shuffled: bool = False) -> float:
    """Reliability of abilities: 2r / (1 + r), with r the correlation of those by two random halves of the items.

    Each half is fitted on its own (Spearman 1910; Brown 1910); r is a mean over `DIVISIONS` of the items. The
    reliability that the standard errors of one fit say is that of known items: with few subjects it is high even where
    responses are shuffled.

    Given who answered what, halves of shuffled responses are independent, whatever is computed from each: where there
    are more than `MANY` subjects one division is enough, and fits need not come to rest.

    Args:
        fit: whose model is fitted to the halves.
        rng: deals the items.
        shuffled: whether the responses to each item are shuffled among the subjects, anew for each division.
    """
    responses: Any = in_memory(fit.responses)
    models = np.array(fit.item_models if on_scales(responses) else _types(fit))
    correlations, simply = [], shuffled and responses.num_subjects > MANY
    options = {"max_iterations": MOST_STEPS} if simply else {}
    for _ in range(1 if simply else DIVISIONS):
        given = _shuffled(responses, rng) if shuffled else responses
        one, other = (
            _abilities(given.choose_items(part), models[part].tolist(), options)
            for part in np.array_split(rng.permutation(given.num_items), 2)
        )
        known = np.isfinite(one) & np.isfinite(other)
        varies = known.sum() > 2 and one[known].std() > 0 and other[known].std() > 0
        correlations.append(np.corrcoef(one[known], other[known])[0, 1] if varies else 0.0)
    r = float(np.mean(correlations))
    return 2 * r / (1 + r)


def _abilities(responses: Any, models: list[str], options: dict[str, Any]) -> Float[np.ndarray, " J"]:
    """By a fit of these responses; NaN of subjects who have none."""
    there = responses.counts(axis=1)[1] > 0
    found = np.full(responses.num_subjects, np.nan)
    found[there] = fit_responses(responses.with_responses(), models, standard_errors=False, **options).ability
    return found


def _examine(
    fit: Fit, chosen: Choices | None, exposed: Contamination | None, level: float
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The items, and their pairs."""
    keys = None
    if not on_scales(fit.responses):
        keys = wrong_keys(fit, chosen)
    few = fit.responses.num_items <= MOST_COMPARED
    fits, pairs = (item_fit(fit), local_dependence(fit)) if few else (None, None)
    return findings(fit, keys, fits, pairs, exposed, level), pairs


def _chances(items: Any, fit: Fit, single: SparseResponses) -> Float[np.ndarray, " N"]:
    """That each answer is right, by the parameters of items, at the abilities of the fit."""
    own = items.take(single.items)
    theta = np.nan_to_num(np.asarray(fit.ability))[single.subjects]
    at = own._replace(intercept=own.intercept + own.slope[:, 0] * theta)
    right, _ = probabilities(at, np.zeros((1, 1)))
    return np.asarray(right)[0]


def _shuffled(responses: Any, rng: np.random.Generator) -> Any:
    """Responses to each item, shuffled among the subjects; single ones among those who answered it."""
    if isinstance(responses, SparseResponses):
        order = np.empty(responses.num_answers, int)
        by_item = np.argsort(responses.items, kind="stable")
        order[by_item] = np.lexsort([rng.random(responses.num_answers), responses.items])
        trials = None if responses.trials is None else responses.trials[order]
        return dataclasses.replace(responses, answers=responses.answers[order], trials=trials)
    order = rng.permuted(np.tile(np.arange(responses.num_subjects)[:, None], responses.num_items), axis=0)
    values = np.take_along_axis(np.asarray(responses.values), order, axis=0)
    if isinstance(responses, ResponseMatrix):
        return ResponseMatrix(values, responses.subject_ids, responses.item_ids)
    trials = None if responses.trials is None else np.take_along_axis(np.asarray(responses.trials), order, axis=0)
    return dataclasses.replace(responses, values=values, trials=trials)


def _types(fit: Fit) -> tuple[str, ...]:
    """The type of each right/wrong item, to fit others like it."""
    return ("rasch",) * fit.responses.num_items if fit.model == "rasch" else types_of(fit)


def _of_sound_items(
    fit: Fit, chosen: Choices | None, items: pd.DataFrame, level: float, rng: np.random.Generator
) -> pd.DataFrame:
    """Findings on responses that are drawn by the fit; who misses an item chooses as those did who missed it.

    Items whose curves are in doubt have the median discrimination, and the same share of right answers.
    """
    unsound = items["reasons"].str.contains("|".join((DOUBTFUL, FALLING, FLAT))).to_numpy()
    given, theta = fit.parameters, np.nan_to_num(np.asarray(fit.ability))
    slope = np.where(unsound, np.median(np.asarray(given.slope)[~unsound, 0]) if not unsound.all() else 1.0, 0.0)
    share = np.clip(items["mean_response"].to_numpy(), 0.01, 0.99)
    level_of = logit(share) * np.sqrt(1 + slope**2 * theta.var() / 2.89) - slope * theta.mean()  # a normal population
    sound = given._replace(
        slope=np.where(unsound[:, None], slope[:, None], given.slope),
        intercept=np.where(unsound, level_of, given.intercept),
    )
    single = one_by_one(fit.responses)
    p, cells = _chances(sound, fit, single), (single.subjects, single.items)
    if isinstance(fit.responses, SparseResponses):
        right = rng.random(len(p)) < p
        drawn: Any = dataclasses.replace(single, answers=right.astype(np.int8))
    else:
        right = rng.random(single.values.shape)[cells] < p
        values = np.full(single.values.shape, MISSING, np.int8)
        values[cells] = right
        drawn = ResponseMatrix(values, single.subject_ids, single.item_ids)
    again = fit_responses(drawn, _types(fit))
    if chosen is None:
        return _examine(again, None, None, level)[0]
    number = len(chosen.options)
    counts = np.stack([(chosen.codes == k).sum(axis=0) for k in range(number)]).astype(float)
    counts[chosen.key, np.arange(counts.shape[1])] = 0
    hit = np.zeros(single.values.shape, bool)
    hit[cells] = right
    astray = np.cumsum(counts / np.maximum(counts.sum(axis=0), 1), axis=0)
    other = np.minimum((np.asarray(rng.random(hit.shape))[:, :, None] > astray.T).sum(axis=2), number - 1)
    codes = np.where(hit, chosen.key, np.where(counts.sum(axis=0) > 0, other, -1))
    return _examine(again, chosen._replace(codes=np.where(chosen.codes < 0, -1, codes)), None, level)[0]
