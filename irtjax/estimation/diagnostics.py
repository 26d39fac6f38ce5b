"""Warnings about a fit: no convergence, or a scale that does not measure what it seems to."""

import contextlib
import re
import warnings
from collections.abc import Iterator

import numpy as np

from irtjax import processes
from irtjax.errors import printable
from irtjax.estimation import anchor_misfit
from irtjax.estimation.quadrature.checks import STEEP
from irtjax.estimation.special_items import LEAST_SPREAD
from irtjax.fits.fit_text import counted
from irtjax.fits.result import Fit
from irtjax.fits.status import Status
from irtjax.populations.groups import FittedGroups
from irtjax.responses.linked_blocks import linked_blocks
from irtjax.responses.matrix import ResponseMatrix, share_right
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.stored import StoredValues
from irtjax.responses.values import counts_of, mine, on_scales
from irtjax.types import Float, Int

RESPONSES = 2**21  # worked on at a time, in float32
SOME = 64  # items that are looked at first
MANY = 0.1  # share of items that speak against one dimension
REPRODUCED = 0.95  # correlation of difficulties between samples
LOGITS = 6.0  # difficulties beyond it count as this
LEAST_ERROR, ERROR_PER_SUBJECT = 0.05, 0.01  # nats of integration error, below which nothing is said
ONE_SLOPE = ("rasch", "1pl")  # for all items
OF_SHARES = ("beta", "ordered_beta")
FEW_EQUAL = 3  # of as many equal shares it is said that there are no others
NAMES_AND_NUMBERS = r"'[^']*'|\d[\d.,e+-]*"
RELATIVE_ERROR = 1e-6  # of a log-likelihood in float32, below which nothing is said either


class FitWarning(UserWarning):
    """A fit that has not converged, or whose scale is doubtful; the message says what to do."""


