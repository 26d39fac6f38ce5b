"""Records of prepared data sets as columns, read by TensorFlow Datasets without TensorFlow and then cached."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.cache import Arrays, cached
from irtjax.storage.sources import one_line
from irtjax.tasks.prepared import FORMAT, Prepared

BLOCK = 8192  # records read at once: large enough for speed, small enough for a moving progress bar
ENCODED_BLOCK = 256  # of images that are not decoded, which may be large
Progress = Callable[[str, int, int], None]
Columns = dict[str, np.ndarray | list[str]]


def read(task: str, source: Prepared, split: str, features: dict[str, bool], on_progress: Progress) -> Columns:
    """All records of a split, in the order of its files.

    Args:
        task: named in errors.
        source: where the files are.
        split: the split's name.
        features: the features wanted, and whether a record must have them.
        on_progress: called with a description, the number of records read so far, and of all; never called where the
            cache has them.

    Returns:
        One column per feature: text as a list of N strings, others as arrays (N, ...) of whole numbers. Optional
        features that the records lack are left out.

    Raises:
        InputError: the split or a feature is missing, or a file is damaged.
    """
    if split not in source.splits:
        raise InputError(f"{task}: {source.folder} has no split {split!r}, only {', '.join(source.splits)}")
    key = (
        source.dataset,
        source.folder.name,
        split,
        str(source.folder.resolve()),
        signature(source),
        sorted(features),
    )
    name = f"{source.dataset.replace('/', '-')}-{source.folder.name}-{split}"
    packed = cached(name, key, lambda: _pack(_read(source, split, list(features), on_progress)))
    columns = _unpack(packed)
    for feature, needed in features.items():
        if needed and feature not in columns:
            raise InputError(f"{task}: the records of {source.folder} have no feature {feature!r}")
    return columns


def order_by(columns: Columns, feature: str, place: str) -> Columns:
    """The records sorted by a feature, since TFDS shuffles what it writes; as they are where they lack it.

    Raises:
        InputError: two records have the same value of it, or it is neither text nor a whole number.
    """
    if feature not in columns:
        return columns
    values = columns[feature] if isinstance(columns[feature], list) else numbers_of(columns, feature, place)
    order = np.argsort(values, kind="stable")
    if len(np.unique(values)) < len(order):
        raise InputError(f"{place}: two records have the same {feature!r}; prepare the data set again")
    return {
        name: [column[at] for at in order] if isinstance(column, list) else column[order]
        for name, column in columns.items()
    }


def ids_of(numbers: np.ndarray | list[str], begin: str, split: str, digits: int = 5) -> np.ndarray:
    """(N,) ids of records: a name, the split and a number; or the name and an id of text, where all have the split.

    Args:
        numbers: of the records, or their ids.
        begin: the name.
        split: that of the data set.
        digits: at least so many.
    """
    if not isinstance(numbers, list):
        return np.array([f"{begin}_{split}_{number:0{digits}d}" for number in numbers.tolist()])
    start = begin if all(one.startswith(split) for one in numbers) else f"{begin}_{split}"
    return np.array([f"{start}_{one}" for one in numbers])


def labels_of(columns: Columns, num_classes: int, place: str) -> np.ndarray:
    """(N,) int32 labels.

    Raises:
        InputError: one is not -1 (withheld) or a class, or the feature is something else.
    """
    labels = numbers_of(columns, "label", place)
    wrong = np.flatnonzero((labels < -1) | (labels >= num_classes))
    if wrong.size:
        raise InputError(f"{place}: record {wrong[0]} has label {labels[wrong[0]]}, expected 0 to {num_classes - 1}")
    return labels.astype(np.int32)


def numbers_of(columns: Columns, feature: str, place: str) -> np.ndarray:
    """A column of (N,) whole numbers.

    Raises:
        InputError: the feature is something else.
    """
    column = np.asarray(columns[feature])
    if column.ndim != 1 or column.dtype.kind not in "iu":
        raise InputError(f"{place}: the feature {feature!r} is not an integer; `dataset` must name data of that kind")
    return column


def texts_of(columns: Columns, feature: str, place: str) -> list[str]:
    """A column of N strings.

    Raises:
        InputError: the feature is something else.
    """
    column = columns[feature]
    if not isinstance(column, list):
        raise InputError(f"{place}: the feature {feature!r} is not text; `dataset` must name data of that kind")
    return column


def images_of(columns: Columns, shape: tuple[int, ...], place: str) -> np.ndarray:
    """(N, H, W, channels) images.

    Raises:
        InputError: they are not of the shape (H, W, channels), or not of bytes.
    """
    images = np.asarray(columns["image"])
    found, expected = (" × ".join(map(str, sides)) for sides in (images.shape[1:], shape))
    if images.dtype != np.uint8:
        found, expected = str(images.dtype), "uint8"
    if found != expected:
        raise InputError(f"{place}: images of {found}, expected {expected}; `dataset` must name data of that kind")
    return images


def signature(source: Prepared) -> list[tuple[str, int, int]]:
    """Names, sizes and times of change of the files: they differ once a data set has been prepared again."""
    paths = sorted(path for path in source.folder.iterdir() if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]


class Encoded:
    """The images of a split as the bytes of their files, read anew each time: they need not fit into memory."""

    def __init__(self, source: Prepared, split: str, feature: str):
        self.source, self.split, self.feature = source, split, feature

    def __len__(self) -> int:
        return self.source.splits[self.split]

    def __iter__(self) -> Iterator[bytes]:
        for block in _blocks(self.source, self.split, (), ENCODED_BLOCK):
            yield from (record[self.feature] for record in block)


def _read(source: Prepared, split: str, features: list[str], on_progress: Progress) -> Columns:
    blocks: list[Columns] = []
    done = 0
    with _naming(source, split):
        for block in _blocks(source, split, features, BLOCK):
            blocks.append({name: _column([record[name] for record in block]) for name in features if name in block[0]})
            done += len(block)
            on_progress(f"{source.dataset} {split}", done, source.splits[split])
    if not blocks:
        raise InputError(f"{source.folder}: {split} has no records; prepare the data set again")
    return {name: _join([block[name] for block in blocks]) for name in blocks[0]}


def _blocks(source: Prepared, split: str, decoded: Collection[str], size: int) -> Iterator[list[dict[str, Any]]]:
    """All records, some at a time; images that are not to be decoded are the bytes of their files.

    Raises:
        InputError: a file is damaged.
    """
    import tensorflow_datasets as tfds  # takes a second to import, which the cache saves
    from array_record.python.array_record_module import ArrayRecordReader

    with _naming(source, split):
        builder = tfds.builder_from_directory(source.folder, file_format=FORMAT)
        features = dict(builder.info.features or {})
        left = {
            name: tfds.decode.SkipDecoding()
            for name, feature in features.items()
            if isinstance(feature, tfds.features.Image) and name not in decoded
        }
        records = builder.as_data_source(split=split, decoders=left or None)
        stored = sum(ArrayRecordReader(str(file)).num_records() for file in builder.info.splits[split].filepaths)
        if stored != len(records):
            raise ValueError(f"its files hold {stored} records, and its description says {len(records)}")
        for start in range(0, len(records), size):
            # a batched read: record by record it takes five times as long
            yield records.__getitems__(range(start, min(start + size, len(records))))


@contextlib.contextmanager
def _naming(source: Prepared, split: str) -> Iterator[None]:
    """One line of whatever TFDS, its decoders or the file format raise on damaged files."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = one_line(error)
        raise InputError(f"{source.folder}: {split} cannot be read ({reason}); prepare the data set again") from error


