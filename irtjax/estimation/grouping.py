"""Which group each subject is in, and what a fit says of the groups."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax import processes
from irtjax.errors import InputError
from irtjax.estimation.driver import Estimate
from irtjax.estimation.problem import Specification, with_ties
from irtjax.integration.node_rule import NodeRule
from irtjax.integration.rules import MOST_SHARED, SharedNodes, Totals, choose_rule
from irtjax.populations.groups import FittedGroups, Groups
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.values import Values
from irtjax.storage.frames import as_frame
from irtjax.types import Bool, Float, Int, Shaped

ALL, DIFFICULTY, SLOPE = FREE = ("all", "difficulty", "slope")  # what of an item is free by group
FEWEST = 2  # subjects of a group, which else has no standard deviation


class Membership(NamedTuple):
    """The groups of the subjects.

    Attributes:
        names: (G,), the first of which sets the scale.
        member: (J,) the number of each subject's group.
        copies: of items that are free by group (`estimation.free_items`): what is, and the numbers of the columns of
            responses, one for each group that answered.
    """

    names: Shaped[np.ndarray, " G"]
    member: Int[np.ndarray, " J"]
    copies: tuple[tuple[str, Int[np.ndarray, " n"]], ...] = ()


def membership(groups: Any, subject_ids: Shaped[np.ndarray, " J"]) -> Membership:
    """Reads which group each subject is in.

    Args:
        groups: by subject id a dictionary, a Series or a table of one column, or labels in the order of the subjects.
            The groups are in the order in which they first occur, or in that of the categories of a categorical. A
            `Membership` stays it.
        subject_ids: of J subjects.

    Raises:
        InputError: a subject without a group, labels that are not one per subject, fewer than two groups, or a group of
            one subject.
    """
    if isinstance(groups, Membership):
        return groups
    labels = _labels(groups, subject_ids)
    missing = pd.isna(labels).to_numpy()
    if missing.any():
        raise InputError(f"`groups`: subject '{subject_ids[missing][0]}' has none; leave such subjects out")
    if isinstance(labels.dtype, pd.CategoricalDtype):
        labels = labels.cat.remove_unused_categories()
        member, names = labels.cat.codes.to_numpy(), labels.cat.categories
    else:
        member, names = pd.factorize(labels.astype(str))
    names = np.array([str(name) for name in names])
    if len(names) < 2:
        raise InputError(f"`groups`: all subjects are in '{names[0]}', expected two groups or more")
    sizes = np.bincount(member)
    if sizes.min() < FEWEST:
        raise InputError(f"`groups`: '{names[int(sizes.argmin())]}' has one subject, expected {FEWEST} or more of each")
    return Membership(names, member.astype(np.int32))


def _labels(groups: Any, subject_ids: Shaped[np.ndarray, " J"]) -> pd.Series:
    """One label of each subject, in their order."""
    number = len(subject_ids)
    if isinstance(groups, Mapping):
        groups = pd.Series(dict(groups))
    groups = as_frame(groups, "groups", "subject_id")
    if isinstance(groups, pd.DataFrame) and groups.shape[1] == 1:
        groups = groups.iloc[:, 0]
    if isinstance(groups, pd.Series):
        return in_order(groups, subject_ids, "groups", "a group")
    try:
        labels = pd.Series(groups).reset_index(drop=True)
    except (TypeError, ValueError) as error:
        raise InputError("`groups`: expected a label of each subject, or a dictionary by subject id") from error
    if len(labels) != number:
        raise InputError(f"`groups`: {len(labels)} labels for {number} subjects")
    return labels


def in_order(given: Any, subject_ids: Shaped[np.ndarray, " J"], argument: str, what: str = "a row") -> Any:
    """A Series or table by subject id, in the order of the subjects; one without ids is in that order already.

    Raises:
        InputError: a subject that is there twice, or not at all.
    """
    by_id, known = given.set_axis(given.index.astype(str)), pd.Index(subject_ids.astype(str))
    without_ids = isinstance(given.index, pd.RangeIndex) and len(given) == len(known)
    if without_ids and not known.isin(by_id.index).any():
        return given.reset_index(drop=True)
    twice = by_id.index[by_id.index.duplicated()]
    if len(twice):
        raise InputError(f"`{argument}`: subject '{twice[0]}' is there twice")
    absent = known[~known.isin(by_id.index)]
    if len(absent):
        raise InputError(f"`{argument}`: subject '{absent[0]}' is not there, expected {what} for each subject")
    return by_id.loc[known].reset_index(drop=True)


def require_linked(
    found: Membership, observed: Int[np.ndarray, "G I"], anchored: Bool[np.ndarray, " I"] | None = None
) -> None:
    """Refuses groups that nothing puts on the scale of the first: no chain of items that two groups answered.

    Args:
        found: the groups.
        observed: answers of each group to each item.
        anchored: (I,) items that set the scale, whoever answered them.

    Raises:
        InputError: names the groups that are apart.
    """
    answered = observed > 0
    reached = answered[0] if anchored is None else answered[0] | anchored
    linked = np.zeros(len(answered), bool)
    while True:
        now = (answered & reached).any(axis=1)
        if (now == linked).all():
            break
        linked, reached = now, reached | answered[now].any(axis=0)
    if not linked.all():
        apart = ", ".join(f"'{name}'" for name in found.names[~linked])
        raise InputError(
            f"`groups`: {apart} answered no item that links them to '{found.names[0]}': nothing says where they are on "
            "its scale; give `anchors`, or fit them on their own"
        )


def in_groups(
    found: Membership,
    values: Values,
    specification: Specification,
    items: Any,
    anchored: Bool[np.ndarray, " I"] | None = None,
    rows: slice = slice(None),
) -> tuple[Int[np.ndarray, " mine"], Specification, Any]:
    """The group of each subject that this process has, what is free with the populations of the groups, and the items.

    Args:
        found: the groups.
        values: responses of these subjects.
        specification: of one population.
        items: to start from.
        anchored: (I,) items that set the scale.
        rows: which subjects they are.

    Raises:
        InputError: groups that no items link (`require_linked`).
    """
    member = found.member[rows]
    require_linked(found, answered_by(member, len(found.names), values), anchored)
    dims, size = specification.dims, np.shape(specification.free)[1]
    of_kind = {ALL: range(0), DIFFICULTY: range(dims), SLOPE: range(dims, size)}  # what stays the same
    ties = [(column, some) for kind, some in found.copies for column in of_kind[kind]]
    if ties:
        specification, items = with_ties(specification, items, ties)
    return member, dataclasses.replace(specification, num_groups=len(found.names)), items


def answered_by(member: Int[np.ndarray, " J"], num_groups: int, values: Values) -> Int[np.ndarray, "G I"]:
    """Answers (G, I) of each group to each item, of the subjects of all processes."""
    if isinstance(values, SparseValues):
        own, shape = values.responses, (num_groups, values.shape[1])
        cells = np.asarray(member)[own.subjects].astype(np.int64) * shape[1] + own.items
        return processes.total(np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape))
    observed = np.stack([(np.asarray(values)[member == group] >= 0).sum(axis=0) for group in range(num_groups)])
    return processes.total(observed)


def fitted(
    found: Membership, population: Groups, covariance: Float[np.ndarray, "M M"] | None, *, in_logits: bool
) -> FittedGroups:
    """The groups of a fit with standard errors, those of standard deviations by the delta method.

    Args:
        found: the groups.
        population: on the scale that is reported.
        covariance: of means, log standard deviations and the logarithm of the shared slope; None where not known, and
            NaN variances of standard deviations that are as narrow as nodes tell.
        in_logits: whether the scale is that of slopes of 1, in place of one shared slope: means and standard deviations
            are then times that slope, and have a part in its error.
    """
    shape = population.mean.shape
    if covariance is None:
        unknown = np.full(shape, np.nan)
        return FittedGroups(found.names, found.member, population.mean, unknown, population.sd, unknown)
    size = population.mean.size
    by = np.zeros((2 * size, 2 * size + 1))
    by[range(2 * size), range(2 * size)] = 1.0
    if in_logits:
        by[range(size), range(size)] = population.sd[0, 0]
        by[:size, -1], by[size:, -1] = population.mean.ravel(), 1.0
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", by, np.nan_to_num(covariance), by), 0.0))
    errors[np.isnan(np.diag(covariance)[:-1])] = np.nan
    of_mean, of_log_sd = (part.reshape(shape) for part in np.split(errors, 2))
    return FittedGroups(found.names, found.member, population.mean, of_mean, population.sd, population.sd * of_log_sd)


def nodes_for_groups(
    rule: NodeRule | None, integration: str, totals: Totals, dims: int, argument: str = "groups"
) -> NodeRule:
    """The nodes that subjects of several populations share, however long the test: these, or those that are chosen.

    Raises:
        InputError: another way of integration was asked for, or there are too many dimensions.
    """
    if isinstance(rule, SharedNodes):
        return rule
    if integration not in ("auto", "nodes") or dims > MOST_SHARED:
        raise InputError(f"`{argument}`: abilities are integrated out on shared nodes, in up to three dimensions")
    chosen = choose_rule("nodes", None, totals, dims)
    assert chosen is not None
    return chosen


def population_of(estimate: Estimate, found: Membership, *, in_logits: bool) -> FittedGroups:
    """The populations of a fit's groups, with standard errors; `in_logits` as of `fitted`."""
    assert isinstance(estimate.population, Groups)
    return fitted(found, estimate.population, estimate.of_groups, in_logits=in_logits)
