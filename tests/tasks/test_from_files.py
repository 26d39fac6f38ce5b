"""Tasks of tables, folders of images, TFDS and Hugging Face: what is found without being named, and what is refused."""

import json

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from other_packages import Polars, Streamed
from PIL import Image
from tfds_files import write_dataset

from irtjax import InputError, tasks
from irtjax.tasks.task import SPLITS

TEXTS = pd.DataFrame({"text": [f"word{at} and, NA" for at in range(40)], "label": ["good", "bad"] * 20})
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (24, 6, 5, 3)).astype(np.uint8)
LABELS = np.arange(24) % 3


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "cache"))


def texts_of(task):
    return {
        text: task.classes[label]
        for name in SPLITS
        for text, label in zip(task.split(name).texts, task.split(name).labels, strict=True)
    }


def test_the_same_table_in_every_format_and_package(tmp_path):
    TEXTS.to_csv(tmp_path / "csv.csv", index=False)
    TEXTS.to_csv(tmp_path / "tabs.tsv", index=False, sep="\t")
    TEXTS.to_json(tmp_path / "lines.jsonl", orient="records", lines=True)
    TEXTS.to_json(tmp_path / "list.json", orient="records")
    TEXTS.to_parquet(tmp_path / "parquet.parquet")
    expected = dict(zip(TEXTS.text, TEXTS.label, strict=True))
    for source in (*map(str, sorted(tmp_path.glob("*.*"))), TEXTS, Polars(TEXTS), Streamed(TEXTS)):
        task = tasks.from_table(source, name="same")
        assert texts_of(task) == expected
        np.testing.assert_array_equal(task.test.ids, tasks.from_table(TEXTS, name="same").test.ids)
    assert tasks.from_table(tmp_path / "csv.csv").train.ids[0].startswith("csv_0")
    with pytest.raises(InputError, match=r"^the rows are a list, expected a file, a folder or a table$"):
        tasks.from_table([1, 2])


def test_columns_are_found_or_named(tmp_path):
    pairs = pd.DataFrame(
        {
            "premise": TEXTS.text,
            "hypothesis": TEXTS.text + " again",
            "idx": range(100, 140),
            "genre": "fiction",
            "label": TEXTS.label,
            "split": ["train"] * 30 + ["dev"] * 5 + ["test"] * 5,
        }
    )
    task = tasks.from_table(pairs)
    assert task.format.sentences == 2
    assert [len(task.split(name).labels) for name in SPLITS] == [30, 5, 5]
    np.testing.assert_array_equal(task.validation.ids, np.arange(130, 135).astype(str))
    assert tasks.from_table(pairs, text="hypothesis").format.sentences == 1
    numbers = pd.DataFrame({"target": [1, 2] * 20, "a": range(40), "b": 0.5})
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    assert tasks.from_table(tmp_path / "numbers.csv").train.inputs.shape[1:] == (1, 1, 2)
    assert tasks.from_table(numbers, features=["a"]).train.inputs.shape[1:] == (1, 1, 1)
    with pytest.raises(InputError, match=r"^table: no column lable, only target, a, b$"):
        tasks.from_table(numbers, label="lable")
    with pytest.raises(InputError, match=r"which columns are the inputs.* among a, word, label"):
        tasks.from_table(pd.DataFrame({"a": [1, 2], "word": ["x", "y"], "label": [0, 1]}))
    with pytest.raises(InputError, match="row 31: split is 'held out', expected train, validation or test"):
        tasks.from_table(pairs.assign(split=["train"] * 30 + ["held out"] * 10), split="split")


