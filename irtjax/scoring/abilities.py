"""Abilities of subjects on items whose parameters are known, matched by name."""

import functools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax import processes
from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits.fit_files import holds_fit, read_items
from irtjax.fits.result import Fit, load_fit
from irtjax.item_models.tables import from_columns
from irtjax.kernels.ability import Ability, percentile
from irtjax.kernels.ability_means import nodes_for, shared_eap
from irtjax.kernels.ability_nodes import line_nodes
from irtjax.kernels.loops import SEARCHES, mapped
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import STANDARD_NODES
from irtjax.kernels.sharding import BY_SUBJECT, EVERYWHERE, ITEMS, SUBJECTS, place
from irtjax.populations.groups import FittedGroups
from irtjax.populations.normal import STANDARD, Population
from irtjax.responses.convert import as_matrix_or_sparse, as_responses_or_stored
from irtjax.responses.matrix import MISSING, share_right
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import Responses, keep
from irtjax.scoring.choices import METHODS
from irtjax.scoring.family_items import KnownItems, known_items, matched, require_known
from irtjax.scoring.family_scores import family_abilities
from irtjax.scoring.of_group import of_group
from irtjax.scoring.one_subject import by_method, num_points, require_one_dimension
from irtjax.scoring.sparse_scores import abilities_by_answer
from irtjax.storage.frames import as_frame
from irtjax.storage.sources import expanded
from irtjax.types import Int