def item_rest_correlations(values: Int[np.ndarray, "J I"] | StoredValues | SparseValues) -> Float[np.ndarray, " I"]:
    """Correlation (I,) of each item with the share right of all other items, over the subjects who answered it.

    Args:
        values: (J, I) int8; -1 missing. Of several processes each reads a part.

    Returns:
        NaN where an item or the rest does not vary.
    """
    if isinstance(values, SparseValues):
        return _of_sparse(values.responses)
    right_total, observed_total = (total.astype(float) for total in counts_of(values, axis=1))
    several = observed_total > 1  # others have no rest
    unit = np.divide(1.0, observed_total - 1, out=np.zeros_like(observed_total), where=several)
    share = right_total * unit  # share right of the rest, plus the item's own part y · unit
    share = several * (share - share[several].mean()) if several.any() else share  # small numbers, for float32
    rows = np.stack([several, share, share**2, unit, share * unit, unit**2]).astype(np.float32)
    subjects, part = mine(values)
    rows, dealt = rows[:, subjects], len(rows[0, subjects]) < len(several)
    correlations, step = [np.zeros(0)], max(1, RESPONSES // values.shape[0])
    items = range(*part.indices(values.shape[1]))
    for at in items[::step]:
        block = values[subjects, at : min(at + step, items.stop)]
        complete = not dealt and block.min() >= 0
        observed = np.ones((len(block), 1), np.float32) if complete else (block >= 0).astype(np.float32)
        sums = [(rows[:3] @ observed).astype(float), (rows @ (block == 1).astype(np.float32)).astype(float)]
        (number, rest, rest_square), products = processes.total(sums) if dealt else sums
        right, right_share, _, right_unit, right_both, right_square = products
        together = right_share - right_unit
        rest, rest_square = rest - right_unit, rest_square - 2 * right_both + right_square
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance = together - right * rest / number
            spread = np.sqrt((right - right**2 / number) * (rest_square - rest**2 / number))
            correlations.append(np.where(spread > 1e-9 * number, covariance / spread, np.nan))
    found = np.concatenate(correlations)
    return found if dealt else processes.gather(found, items.start)


def _of_sparse(responses: SparseResponses) -> Float[np.ndarray, " I"]:
    """The same where each subject answered some of the items, which may be easy or hard.

    An answer counts by how far it is from the share right of its item: so the rest of one who was asked hard items is
    not less than that of another. Where all answered all, the correlations are the same.
    """
    right, observed = responses.counts(axis=0)
    items, subjects = responses.items, responses.subjects
    deviation = responses.answers - share_right(right, observed)[items]
    number = responses.counts(axis=1)[1].astype(float)[subjects]
    total = np.bincount(subjects, deviation, responses.num_subjects)[subjects]
    rest = np.divide(total - deviation, number - 1, out=np.zeros_like(total), where=number > 1)
    several = number > 1  # others have no rest
    count, of_right, of_rest, squares, products = (
        np.bincount(items, weight * several, responses.num_items)
        for weight in (1.0, responses.answers, rest, rest**2, responses.answers * rest)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = products - of_right * of_rest / count
        spread = np.sqrt((of_right - of_right**2 / count) * (squares - of_rest**2 / count))
        return np.where(spread > 1e-9 * count, covariance / spread, np.nan)


def difficulty_reliability(difficulty: Float[np.ndarray, " I"], standard_error: Float[np.ndarray, " I"]) -> float:
    """Expected correlation of difficulties between two samples: 1 - mean squared standard error / variance."""
    b, se = np.clip(difficulty, -LOGITS, LOGITS), np.minimum(np.nan_to_num(standard_error, nan=LOGITS), LOGITS)
    return float(max(0.0, 1 - np.mean(se**2) / max(b.var(), 1e-12)))


def warn(fit: Fit, stacklevel: int = 3) -> None:
    """Warns of what is doubtful about a fit, as a `FitWarning` that points at the caller of `fit`."""
    of_all = (_of_status, _of_integration, _of_steep_items, _of_spread, _of_blocks, anchor_misfit.misfit)
    for find in (_of_equal_shares, *of_all) if on_scales(fit.responses) else (*of_all, _of_asymptotes, _of_signs):
        message = find(fit)
        if message is not None:
            warnings.warn(printable(message), FitWarning, stacklevel=stacklevel)


@contextlib.contextmanager
def held_back(said: list[str]) -> Iterator[None]:
    """Keeps the messages of fits that warn; other warnings are given as ever."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        yield
    for one in caught:
        if issubclass(one.category, FitWarning):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@contextlib.contextmanager
def one_warning_of_each_kind(stacklevel: int = 4) -> Iterator[None]:
    """Of many fits: warnings that are alike but for names and numbers are one, that of the first, with a count."""
    said: list[str] = []
    with held_back(said):
        yield
    kinds: dict[str, list[str]] = {}
    for message in said:
        kinds.setdefault(re.sub(NAMES_AND_NUMBERS, "", message), []).append(message)
    for first, *others in kinds.values():
        more = f" (and {counted(len(others), 'fit')} more that warned of the same)" if others else ""
        warnings.warn(first + more, FitWarning, stacklevel=stacklevel)  # at the caller of the function with this block


def _of_status(fit: Fit) -> str | None:
    if not fit.status.advice:
        return None
    ids, unbounded = fit.responses.item_ids, np.flatnonzero(fit.unbounded)
    items = f"{unbounded.size} of {ids.size} items, such as '{ids[unbounded[0]]}'," if unbounded.size else ""
    if fit.status is Status.NO_MAXIMUM:
        share = share_right(*fit.responses.counts(axis=0))[unbounded[0]]
        guessing = fit.item_columns.get("guessing", np.zeros(ids.size))[unbounded[0]]
        if guessing > share:
            return (
                f"{items} have no finite estimate: {share:.1%} of the answers to it are right, fewer than by the "
                f"fixed guessing of {guessing:.0%}; fix a lower guessing there, or none"
            )
    return fit.status.advice.format(
        iterations=counted(fit.iterations, "iteration"),
        limit="max_steps" if fit.estimator == "svi" else "max_iterations",
        items=items,
        steadier=_steadier(fit),
        rounds=fit.details.get("rounds"),
    )


def _steadier(fit: Fit) -> str:
    """What keeps the slopes of such a model finite."""
    if fit.estimator == "svi":
        return "give `priors` with less room for slopes"
    dims = fit.parameters.slope.shape[1]
    if on_scales(fit.responses):
        some = "give `priors` (`auto`)" if dims == 1 or fit.model == "nominal" else "take fewer dimensions"
        return f"{some}, or take more subjects"
    if fit.model == "rasch":
        return "take the 1pl, the same model in other units, with a `slope_prior` such as (0, 2), or more subjects"
    fewer = "more subjects" if fit.model == "1pl" else "more subjects, or the 1pl"
    return f"give a `slope_prior` such as (0, 2), or take {'fewer dimensions, ' if dims > 1 else ''}{fewer}"


def _of_integration(fit: Fit) -> str | None:
    nothing = max(LEAST_ERROR, ERROR_PER_SUBJECT * fit.responses.num_subjects, RELATIVE_ERROR * abs(fit.log_likelihood))
    if not fit.log_likelihood_error > nothing or fit.status is Status.NO_MAXIMUM:  # no nodes are fine enough for steps
        return None
    dims = fit.parameters.slope.shape[1]
    number = round(fit.details.get("nodes", 0) ** (1 / dims))
    advice = {
        "nodes": (
            "abilities are narrower than the nodes are apart, and snap to them; "
            f"raise `num_nodes` above {number}, or leave it out if you gave it"
        ),
        "around": "it is only known so far; take fewer dimensions",
        "normal": "posteriors are not as normal as they are taken to be; "
        + ("give `num_nodes`, such as 241" if dims == 1 else "use `integration` 'nodes'"),
    }
    return (
        f"finer integration over abilities changes the log-likelihood by {fit.log_likelihood_error:.2g} nats: "
        f"{advice[str(fit.integration)]}"
    )


def _of_asymptotes(fit: Fit) -> str | None:
    estimated = [name for name in ("guessing", "upper") if (fit.item_columns.get(f"{name}_se", np.zeros(1)) > 0).any()]
    if not estimated or "difficulty" not in fit.item_columns or not np.isfinite(fit.difficulty_se).any():
        return None
    reliability = difficulty_reliability(fit.difficulty, fit.difficulty_se)
    if reliability >= REPRODUCED:
        return None
    return (
        "the data hardly support asymptotes: by their standard errors, difficulties from other responses would "
        f"correlate with these at about {reliability:.2f} only; use the 2pl, or many more subjects"
    )


def _of_steep_items(fit: Fit) -> str | None:
    if fit.status is Status.NO_MAXIMUM:
        return None
    slope, columns, none = (
        np.abs(np.asarray(fit.parameters.slope)),
        fit.item_columns,
        np.full(len(fit.parameters.slope), np.nan),
    )
    endings = [""] if slope.shape[1] == 1 else [f"_{k + 1}" for k in range(slope.shape[1])]
    error = np.stack([columns.get(f"discrimination{ending}_se", none) for ending in endings], axis=1)
    steep = ((slope > STEEP) & ~(error < slope / 2)).any(axis=1)
    if not steep.any():
        return None
    return (
        f"{steep.sum():,} of {len(steep):,} items, such as '{fit.responses.item_ids[steep][0]}', separate the subjects "
        f"so sharply that their slopes (over {STEEP:.0f}) may have no finite maximum: {_steadier(fit)}"
    )


def _of_spread(fit: Fit) -> str | None:
    if fit.model == "nominal":  # whose slopes are those of categories
        return None
    spread = np.abs(fit.parameters.slope).max() * fit.reference.sd.max()
    if not spread < LEAST_SPREAD:
        return None
    return (
        "abilities have no variance, by the estimate: better answers to one item do not go with better answers to "
        "others, so abilities and difficulties on their scale mean nothing"
    )


def _of_blocks(fit: Fit) -> str | None:
    anchored = isinstance(fit.population, FittedGroups) or bool(np.any(np.asarray(fit.reference.mean) != 0))
    if anchored or not isinstance(fit.responses, ResponseMatrix | ScaledResponses | SparseResponses):
        return None
    values = fit.responses.values
    # an item that all answered links all, and is found at once
    if not isinstance(values, SparseValues) and (np.asarray(values)[:, :SOME] >= 0).all(axis=0).any():
        return None
    apart = linked_blocks(values)
    if len(apart) < 2:
        return None
    names = [
        f"{len(one.subjects):,} × {len(one.items):,} with '{fit.responses.subject_ids[one.subjects[0]]}' and "
        f"'{fit.responses.item_ids[one.items[0]]}'"
        for one in apart[:3]
    ]
    more = f", and {len(apart) - 3:,} more" if len(apart) > 3 else ""
    return (
        f"no answer links {len(apart):,} blocks of subjects × items: {'; '.join(names)}{more}: they are on one scale "
        "only if their subjects are equally able on average; fit them apart, or give `anchors`"
    )


def _of_equal_shares(fit: Fit) -> str | None:
    """Of items whose shares between 0 and 1 are all the same: the more precise the likelier."""
    of_shares = np.array([name in OF_SHARES for name in np.broadcast_to(fit.item_models, fit.responses.num_items)])
    if not of_shares.any():
        return None
    given = fit.responses.answered(of_shares)
    between = (given.values > 0) & (given.values < 1)
    items, shares = given.items[between], given.values[between]
    least, most = np.ones(len(of_shares)), np.zeros(len(of_shares))
    np.minimum.at(least, items, shares)
    np.maximum.at(most, items, shares)
    number = np.bincount(items, minlength=len(of_shares))
    equal = np.flatnonzero((number >= FEW_EQUAL) & (least == most))
    if not equal.size:
        return None
    return (
        f"all {number[equal[0]]} shares between 0 and 1 of item '{fit.responses.item_ids[equal[0]]}' are "
        f"{least[equal[0]]:g} ({equal.size:,} such items): nothing bounds their precision, and the likelihood means "
        "nothing; as few values as that are grades: fit `graded`"
    )


def _of_signs(fit: Fit) -> str | None:
    if fit.parameters.slope.shape[1] > 1:
        return None
    num_items = fit.responses.num_items
    # negative beyond two standard errors: small samples have negative correlations by chance
    noise = 2 / np.sqrt(np.maximum(fit.responses.counts(axis=0)[1], 1))
    negative_rest = int((item_rest_correlations(fit.responses.values) < -noise).sum())
    slope_se = np.nan_to_num(fit.item_columns.get("discrimination_se", np.zeros(num_items)))
    negative_slope = int((np.asarray(fit.parameters.slope)[:, 0] < -2 * slope_se).sum())
    if max(negative_rest, negative_slope) <= MANY * num_items:
        return None
    return (
        f"of {num_items} items {negative_rest} correlate negatively with the rest, beyond chance, and {negative_slope} "
        "have a slope below 0 by more than two standard errors: one dimension does not mean 'more right answers' here; "
        f"fit groups of items on their own (such as each gold label){'' if fit.model in ONE_SLOPE else ', or the 1pl'}"
    )
