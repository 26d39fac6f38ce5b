"""Response files: what is read is what was written, and bad input is named."""

import io
import json
import re
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from conftest import matrix

from irtjax import InputError, ResponseMatrix, read_responses, write_responses

VALUES = np.array([[1, 0, -1], [0, -1, 1]], np.int8)


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_round_trip(tmp_path, ending):
    ids = np.array(["plain", 'a "quoted", id', "日本"])
    written = ResponseMatrix(VALUES, np.array(["s 1", "s,2"]), ids)
    write_responses(written, tmp_path / f"r{ending}")
    read = read_responses(tmp_path / f"r{ending}")
    np.testing.assert_array_equal(read.values, VALUES)
    assert read.values.dtype == np.int8
    assert list(read.item_ids) == list(ids)
    assert list(read.subject_ids) == ["s 1", "s,2"]


def test_csv_is_the_documented_text(tmp_path):
    write_responses(matrix(VALUES), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_bytes() == b"subject_id,i0,i1,i2\ns0,1,0,\ns1,0,,1\n"


def test_csv_as_spreadsheets_and_pandas_write_it(tmp_path):
    (tmp_path / "r.csv").write_bytes("\ufeffid,a,b\r\nx,1.0, 0\r\n\r\ny,,0.0\r\n".encode())
    read = read_responses(tmp_path / "r.csv")
    np.testing.assert_array_equal(read.values, [[1, 0], [-1, 0]])
    assert list(read.subject_ids) == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a,b\nx,1,0\ny,2,0\n", r"line 3 \(subject 'y'\), column 2 \(item 'a'\): '2' is not a response"),
        ("id,a,b\nx,1,NA\n", r"line 2 \(subject 'x'\), column 3 \(item 'b'\): 'NA' is not a response"),
        ("id,a,b\nx,1\n", r"line 2 \(subject 'x'\) has 1 responses, the header names 2 items"),
        ("id\nx\n", "no items"),
        ("", "no items"),
        ("id,a\n", "no subjects"),
        ("id,a,a\nx,1,0\n", "item id 'a' occurs more than once"),
        ("id,a\nx,1\nx,0\n", "subject id 'x' occurs more than once"),
    ],
)
def test_bad_csv_names_file_row_and_column(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_responses(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_other_bad_files(tmp_path):
    with pytest.raises(InputError, match=r"unknown ending '.txt'"):
        read_responses(tmp_path / "r.txt")
    with pytest.raises(InputError, match="No such file"):
        read_responses(tmp_path / "absent.csv")
    (tmp_path / "text.npz").write_text("not a zip file")
    with pytest.raises(InputError, match="not an NPZ file"):
        read_responses(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", x=VALUES)
    with pytest.raises(InputError, match="expected responses, subject_ids and item_ids"):
        read_responses(tmp_path / "other.npz")
    (tmp_path / "latin.csv").write_bytes("id,é\nx,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_responses(tmp_path / "latin.csv")


@pytest.mark.parametrize("kind", ["empty", "npy", "damaged", "ids", "strings"])
def test_damaged_npz_files(tmp_path, kind):
    path = tmp_path / "r.npz"
    good = {"responses": VALUES, "subject_ids": np.array(["s", "t"]), "item_ids": np.array(["a", "b", "c"])}
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "npy":
        np.save(tmp_path / "r.npy", VALUES)
        (tmp_path / "r.npy").rename(path)
    elif kind == "damaged":
        np.savez_compressed(path, **good | {"responses": np.tile(VALUES, (1, 500))[:, :3]})
        data = bytearray(path.read_bytes())
        data[60:70] = b"0123456789"
        path.write_bytes(data)
    elif kind == "ids":
        np.savez(path, **good | {"item_ids": np.array([["a", "b", "c"]])})
    else:
        np.savez(path, **good | {"responses": VALUES.astype(str)})
    with pytest.raises(InputError) as error:
        read_responses(path)
    assert str(error.value).startswith(str(path))


def test_other_bad_csv_files(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("id;a;b\nx;1;0\n")
    with pytest.raises(InputError, match="no comma"):
        read_responses(path)
    path.write_text('id,a\n"x,' + "1" * 200_000)
    with pytest.raises(InputError, match="not a CSV file"):
        read_responses(path)
    path.write_text('id,"a\nb","a\nb"\nx,1,0\n')
    with pytest.raises(InputError) as error:
        read_responses(path)
    assert "\n" not in str(error.value)


def test_pickles_are_not_opened(tmp_path):
    ids = np.array(["a", {"b"}, 3], dtype=object)
    np.savez(tmp_path / "r.npz", responses=VALUES, subject_ids=np.array(["s", "t"]), item_ids=ids)
    with pytest.raises(InputError, match="allow_pickle"):
        read_responses(tmp_path / "r.npz")


def test_long_csv(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("item_id,note,response,subject_id\nb,x,1,t\na,x,0,s\nb,x,,s\na,x,1.0,t\n")
    read = read_responses(path)
    assert list(read.subject_ids) == ["t", "s"]
    assert list(read.item_ids) == ["b", "a"]
    np.testing.assert_array_equal(read.values, [[1, 1], [-1, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s,a,1\ns,a,1\n", "line 3: subject 's' answers item 'a' a second time"),
        ("s,a,2\n", r"line 2, column 3 \(subject 's', item 'a'\): '2' is not a response"),
        ("s,a\n", "line 2 has 2 cells, the header 3"),
        ("", "no items|no subjects"),
    ],
)
def test_bad_long_csv(tmp_path, text, message):
    path = tmp_path / "long.csv"
    path.write_text("subject_id,item_id,response\n" + text)
    with pytest.raises(InputError, match=message):
        read_responses(path)


def test_py_irt_json_lines(tmp_path):
    path = tmp_path / "r.jsonlines"
    lines = [{"subject_id": "s", "responses": {"a": 1, "b": 0}}, {"subject_id": "t", "responses": {"b": 1, "c": None}}]
    path.write_text("\n".join(map(json.dumps, lines)))
    read = read_responses(path)
    assert list(read.item_ids) == ["a", "b", "c"]
    np.testing.assert_array_equal(read.values, [[1, 0, -1], [-1, 1, -1]])
    for text, message in (
        ("{", "line 1: expected"),
        ('{"subject_id": "s"}', "line 1: expected"),
        ('{"subject_id": "s", "responses": {"a": 3}}', r"line 1 \(subject 's'\), item 'a': 3 is not a response"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_responses(path)


def test_parquet(tmp_path):
    path = tmp_path / "r.parquet"
    wide = pd.DataFrame({"subject": ["s", "t"], "a": [1, 0], "b": [0, None], "c": [None, 1.0]})
    wide.to_parquet(path)
    np.testing.assert_array_equal(read_responses(path).values, [[1, 0, -1], [0, -1, 1]])
    wide.set_index("subject").to_parquet(path)
    assert list(read_responses(path).subject_ids) == ["s", "t"]
    pd.DataFrame({"subject_id": ["s", "t"], "item_id": ["a", "a"], "response": [1, 0]}).to_parquet(path)
    np.testing.assert_array_equal(read_responses(path).values, [[1], [0]])
    wide.assign(b=[0, 5]).to_parquet(path)
    with pytest.raises(
        InputError, match=r"row 2 \(subject 't'\), column 'b': np.int64\(5\)|row 2 \(subject 't'\), column 'b': 5"
    ):
        read_responses(path)
    path.write_text("not parquet")
    with pytest.raises(InputError, match="not a Parquet file"):
        read_responses(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"subject_id": "s", "responses": {"a": 1, "a": 0}}', "the key 'a' is there twice"),
        ('{"subject_id": "s", "subject_id": "t", "responses": {"a": 1}}', "the key 'subject_id' is there twice"),
        ('{"subject_id": "s", "responses": {}}', "subject 's' has no responses"),
        ('{"subject_id": "s", "responses": {"a": -1}}', "-1 is not a response"),
        ('{"subject_id": "s", "responses": {"a": [1]}}', "is not a response"),
        ('{"subject_id": null, "responses": {"a": 1}}', "not None"),
        ('{"subject_id": {"x": 1}, "responses": {"a": 1}}', "a text or a whole number"),
        ('{"subject_id": true, "responses": {"a": 1}}', "a text or a whole number"),
        (
            '{"subject_id": 1, "responses": {"a": 1}}\n{"subject_id": "1", "responses": {"b": 1}}',
            "a text in one line and a number in another",
        ),
        ('{"subject_id": "s", "responses": ' + "[" * 100_000, "line 1: expected"),
        ('{"subject_id": "\\ud800", "responses": {"a": 1}}', "lone surrogate"),
        ('{"subject_id": "s\\u0000", "responses": {"a": 1}}', "ends in a NUL"),
    ],
)
def test_bad_json_lines(tmp_path, lines, message):
    path = tmp_path / "r.jsonl"
    path.write_text(lines)
    with pytest.raises(InputError) as error:
        read_responses(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n\n", "no items"),
        ("subject_id,item_id,response,response\ns,a,1,0\n", "2 columns are called response"),
        ("subject_id,a\ns\0,1\n", "NUL"),
    ],
)
def test_more_bad_csv(tmp_path, text, message):
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_responses(path)


def test_ids_that_are_all_different_are_not_a_matrix(tmp_path):
    path = tmp_path / "r.csv"
    rows = "".join(f"s{at},i{at},1\n" for at in range(70_000))
    path.write_text("subject_id,item_id,response\n" + rows)
    with pytest.raises(InputError, match="different in every row"):
        read_responses(path)


def test_parquet_of_columns_that_can_be_null(tmp_path):
    path = tmp_path / "r.parquet"
    for kind in ("Int8", "Int64", "boolean", "Float64", "float"):
        table = pd.DataFrame({"id": ["x", "y"], "a": pd.array([1, None], kind), "b": pd.array([0, 1], kind)})
        table.to_parquet(path)
        np.testing.assert_array_equal(read_responses(path).values, [[1, 0], [-1, 1]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"id": ["x", None], "a": [1, 0]}), "row 2 has no id"),
        (pd.DataFrame({"id": ["x"], "a": pd.to_datetime(["1970-01-01"])}), "column 'a' holds dates"),
        (pd.DataFrame({"subject_id": ["x"], "item_id": [None], "response": [1]}), "row 1 has no id among the item_id"),
        (pd.DataFrame({"id": ["x"]}), "no items"),
        (pd.DataFrame(), "no items"),
        (pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", "y")])), "several levels"),
    ],
)
def test_bad_parquet(tmp_path, table, message):
    path = tmp_path / "r.parquet"
    table.to_parquet(path)
    with pytest.raises(InputError, match=message):
        read_responses(path)


def npz_parts():
    """The arrays of an NPZ file as bytes."""
    arrays = {
        "responses": np.array([[1, 0]], np.int8),
        "subject_ids": np.array(["s"]),
        "item_ids": np.array(["a", "b"]),
    }
    parts = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        parts[f"{name}.npy"] = buffer.getvalue()
    return parts


def header(shape: str) -> bytes:
    """An array of int8 that claims a shape."""
    text = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + b"\1\0"


@pytest.mark.parametrize(
    "shape", ["(10000000, 10000000)", "(100000000000000000000, 2)", "(1, 2", "(-1, 2)", "(1, 2.5)", "'x'", "(1,2,,)"]
)
def test_npz_that_claims_another_shape(tmp_path, shape):
    path = tmp_path / "r.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (npz_parts() | {"responses.npy": header(shape)}).items():
            archive.writestr(name, content)
    with pytest.raises(InputError):
        read_responses(path)


@pytest.mark.parametrize(("local", "central", "value"), [(8, 10, 97), (6, 8, 1)])  # compression, encryption
def test_npz_packed_in_another_way(tmp_path, local, central, value):
    path = tmp_path / "r.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in npz_parts().items():
            archive.writestr(name, content)
    content = bytearray(path.read_bytes())
    for magic, place in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        for found in re.finditer(re.escape(magic), bytes(content)):
            content[found.start() + place] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match="not an NPZ file"):
        read_responses(path)


def test_npz_with_damaged_bytes(tmp_path):
    path, rng = tmp_path / "r.npz", np.random.default_rng(0)
    np.savez_compressed(path, responses=[[1, 0]], subject_ids=["s"], item_ids=["a", "b"])
    whole = path.read_bytes()
    for _ in range(200):
        content = bytearray(whole)
        for at in rng.integers(len(content), size=rng.integers(1, 6)):
            content[at] = rng.integers(256)
        path.write_bytes(content[: rng.integers(len(content))] if rng.random() < 0.3 else content)
        try:
            read = read_responses(path)
        except InputError:
            continue
        np.testing.assert_array_equal(read.values, [[1, 0]])
