"""A fitted test and responses to it, whatever its items are: what statistics of fit are computed from, D = 1."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.problem import Specification, as_array, layout
from irtjax.estimation.specify import specify
from irtjax.estimation.specify_families import plan_families
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.own_parameters import OwnParameters
from irtjax.fits.result import Fit, load_fit
from irtjax.item_models.binary import BINARY
from irtjax.item_models.coded_counts import effective_trials
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.populations.several import SeveralPopulations
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import in_memory, on_scales, whole
from irtjax.scale.forms import FEWEST
from irtjax.scoring.abilities import matching
from irtjax.scoring.family_items import KnownItems, ready
from irtjax.types import Bool, Float, Int, Shaped

FEWEST_OTHER = 10
INTERCEPT = 1  # its column among the parameters of one dimension
ENTRIES = 2**24  # of arrays of subjects by nodes, or by items, at a time


class Tested(NamedTuple):
    """Responses of J subjects to I items of a fit, N of them, one by one: subject by subject, items in their order.

    Attributes:
        fit: of the items.
        responses: as they were given, to items in the order of the parameters.
        single: the same one by one: number of the category; successes; or the share.
        trials: (N,) of each response, 1 without trials.
        model: of the items, `Families` or `BINARY`.
        items: parameters.
        known: the items where they are not right/wrong.
        top: (I,) the highest category.
        graded: (I,) which items have categories, right and wrong among them.
        population: mean and standard deviation.
        places: (I,) of the items in the fit.
        fitted: whether the fit is of these responses. Else nothing was estimated from them.
        codes: (N,) responses as the model has them, or categories (n, k) of the beta-binomial.
        times: (N,) how often the model has A for each: its trials, 1 of a category.
    """

    fit: Fit
    responses: Any
    single: SparseResponses
    trials: Float[np.ndarray, " N"]
    model: Any
    items: Any
    known: KnownItems | None
    top: Int[np.ndarray, " I"]
    graded: Bool[np.ndarray, " I"]
    population: Population
    places: Int[np.ndarray, " I"]
    fitted: bool
    codes: Shaped[np.ndarray, " N"]
    times: Float[np.ndarray, " N"]

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.single.num_subjects

    @property
    def values(self) -> Shaped[np.ndarray, "J I"]:
        """Responses as a matrix, -1 where missing.

        Raises:
            InputError: single ones have too many cells for that.
        """
        return np.asarray(whole(self.responses).values)

    @property
    def categorical(self) -> bool:
        """Whether all items have categories, right and wrong among them."""
        return bool(self.graded.all())

    @property
    def right_wrong(self) -> bool:
        """Whether all items have two categories."""
        return self.categorical and bool((self.top == 1).all())

    @property
    def effective(self) -> Float[np.ndarray, " N"]:
        """Trials of each response, where they agree as many independent ones as vary as much."""
        if self.known is None:
            return self.trials
        return effective_trials(self.model.take(self.single.items), self.items.others[self.single.items], self.trials)

    def alone(self, at: Int[np.ndarray, " n"], theta: Float[np.ndarray, " n"]) -> "Tested":
        """A test with an item for each of some responses: its own, whose ability 0 is that of the response's subject.

        Args:
            at: which responses.
            theta: the ability of the subject of each.
        """
        own = self.single.items[at]
        items = self.items.take(own)
        items = items._replace(intercept=items.intercept + items.slope[:, 0] * theta)
        return self._replace(model=self.model.take(own), items=items, top=self.top[own], graded=self.graded[own])

    def require_categories(self, what: str) -> None:
        """Refuses counts and shares.

        Raises:
            InputError: names the first such item.
        """
        if not self.categorical:
            item = int(np.argmin(self.graded))
            raise InputError(
                f"{what} is of items with categories, and item {str(self.responses.item_ids[item])!r} has counts or "
                "shares"
            )


def of_fit(fit: Any, responses: Any = None, columns: Any = None) -> Tested:
    """A fit and responses to its items, which may be some of them; by default those that were fitted.

    Args:
        fit: a `Fit`, or the folder or archive of one.
        responses: as of `irtjax.score`.
        columns: of responses in a long table, as of `irtjax.fit`.

    Raises:
        InputError: no fit; several dimensions, groups or judges; responses that are not there or do
            not go with it.
    """
    found = fit_in(fit)
    dims = found.parameters.slope.shape[1]
    if dims > 1:
        raise InputError(f"the fit has {dims} dimensions: fit of items and subjects is of one dimension")
    _require_one_population(found)
    responses = found.responses if responses is None else responses
    given = matching(found, in_memory(responses), None, columns)
    single = one_by_one(given.responses)
    items = jax.tree.map(lambda leaf: np.asarray(leaf, float), given.parameters)
    num_items = single.num_items
    model: Any = BINARY
    top, graded = np.ones(num_items, int), np.ones(num_items, bool)
    trials = np.ones(single.num_answers) if single.trials is None else single.trials.astype(float)
    codes, times = single.answers, trials
    if given.known is not None:
        coded, known = ready(single, given.known)
        model, items = known.model, items._replace(top=np.asarray(known.parameters.top))
        top = np.asarray(given.known.parameters.top)
        graded = np.array([scale.labels is not None for scale in given.known.scales])
        assert isinstance(coded, SparseResponses)
        codes = np.asarray(coded.answers)
        times = np.ones(len(codes)) if coded.trials is None else coded.trials.astype(float)
    places = pd.Index(found.responses.item_ids.astype(str)).get_indexer(given.responses.item_ids.astype(str))
    return Tested(
        fit=found,
        responses=given.responses,
        single=single,
        trials=trials,
        model=model,
        items=items,
        known=given.known,
        top=top,
        graded=graded,
        population=Population(*(float(np.squeeze(x)) for x in given.population)),
        places=places,
        fitted=_is_fitted(found, responses, single, places),
        codes=codes,
        times=times,
    )


def one_by_one(responses: Any) -> SparseResponses:
    """Responses of a matrix one by one; those that are already, as they are."""
    return responses if isinstance(responses, SparseResponses) else of_matrix(responses)


def _require_one_population(fit: Fit) -> None:
    if isinstance(fit.population, FittedGroups):
        raise InputError("the fit is of several groups: fit of items and subjects is of one population")
    if isinstance(fit.population, SeveralPopulations):
        raise InputError(fit.population.why_several)
    if "facet" in fit.details:
        raise InputError("the fit has judges: fit of items and subjects is of responses without a facet")


def fit_in(fit: Any) -> Fit:
    """A fit, or the one in a folder.

    Raises:
        InputError: it is something else.
    """
    if isinstance(fit, Fit):
        return fit
    if holds_fit(fit):
        return load_fit(fit)
    raise InputError(f"{fit if isinstance(fit, str) else type(fit).__name__}: expected a fit, or the folder of one")


def _is_fitted(fit: Fit, given: Any, single: SparseResponses, places: np.ndarray) -> bool:
    """Whether these are the responses that were fitted, or those to some of the items: parameters followed them."""
    own = fit.responses
    if given is own:
        return True
    if not np.array_equal(own.subject_ids.astype(str), single.subject_ids.astype(str)):
        return False
    if isinstance(own, StoredResponses):
        return True
    fitted = one_by_one(own).choose_items(places)
    return all(np.array_equal(getattr(fitted, name), getattr(single, name)) for name in ("starts", "items", "answers"))


def specification_of(test: Tested) -> Specification:
    """What was estimated of the items of a fit."""
    responses = test.fit.responses
    if on_scales(responses):
        priors = None if test.fit.maximum_likelihood else "auto"
        return plan_families(responses, test.fit.item_models, 1, priors).specification
    return specify(types_of(test.fit))


def types_of(fit: Fit) -> tuple[str, ...]:
    """The type of each right/wrong item; where types were mixed, as the parameters show it."""
    num_items = fit.responses.num_items
    if fit.model != "mixed":
        return ("1pl" if fit.model == "rasch" else fit.model,) * num_items
    slope, lower, upper = (
        np.asarray(leaf) for leaf in (fit.parameters.slope[:, 0], fit.parameters.lower, fit.parameters.upper)
    )
    values, counts = np.unique(slope, return_counts=True)
    shared = np.isin(slope, values[counts > 1])
    kinds = np.where(np.isfinite(upper), "4pl", np.where(np.isfinite(lower), "3pl", np.where(shared, "1pl", "2pl")))
    return tuple(kinds.tolist())


def num_free(test: Tested) -> Int[np.ndarray, " I"]:
    """Parameters of each item's curves that were estimated from the responses, those in common among them."""
    if not test.fitted:
        return np.zeros(len(test.top), int)
    found, own = (layout(specification_of(test)).items >= 0).sum(axis=1)[test.places], own_parameters(test)
    return found if own is None else np.where(own.free.any(axis=1), found, 0)  # of anchors nothing was


