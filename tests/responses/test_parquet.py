"""Parquet files: matrices and long tables, from pandas and others."""

import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from readers import IDS, damaged, matrices, plain, read_or_refused, refusal

from irtjax import ResponseMatrix, read_responses

VALUES = [[1, 0, -1], [0, -1, 1]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parquet") / "r.parquet"


def frame(values, subjects, items):
    columns = {item: [None if row[at] < 0 else row[at] for row in values] for at, item in enumerate(items)}
    return pd.DataFrame(columns, index=pd.Index(subjects, name="subject"))


WIDE = frame(VALUES, ["s", "t"], ["a", "b", "c"])
LONG = pd.DataFrame({"response": [1, 0, None], "subject_id": ["s", "t", "s"], "item_id": ["a", "a", "b"], "x": 1})
EXPECTED = (["s", "t"], ["a", "b", "c"], VALUES)
GOOD = {
    "an index with a name": (WIDE, EXPECTED),
    "a first column": (WIDE.reset_index(), EXPECTED),
    "a first column, rows left out": (WIDE.reset_index().iloc[1:], (["t"], ["a", "b", "c"], [[0, -1, 1]])),
    "an index without a name": (WIDE.rename_axis(None), EXPECTED),
    "numbers as ids": (frame(VALUES, [7, -1], [1, 2, 3]), (["7", "-1"], ["1", "2", "3"], VALUES)),
    "row numbers with a name": (frame(VALUES, range(2), list("abc")), (["0", "1"], ["a", "b", "c"], VALUES)),
    "large numbers as ids": (frame([[1]], [2**63 + 1], ["a"]), ([str(2**63 + 1)], ["a"], [[1]])),
    "categories as ids": (WIDE.set_index(pd.CategoricalIndex(["s", "t"], name="s")), EXPECTED),
    "texts": (WIDE.astype(object).map(lambda code: None if pd.isna(code) else f" {code}"), EXPECTED),
    "truth values": (pd.DataFrame({"id": ["s", "t"], "a": [True, None]}), (["s", "t"], ["a"], [[1], [-1]])),
    "decimals": (pd.DataFrame({"id": ["s"], "a": [Decimal("1.0")]}), (["s"], ["a"], [[1]])),
    "categories": (pd.DataFrame({"id": ["s", "t"], "a": pd.Categorical([1, None])}), (["s", "t"], ["a"], [[1], [-1]])),
    "only nulls": (pd.DataFrame({"id": ["s"], "a": [None], "b": [0]}), (["s"], ["a", "b"], [[-1, 0]])),
    "-0.0": (pd.DataFrame({"id": ["s"], "a": [-0.0]}), (["s"], ["a"], [[0]])),
    "long": (LONG, (["s", "t"], ["a", "b"], [[1, -1], [0, -1]])),
    "long, rows left out": (LONG.iloc[1:], (["t", "s"], ["a", "b"], [[0, -1], [-1, -1]])),
    "long, numbers as ids": (LONG.assign(subject_id=[10, 9, 10]), (["10", "9"], ["a", "b"], [[1, -1], [0, -1]])),
}
GOOD |= {
    kind: (pd.DataFrame({"id": ["x", "y"], "a": pd.array([1, None], kind), "b": pd.array([0, 1], kind)}),
           (["x", "y"], ["a", "b"], [[1, 0], [-1, 1]]))
    for kind in ("Int8", "UInt8", "Int64", "boolean", "Float32", "Float64", "float", "int64[pyarrow]", "bool[pyarrow]")
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_tables_that_are_read(path, case):
    table, expected = GOOD[case]
    table.to_parquet(path)
    assert plain(read_responses(path)) == expected


def test_ids_are_kept(path):
    frame([[1] * len(IDS)] * len(IDS), IDS, IDS).to_parquet(path)
    assert plain(read_responses(path)) == (IDS, IDS, [[1] * len(IDS)] * len(IDS))


DATES = pd.to_datetime(["1970-01-01", None])
BAD = {
    "no columns": (pd.DataFrame(), "no items"),
    "no columns, but rows": (pd.DataFrame(index=range(3)), "no items"),
    "ids only": (pd.DataFrame({"id": ["x"]}), "no items"),
    "no rows": (WIDE.iloc[:0], "no subjects"),
    "long without rows": (LONG.iloc[:0], "no items|no subjects"),
    "an id null": (pd.DataFrame({"id": ["x", None], "a": [1, 0]}), "row 2 has no id among the subject ids"),
    "a number as id null": (pd.DataFrame({"id": [1, None], "a": [1, 0]}), "row 2 has no id among the subject ids"),
    "an empty id": (pd.DataFrame({"id": ["x", ""], "a": [1, 0]}), "subject 2 has no id"),
    "an item without a name": (pd.DataFrame({"id": ["x"], "": [1]}), "item 1 has no id"),
    "NUL ends a subject": (pd.DataFrame({"id": ["x\0"], "a": [1]}), "'x\\x00' ends in a NUL"),
    "NUL ends an item": (pd.DataFrame({"id": ["x"], "a\0": [1]}), "'a\\x00' ends in a NUL"),
    "a long id": (
        pd.DataFrame({"id": [*map(str, range(5000)), "x" * 60_000], "a": 1}),
        "subject 5001 has an id of 60,000",
    ),
    "fractions as ids": (pd.DataFrame({"id": [1.5], "a": [1]}), "the subject ids are of the kind floating"),
    "truth values as ids": (pd.DataFrame({"id": [True], "a": [1]}), "the subject ids are of the kind boolean"),
    "bytes as ids": (pd.DataFrame({"id": [b"x"], "a": [1]}), "the subject ids are of the kind bytes"),
    "dates as ids": (pd.DataFrame({"id": DATES[:1], "a": [1]}), "the subject ids are of the kind datetime"),
    "dates": (
        pd.DataFrame({"id": ["x", "y"], "a": DATES}),
        "row 1 (subject 'x'), column 'a': a Timestamp is not a response",
    ),
    "times": (pd.DataFrame({"id": ["x"], "a": DATES[:1] - DATES[0]}), "column 'a': a Timedelta is not a response"),
    "lists": (pd.DataFrame({"id": ["x"], "a": [[1, 0]]}), "column 'a': a ndarray is not a response"),
    "objects": (pd.DataFrame({"id": ["x"], "a": [{"b": 1}]}), "column 'a': a dict is not a response"),
    "bytes": (pd.DataFrame({"id": ["x"], "a": [b"1"]}), "column 'a': a bytes is not a response"),
    "2": (
        WIDE.assign(b=[0, 2]),
        "row 2 (subject 't'), column 'b': 2 is not a response; use 0, 1 or null|'b': 2.0 is not",
    ),
    "-1": (WIDE.assign(b=[0, -1]), "row 2 (subject 't'), column 'b': -1 is not a response|'b': -1.0 is not a response"),
    "0.5": (WIDE.assign(b=[0.5, 1]), "row 1 (subject 's'), column 'b': 0.5 is not a response"),
    "infinity": (WIDE.assign(b=[np.inf, 1]), "column 'b': inf is not a response"),
    "a text": (WIDE.assign(b=["1", "no"]), "row 2 (subject 't'), column 'b': 'no' is not a response"),
    "a long text": (WIDE.assign(b=["1", "no" * 5000]), "row 2 (subject 't'), column 'b': 'nono"),
    "a nullable 2": (
        WIDE.assign(b=pd.array([None, 2], "Int64")),
        "row 2 (subject 't'), column 'b': 2 is not|'b': 2.0 is not",
    ),
    "rows of two levels": (pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", "y")])), "several levels"),
    "columns of two levels": (pd.DataFrame([[1]], ["x"], pd.MultiIndex.from_tuples([("a", "b")])), "several levels"),
    "row numbers of a filter": (
        pd.DataFrame({"id": list("xyz"), "a": 1}, [3, 7, 8]),
        "the rows have numbers without a name",
    ),
    "subject twice": (pd.concat([WIDE, WIDE]), "subject id 's' occurs more than once"),
    "long, no item": (LONG.assign(item_id=["a", None, "b"]), "row 2 has no id among the item_id"),
    "long, an empty item": (LONG.assign(item_id=["a", "", "b"]), "row 2 has no item id"),
    "long, twice": (LONG.assign(item_id="a"), "row 3: subject 's' answers item 'a' a second time"),
    "long, 2": (LONG.assign(response=[0, 2, 1]), "row 2 (subject 't'), column 'response': 2 is not a response"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named(path, case):
    table, message = BAD[case]
    table.to_parquet(path)
    assert any(part in refusal(read_responses, path) for part in message.split("|"))


def test_trials_of_a_subject_and_an_item_are_counted(path):
    trials = pd.concat([LONG.assign(trial=trial) for trial in range(100)])
    trials[trials.trial == 7].to_parquet(path)
    assert plain(read_responses(path)) == (["s", "t"], ["a", "b"], [[1, -1], [0, -1]])
    trials.to_parquet(path)
    assert refusal(read_responses, path) == (
        "row 4: subject 's' answers item 'a' a second time, the first of 297 such responses: "
        "keep one response (one trial) per subject and item, or take the last (`repeats=last`)"
    )


def test_a_column_that_is_there_twice_is_refused(path):
    pyarrow.parquet.write_table(pa.table([pa.array(["x"]), pa.array([1]), pa.array([0])], ["id", "a", "a"]), path)
    assert "'a'" in refusal(read_responses, path)


def test_text_that_is_not_utf8_is_refused(path):
    damaged = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    for columns in ([damaged, pa.array([1])], [pa.array(["x"]), damaged]):
        pyarrow.parquet.write_table(pa.table(columns, ["id", "a"]), path)
        assert "not a Parquet file" in refusal(read_responses, path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"not parquet", b"id,a\nx,1\n"])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    assert refusal(read_responses, path).startswith("not a Parquet file (")


def test_folders_of_files_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    WIDE.assign(group=["x", "y"]).to_parquet(path, partition_cols=["group"])
    assert "it is a folder, expected a file" in refusal(read_responses, path)


@given(matrices())
def test_what_is_written_is_read(path, parts):
    written = ResponseMatrix(*parts)
    frame(written.values, *plain(written)[:2]).to_parquet(path)
    assert plain(read_responses(path)) == plain(written)


def written(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


@given(damaged(written(WIDE)) | damaged(written(LONG)))
def test_damaged_files_are_read_or_refused(path, content):
    path.write_bytes(content)  # without checksums a bit of a response may flip unseen
    read_or_refused(read_responses, path)