def _column(values: list[Any]) -> np.ndarray | list[str]:
    if isinstance(values[0], bytes):
        return [value.decode("utf-8", errors="replace") for value in values]
    column = np.stack(values)
    if column.dtype.kind not in "biuf":
        raise TypeError(f"neither text nor numbers: {column.dtype}")
    return column


def _join(parts: list[np.ndarray | list[str]]) -> np.ndarray | list[str]:
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    return np.concatenate([np.asarray(part) for part in parts])


def _pack(columns: Columns) -> Arrays:
    """Arrays that a file can hold: a list of strings becomes UTF-8 bytes and where each string ends."""
    arrays = {}
    for name, column in columns.items():
        if isinstance(column, list):
            encoded = [text.encode("utf-8") for text in column]
            arrays[f"{name}:text"] = np.frombuffer(b"".join(encoded), np.uint8)
            arrays[f"{name}:ends"] = np.cumsum([len(text) for text in encoded])
        else:
            arrays[name] = column
    return arrays


def _unpack(arrays: Arrays) -> Columns:
    columns: Columns = {name: array for name, array in arrays.items() if ":" not in name}
    for name in arrays:
        if name.endswith(":text"):
            feature, text = name.removesuffix(":text"), arrays[name].tobytes()
            ends = arrays[f"{feature}:ends"].tolist()
            columns[feature] = [text[i:j].decode("utf-8") for i, j in zip([0, *ends], ends, strict=False)]
    return columns
