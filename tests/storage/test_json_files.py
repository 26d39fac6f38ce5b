"""Texts that are no JSON end in one line, and so do files of them, wherever JSON is read."""

import hashlib
import json

import numpy as np
import pytest

import irtjax
from irtjax import InputError
from irtjax.pretrained.folder import read_pretrained
from irtjax.selection.curriculum_file import read_record
from irtjax.storage.json_files import parsed, read_json
from irtjax.tasks.table_files import read_file

NESTED = "[" * 200_000
NOT_JSON = {"nested": NESTED, "cut off": '{"a": ', "a huge number": "9" * 5000, "nothing": "", "two": "1 2"}


@pytest.mark.parametrize("case", NOT_JSON)
def test_what_is_no_json_is_one_line(case, tmp_path):
    with pytest.raises(InputError, match=r"^not JSON \(") as caught:
        parsed(NOT_JSON[case])
    assert "\n" not in str(caught.value)
    path = tmp_path / "a.json"
    path.write_text(NOT_JSON[case])
    with pytest.raises(InputError, match=r"a\.json: not JSON \("):
        read_json(path)


def test_json_is_read_as_it_is(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('\ufeff{"ä": [1, 2.5, null]}', encoding="utf-8")
    assert read_json(path) == {"ä": [1, 2.5, None]}
    path.write_bytes(b'"\xff"')
    with pytest.raises(InputError, match=r"a\.json: line 1 is not UTF-8"):
        read_json(path)


def test_nested_files_are_refused_by_all_readers(tmp_path):
    (tmp_path / "shards.json").write_text(NESTED)
    (tmp_path / "config.json").write_text(NESTED)
    (tmp_path / "curriculum.json").write_text(NESTED)
    (tmp_path / "table.json").write_text(NESTED)
    (tmp_path / "table.jsonl").write_text('{"a": 1}\n' + NESTED)
    record = np.frombuffer(NESTED.encode(), np.uint8)
    checksum = np.frombuffer(hashlib.sha256(NESTED.encode()).digest(), np.uint8)
    np.savez(tmp_path / "fit.npz", record=record, checksum=checksum)
    for read, path, match in (
        (irtjax.read_responses, tmp_path, r"shards\.json: not JSON"),
        (read_pretrained, tmp_path, r"config\.json: not JSON"),
        (read_record, tmp_path / "curriculum.json", r"curriculum\.json: not JSON"),
        (read_file, tmp_path / "table.json", r"table\.json: not JSON"),
        (read_file, tmp_path / "table.jsonl", r"table\.jsonl: line 2: not JSON"),
        (irtjax.load_fit, tmp_path, r"fit\.npz: not JSON"),
    ):
        with pytest.raises(InputError, match=match):
            read(path)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"num_items": "444"}, "num_items is '444', expected a list of numbers, one for each shard"),
        ({"num_items": []}, "num_items is a list, expected a list of numbers"),
        ({"num_items": [4, True]}, "num_items of shard 1 is True, expected a whole number, 1 or more"),
        ({"num_items": [4, 1.5]}, r"num_items of shard 1 is 1\.5, expected"),
        ({"num_items": [0, 4]}, "num_items of shard 0 is 0, expected"),
        ({"num_items": [4, float("inf")]}, "num_items of shard 1 is inf, expected"),
        ({"num_items": [10**30]}, "num_items of shard 0 is 1000"),
        ({"num_subjects": float("nan")}, "num_subjects is nan, expected a whole number, 1 or more"),
        ({"num_subjects": "3"}, "num_subjects is '3', expected"),
        ({"num_subjects": {"a": 1}}, "num_subjects is a dict, expected"),
        ({"format": [2]}, r"of another version \(format a list, expected 1\)"),
    ],
)
def test_an_edited_index_of_shards_is_refused(change, match, tmp_path):
    folder = tmp_path / "shards"
    irtjax.write_shards([(np.ones((3, 4), np.int8), list("abcd"))], list("xyz"), folder)
    index = folder / "shards.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    with pytest.raises(InputError, match=f"shards.json: {match}"):
        irtjax.read_responses(folder)
    index.write_text('["format", "num_subjects", "num_items"]')
    with pytest.raises(InputError, match=r"shards\.json: not the index of a folder of shards"):
        irtjax.read_responses(folder)
