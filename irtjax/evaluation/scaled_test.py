"""A test of grades, counts or shares as banks and forms need it: what responses are worth, expected and observed.

What a response is worth here is a share of the way from the lowest to the highest of its item: 0 to 1. Items that all
calibrated subjects answered alike are not part of the fit, as nothing is known about them but that answer.
"""

import dataclasses
import functools

import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.scaled_trials import Trials, recorded_trials, trials_of
from irtjax.evaluation.score_posterior import ScorePosterior
from irtjax.fits.result import Fit
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.scoring.family_items import KnownItems, known_items
from irtjax.scoring.family_scores import posteriors_on_line
from irtjax.scoring.family_worth import Worth, information_at, of_scales, worth_at
from irtjax.types import Bool, Float, Int


def alike(responses: ScaledResponses) -> Bool[np.ndarray, " I"]:
    """Items with categories that everybody answered alike."""
    labelled = np.array([scale.labels is not None for scale in responses.scales])
    values = np.where(responses.observed, responses.values, np.nan)
    return labelled & (np.nanmin(values, axis=0) == np.nanmax(values, axis=0))


def ends_of(scales: tuple[Scale, ...]) -> Float[np.ndarray, "2 I"]:
    """The least and the most that a response to each item is worth."""
    return np.array([(0, 1) if scale.labels is None else scale.worth[[0, -1]] for scale in scales], float).T


def shares_of(responses: ScaledResponses) -> Float[np.ndarray, "J I"]:
    """Responses as shares of the way from the lowest to the highest, NaN where missing."""
    low, high = ends_of(responses.scales)
    return (responses.worths() - low) / (high - low)


def on_scales_of(responses: ScaledResponses, bank: ScaledResponses) -> ScaledResponses:
    """Responses to some items of a bank in the categories that these have there.

    Raises:
        InputError: a response that an item of the bank cannot have.
    """
    places = [bank.item_ids.tolist().index(item) for item in responses.item_ids]
    scales, values = tuple(bank.scales[i] for i in places), np.array(responses.values)
    for i, (scale, own) in enumerate(zip(responses.scales, scales, strict=True)):
        labels = {str(label): k for k, label in enumerate(own.labels or ())}
        for k in range(scale.top, -1, -1) if scale.labels is not None and scale != own else ():
            said, given = str((scale.labels or ())[k]), np.asarray(responses.values)[:, i] == k
            if given.any() and said not in labels:
                raise InputError(
                    f"subject {str(responses.subject_ids[given][0])!r}, item {str(responses.item_ids[i])!r}: {said}, "
                    f"expected one of {', '.join(labels)}"
                )
            values[given, i] = labels.get(said, -1)
    return ScaledResponses(values, responses.subject_ids, responses.item_ids, scales, responses.trials)


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledTest:
    """A calibrated test.

    Attributes:
        fit: of the items that were not answered alike by everybody.
        given: responses of the calibrated subjects to all items, on the scales that responses can have.
    """

    fit: Fit
    given: ScaledResponses

    @functools.cached_property
    def known(self) -> KnownItems:
        """The items of the fit."""
        found = known_items(self.fit)
        assert found is not None
        return found

    @functools.cached_property
    def fitted(self) -> Int[np.ndarray, " V"]:
        """Positions of the items of the fit among all."""
        return np.flatnonzero(np.isin(self.given.item_ids, self.known.item_ids))

    @functools.cached_property
    def trials(self) -> Trials:
        """Of a response to each item of the fit."""
        return trials_of(self.known, recorded_trials(self.given)[:, self.fitted])

    def at(self, theta: Float[np.ndarray, " Q"]) -> Worth:
        """Mean and variance of the share that a response to each item is, (Q, I) each."""
        shape, scales = (len(theta), self.given.num_items), tuple(self.given.scales[i] for i in self.fitted)
        low, high = ends_of(scales)
        of_categories = (of_scales(self.known, scales) - low[:, None]) / (high - low)[:, None]
        found = worth_at(self.known, theta, of_categories)
        mean = np.broadcast_to(np.nanmean(shares_of(self.given), axis=0), shape).copy()
        variance = np.zeros(shape)
        mean[:, self.fitted], variance[:, self.fitted] = found.mean, found.variance / self.trials.effective
        return Worth(mean, variance)

    def information(self, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
        """Fisher information of a response to each item."""
        found = np.zeros((len(theta), self.given.num_items))
        found[:, self.fitted] = information_at(self.trials.known, theta) * self.trials.times
        return found

    def posteriors(
        self, responses: ScaledResponses, items: Int[np.ndarray, " K"]
    ) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, "J Q"]]:
        """Abilities, and the weight of each subject there, given responses to the items at some positions."""
        place = {item: at for at, item in enumerate(self.fitted.tolist())}
        columns = np.array([at for at, item in enumerate(items.tolist()) if item in place], int)
        mean, sd = (float(np.squeeze(leaf)) for leaf in self.fit.one_population)
        if not columns.size:
            theta = mean + sd * np.linspace(-6, 6, 121)
            weights = np.exp(-0.5 * ((theta - mean) / sd) ** 2)
            return theta, np.broadcast_to(weights / weights.sum(), (responses.num_subjects, len(theta)))
        known = self.known.take(np.array([place[int(items[at])] for at in columns]))
        return posteriors_on_line(_nearest(responses.choose_items(columns), known), known, self.fit.one_population)

    def score_posterior(self, responses: ScaledResponses, items: Int[np.ndarray, " K"]) -> ScorePosterior:
        """Moments of the score on all items, as those of right and wrong answers but for errors of the items."""
        theta, weights = self.posteriors(responses, items)
        shares, found = shares_of(responses), self.at(theta)
        unseen = np.ones((responses.num_subjects, self.given.num_items))
        unseen[:, items] = np.isnan(shares)
        sums, noise = found.mean @ unseen.T, found.variance @ unseen.T  # (Q, J)
        mean = (weights * sums.T).sum(axis=1)
        variance = np.maximum((weights * sums.T**2).sum(axis=1) - mean**2, 0) + (weights * noise.T).sum(axis=1)
        ability = weights @ theta
        ability_se = np.sqrt((weights * (theta[None] - ability[:, None]) ** 2).sum(axis=1))
        seen, number = np.nansum(shares, axis=1), self.given.num_items
        at_ability = seen + (self.at(ability).mean * unseen).sum(axis=1)
        return ScorePosterior(
            (seen + mean) / number, np.sqrt(variance) / number, at_ability / number, ability, ability_se
        )

    def filled(self, responses: ScaledResponses, items: Int[np.ndarray, " K"]) -> Float[np.ndarray, "J K"]:
        """Shares; the posterior mean where a response is missing."""
        shares = shares_of(responses)
        if not np.isnan(shares).any():
            return shares
        theta, weights = self.posteriors(responses, items)
        return np.where(np.isnan(shares), weights @ self.at(theta).mean[:, items], shares)


def _nearest(responses: ScaledResponses, known: KnownItems) -> ScaledResponses:
    """Responses in the categories of the items; a grade that the fit does not know is the nearest that it does."""
    values, observed = np.array(responses.values), responses.observed
    for i, (scale, own) in enumerate(zip(responses.scales, known.scales, strict=True)):
        if scale.labels is None or scale == own:
            continue
        places = np.abs(scale.worth[:, None] - scale.worth_of(own)[None, :]).argmin(axis=1)
        seen = observed[:, i]
        values[seen, i] = places[values[seen, i].astype(int)]
    return ScaledResponses(values, responses.subject_ids, responses.item_ids, known.scales, responses.trials)
