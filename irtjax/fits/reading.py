"""What a fit reads: right and wrong answers, or responses on scales of their own, as the model has it."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from irtjax.choices import AUTO, LAST
from irtjax.errors import InputError, NotScoredError
from irtjax.fits import category_text
from irtjax.item_models.listing import CURVES_OF_COUNTS, MODELS, OF_COUNTS, OF_SHARES
from irtjax.responses.convert import as_given, as_responses_or_stored
from irtjax.responses.formats.given import Given
from irtjax.responses.judged import Judged, as_judged, by_judge
from irtjax.responses.kinds import GRADES, RIGHT_WRONG, SHARES, kinds_of
from irtjax.responses.scaling import COUNTED, ORDERED, SHARED, UNORDERED, Labels, as_scaled, as_sparse
from irtjax.responses.sparse import SparseResponses, is_sparse
from irtjax.responses.values import OnScales, Responses, on_scales
from irtjax.storage.sources import naming

WANTED = {"nominal": UNORDERED, **dict.fromkeys(OF_COUNTS, COUNTED), **dict.fromkeys(OF_SHARES, SHARED)}
OF_RIGHT_WRONG = {"2pl": "gpcm", "1pl": "pcm", "rasch": "pcm"}  # by their steps, which are one
OF_CURVES = {curve: name for name, curve in CURVES_OF_COUNTS.items()} | {"rasch": "binomial_1pl"}
BESIDE = {"2pl": "graded", "1pl": "pcm", "rasch": "pcm"}  # what right/wrong items are beside others
HINT = "`model=graded`, or `model=auto`, which goes by the data"
OTHERS = f"other responses than right and wrong need {HINT}"
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
    grades: Labels = None,
    repeats: str | None = None,
    trials: Any = None,
    sparse: bool | None = False,
    **choice: Any,
) -> tuple[Any, Models]:
    """Responses, and the model of them or of each item; "auto" goes by the responses.

    Several right or wrong responses of a subject to an item are a count, which the binomial model has with the curve of
    the 2PL: "2pl" of these is "binomial", and "3pl" is "binomial_3pl".

    Args:
        data: as of `irtjax.fit`; or responses as they were given.
        model: as of `irtjax.fit`.
        mesh: of the devices that are to work.
        transpose: whether what would be read as subjects are items.
        grades: as of `irtjax.fit`.
        repeats: as of `irtjax.fit`.
        trials: as of `irtjax.fit`.
        sparse: whether to hold single answers, and not a matrix; None to do so where few cells have one.
        **choice: `columns`, `metric` and `filter` as of `irtjax.fit`.

    Raises:
        InputError: as `irtjax.responses.scaling.as_scaled` and `irtjax.responses.convert.as_responses`.
    """
    if on_scales(data):
        return data, _models_of_scales(data) if model == AUTO else _named(model, data)
    if isinstance(trials, str):
        choice["columns"], trials = {**(choice.get("columns") or {}), "trials": trials}, None
    last = LAST if repeats == LAST else None
    asked = {name: value for name, value in (("grades", grades), ("repeats", repeats)) if value not in (None, LAST)}
    given = None
    if not is_scaled(model):
        if model != AUTO and asked:
            raise InputError(
                f"`{next(iter(asked))}` is not for right and wrong answers: take `model=graded` or `model=auto`"
            )
        if trials is not None or isinstance(data, Given):
            given = _given(data, last, choice)
            model = _of_counts(given, model, trials)
        elif not asked:
            try:
                responses = as_responses_or_stored(data, mesh, sparse=sparse, repeats=last, **choice)
                return _transposed(responses) if transpose else responses, "2pl" if model == AUTO else model
            except NotScoredError as error:
                given, model = _other_model(data, model, error, last, choice)
    given = _given(data, last, choice) if given is None else given
    repeats = None if last else repeats
    given = given.transposed() if transpose else given
    with naming(os.fspath(data)) if isinstance(data, str | os.PathLike) else contextlib.nullcontext():
        models = _models_of_kinds(given, grades, repeats, trials) if model == AUTO else model
        each = [models] * len(given.item_ids) if isinstance(models, str) else list(models)
        if len(each) != len(given.item_ids):
            raise InputError(f"{len(each)} models for {len(given.item_ids)} items")
        if sparse is None:
            sparse = is_sparse(len(given.cells), len(given.subject_ids), len(given.item_ids))
        put = as_sparse if sparse else as_scaled
        scaled = put(given, [WANTED.get(name, ORDERED) for name in each], grades, repeats, trials)
        return scaled, _named(models, scaled)


def _given(data: Any, last: str | None, choice: Mapping[str, Any]) -> Given:
    """The responses as they were given; of several of a subject to an item the last, if it is that which counts."""
    given = as_given(data, **choice)
    return given.last() if last else given


def _transposed(responses: Responses) -> Responses:
    return (responses if isinstance(responses, SparseResponses) else responses.read()).transposed()


def read_judged(
    data: Any,
    model: Models,
    facet: str,
    *,
    grades: Labels = None,
    repeats: str | None = None,
    trials: Any = None,
    **choice: Any,
) -> tuple[Judged, Models]:
    """Responses by judge, and the model of the items; "auto" goes by the responses.

    Args:
        data: as of `irtjax.fit`; or responses as they were given, with a facet; or by judge already.
        model: as of `irtjax.fit`; the 2PL of right and wrong answers is "gpcm", and the 1PL and Rasch "pcm".
        facet: the column of the judges.
        grades: as of `irtjax.fit`.
        repeats: as of `irtjax.fit`.
        trials: as of `irtjax.fit`.
        **choice: as of `read`.

    Raises:
        InputError: as `irtjax.responses.judged.as_judged`; or a model that knows right and wrong only.
    """
    if repeats == LAST:
        raise InputError("`repeats='last'` does not go with a facet: keep the responses of each judge that count")
    if isinstance(data, Judged):
        return data, model
    columns = {**(choice.get("columns") or {}), "facet": facet}
    if isinstance(trials, str):
        columns, trials = {**columns, "trials": trials}, None
    given = as_given(data, **{**choice, "columns": columns}) if not isinstance(data, Given) else data
    models = _models_of_kinds(by_judge(given)[0], grades, repeats, trials) if model == AUTO else model
    each = [models] * len(given.item_ids) if isinstance(models, str) else list(models)
    each = [OF_RIGHT_WRONG.get(name, name) for name in each]
    if len(each) != len(given.item_ids):
        raise InputError(f"{len(each)} models for {len(given.item_ids)} items")
    unknown = next((name for name in each if name not in MODELS), None)
    if unknown is not None:
        raise InputError(f"the {unknown} has no facet: take one of {', '.join(MODELS)}, or auto")
    judged = as_judged(given, [WANTED.get(name, ORDERED) for name in each], grades, trials)
    return judged, _one_or_each(each)


def _of_counts(given: Given, model: Models, trials: Any = None) -> Models:
    """The binomial model with the curve of the model, for counts, which repeated answers become; else the model."""
    counted = trials is not None or given.trials is not None
    counted = counted or (given.repeats() > 1 and set(kinds_of(given)) == {RIGHT_WRONG})
    return OF_CURVES.get(model, model) if isinstance(model, str) and counted else model


def _other_model(
    data: Any, model: Models, error: NotScoredError, last: str | None, choice: Mapping[str, Any]
) -> tuple[Given, Models]:
    """Responses that are no matrix of right and wrong ones, as they were given, and their model.

    Raises:
        InputError: the one that was asked for is of right and wrong answers; says what they are.
    """
    if model == AUTO:
        return _given(data, last, choice), model
    try:
        given = _given(data, last, choice)
        found = _of_counts(given, model)
        advice = _advice(str(error), data, given, model) if found == model else ""
    except InputError:
        found, advice = model, f"{error}; {OTHERS}"
    if found == model:
        raise InputError(advice) from error
    return given, found


def _advice(error: str, data: Any, given: Given, model: Models) -> str:
    """What is said of responses that are not right or wrong to someone who has not asked for another model."""
    kinds = kinds_of(given)
    if kinds.count(GRADES) <= len(kinds) / 2:  # a slip in some cells
        return f"{error}; {OTHERS}"
    i = kinds.index(GRADES)
    said = category_text.said(as_scaled(given, [ORDERED] * len(kinds)).scales[i : i + 1])
    name = f"the {model}" if isinstance(model, str) else "the model"
    source = f"{data}: " if isinstance(data, str | os.PathLike) else ""
    return f"{source}item {given.item_ids[i]!r} has {said}, and {name} is of right and wrong answers: pass {HINT}"


def _models_of_kinds(given: Given, grades: Labels, repeats: str | None, trials: Any) -> Models:
    """Graded of grades, and what other kinds need.

    Raises:
        InputError: see `kinds_of`.
    """
    if trials is not None or given.trials is not None:
        return OF_COUNTS[0]
    if grades is not None:
        return "graded"
    counted = OF_COUNTS[0] if repeats is None and given.repeats() > 1 else "graded"
    names = {RIGHT_WRONG: counted, SHARES: OF_SHARES[0]}
    return _one_or_each([names.get(kind, "graded") for kind in kinds_of(given)])


def _models_of_scales(responses: OnScales) -> Models:
    other = OF_SHARES[0] if responses.trials is None else OF_COUNTS[0]
    return _one_or_each([other if scale.labels is None else "graded" for scale in responses.scales])


def _one_or_each(models: list[str]) -> Models:
    return models[0] if len(set(models)) == 1 else tuple(models)


def _named(model: Models, responses: OnScales) -> Models:
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
