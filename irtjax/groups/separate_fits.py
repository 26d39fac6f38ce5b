"""Items fitted in each group by itself, and put on the scale of the first: what Lord and Raju compare.

The groups' fits are linked by the anchors, θ = A θ' + B (`irtjax.groups.linking`), which takes a' to a' / A and b' to
A b' + B. Covariances are by the delta method, A and B being functions of both groups' estimates (Ogasawara 2000). Lord
(1980) takes them as known: errors that all items of a group have in common, and that the link takes out, such as that
of its mean ability, then stay in the variances, and tests reject too seldom.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.grouping import Membership
from irtjax.fits.joint_covariance import MOST_KEPT
from irtjax.fits.result import Z_95, Fit
from irtjax.fitting import fit as fit_responses
from irtjax.groups.known_curves import KnownCurves, KnownTest, known_test
from irtjax.groups.link_constants import constants, derivatives
from irtjax.groups.linking import FEWEST, common_items, nodes_and_weights
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.sparse import SparseResponses
from irtjax.scale.tested import one_by_one
from irtjax.types import AnyArray, Bool, Float, Int

MOST_TRIES = 10  # fits of a group, each without the items that had no finite estimate in the one before
NODES = 21  # of a population, over which a difference is averaged
OF_ONE_SLOPE = ("rasch", "pcm", "rsm")  # whose unit is the logit in all groups: A = 1


class GroupFit(NamedTuple):
    """A group fitted by itself.

    Attributes:
        name: of the group.
        fit: of the items that have a finite estimate in it.
        places: (I,) of each item in the fit, -1 of those that are not there.
    """

    name: str
    fit: Fit
    places: Int[np.ndarray, " I"]


class Linked(NamedTuple):
    """Items as each group has them, on the scale of the first.

    Attributes:
        estimates: (G, I, P) discrimination, and difficulty or thresholds; NaN where there is none.
        covariances: (I, G, P, G, P) of all that an item has in the groups; 0 of what is held.
        bounds: (G, I, 2) lower and upper asymptotes; 0 and 1 of items that have none.
        effects: (I,) the largest difference of expected responses, of categories 0 … C, between a group and the first
            that has the item, at equal ability, averaged over the group's population (Meade 2010).
    """

    estimates: Float[np.ndarray, "G I P"]
    covariances: Float[np.ndarray, "I G P G P"]
    bounds: Float[np.ndarray, "G I 2"]
    effects: Float[np.ndarray, " I"]

    @property
    def discriminates(self) -> Bool[np.ndarray, "G I"]:
        """Whether the 95% interval of a slope leaves out 0: elsewhere b = -intercept / slope means nothing."""
        variance = np.einsum("igg->gi", self.covariances[:, :, 0, :, 0])
        with np.errstate(invalid="ignore"):
            return np.abs(self.estimates[..., 0]) > Z_95 * np.sqrt(variance)


def fits_of_groups(responses: Any, found: Membership, options: Mapping[str, Any]) -> list[GroupFit]:
    """Fits each group by itself, at maximum likelihood, without items that have no finite estimate there.

    The 1PL is fitted as the Rasch model, which is the same in other units.

    Args:
        responses: right and wrong answers, or grades.
        found: the groups.
        options: of `irtjax.fit`: the model, and an asymptote that is held.

    Raises:
        InputError: a group whose answers do not determine a fit, or more items than have a covariance.
    """
    if options["model"] == "1pl":
        options = {**options, "model": "rasch"}
    fits = []
    for at, name in enumerate(found.names):
        mine = responses.choose_subjects(np.flatnonzero(found.member == at))
        chosen = np.flatnonzero(_varies(one_by_one(mine)))
        for _ in range(MOST_TRIES):
            if len(chosen) < FEWEST:
                break
            fit = fit_responses(mine.choose_items(chosen).with_responses(), priors=None, **options)
            if not fit.unbounded.any():
                break
            chosen = chosen[~fit.unbounded]
        if len(chosen) < FEWEST or fit.covariance is None:
            _refuse(str(name), mine.num_subjects, 0 if len(chosen) < FEWEST else fit.num_parameters)
        places = np.full(responses.num_items, -1)
        places[chosen] = np.arange(len(chosen))
        fits.append(GroupFit(str(name), fit, places))
    return fits


def _varies(responses: SparseResponses) -> Bool[np.ndarray, " I"]:
    """Items that were answered, and not alike by all."""
    answers, items = responses.answers.astype(float), responses.items
    highest = np.full(responses.num_items, -np.inf)
    np.maximum.at(highest, items, answers)
    varies = np.zeros(responses.num_items, bool)
    varies[items[answers < highest[items]]] = True
    return varies


def _refuse(name: str, num_subjects: int, num_parameters: int) -> None:
    """Says why a group has no covariance.

    Raises:
        InputError: always.
    """
    if num_parameters > MOST_KEPT:
        raise InputError(
            f"`method`: lord and raju take the covariance of all items of a fit, which is kept up to {MOST_KEPT:,} "
            f"parameters, and group '{name}' has {num_parameters:,}: take score"
        )
    raise InputError(
        f"`method`: the answers of the {num_subjects:,} subjects of '{name}' do not determine a fit of this group "
        "alone, which lord and raju compare: take score, which fits all groups together, or `model` 1pl"
    )


def linked(
    fits: list[GroupFit], anchors: Bool[np.ndarray, " I"], method: str | None = None, *, known: bool = False
) -> Linked:
    """Puts the groups on the scale of the first by the anchors.

    Args:
        fits: of the groups.
        anchors: (I,) which items measure the same in all groups; those without an estimate in a group link it not.
        method: of `irtjax.link`; by default "stocking_lord", "mean_mean" where all items have a slope of 1, and
            "haebara" where slopes are of either sign: the sum of rising and falling curves tells little of the scale.
        known: whether A and B are taken as known.

    Raises:
        InputError: fewer than two anchors have estimates in a group and in the first.
    """
    if method is None:
        method = "mean_mean" if set(fits[0].fit.item_models) <= set(OF_ONE_SLOPE) else _by_curves(fits[0], anchors)
    tests = [known_test(one.fit) for one in fits]
    own = [_on_own_scale(one, test) for one, test in zip(fits, tests, strict=True)]
    links = [_link(fits, tests, at, anchors, method, known=known) for at in range(len(fits))]
    width, number = max(part.values.shape[1] for part in own), len(anchors)
    estimates = np.full((len(fits), number, width), np.nan)
    bounds = np.tile([0.0, 1.0], (len(fits), number, 1))
    for at, (part, (slope, intercept)) in enumerate(zip(own, (one.constants for one in links), strict=True)):
        there, size = fits[at].places >= 0, part.values.shape[1]
        moved = np.concatenate([part.values[:, :1] / slope, slope * part.values[:, 1:] + intercept], axis=1)
        estimates[at, there, :size] = moved
        if isinstance(fits[at].fit.parameters, ItemParameters):
            bounds[at, there] = _asymptotes(fits[at].fit.parameters)
    covariances = _covariances(fits, own, links, width)
    scales = np.array([one.constants for one in links])
    return Linked(estimates, covariances, bounds, _effects(fits, tests, scales))


def _by_curves(first: GroupFit, anchors: Bool[np.ndarray, " I"]) -> str:
    """The method for anchors whose slopes are estimated."""
    places = first.places[anchors & (first.places >= 0)]
    slopes = np.asarray(first.fit.item_columns["discrimination"], float)[places]
    return "haebara" if (slopes > 0).any() and (slopes < 0).any() else "stocking_lord"


class _Link(NamedTuple):
    """A and B of a group, and their derivatives by all parameters of the first group's fit and of its own."""

    constants: tuple[float, float]
    by_first: Float[np.ndarray, "2 n"]
    by_own: Float[np.ndarray, "2 m"]