def test_a_line_without_a_label_is_named(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text('text,label\n"two\nlines",1\nb,0\nc,\nd,1\n')
    with pytest.raises(InputError, match=r"gaps: train: .*gaps.csv, line 5 has no label"):
        tasks.from_table(path)
    path.write_text("text,label\na,1\nb,0.5\nc,0\nd,1\n")
    with pytest.raises(InputError, match=r"line 2 has the label 1.0, a number with a decimal point"):
        tasks.from_table(path)


def test_files_of_splits_and_a_folder_of_them(tmp_path):
    folder = tmp_path / "reviews"
    folder.mkdir()
    TEXTS[:16].to_csv(folder / "train-00000-of-00002.csv", index=False)
    TEXTS[16:30].to_csv(folder / "train-00001-of-00002.csv", index=False)
    TEXTS[30:35].to_csv(folder / "dev.csv", index=False)
    TEXTS[35:].to_csv(folder / "test.csv", index=False)
    task = tasks.from_table(folder)
    assert [len(task.split(name).labels) for name in SPLITS] == [30, 5, 5]
    assert task.name == "reviews"
    assert list(task.test.texts) == TEXTS.text[35:].tolist()
    given = tasks.from_table(TEXTS[:30], split={"dev": folder / "dev.csv", "test": folder / "test.csv"})
    assert [len(given.split(name).labels) for name in SPLITS] == [30, 5, 5]
    (tmp_path / "cache").mkdir(exist_ok=True)
    with pytest.raises(InputError, match="no file whose name begins with train"):
        tasks.from_table(tmp_path / "cache")


def test_parquet_of_hugging_face_has_names_of_classes_and_images(tmp_path):
    buffer = [_png(one) for one in PIXELS]
    table = pyarrow.table({"image": [{"bytes": one, "path": None} for one in buffer], "label": LABELS})
    features = {"label": {"names": ["cat", "dog", "hen"], "_type": "ClassLabel"}, "image": {"_type": "Image"}}
    metadata = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), tmp_path / "train-0.parquet")
    task = tasks.from_table(tmp_path)
    assert task.classes == ("cat", "dog", "hen")
    _require_pixels(task)


def _png(image):
    import io

    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


def _require_pixels(task):
    """Each image is the one that its id says."""
    for name in SPLITS:
        split = task.split(name)
        at = [int("".join(filter(str.isdigit, identity))[-5:]) for identity in split.ids]
        np.testing.assert_array_equal(split.inputs, PIXELS[at])
        np.testing.assert_array_equal(split.labels, LABELS[at])


