"""Prepared data sets that are damaged, or of another kind than a task needs."""

import json
import shutil

import numpy as np
import pytest
from tfds_files import write_dataset

from irtjax import InputError, tasks
from irtjax.tasks import prepared, records

WANTED = {"sentence": True, "label": True, "idx": False}


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "file" / "cache"))


def phrases(count):
    return [{"sentence": f"film {at}", "label": at % 2, "idx": at} for at in range(count)]


@pytest.fixture(scope="module")
def prepared_once(tmp_path_factory):
    root = tmp_path_factory.mktemp("prepared")
    write_dataset(root, "glue/sst2", {"train": phrases(8)}, "2.0.0")
    return root


@pytest.fixture
def folder(tmp_path, prepared_once):
    shutil.copytree(prepared_once, tmp_path / "data")
    return tmp_path / "data" / "glue" / "sst2" / "2.0.0"


def read(folder):
    source = prepared.find("sst2", "glue/sst2", str(folder.parents[2]))
    return records.read("sst2", source, "train", WANTED, lambda *_: None)


def refusal(folder):
    with pytest.raises(InputError) as error:
        read(folder)
    assert str(folder) in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_damaged_files_are_read_as_they_were_or_refused(folder):
    rng, kept = np.random.default_rng(0), read(folder)
    refusals = []
    for path in sorted(folder.iterdir()) * 8:
        whole = path.read_bytes()
        content = bytearray(whole.rstrip(b"\0"))  # most of a small file of records is padding
        for at in rng.integers(len(content), size=2):
            content[at] ^= 1 << rng.integers(8)
        cut = rng.integers(len(content)) if rng.random() < 0.3 else None
        path.write_bytes(content[:cut] if cut else content + whole[len(content) :])
        try:
            found = read(folder)
        except InputError as error:
            refusals.append(str(error))
        else:
            assert found.keys() == kept.keys()
            assert all(list(found[name]) == list(kept[name]) for name in kept)
        path.write_bytes(whole)
    assert len(refusals) > 12
    assert all(message.startswith(str(folder)) and len(message.splitlines()) == 1 for message in refusals)


LENGTHS = {
    "fewer": (["4"], "its files hold 8 records, and its description says 4"),
    "more": (["9"], "train cannot be read"),
    "none": (["0"], "train cannot be read"),
    "negative": (["-1"], "train cannot be read"),
    "no files": ([], "train cannot be read"),
    "a file that is not there": (["4", "4"], "train cannot be read"),
    "text": (["x"], "does not say how many records"),
    "null": ([None], "does not say how many records"),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_numbers_of_records_that_are_wrong_are_told(folder, case):
    lengths, message = LENGTHS[case]
    path = folder / "dataset_info.json"
    info = json.loads(path.read_text())
    info["splits"][0]["shardLengths"] = lengths
    path.write_text(json.dumps(info))
    assert message in refusal(folder)


INFOS = {
    "nested": ("[" * 100_000, "not JSON (maximum recursion"),
    "nothing": ("", "not JSON (Expecting value"),
    "a list": ("[]", "not the description of a data set"),
    "no splits": ('{"fileFormat": "array_record"}', "does not say how many records"),
    "splits of another kind": ('{"fileFormat": "array_record", "splits": {"a": 1}}', "does not say how many records"),
    "formats of another kind": ('{"alternativeFileFormats": 3}', "not the description of a data set"),
    "a format of another kind": ('{"fileFormat": {"a": 1}}', "is prepared as {'a': 1}, but only array_record"),
}


@pytest.mark.parametrize("case", INFOS)
def test_descriptions_that_are_none_are_told(folder, case):
    text, message = INFOS[case]
    (folder / "dataset_info.json").write_text(text)
    assert message in refusal(folder)


RECORDS = {
    "an idx twice": ({"idx": 0}, "train: two records have the same 'idx'"),
    "a label out of range": ({"label": 2}, "record 0 has label 2, expected 0 to 1"),
    "a label that would wrap": ({"label": 2**32 + 1}, "record 0 has label 4294967297, expected 0 to 1"),
    "a number for a text": ({"sentence": 3}, "the feature 'sentence' is not text"),
    "a text for a label": ({"label": "x"}, "train cannot be read"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_records_of_another_kind_are_refused(tmp_path, case):
    change, message = RECORDS[case]
    write_dataset(tmp_path, "glue/sst2", {"train": [row | change for row in phrases(3)]}, "2.0.0")
    with pytest.raises(InputError) as error:
        tasks.load("sst2", str(tmp_path))
    assert message in str(error.value)


def test_columns_of_another_kind_are_refused():
    with pytest.raises(InputError, match="here: the feature 'idx' is not an integer"):
        records.numbers_of({"idx": ["a", "b"]}, "idx", "here")
    with pytest.raises(InputError, match="here: the feature 'idx' is not an integer"):
        records.order_by({"idx": np.zeros((2, 2), int)}, "idx", "here")
    with pytest.raises(InputError, match="here: two records have the same 'id'"):
        records.order_by({"id": ["a", "b", "a"]}, "id", "here")
    with pytest.raises(InputError, match="here: images of uint16, expected uint8"):
        records.images_of({"image": np.zeros((1, 2, 2, 1), np.uint16)}, (2, 2, 1), "here")
