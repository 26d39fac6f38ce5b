"""Tasks of any data set of images or texts that TensorFlow Datasets has prepared as array_record files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.storage.json_files import read_json
from irtjax.storage.sources import naming, one_line
from irtjax.tasks import prepared, records
from irtjax.tasks.building import Choices, Given, Note, build
from irtjax.tasks.columns import IDS, SPLIT_NAMES, Columns, Names, choose_columns
from irtjax.tasks.image_files import LARGEST, Size, decode_once
from irtjax.tasks.inputs import Pictures
from irtjax.tasks.labels import ClassNames
from irtjax.tasks.splitting import SHARE
from irtjax.tasks.task import SPLITS, Task

WITHHELD = -1  # the label of records without one
KINDS = {"ClassLabel": "class", "Image": "image", "Text": "text"}


@checks_types
def from_tfds(
    dataset: str,
    *,
    data_dir: str | Path | None = None,
    text: Names = None,
    features: Names = None,
    image: str | None = None,
    label: str | None = None,
    split: Mapping[str, str] | None = None,
    class_names: ClassNames = None,
    name: str | None = None,
    seed: int = 0,
    validation_share: float = SHARE,
    test_share: float = SHARE,
    size: Size = None,
    flips: bool = False,
    on_note: Note | None = None,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
    **options: Any,
) -> Task:
    """A task of a prepared data set; its inputs and labels are found by the types of its features.

        task = irtjax.tasks.from_tfds("ag_news_subset", data_dir="data")
        task = irtjax.tasks.from_tfds("glue/mnli", split={"validation": "validation_matched"})

    Records without a label (-1) are left out, and so is a split whose records all lack one. A feature `idx` or `id`, of
    which each record has another, gives the order of the records and their ids.

    Args:
        dataset: `name[/config][:version]`.
        data_dir: folder of prepared data sets; None for the default of TensorFlow Datasets.
        text: the feature of texts, or the two of pairs; None for those of the type Text.
        features: those of numbers.
        image: that of images; None for the one of the type Image.
        label: that of classes; None for the one of the type ClassLabel.
        split: names in the data set of the splits train, validation and test; None for these names. Those that it lacks
            are drawn.
        class_names: see `from_arrays`; None for those of the data set.
        name: of the task; None for that of the data set.
        seed: see `from_arrays`, as the arguments below.
        validation_share: see there.
        test_share: see there.
        size: see `from_images`.
        flips: see there.
        on_note: see there.
        on_progress: called with a description, the number of records read and that of all.
        options: of texts, see there.

    Raises:
        InputError: there is no prepared copy, its features do not tell inputs and labels, or see `from_arrays`.
    """
    source = prepared.find("tfds", dataset, data_dir, dataset)
    title = source.dataset.replace("/", "_") if name is None else name
    specs = _specs(source.folder)
    kinds = {feature: _kind(spec) for feature, spec in specs.items()}
    with naming(source.folder):
        columns = choose_columns(kinds, text=text, features=features, image=image, label=label)
    choices = Choices(title, class_names, seed, validation_share, test_share, flips, on_note, options)
    names = _split_names(source, split or {})
    pictures = {}
    if columns.kind == "image" and (size is not None or not _are_small(specs[columns.inputs[0]])):
        encoded = {stored: _encoded(source, stored, columns.inputs[0]) for stored in names.values()}
        key = source.dataset, str(source.folder.resolve()), records.signature(source), columns.inputs, list(encoded)
        with naming(title):
            decoded = decode_once(f"images-{title}", key, encoded, size, choices.note, on_progress)
        pictures = {stored: own.inputs for stored, own in decoded.items()}
    given = {}
    for own, stored in names.items():
        found = _given(source, stored, columns, pictures.get(stored), choices, on_progress)
        if found is None and own == "train":
            raise InputError(f"{title}: no record of {stored} has a label")
        if found is not None:
            given[own] = found
    labels = source.folder / f"{columns.label}.labels.txt"
    if class_names is None and labels.is_file():
        known = labels.read_text(encoding="utf-8").split("\n")
        choices = Choices(
            title, [one for one in known if one], seed, validation_share, test_share, flips, on_note, options
        )
    return build(given, choices)


def _split_names(source: prepared.Prepared, split: Mapping[str, str]) -> dict[str, str]:
    """Names in the data set of its splits."""
    for own, stored in split.items():
        if own not in SPLITS or stored not in source.splits:
            raise InputError(f"`split`: {own} of {stored}; the data set has {', '.join(source.splits)}")
    usual = {SPLIT_NAMES[stored]: stored for stored in source.splits if stored in SPLIT_NAMES}
    names = {own: {**usual, **split}[own] for own in SPLITS if own in {**usual, **split}}
    if "train" not in names:
        raise InputError(f"{source.folder}: no split train, only {', '.join(source.splits)}: name it by `split`")
    return names


def _given(
    source: prepared.Prepared,
    stored: str,
    columns: Columns,
    pictures: Pictures | None,
    choices: Choices,
    on_progress: records.Progress,
) -> Given | None:
    """The records of a split that have a label, with its images if they are known; None if there are none."""
    place = f"{source.folder}: {stored}"
    wanted = {**dict.fromkeys((*columns.inputs, columns.label), True), **({columns.id: False} if columns.id else {})}
    if pictures is not None:
        wanted = {name: needed for name, needed in wanted.items() if name not in columns.inputs}
    found = records.read("tfds", source, stored, wanted, on_progress)
    if pictures is not None:
        found = {**found, columns.inputs[0]: pictures.images}
    numbers: np.ndarray | list[str] = np.arange(len(found[columns.label]))
    if columns.id in IDS and columns.id in found and len(np.unique(found[columns.id])) == len(numbers):
        found = records.order_by(found, columns.id, place)
        numbers = found[columns.id]
    ids = records.ids_of(numbers, choices.name, stored)
    labels = found[columns.label]
    rows = np.arange(len(labels))
    if not isinstance(labels, list):
        rows = np.flatnonzero(np.asarray(labels) != WITHHELD)
        if not rows.size:
            choices.note(f"no record of {stored} has a label: another split is drawn in its place")
            return None
        if rows.size < len(labels):
            choices.note(f"{len(labels) - rows.size:,} records of {stored} have no label and are left out")
    parts = [_rows(found[name], rows) for name in columns.inputs]
    inputs = tuple(parts) if len(parts) == 2 else parts[0]
    if columns.kind == "number":
        inputs = np.column_stack([np.asarray(part, float) for part in parts])
    return Given(inputs, _rows(labels, rows), ids[rows], lambda at: f"{place}, record {ids[rows[at]]}")


def _rows(column: np.ndarray | list[str], rows: np.ndarray) -> Any:
    return [column[at] for at in rows] if isinstance(column, list) else column[rows]


def _specs(folder: Path) -> dict[str, dict[str, Any]]:
    """The description of each feature."""
    path = folder / "features.json"
    try:
        return dict(read_json(path)["featuresDict"]["features"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: does not describe features ({one_line(error)}); prepare the data set again"
        ) from error


def _kind(spec: Mapping[str, Any]) -> str:
    name = str(spec.get("pythonClassName", "")).rsplit(".", 1)[-1]
    if name in KINDS:
        return KINDS[name]
    tensor = spec.get("tensor") or {}
    if tensor.get("dtype") in ("string", "object"):
        return "text"
    scalar = not (tensor.get("shape") or {}).get("dimensions")
    return "number" if tensor and scalar else "other"


def _are_small(spec: Mapping[str, Any]) -> bool:
    """Whether all images are of one size, which networks can read."""
    sides = ((spec.get("image") or {}).get("shape") or {}).get("dimensions") or []
    return len(sides) == 3 and all(str(side).isdigit() and 0 < int(side) <= LARGEST for side in sides)


def _encoded(source: prepared.Prepared, stored: str, feature: str) -> Given:
    """The images of a split, not decoded yet."""
    place = f"{source.folder}: {stored}"
    return Given(records.Encoded(source, stored, feature), None, None, lambda at: f"{place}, record {at} of its files")