def own_parameters(test: Tested) -> OwnParameters | None:
    """What was estimated from the responses to each item alone; None of fits that do not tell it, or their priors.

    Priors of fits by SVI of intercepts alone are not counted: they are wide beside any item that is `informative`.
    """
    if not test.fitted:
        nothing = np.zeros(as_array(test.items).shape)
        return OwnParameters(nothing > 0, nothing)
    found = test.fit.own_parameters
    if found is None:
        free = layout(specification_of(test)).own
        intercepts_alone = not free[:, np.arange(free.shape[1]) != INTERCEPT].any()
        if not (test.fit.maximum_likelihood or intercepts_alone):
            return None
        found = OwnParameters(free, np.zeros(free.shape))
    return found.of(test.places)


def informative(test: Tested) -> Bool[np.ndarray, " I"]:
    """Items with `FEWEST` responses, of which `FEWEST_OTHER` are not the commonest one.

    With fewer a single subject decides, and no statistic of the item has a known distribution.
    """
    single, number = test.single, len(test.top)
    kinds, codes = np.unique(single.answers, return_inverse=True)
    cells, counts = np.unique(single.items.astype(np.int64) * len(kinds) + codes, return_counts=True)
    commonest = np.zeros(number, int)
    np.maximum.at(commonest, cells // max(len(kinds), 1), counts)
    answered = np.bincount(single.items, minlength=number)
    return (answered >= FEWEST) & (answered - commonest >= FEWEST_OTHER)


def own_parts(test: Tested, chosen: Bool[np.ndarray, " N"], entries: int) -> Iterator[Int[np.ndarray, " n"]]:
    """Some of the responses, in parts that are each evaluated at once (`Tested.alone`).

    Args:
        test: of all responses.
        chosen: which ones.
        entries: numbers that a response takes.
    """
    at, size = np.flatnonzero(chosen), max(1, ENTRIES // (4 * entries))
    for first in range(0, len(at), size):
        yield at[first : first + size]
