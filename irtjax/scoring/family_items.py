"""Known items that are not right or wrong: their model out of a fit or a table, and responses in their categories."""

import dataclasses
import os
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.fits.reading import WANTED
from irtjax.fits.result import Fit
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.families import Families
from irtjax.item_models.listing import MODELS, model_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.convert import as_given
from irtjax.responses.formats.given import Given
from irtjax.responses.scaled import BETWEEN, MISSING, Scale, ScaledResponses
from irtjax.responses.scaling import ORDERED, as_scaled, as_sparse
from irtjax.responses.sparse import SparseResponses, is_sparse
from irtjax.responses.values import OnScales, on_scales
from irtjax.scoring.of_group import require_named
from irtjax.types import Float, Int, Shaped

NONE = -2  # no category of an item


class KnownItems(NamedTuple):
    """Items whose parameters are known.

    Attributes:
        model: of all of them.
        parameters: of I items in one dimension.
        item_ids: (I,).
        scales: of each item.
    """

    model: Families
    parameters: PredictorParameters
    item_ids: Shaped[np.ndarray, " I"]
    scales: tuple[Scale, ...]

    def take(self, places: Int[np.ndarray, " N"]) -> "KnownItems":
        """Some of them."""
        return KnownItems(
            self.model.take(places),
            self.parameters.take(places),
            self.item_ids[places],
            tuple(self.scales[i] for i in places),
        )


def known_items(items: Fit | pd.DataFrame) -> KnownItems | None:
    """The items of a fit, or of a table like its `items.csv` with the ids as index; None where they are right/wrong.

    Raises:
        InputError: they have several dimensions, an unknown model, grades that cannot be read, or a parameter that is
            missing or not finite.
    """
    if isinstance(items, Fit):
        return _of_fit(items) if on_scales(items.responses) else None
    models = items["model"].astype(str).tolist() if "model" in items else []
    return _of_table(items, models) if "grades" in items or set(models) & set(MODELS) else None


def _of_fit(fit: Fit) -> KnownItems:
    if fit.model == "normal":
        raise InputError("the normal model has abilities in its fit, and no scores, pictures or statistics of fit")
    dims = fit.parameters.slope.shape[1]
    if dims > 1:
        raise InputError(f"the items have {dims} dimensions: scores on grades and categories have one")
    top = np.asarray(fit.parameters.top)
    model = model_of(fit.item_models, top)
    parameters = PredictorParameters(*(np.asarray(leaf) for leaf in fit.parameters))
    return KnownItems(model, parameters, fit.responses.item_ids, fit.responses.scales)


def _of_table(table: pd.DataFrame, models: list[str]) -> KnownItems:
    ids = table.index.to_numpy()
    unknown = next((i for i, name in enumerate(models) if name not in MODELS), None)
    if not models or unknown is not None:
        found = "no column model" if unknown is None else f"item {ids[unknown]!r} has model {models[unknown]!r}"
        raise InputError(f"items with grades: {found}, expected one of {', '.join(MODELS)}")
    texts = table["grades"] if "grades" in table else pd.Series("", table.index)
    scales = tuple(_scale(item, text) for item, text in zip(ids, texts.fillna("").astype(str), strict=True))
    top = np.array([scale.top for scale in scales])
    model = model_of(tuple(models), top)
    numbers = {name: pd.to_numeric(table[name], errors="coerce").to_numpy(float) for name in map(str, table.columns)}
    leaves: list[PredictorParameters] = []
    groups = [group for _, group in model.groups(len(ids))]
    for family, group in model.groups(len(ids)):
        leaves.append(_restored(family, {name: column[group] for name, column in numbers.items()}, top[group], model))
    order = np.argsort(np.concatenate(groups))
    most = max(part.others.shape[1] for part in leaves)
    wide = [part._replace(others=np.pad(part.others, ((0, 0), (0, most - part.others.shape[1])))) for part in leaves]
    parameters = PredictorParameters(*(np.concatenate(parts)[order] for parts in zip(*wide, strict=True)))
    finite = np.isfinite(parameters.slope[:, 0] + parameters.intercept + parameters.others.sum(axis=1))
    if not finite.all():
        i = int(np.argmin(finite))
        raise InputError(
            f"item {ids[i]!r}: a parameter of the {models[i]} is missing or not finite: fix it, or leave the item out"
        )
    return KnownItems(model, parameters, ids, scales)