def test_a_folder_of_images(tmp_path):
    root = tmp_path / "pets"
    for at, (image, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        (root / f"class{'abc'[label]}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(root / f"class{'abc'[label]}" / f"{at:05d}.png")
    (root / "classa" / "notes.txt").write_text("not an image")
    task = tasks.from_images(root)
    assert task.classes == ("classa", "classb", "classc")
    assert "classa/00000.png" in np.concatenate([task.split(name).ids for name in SPLITS])
    _require_pixels(task)
    np.testing.assert_array_equal(tasks.from_images(root).train.inputs, task.train.inputs)  # from the cache
    assert tasks.from_images(root, size=(3, 4)).train.inputs.shape[1:] == (3, 4, 3)
    Image.fromarray(PIXELS[0][:4]).save(root / "classb" / "small.png")
    with pytest.raises(
        InputError, match=r"pets: images of 2 sizes, such as 6 × 5 .* and 4 × 5 \(.*small.png\): give the"
    ):
        tasks.from_images(root)
    assert tasks.from_images(root, size=4).train.inputs.shape[1:] == (4, 4, 3)
    (root / "classb" / "small.png").write_bytes(b"\x89PNG and no more")
    with pytest.raises(InputError, match=r"pets: .*small.png: not an image that can be read"):
        tasks.from_images(root)
    (root / "classb" / "small.png").write_bytes(_png(PIXELS[0])[:-40])
    with pytest.raises(InputError, match=r"small.png: cannot be read"):
        tasks.from_images(root)
    with pytest.raises(InputError, match="there is no such folder"):
        tasks.from_images(tmp_path / "nothing")


def test_folders_of_splits_and_large_images_made_smaller(tmp_path):
    notes = []
    for split, count in (("train", 8), ("val", 4)):
        for at in range(count):
            folder = tmp_path / "photos" / split / ("day" if at % 2 else "night")
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((80, 160), 10 * at, np.uint8)).save(folder / f"{at}.png")
    task = tasks.from_images(tmp_path / "photos", on_note=notes.append)
    assert task.train.inputs.shape[1:] == (32, 64, 1)
    assert len(task.validation.labels) == 4
    assert {len(task.train.labels), len(task.test.labels)} == {7, 1}
    assert task.validation.ids[0] == "val/day/1.png"
    assert notes[0] == "photos: images of 80 × 160 are made smaller, 32 × 64; `size` can say otherwise"


def test_a_data_set_of_tfds_by_the_types_of_its_features(tmp_path):
    records = [{"sentence": f"text {at}", "label": at % 2, "idx": 40 - at} for at in range(40)]
    folder = write_dataset(tmp_path, "own", {"train": records, "test": [{**one, "label": -1} for one in records[:5]]})
    (folder / "label.labels.txt").write_text("no\nyes\n")
    notes = []
    task = tasks.from_tfds("own", data_dir=str(tmp_path), on_note=notes.append)
    assert task.classes == ("no", "yes")
    assert notes == ["own: no record of test has a label: another split is drawn in its place"]
    assert texts_of(task) == {f"text {at}": "yes" if at % 2 else "no" for at in range(40)}
    for name in SPLITS:
        for identity, text in zip(task.split(name).ids, task.split(name).texts, strict=True):
            assert identity == f"own_train_{40 - int(text.split()[1]):05d}"
    with pytest.raises(InputError, match=r"tfds: no prepared copy of other in .*, which has own"):
        tasks.from_tfds("other", data_dir=str(tmp_path))


def test_images_of_tfds_of_several_sizes_are_those_of_a_folder_of_them(tmp_path):
    """Resized by the same function, from the bytes of the files; without labels that are withheld."""
    data, folder, notes = tmp_path / "data", tmp_path / "pets", []
    images = [np.kron(image, np.ones((2, 3 + at % 2, 1), np.uint8)) for at, image in enumerate(PIXELS)]
    names = [f"class{label}" for label in LABELS]
    records = [{"image": image, "label": int(label)} for image, label in zip(images, LABELS, strict=True)]
    version = write_dataset(data, "pets", {"train": [*records, {**records[0], "label": -1}]})
    _free_size(version)
    (version / "label.labels.txt").write_text("\n".join(sorted(set(names))))
    for at, (image, name) in enumerate(zip(images, names, strict=True)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / name / f"{at:05d}.png")
    found = tasks.from_tfds("pets", data_dir=str(data), size=8, on_note=notes.append)
    of_folder = tasks.from_images(folder, size=8)
    assert notes == ["pets: 1 records of train have no label and are left out"]
    expected = {identity.split("/")[1][:5]: image for identity, image in _images_of(of_folder)}
    assert len(expected) == 24
    for identity, image in _images_of(found):
        np.testing.assert_array_equal(image, expected[identity.removeprefix("pets_train_")])
    with pytest.raises(InputError, match=r"pets: images of 2 sizes, such as 12 × 15 \(.*record 0 .*: give the `size`"):
        tasks.from_tfds("pets", data_dir=str(data))


def _free_size(version):
    features = json.loads((version / "features.json").read_text())
    features["featuresDict"]["features"]["image"]["image"]["shape"]["dimensions"] = ["-1", "-1", "3"]
    (version / "features.json").write_text(json.dumps(features))


def _images_of(task):
    return [pair for name in SPLITS for pair in zip(task.split(name).ids, task.split(name).inputs, strict=True)]


class ClassLabel:
    names = ("cat", "dog", "hen")


class Value:
    def __init__(self, dtype):
        self.dtype = dtype


class Data(dict):
    """What `datasets.Dataset` offers."""

    features = property(lambda self: {name: KINDS[name] for name in self})
    column_names = property(lambda self: list(self))


class Parts(dict):
    """A `DatasetDict`."""


KINDS = {"img": type("Image", (), {})(), "label": ClassLabel(), "text": Value("string"), "number": Value("float32")}


class OneOf(Data):
    keys = property()  # a data set has no keys


def test_data_sets_of_hugging_face():
    pictures = [Image.fromarray(one) for one in PIXELS]
    task = tasks.from_huggingface(Parts(train=Data(img=pictures, label=LABELS.tolist())), name="hf")
    assert task.classes == ClassLabel.names
    at = [int(identity[-5:]) for identity in task.train.ids]
    np.testing.assert_array_equal(task.train.inputs, PIXELS[at])
    notes = []
    texts = [f"text {at}" for at in range(24)]
    parts = Parts(train=Data(text=texts, label=LABELS.tolist()), test=Data(text=["x"], label=[-1]))
    task = tasks.from_huggingface(parts, on_note=notes.append)
    assert notes == ["huggingface: no example of test has a label: another split is drawn in its place"]
    assert texts_of(task) == {f"text {at}": ClassLabel.names[label] for at, label in enumerate(LABELS)}
    with pytest.raises(InputError, match="expected a data set of Hugging Face's `datasets`, not a list"):
        tasks.from_huggingface([1, 2])