def _link(
    fits: list[GroupFit], tests: list[KnownTest], at: int, anchors: Bool[np.ndarray, " I"], method: str, *, known: bool
) -> _Link:
    """The link of a group."""
    first, other = fits[0], fits[at]
    by = [np.zeros((2, *_places(one).shape)) for one in (first, other)]
    if not at:
        return _Link((1.0, 0.0), by[0].reshape(2, -1), by[1].reshape(2, -1))
    common = np.flatnonzero(anchors & (first.places >= 0) & (other.places >= 0))
    if len(common) < FEWEST:
        raise InputError(
            f"`method`: {len(common)} anchors have an estimate in both '{first.name}' and '{other.name}', which lord "
            f"and raju link by {FEWEST} or more: take score"
        )
    both = common_items(tests[0], tests[at], tests[0].item_ids[first.places[common]].tolist())
    nodes = nodes_and_weights("normal")
    found = constants(both.base, both.other, method, nodes, symmetric=True)
    if not known:
        pairs = derivatives(both.base, both.other, method, nodes, True, found)
        for one, into, some in zip((first, other), by, pairs, strict=True):
            into[:, one.places[common]] = some[:, :, : into.shape[2]]
    return _Link(found, by[0].reshape(2, -1), by[1].reshape(2, -1))


def _places(one: GroupFit) -> Int[np.ndarray, "N K"]:
    assert one.fit.covariance is not None
    return one.fit.covariance.places


class _Own(NamedTuple):
    """Discriminations and difficulties or thresholds on a group's own scale, and their derivatives by its estimates."""

    values: Float[np.ndarray, "N P"]
    by: Float[np.ndarray, "N P K"]