def _restored(
    family: Any, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"], model: Families
) -> PredictorParameters:
    """Parameters of the items of one family, with room for as many categories as any item of the test has."""
    nothing = np.full(len(top) + 1, np.nan)
    # an item more has the most categories, for which families then make room
    longer = defaultdict(lambda: nothing, {name: np.append(column, np.nan) for name, column in columns.items()})
    return family.restored(longer, np.append(top, model.per_item)).take(slice(len(top)))


def _scale(item: str, text: str) -> Scale:
    """What a cell of the column grades says."""
    if not text:
        return Scale()
    labels = [_label(part) for part in text.split(BETWEEN)]
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise InputError(f"item {item!r}: grades {text!r}, expected two or more different ones such as 1{BETWEEN}2")
    return Scale(tuple(labels))


def _label(value: Any) -> Any:
    """A label as a number where it is one, else as text: 1, 1.0 and "1" are the same."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value).strip()
    if not np.isfinite(number):
        return str(value).strip()
    return int(number) if number == int(number) else number


def matched(responses: Any, known: KnownItems, trials: Any = None, **choice: Any) -> tuple[OnScales, KnownItems]:
    """Responses to some of the items, in the categories that these have, and these items.

    Args:
        responses: `ScaledResponses`, or `SparseResponses` on scales; a table of grades or categories, subjects × items,
            with the ids as index or as column subject_id; an array of them that has all items in order; or whatever
            else `irtjax.responses.convert.as_given` knows, such as the path of a file.
        known: the items.
        trials: of counts, as of `irtjax.fit`.
        **choice: `columns`, `metric` and `filter` as of `irtjax.fit`.

    Raises:
        InputError: an item that is not known, or a response that it cannot have.
    """
    if not on_scales(responses):
        responses = _on_scales(responses, known, trials, choice)
    if isinstance(responses, SparseResponses):
        return _by_answer(responses, known)
    given = _of_scaled(responses)
    places = pd.Index(known.item_ids.astype(str)).get_indexer(given.item_ids)
    require_known(given.item_ids.tolist(), set(known.item_ids.astype(str)))
    chosen = known.take(places)
    columns = [_by_codes(given, i, scale) for i, scale in enumerate(chosen.scales)]
    values = np.stack(columns, axis=1)
    return ScaledResponses(values, given.subject_ids, given.item_ids, chosen.scales, given.trials), chosen


def _by_answer(responses: SparseResponses, known: KnownItems) -> tuple[SparseResponses, KnownItems]:
    """Single responses in the categories of the items, and these items.

    Raises:
        InputError: an item that is not known, or a response that it cannot have.
    """
    ids = responses.item_ids.astype(str)
    require_known(ids.tolist(), set(known.item_ids.astype(str)))
    chosen = known.take(pd.Index(known.item_ids.astype(str)).get_indexer(ids))
    most = max(max(scale.top for scale in responses.scales) + 1, 2)
    table, has = np.full((len(ids), most), NONE), np.zeros(len(ids), bool)
    for i, (given, scale) in enumerate(zip(responses.scales, chosen.scales, strict=True)):
        has[i] = scale.labels is not None
        if has[i]:
            table[i, : given.top + 1] = _places(list(given.labels or ()), scale)[:-1]
    at = has[responses.items]
    answers = np.array(responses.answers)
    answers[at] = table[responses.items[at], answers[at].astype(int)]
    if (wrong := at & (answers == NONE)).any():
        n = int(np.argmax(wrong))
        i, labels = int(responses.items[n]), responses.scales[responses.items[n]].labels
        raise _unknown(
            responses.subject_ids[responses.subjects[n]], ids[i], labels[int(responses.answers[n])], chosen.scales[i]
        )
    return dataclasses.replace(responses, answers=answers, scales=chosen.scales), chosen


def _unknown(subject: Any, item: Any, label: Any, scale: Scale) -> InputError:
    labels = ", ".join(map(str, scale.labels or ()))
    return InputError(f"subject {str(subject)!r}, item {str(item)!r}: {str(label)!r}, expected one of {labels}")


def _places(labels: list[Any], scale: Scale) -> Int[np.ndarray, " _"]:
    """The categories of a scale that labels stand for; the last entry is that of no label."""
    own = {_label(label): k for k, label in enumerate(scale.labels or ())}
    return np.array([own.get(_label(label), NONE) for label in labels] + [MISSING])


def ready(responses: OnScales, known: KnownItems) -> tuple[OnScales, KnownItems]:
    """Responses as the model of the items has them, and the items with it (`item_models.coded_counts.coded`)."""
    if isinstance(responses, SparseResponses):
        top = np.asarray(known.parameters.top)
        found = coded(known.model, responses.answers, responses.trials, top, responses.items)
        if found.model is known.model:
            return responses, known
        single = dataclasses.replace(responses, answers=found.values, trials=found.trials)
        return single, known._replace(model=found.model, parameters=known.parameters._replace(top=found.top))
    found = coded(known.model, np.asarray(responses.values), responses.trials, np.asarray(known.parameters.top))
    if found.model is known.model:
        return responses, known
    values = dataclasses.replace(responses, values=found.values, trials=found.trials)
    return values, known._replace(model=found.model, parameters=known.parameters._replace(top=found.top))


class _Given(NamedTuple):
    """Of each item (column) places among labels, negative where missing; ids; trials."""

    codes: list[np.ndarray]
    labels: list[list[Any]]
    subject_ids: np.ndarray
    item_ids: np.ndarray
    trials: np.ndarray | None


def _of_scaled(responses: ScaledResponses) -> _Given:
    labels = [list(scale.labels or ()) for scale in responses.scales]
    ids = responses.subject_ids.astype(str), responses.item_ids.astype(str)
    return _Given(list(np.asarray(responses.values).T), labels, *ids, responses.trials)


def _by_codes(given: _Given, i: int, scale: Scale) -> np.ndarray:
    """(J,) categories of an item, -1 where missing; what was given where the item has none."""
    codes, labels = given.codes[i], given.labels[i]
    if scale.labels is None:
        return codes
    found = _places(labels, scale)[np.where(codes >= 0, codes, len(labels)).astype(int)]
    if (found == NONE).any():
        j = int(np.argmax(found == NONE))
        raise _unknown(given.subject_ids[j], given.item_ids[i], labels[int(codes[j])], scale)
    return found


def _on_scales(responses: Any, known: KnownItems, trials: Any, choice: dict[str, Any]) -> OnScales:
    """What was given, on the scales of the items.

    Raises:
        InputError: an item that is not known, or a response that it cannot have.
    """
    if isinstance(responses, np.ndarray | list | tuple) and not isinstance(responses, Given):
        responses = _named(responses, known)
    elif not isinstance(responses, str | os.PathLike | Given) and not hasattr(responses, "to_numpy"):
        raise InputError(
            f"responses of type {type(responses).__name__} to items with grades: expected `ScaledResponses`, a path, "
            "or a table or an array of grades"
        )
    if isinstance(trials, str):
        choice = {**choice, "columns": {**(choice.get("columns") or {}), "trials": trials}}
        trials = None
    given = as_given(responses, **choice)
    labels = dict(zip(known.item_ids.astype(str), known.scales, strict=True))
    require_known(given.item_ids, labels)
    given = given.of_known(given.item_ids[i] for i in np.unique(given.items))  # those that someone answered
    family = dict(zip(known.item_ids.astype(str), _families(known), strict=True))
    sparse = is_sparse(len(given.cells), len(given.subject_ids), len(given.item_ids))
    return (as_sparse if sparse else as_scaled)(
        given,
        [WANTED.get(family[item], ORDERED) for item in given.item_ids],
        {item: labels[item].labels for item in given.item_ids},
        trials=trials,
    )


def require_known(item_ids: Sequence[str], known: Collection[str]) -> None:
    """Refuses responses to items without parameters.

    Raises:
        InputError: names the first; of items that are free by group, what says which group is meant.
    """
    require_named(item_ids, known)
    unknown = [item for item in item_ids if item not in known]
    if unknown:
        raise InputError(
            f"item {unknown[0]!r} (1 of {len(unknown)} such) has responses and no parameters: leave it out, or give "
            "`items` that have it"
        )


def _families(known: KnownItems) -> list[str]:
    """The name of the family of each item."""
    names = np.empty(len(known.item_ids), object)
    for family, group in known.model.groups(len(names)):
        names[group] = family.name
    return names.tolist()


def _named(responses: Any, known: KnownItems) -> pd.DataFrame:
    """An array of responses to all items, in order.

    Raises:
        InputError: it has another shape.
    """
    array = np.asarray(responses)
    if array.ndim == 2 and array.shape[1] == len(known.item_ids):
        values = np.where(array < 0, np.nan, array) if array.dtype.kind in "if" else array
        return pd.DataFrame(values, [f"subject_{j}" for j in range(1, len(array) + 1)], known.item_ids)
    raise InputError(
        f"an array of shape {array.shape} names no items: expected responses to all {len(known.item_ids)}, in order"
    )
