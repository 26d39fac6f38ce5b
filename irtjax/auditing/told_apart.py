"""Which subjects are told apart from which: how many standard errors are enough, and from how many each one is.

Both are about all J (J - 1) / 2 pairs. Up to `MOST_PAIRED` subjects these are gone through. Of more, their distances
are counted on a grid, by a convolution, and each subject is looked up among others of nearly the same error.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import scipy.fft
from scipy.special import ndtr

from irtjax.types import Float, Int

AT_A_TIME = 256  # subjects that are compared with all others at once
EDGES = np.linspace(0, 12, 12001)  # bins of differences in standard errors
MOST_PAIRED = 8192  # subjects whose pairs are gone through: two seconds
ABILITIES, VARIANCES = 8192, 128  # cells of the grid
LEAST_RATIO = 1e-6  # of the variance of a subject to the largest; below it all are alike
LOOKED_UP = 2**14  # subjects at a time
MARGIN = 1e-9  # of abilities, within which the order of rounding could decide


def enough(theta: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"], level: float) -> float:
    """How many standard errors two subjects are apart at the least where the order of them is claimed.

    The lowest number, in steps of 0.001, at which the expected number of wrong orders, Σ Φ(-z) over the pairs with a
    distance z above it, is no more than 1 - `level`; infinite if there is none below 12.

    Of more than `MOST_PAIRED` subjects abilities and variances are known to within cells of a grid. Each pair then
    counts wherever its distance may be above the number, and with the smallest distance that it may have: what is
    expected is no more than 1 - `level` here too. The number is too high by some 0.04, and where a few errors are far
    smaller than the others by up to 0.2.

    Args:
        theta: abilities.
        variance: of them.
        level: probability, 0 to 1.
    """
    if len(theta) < 2:
        return 0.0
    wrong = (_wrong_of_pairs if len(theta) <= MOST_PAIRED else _wrong_on_grid)(theta, variance)
    beyond = np.cumsum(wrong[::-1])[::-1]
    return float(EDGES[np.searchsorted(-beyond, level - 1)]) if beyond[-1] <= 1 - level else np.inf


def _wrong_of_pairs(theta: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]) -> Float[np.ndarray, " E"]:
    """Wrong orders expected of the pairs in each bin of distances, as likely as at its lower edge."""
    pairs, number = np.zeros(len(EDGES) + 1), np.arange(len(theta))
    order = np.argsort(theta, kind="stable")
    for some, z in _distances(theta[order], variance[order]):
        lower = number < number[some, None]  # each pair once
        pairs += np.bincount(np.searchsorted(EDGES, z[lower]), minlength=len(pairs))
    return pairs[1:] * ndtr(-EDGES)


def _distances(
    theta: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]
) -> Iterator[tuple[slice, Float[np.ndarray, "N J"]]]:
    """θ_A - θ_B in standard errors of the difference, some subjects A at a time."""
    for start in range(0, len(theta), AT_A_TIME):
        some = slice(start, start + AT_A_TIME)
        yield some, (theta[some, None] - theta) / np.sqrt(variance[some, None] + variance)


def _wrong_on_grid(theta: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]) -> Float[np.ndarray, " E"]:
    """As `_wrong_of_pairs`, at most: pairs in the highest bin, and with the smallest distance, that they may have.

    With n_a(c) subjects of the a-th set of like variances in a cell c of abilities, Σ_c n_a(c + d) n_b(c) pairs are d
    cells apart.
    """
    width = max(float(np.ptp(theta)) / ABILITIES, 1e-300)
    cell = np.minimum(((theta - theta.min()) / width).astype(int), ABILITIES - 1)
    sets, result, number = _of_like_variance(variance), np.zeros(len(EDGES)), 2 * ABILITIES
    spectra = [scipy.fft.rfft(np.bincount(cell[one], minlength=number)) for one in sets]
    low, high = (np.array([of(variance[one]) for one in sets]) for of in (np.min, np.max))
    apart, step, likely = np.arange(ABILITIES) * width, EDGES[1], ndtr(-EDGES)
    for a, b in itertools.combinations_with_replacement(range(len(sets)), 2):
        spread, most = (np.sqrt(max(one[a] + one[b], 1e-300)) for one in (low, high))
        near = apart[: np.searchsorted(apart, EDGES[-1] * most + width)]  # no order of the others is ever wrong
        both = scipy.fft.irfft(spectra[a] * spectra[b].conj(), number)
        pairs = np.rint(both[: len(near)])
        if a == b:  # no direction but this, and in one cell each pair twice and everyone with itself
            pairs[0] = (pairs[0] - len(sets[a])) / 2
        else:
            pairs[1:] += np.rint(both[: -len(near) : -1])
        some = pairs > 0
        nearest, farthest = np.maximum(near[some] - width, 0.0) / most, (near[some] + width) / spread
        at = np.minimum(farthest / step, len(EDGES) - 1).astype(int)
        from_there = np.minimum(nearest / step, len(EDGES) - 1).astype(int)
        result += np.bincount(at, pairs[some] * likely[from_there], len(EDGES))
    return result


def _of_like_variance(variance: Float[np.ndarray, " J"]) -> list[Int[np.ndarray, " n"]]:
    """Subjects in sets that are equally wide on the scale of the logarithm."""
    log = np.log(np.maximum(variance, LEAST_RATIO * variance.max()))
    place = np.minimum((log - log.min()) / max(float(np.ptp(log)), 1e-12) * VARIANCES, VARIANCES - 1).astype(int)
    order = np.argsort(place, kind="stable")
    return [one for one in np.split(order, np.flatnonzero(np.diff(place[order])) + 1) if len(one)]


def number_below(
    theta: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"], far: float
) -> Int[np.ndarray, " J"]:
    """How many others are below each subject by more than `far` standard errors of the difference.

    Others of nearly the same error are sorted by ability: those below a bound for the largest of their errors are
    counted at once, those above one for the smallest are none, and the few between are looked at. √J such sets take
    time with J √J log J, and every order is that of the pair itself.
    """
    found = np.zeros(len(theta), int)
    if not np.isfinite(far):
        return found
    slack = MARGIN * float(np.abs(theta).max(initial=1.0))
    order = np.argsort(theta, kind="stable")  # searches one after the other are near each other
    alike = np.array_split(np.argsort(variance, kind="stable"), max(1, int(np.sqrt(len(theta)))))
    sets = [(theta[one][by], variance[one][by]) for one in alike for by in [np.argsort(theta[one], kind="stable")]]
    for start in range(0, len(order), LOOKED_UP):
        some = order[start : start + LOOKED_UP]
        own, own_variance = theta[some], variance[some]
        below = np.zeros(len(some), int)
        for other, other_variance in sets:
            surely = own - far * np.sqrt(own_variance + other_variance.max()) - slack
            perhaps = own - far * np.sqrt(own_variance + other_variance.min()) + slack
            first, last = np.searchsorted(other, surely), np.searchsorted(other, perhaps)
            below += first
            between = last - first
            subject = np.repeat(np.arange(len(some)), between)
            at = np.arange(len(subject)) + np.repeat(first - (np.cumsum(between) - between), between)
            with np.errstate(divide="ignore", invalid="ignore"):
                z = (own[subject] - other[at]) / np.sqrt(own_variance[subject] + other_variance[at])
            below += np.bincount(subject[z > far], minlength=len(some))
        found[some] = below
    return found