def _on_own_scale(one: GroupFit, test: KnownTest) -> _Own:
    """The items of a fit.

    The parameters of each item say nothing of another's, so that one derivative by each column is that of all items.
    """
    curves = test.curves
    array = np.asarray(curves.array, float)

    def reported(array: AnyArray) -> AnyArray:
        slope, places = KnownCurves(curves.model, array, curves.top, curves.worth).places()
        return jax.numpy.concatenate([slope[:, None], places], axis=1)

    with jax.enable_x64(True):
        along = [np.zeros_like(array) for _ in range(_places(one).shape[1])]
        for column, direction in enumerate(along):
            direction[:, column] = 1.0
        by = np.stack([np.asarray(jax.jvp(reported, (array,), (each,))[1]) for each in along], axis=2)
        return _Own(np.asarray(reported(array)), np.nan_to_num(by))  # NaN of categories that an item has not


def _covariances(
    fits: list[GroupFit], own: list[_Own], links: list[_Link], width: int
) -> Float[np.ndarray, "I G P G P"]:
    """Of estimates on the scale of the first group: Σ_k M_gk S_k M_hk', S_k of fit k, M_gk the derivatives by it."""
    number = len(fits[0].places)
    found = np.zeros((number, len(fits), width, len(fits), width))
    for k, one in enumerate(fits):
        assert one.fit.covariance is not None
        matrix = one.fit.covariance.of(np.arange(len(own[k].values)))
        moved = {g: _by_fit(fits, own, links, g, k, width) for g in range(len(fits)) if g == k or not k}
        for g, by in moved.items():
            spread = (by.reshape(number * width, -1) @ matrix).reshape(by.shape)
            for h, other in moved.items():
                found[:, g, :, h] += np.einsum("ipx,iqx->ipq", spread, other)
    return found


def _by_fit(
    fits: list[GroupFit], own: list[_Own], links: list[_Link], g: int, k: int, width: int
) -> Float[np.ndarray, "I P n"]:
    """Derivatives of group g's estimates on the scale of the first by all parameters of fit k."""
    values, by = own[g]
    (slope, _), by_first, by_own = links[g]
    size = values.shape[1]
    at_link = np.zeros((len(values), size, 2))  # ∂(a / A) and ∂(A b + B) by A and B
    at_link[:, 0, 0], at_link[:, 1:, 0], at_link[:, 1:, 1] = -values[:, 0] / slope**2, np.nan_to_num(values[:, 1:]), 1.0
    moved = at_link @ (by_own if g == k else by_first)
    if g == k:
        stretch = np.array([1 / slope, *[slope] * (size - 1)])
        items = np.arange(len(values))
        moved.reshape(*moved.shape[:2], len(values), -1)[items, :, items] += stretch[:, None] * by
    found = np.zeros((len(fits[0].places), width, moved.shape[2]))
    found[fits[g].places >= 0, :size] = moved
    return found


def _asymptotes(items: ItemParameters) -> Float[np.ndarray, "N 2"]:
    """Lower and upper."""
    with np.errstate(over="ignore"):
        return np.stack([1 / (1 + np.exp(-np.asarray(end, float))) for end in (items.lower, items.upper)], axis=1)


def _effects(fits: list[GroupFit], tests: list[KnownTest], scales: Float[np.ndarray, "G 2"]) -> Float[np.ndarray, " I"]:
    """See `Linked`."""
    rule = gauss_hermite(NODES)
    weights, found = np.exp(rule.log_weights), np.zeros(len(fits[0].places))
    has = np.stack([one.places >= 0 for one in fits])
    base = has.argmax(axis=0)
    for at, (slope, intercept) in enumerate(scales):
        population = fits[at].fit.reference
        own = float(np.squeeze(population.mean)) + float(np.squeeze(population.sd)) * rule.nodes[:, 0]
        mine = _expected(fits[at], tests[at], own)
        for first in range(at):
            chosen = has[at] & (base == first)
            if not chosen.any():
                continue
            there = (slope * own + intercept - scales[first, 1]) / scales[first, 0]
            theirs = _expected(fits[first], tests[first], there)
            difference = np.where(chosen, weights @ (mine - theirs), 0.0)
            found = np.where(np.abs(difference) > np.abs(found), difference, found)
    return np.where(has.sum(axis=0) > 1, found, np.nan)


def _expected(one: GroupFit, test: KnownTest, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
    """Expected responses, of categories 0 … C, of all items; 0 of those that are not there."""
    curves = test.curves
    with jax.enable_x64(True):
        p = np.asarray(curves.categories(theta))
    category = np.arange(1, p.shape[2] + 1)
    response = (np.where(category <= np.asarray(curves.top)[:, None], p, 0.0) * category).sum(axis=2)
    found = np.zeros((len(theta), len(one.places)))
    found[:, one.places >= 0] = response[:, one.places[one.places >= 0]]
    return found
