"""What a fit reads: right and wrong answers, or responses on scales of their own, as the model has it."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from irtjax.errors import InputError, NotScoredError
from irtjax.estimation import category_text
from irtjax.item_models.listing import MODELS, OF_COUNTS, OF_SHARES
from irtjax.responses.convert import as_given, as_responses_or_stored
from irtjax.responses.formats import holds_table
from irtjax.responses.formats.given import Given
from irtjax.responses.kinds import GRADES, RIGHT_WRONG, SHARES, kinds_of
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.scaling import COUNTED, ORDERED, SHARED, UNORDERED, Labels, as_scaled
from irtjax.responses.values import Responses
from irtjax.storage.sources import naming

AUTO = "auto"
WANTED = {"nominal": UNORDERED, **dict.fromkeys(OF_COUNTS, COUNTED), **dict.fromkeys(OF_SHARES, SHARED)}
BESIDE = {"2pl": "graded", "1pl": "pcm", "rasch": "pcm"}  # what right/wrong items are beside others
Models = str | Sequence[str]


def is_scaled(model: Models) -> bool:
    """Whether a model, or that of an item, is one of other responses than right and wrong."""
    return any(name in MODELS for name in ([model] if isinstance(model, str) else model))


def read(
    data: Any,
    model: Models,
    mesh: jax.sharding.Mesh | None = None,
    *,
    transpose: bool = False,
    columns: Mapping[str, str] | None = None,
    grades: Labels = None,
    repeats: str | None = None,
    trials: Any = None,
) -> tuple[Responses | ScaledResponses, Models]:
    """Responses, and the model of them or of each item; "auto" goes by the responses.

    Args:
        data: as of `irtjax.fit`.
        model: as of `irtjax.fit`.
        mesh: of the devices that are to work.
        transpose: whether what would be read as subjects are items.
        columns: as of `irtjax.fit`.
        grades: as of `irtjax.fit`.
        repeats: as of `irtjax.fit`.
        trials: as of `irtjax.fit`.

    Raises:
        InputError: as `irtjax.responses.scaling.as_scaled` and `irtjax.responses.convert.as_responses`.
    """
    if isinstance(data, ScaledResponses):
        return data, _models_of_scales(data) if model == AUTO else _named(model, data)
    chosen = [
        name for name, value in (("grades", grades), ("repeats", repeats), ("trials", trials)) if value is not None
    ]
    if not is_scaled(model) and not (model == AUTO and chosen):
        if chosen:
            raise InputError(f"`{chosen[0]}` is not for right and wrong answers: take `model=graded` or `model=auto`")
        try:
            responses = as_responses_or_stored(data, mesh, columns=columns)
            scored = responses.read().transposed() if transpose else responses
            return scored, "2pl" if model == AUTO else model
        except NotScoredError as error:
            readable = not isinstance(data, str | os.PathLike) or holds_table(os.path.expanduser(data))
            if model != AUTO:
                raise InputError(_advice(str(error), data, columns, model) if readable else str(error)) from error
            if not readable:
                raise
    given = as_given(data, columns)
    given = given.transposed() if transpose else given
    with naming(os.fspath(data)) if isinstance(data, str | os.PathLike) else contextlib.nullcontext():
        models = _models_of_kinds(given, grades) if model == AUTO else model
        each = [models] * len(given.item_ids) if isinstance(models, str) else list(models)
        if len(each) != len(given.item_ids):
            raise InputError(f"{len(each)} models for {len(given.item_ids)} items")
        scaled = as_scaled(given, [WANTED.get(name, ORDERED) for name in each], grades, repeats, trials)
        return scaled, _named(models, scaled)


def _advice(error: str, data: Any, columns: Mapping[str, str] | None, model: Models) -> str:
    """What is said of responses that are not right or wrong to someone who has not asked for another model."""
    hint = "`model=graded`, or `model=auto`, which goes by the data"
    try:
        given = as_given(data, columns)
        kinds = kinds_of(given)
    except InputError:
        return f"{error}; other responses than right and wrong need {hint}"
    if kinds.count(GRADES) <= len(kinds) / 2:  # a slip in some cells
        return f"{error}; other responses than right and wrong need {hint}"
    i = kinds.index(GRADES)
    said = category_text.said(as_scaled(given, [ORDERED] * len(kinds), repeats="mean").scales[i : i + 1])
    name = f"the {model}" if isinstance(model, str) else "the model"
    source = f"{data}: " if isinstance(data, str | os.PathLike) else ""
    return f"{source}item {given.item_ids[i]!r} has {said}, and {name} is of right and wrong answers: pass {hint}"


def _models_of_kinds(given: Given, grades: Labels) -> Models:
    """Graded of grades, and what other kinds need.

    Raises:
        InputError: see `kinds_of`; or there is no model of shares.
    """
    if grades is not None:
        return "graded"
    kinds = kinds_of(given)
    if set(kinds) == {RIGHT_WRONG} and OF_COUNTS[0] in MODELS:
        return OF_COUNTS[0]  # repeated ones, which no matrix holds
    if SHARES in kinds and OF_SHARES[0] not in MODELS:
        item = given.item_ids[kinds.index(SHARES)]
        raise InputError(
            f"item {item!r} has shares from 0 to 1, of which there is no model: round them to a few grades"
        )
    return _one_or_each([OF_SHARES[0] if kind == SHARES else "graded" for kind in kinds])


def _models_of_scales(responses: ScaledResponses) -> Models:
    other = OF_SHARES[0] if responses.trials is None else OF_COUNTS[0]
    return _one_or_each([other if scale.labels is None else "graded" for scale in responses.scales])


def _one_or_each(models: list[str]) -> Models:
    return models[0] if len(set(models)) == 1 else tuple(models)


def _named(model: Models, responses: ScaledResponses) -> Models:
    """Models by names that the estimator knows: right/wrong items are graded ones, or of partial credit, of two steps.

    Raises:
        InputError: such an item is not right/wrong, or a model knows right and wrong only.
    """
    if isinstance(model, str):
        if model not in MODELS:
            raise InputError(f"the {model} is of right and wrong answers: take one of {', '.join(MODELS)}, or auto")
        return model
    for name, item, scale in zip(model, responses.item_ids, responses.scales, strict=False):
        if name in BESIDE and (scale.labels is None or len(scale.labels) > 2):
            raise InputError(f"item {str(item)!r} is not right or wrong: the {name} does not fit it")
        if name not in BESIDE and name not in MODELS:
            raise InputError(
                f"unknown model {name!r} beside other responses than right and wrong, expected one of "
                f"{', '.join((*MODELS, *BESIDE))}"
            )
    return tuple(BESIDE.get(name, name) for name in model)