@checks_types
@processes.collective
def score(
    items: Any,
    responses: Any,
    method: str = "eap",
    population: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    trials: Any = None,
    mesh: jax.sharding.Mesh | None = None,
) -> pd.DataFrame:
    """Abilities of subjects, given the parameters of the items that they answered, whatever their model.

    Items are matched by their ids, and may be some of those that are known. Responses in an array or a list, which
    names no items, must be to all of them, in order.

    Answers to extreme items of a fit, those that all or none of its subjects had right, count here. On short tests they
    had no part in the abilities of the fit, which is why those may differ from the scores of the same subjects.

    Args:
        items: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of one.
        responses: whatever `irtjax.fit` takes. Grades, categories, counts and shares are read on the scales of the
            items.
        method: "eap", the posterior mean; "map", the posterior mode; "ml", maximum likelihood, which is infinite
            where all answers are right, or all wrong, or all at one end of their scales; with D > 1, where they are
            separated, and missing in dimensions that they leave open (`irtjax.kernels.ability_modes.ability_mode`); or
            "wle", weighted likelihood (Warm 1989), finite always, D = 1
            (`irtjax.kernels.ability_weighted.ability_wle`).
        population: mean and standard deviation of the normal distribution of ability that "eap", "map" and the
            percentile refer to, in logits; or the name of a group of the fit, to which the subjects belong: items that
            are free by group are then that group's, by their plain ids. By default those of the fit, of its first
            group where it has several, or, for a table, of the standard normal.
        columns: of responses in a long table with other names, as of `irtjax.fit`.
        trials: of counts, as of `irtjax.fit`.
        mesh: devices, with an axis "subjects" to spread these over (`irtjax.kernels.sharding.mesh_of`). If they are of
            several processes, all of these must call this function; each reads the responses of its own subjects.

    Returns:
        One row per subject: subject_id, ability, ability_se, percentile (in the population), num_responses and
        proportion_correct, or mean_response where the items are not right/wrong. Standard errors of "map", "ml" and
        "wle" are by the expected information at the ability. Of items in D > 1 dimensions ability_1, ability_1_se,
        percentile_1, ….

    Raises:
        InputError: an unknown method, an item whose parameters are not known or not finite, items that are free by
            group where no group is named, or responses that cannot be read.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}, expected one of {', '.join(METHODS)}")
    given = matching(items, responses, population, columns, trials, mesh)
    if given.known is not None:
        found = family_abilities(given.responses, given.known, method, given.population)
        answered = {
            "num_responses": given.responses.counts(axis=1)[1],
            "mean_response": given.responses.mean(axis=1),
        }
    else:
        matrix = given.responses
        mine = processes.share(matrix.num_subjects)
        if isinstance(matrix, SparseResponses):
            found = abilities_by_answer(matrix.choose_subjects(mine), given.parameters, method, given.population)
        else:
            keep(matrix.values, mine)
            found = abilities(matrix.values[mine, :], given.parameters, method, given.population, mesh)
        found = jax.tree.map(processes.gather, found)
        right, observed = matrix.counts(axis=1)
        answered = {"num_responses": observed, "proportion_correct": share_right(right, observed)}
    return pd.DataFrame({"subject_id": given.responses.subject_ids, **_columns(found, given.population), **answered})


class Matched(NamedTuple):
    """Responses, and the items that they are to.

    Attributes:
        responses: to these items, in their order.
        parameters: of the items.
        known: the items where they are not right/wrong.
        population: that abilities are drawn towards.
    """

    responses: Any
    parameters: Any
    known: KnownItems | None
    population: Population


def matching(
    items: Any,
    responses: Any,
    population: Any,
    columns: Mapping[str, str] | None,
    trials: Any = None,
    mesh: jax.sharding.Mesh | None = None,
) -> Matched:
    """Items and responses, as `score` takes them, brought together by the ids of the items."""
    fit = load_fit(items) if holds_fit(items) else items
    group = population if isinstance(population, str) else None
    if group is not None:
        if not (isinstance(fit, Fit) and isinstance(fit.population, FittedGroups)):
            raise InputError(f"`population` {population!r} names a group: expected a fit of several `groups`")
        population = fit.population.of(group)
    if population is None:
        population = fit.reference if isinstance(fit, Fit) else STANDARD
    normal = _normal(population)
    table = item_table(fit)
    known = known_items(fit if isinstance(fit, Fit) else table)
    if group is not None:
        places, ids = of_group(fit, group)
        table = table.iloc[places].set_axis(ids).rename_axis("item_id")
        known = None if known is None else known.take(places)._replace(item_ids=ids)
    if known is not None:
        in_categories, chosen = matched(responses, known, trials, columns=columns)
        return Matched(in_categories, chosen.parameters, chosen, normal)
    matrix: Responses
    if processes.number() > 1:
        matrix = as_responses_or_stored(responses, mesh, columns=columns)
    else:
        matrix = as_matrix_or_sparse(responses, item_ids=table.index.tolist(), columns=columns)
    require_known(matrix.item_ids.tolist(), table.index)
    return Matched(matrix, from_columns(table.loc[matrix.item_ids]), None, normal)


def _columns(scores: Ability, normal: Population) -> dict[str, np.ndarray]:
    """Abilities, standard errors and percentiles, by the names of columns."""
    several = scores.ability.ndim > 1
    pairs = zip(np.atleast_2d(scores.ability.T), np.atleast_2d(scores.standard_error.T), strict=True)
    mean, sd = (np.broadcast_to(x, len(np.atleast_2d(scores.ability.T))) for x in normal)
    found: dict[str, np.ndarray] = {}
    for k, (ability, error) in enumerate(pairs):
        ending = f"_{k + 1}" if several else ""
        found |= {f"ability{ending}": ability, f"ability{ending}_se": error}
        found[f"percentile{ending}"] = np.asarray(percentile(ability, Population(mean[k], sd[k])))
    return found


def _normal(population: Any) -> Population:
    """A population out of its mean and standard deviation."""
    several = isinstance(population, tuple | list)
    try:
        mean, sd = np.asarray(population if several else (), float)
    except (ValueError, TypeError) as error:
        what = f"{population!r:.100}" if several else f"of type {type(population).__name__}"
        raise InputError(f"`population` {what}, expected its mean and standard deviation, such as (0, 1)") from error
    if not (np.isfinite(mean).all() and np.isfinite(sd).all() and np.all(sd > 0)):
        raise InputError(f"population of mean {mean} and sd {sd}: expected finite, sd above 0")
    return Population(mean, sd)


def abilities(
    values: Int[np.ndarray, "J I"],
    items: ItemParameters,
    method: str = "eap",
    population: Population = STANDARD,
    mesh: jax.sharding.Mesh | None = None,
) -> Ability:
    """Abilities (J,) or (J, D) of all rows of a response matrix, and their standard errors, in float64.

    The rows are spread over this process's devices of a mesh.
    """
    require_one_dimension(method, items)
    with jax.enable_x64(True):
        normal = Population(*(jnp.asarray(np.squeeze(x), float) for x in population))
        parameters = jax.tree.map(jnp.asarray, items)
        number = nodes_for(float((np.abs(items.slope) * np.asarray(population.sd)).max()))
        shared = None
        if method == "eap" and items.slope.shape[1] == 1 and number is None:
            most = int((values >= 0).sum(axis=1).max(initial=0))
            line = line_nodes(items, most, *(float(np.squeeze(x)) for x in population))
            shared = jnp.asarray(line.nodes), jnp.asarray(line.log_weights)
        own = None if mesh is None else _own_devices(mesh)
        size = len(values) if own is None else own.size * -(-len(values) // own.size)
        rows = np.pad(values, ((0, size - len(values)), (0, 0)), constant_values=MISSING)
        responses = place(jnp.asarray(rows), own, BY_SUBJECT)
        found = _all_rows(method, number or STANDARD_NODES, own, responses, parameters, normal, shared)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(values)], found)


def _own_devices(mesh: jax.sharding.Mesh) -> jax.sharding.Mesh:
    """Those of this process, in a row of subjects."""
    devices = np.array([one for one in mesh.devices.flat if one.process_index == jax.process_index()])
    return jax.sharding.Mesh(devices[:, None], (SUBJECTS, ITEMS))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _all_rows(
    method: str,
    num_nodes: int,
    mesh: jax.sharding.Mesh | None,
    rows: jax.Array,
    items: ItemParameters,
    population: Population,
    shared: tuple[jax.Array, jax.Array] | None,
) -> Ability:
    def local(
        rows: jax.Array,
        items: ItemParameters,
        population: Population,
        shared: tuple[jax.Array, jax.Array] | None,
    ) -> Ability:
        if shared is not None:
            return shared_eap(rows, items, *shared)
        one = by_method(method, num_nodes, population)
        each = items.intercept.size * num_points(method, num_nodes)
        return mapped(lambda row: one(row, items), rows, each, SEARCHES)

    if mesh is None:
        return local(rows, items, population, shared)
    # searches begin at values that are the same on all devices: without check_vma=False these could not come to differ
    specs = BY_SUBJECT, EVERYWHERE, EVERYWHERE, EVERYWHERE
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=BY_SUBJECT, check_vma=False)(
        rows, items, population, shared
    )


def item_table(items: Any) -> pd.DataFrame:
    """Item parameters by id, of a fit, the folder of a saved one, a table like `items.csv`, or the path of one.

    Raises:
        InputError: there are no ids, or one of them twice.
    """
    if isinstance(items, Fit) or holds_fit(items):
        fit = items if isinstance(items, Fit) else load_fit(items)
        return fit.items().set_index("item_id")
    if isinstance(items, str | os.PathLike):
        return read_items(expanded(items)).set_index("item_id")
    items = as_frame(items, "items")
    if not isinstance(items, pd.DataFrame):
        raise InputError(f"items of type {type(items).__name__}: expected a fit, a table or a path")
    table = items.set_index("item_id") if "item_id" in items else items
    if isinstance(table, pd.Series) or table.index.name != "item_id":
        raise InputError("the table of items has no column item_id")
    table = table.set_axis(table.index.astype(str)).rename_axis("item_id")
    if table.index.has_duplicates:
        raise InputError(f"item '{table.index[table.index.duplicated()][0]}' is there twice")
    return table
