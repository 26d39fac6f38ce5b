"""A fitted test and responses to it, whatever its items are: what statistics of fit are computed from, D = 1."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.problem import Specification, layout
from irtjax.estimation.specify import specify
from irtjax.estimation.specify_families import plan_families
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.result import Fit, load_fit
from irtjax.item_models.binary import BINARY
from irtjax.item_models.coded_counts import effective_trials
from irtjax.kernels.ability_nodes import line_nodes
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import Population
from irtjax.populations.several import SeveralPopulations
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import on_scales, whole
from irtjax.scale.forms import FEWEST
from irtjax.scoring.abilities import matching
from irtjax.scoring.family_items import KnownItems, ready
from irtjax.scoring.family_nodes import family_nodes
from irtjax.scoring.family_scores import AT_ENDS, FARTHEST_END, NEAREST_END, rescaled
from irtjax.types import Bool, Float, Int, Shaped

FEWEST_OTHER = 10
ENTRIES = 2**24  # of arrays of subjects by nodes, or by items, at a time


class Tested(NamedTuple):
    """Responses of J subjects to I items of a fit.

    Attributes:
        fit: of the items.
        responses: as they were given, to items in the order of the parameters; gives the ids.
        values: (J, I) number of the category; successes; or the share. -1 where it is missing.
        observed: (J, I) trials of each response, 1 without trials, 0 where it is missing.
        model: of the items, `Families` or `BINARY`.
        items: parameters.
        known: the items where they are not right/wrong.
        top: (I,) the highest category.
        population: mean and standard deviation.
        places: (I,) of the items in the fit.
        fitted: whether the fit is of these responses. Else nothing was estimated from them.
        codes: (J, I) responses as the model has them: `values`, or categories (n, k) of the beta-binomial.
        times: (J, I) how often the model has A for each: its trials, 1 of a category, 0 where it is missing.
    """

    fit: Fit
    responses: Any
    values: Shaped[np.ndarray, "J I"]
    observed: Float[np.ndarray, "J I"]
    model: Any
    items: Any
    known: KnownItems | None
    top: Int[np.ndarray, " I"]
    population: Population
    places: Int[np.ndarray, " I"]
    fitted: bool
    codes: Shaped[np.ndarray, "J I"]
    times: Float[np.ndarray, "J I"]

    @property
    def categorical(self) -> bool:
        """Whether all items have categories, right and wrong among them."""
        return self.known is None or all(scale.labels is not None for scale in self.known.scales)

    @property
    def right_wrong(self) -> bool:
        """Whether all items have two categories."""
        return self.categorical and bool((self.top == 1).all())

    @property
    def effective(self) -> Float[np.ndarray, "J I"]:
        """Trials of each response, where they agree as many independent ones as vary as much; 0 where it is missing."""
        if self.known is None:
            return self.observed
        return effective_trials(self.model, self.items.others, self.observed)

    def require_categories(self, what: str) -> None:
        """Refuses counts and shares.

        Raises:
            InputError: names the first such item.
        """
        if self.known is not None and not self.categorical:
            item = next(i for i, scale in enumerate(self.known.scales) if scale.labels is None)
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
    responses = whole(responses) if isinstance(responses, SparseResponses | StoredResponses) else responses
    given = matching(found, responses, None, columns)
    values, observed = _values_and_trials(given.responses)
    top = np.ones(values.shape[1], int) if given.known is None else np.asarray(given.known.parameters.top)
    items = jax.tree.map(lambda leaf: np.asarray(leaf, float), given.parameters)
    model: Any = BINARY
    codes, times = values, observed
    if given.known is not None:
        coded, known = ready(given.responses, given.known)
        model, items = known.model, items._replace(top=np.asarray(known.parameters.top))
        codes, times = _values_and_trials(coded)
    places = pd.Index(found.responses.item_ids.astype(str)).get_indexer(given.responses.item_ids.astype(str))
    return Tested(
        fit=found,
        responses=given.responses,
        values=values,
        observed=observed,
        model=model,
        items=items,
        known=given.known,
        top=top,
        population=Population(*(float(np.squeeze(x)) for x in given.population)),
        places=places,
        fitted=_is_fitted(found, given.responses, values, places),
        codes=codes,
        times=times,
    )


def _values_and_trials(responses: Any) -> tuple[Shaped[np.ndarray, "J I"], Float[np.ndarray, "J I"]]:
    values, trials = np.asarray(responses.values[:, :]), getattr(responses, "trials", None)
    return values, np.where(values >= 0, 1.0 if trials is None else trials, 0.0)


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


def _is_fitted(fit: Fit, responses: Any, values: np.ndarray, places: np.ndarray) -> bool:
    """Whether these are the responses that were fitted, or those to some of the items: parameters followed them."""
    own = fit.responses
    if not np.array_equal(own.subject_ids.astype(str), responses.subject_ids.astype(str)):
        return False
    if isinstance(own, StoredResponses):
        return True
    return np.array_equal(np.asarray(whole(own).values)[:, places], values)


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
    return (layout(specification_of(test)).items >= 0).sum(axis=1)[test.places]


def informative(test: Tested) -> Bool[np.ndarray, " I"]:
    """Items with `FEWEST` responses, of which `FEWEST_OTHER` are not the commonest one.

    With fewer a single subject decides, and no statistic of the item has a known distribution.
    """
    found = []
    for values, seen in zip(test.values.T, test.observed.T > 0, strict=True):
        counts = np.unique(values[seen], return_counts=True)[1]
        found.append(seen.sum() >= FEWEST and seen.sum() - counts.max(initial=0) >= FEWEST_OTHER)
    return np.array(found)


class Nodes(NamedTuple):
    """Q abilities that stand for the population, in logits, and the logarithms of their weights."""

    theta: Float[np.ndarray, " Q"]
    log_weights: Float[np.ndarray, " Q"]


def nodes_of(test: Tested) -> Nodes:
    """Nodes that resolve the posterior of every subject."""
    mean, sd = (float(x) for x in test.population)
    number = int((test.observed > 0).sum(axis=1).max(initial=1))
    if test.known is None:
        line = line_nodes(test.items, number, mean, sd)
        return Nodes(np.asarray(line.nodes), np.asarray(line.log_weights))
    end = NEAREST_END
    with jax.enable_x64(True):
        centre, unit, items = rescaled(test.known._replace(parameters=test.items), test.population, in_population=True)
        while True:
            line = family_nodes(test.model, items, test.times.max(axis=0), number, end)
            nodes = Nodes(centre + unit * np.asarray(line.nodes), np.asarray(line.log_weights))
            ends = max(weights[:, [0, -1]].max() for _, weights in posteriors(test, nodes))
            if ends <= AT_ENDS or 2 * end > FARTHEST_END:
                return nodes
            end *= 2  # responses say that someone is there


def posteriors(test: Tested, nodes: Nodes) -> Iterator[tuple[slice, Float[np.ndarray, "J Q"]]]:
    """Some subjects at a time, as a slice, and their posteriors (J, Q) as weights of the nodes."""
    natural = test.model.natural(test.items, nodes.theta[:, None], asymptotes=True)
    eta, log_normalizer = (np.asarray(leaf).T for leaf in natural)
    for rows in some_subjects(test, max(len(nodes.theta), len(eta))):
        statistics = np.asarray(test.model.statistics(test.codes[rows]))
        height = statistics @ eta - test.times[rows] @ log_normalizer + nodes.log_weights[None, :]
        weights = np.exp(height - height.max(axis=1, keepdims=True))
        yield rows, weights / weights.sum(axis=1, keepdims=True)


def some_subjects(test: Tested, entries: int) -> Iterator[slice]:
    """Slices of subjects, each with so many entries that all fit into memory."""
    size = max(1, ENTRIES // max(entries, 1))
    for first in range(0, len(test.values), size):
        yield slice(first, first + size)
