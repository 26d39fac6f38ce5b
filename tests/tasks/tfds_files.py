"""Small data sets in the files of TensorFlow Datasets, written without TensorFlow."""

import io
import json
from pathlib import Path

import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter
from PIL import Image

_FEATURES = "tensorflow_datasets.core.features"
SPECS = {
    "image": {"pythonClassName": f"{_FEATURES}.image_feature.Image", "image": {"dtype": "uint8", "shape": {}}},
    "label": {
        "pythonClassName": f"{_FEATURES}.class_label_feature.ClassLabel",
        "classLabel": {"numClasses": "10"},
    },
    "idx": {
        "pythonClassName": f"{_FEATURES}.tensor_feature.Tensor",
        "tensor": {"shape": {}, "dtype": "int32", "encoding": "none"},
    },
}
_TEXT = {"pythonClassName": f"{_FEATURES}.text_feature.Text", "text": {}}


def write_dataset(root: Path, name: str, splits: dict[str, list[dict]], version: str = "1.0.0") -> Path:
    """Writes records (dicts of numbers, strings and uint8 images) as TFDS would, and returns the version's folder."""
    folder = root / name / version
    folder.mkdir(parents=True)
    base = name.split("/")[0]
    for split, records in splits.items():
        writer = ArrayRecordWriter(str(folder / f"{base}-{split}.array_record-00000-of-00001"), "group_size:1")
        for record in records:
            writer.write(_example(record))
        writer.close()
    example = next(iter(splits.values()))[0]
    specs = {feature: SPECS.get(feature, _TEXT) for feature in example}
    if "image" in specs:
        dimensions = [str(size) for size in example["image"].shape]
        image = {"dtype": "uint8", "shape": {"dimensions": dimensions}}
        specs["image"] = specs["image"] | {"image": image}
    features = {"pythonClassName": f"{_FEATURES}.features_dict.FeaturesDict", "featuresDict": {"features": specs}}
    (folder / "features.json").write_text(json.dumps(features))
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    info = {
        "name": base,
        "version": version,
        "fileFormat": "array_record",
        "splits": [
            {"name": split, "filepathTemplate": template, "numBytes": "1", "shardLengths": [str(len(records))]}
            for split, records in splits.items()
        ],
    }
    if "/" in name:
        info["configName"] = name.split("/")[1]
    (folder / "dataset_info.json").write_text(json.dumps(info))
    return folder


def _example(record: dict) -> bytes:
    """A `tf.train.Example` in the wire format of protocol buffers: features > map entries > bytes or int64 lists."""
    entries = b""
    for name, value in record.items():
        if isinstance(value, str | np.ndarray):
            data = value.encode() if isinstance(value, str) else _png(value)
            feature = _field(1, _field(1, data))  # bytes_list
        else:
            feature = _field(3, _field(1, _varint(value % 2**64)))  # int64_list, packed
        entries += _field(1, _field(1, name.encode()) + _field(2, feature))
    return _field(1, entries)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image.squeeze()).save(file, "png")
    return file.getvalue()
