"""CSV matrices: what is read is what was written, and bad input is named by line and column."""

import itertools
import os

import numpy as np
import pytest
from conftest import matrix
from hypothesis import given
from hypothesis import strategies as st
from readers import IDS, damaged, decoded, matrices, parse_csv, plain, read_or_refused, refusal

from irtjax import InputError, ResponseMatrix, read_responses, write_responses
from irtjax.responses.from_arrays import of_grades
from irtjax.responses.sparse import of_matrix

VALUES = np.array([[1, 0, -1], [0, -1, 1]], np.int8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "r.csv"


def test_csv_is_the_documented_text(path):
    write_responses(matrix(VALUES), path)
    assert path.read_bytes() == b"subject_id,i0,i1,i2\ns0,1,0,\ns1,0,,1\n"


def test_ids_are_kept(path):
    written = ResponseMatrix(np.arange(len(IDS) ** 2).reshape(len(IDS), -1) % 3 - 1, IDS, IDS)
    write_responses(written, path)
    assert plain(read_responses(path)) == plain(written)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "mixed"])
def test_files_as_spreadsheets_and_pandas_write_them(path, end):
    ends = itertools.cycle(["\n", "\r\n", "\r"] if end == "mixed" else [end])
    lines = ["id,a,b", "x,1.0, 0", "y,,0.0\t", "z,1,\u3000"]
    for bom, quoted, blank, last in itertools.product([False, True], repeat=4):
        rows = [",".join(f'"{cell}"' for cell in line.split(",")) if quoted else line for line in lines]
        text = "".join(line + next(ends) + next(ends) * blank for line in rows)
        text = ("\ufeff" if bom else "") + (text if last else text.rstrip("\r\n"))
        path.write_bytes(text.encode())
        assert plain(read_responses(path)) == (["x", "y", "z"], ["a", "b"], [[1, 0], [-1, 0], [1, -1]])


CELLS = [
    "2", "-1", "-0", "+1", "1e0", "1.", ".0", "1.00", "01", "00", "10", "1,", "tRUE", "T", "yes", "Na", "nan", "na",
    "null", "None", "-", ".", "?", "x", "０", "１", "²", "I", "1 0", "1\x00", "\x00", "\ufeff1", "0x1", "1_0", "1;0",
    "'1'", '"1"', "a\nb", "1\u200b", "--", "1%", "inf", "9" * 4400, "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=ascii)
def test_a_cell_that_is_no_response_is_named(path, cell):
    written = cell.replace('"', '""')
    path.write_text(f'id,a,"b\nc"\nx,1,0\ny,,"{written}"\n', newline="", encoding="utf-8")
    line = 4 + cell.count("\n")
    shown = repr(cell) if len(repr(cell)) <= 100 else repr(cell)[:50]
    message = refusal(read_responses, path)
    assert message.startswith(f"line {line} (subject 'y'), column 3 (item 'b\\nc'): {shown}")
    assert "use 0, 1 or an empty cell for missing" in message


BAD = {
    "nothing": ("", "no items"),
    "a BOM": ("\ufeff", "no items"),
    "blank lines": ("\n\n\r\n\r", "no items"),
    "spaces": ("   \n  \n", "no items"),
    "ids only": ("id\nx\n", "no items"),
    "header only": ("id,a\n", "no subjects"),
    "rows only": ("x,1,0,1\ny,0,1,1\n", "item id '1' occurs more than once"),
    "commas only": (",,\n,,\n", "column 2 of the header has no item id"),
    "a value": ("id,a,b\nx,1,0\ny,2,0\n", "line 3 (subject 'y'), column 2 (item 'a'): '2' is not a response"),
    "short row": ("id,a,b\nx,1\n", "line 2 (subject 'x') has 1 responses, the header names 2 items"),
    "long row": ("id,a,b\nx,1,0,1\n", "line 2 (subject 'x') has 3 responses, the header names 2 items"),
    "trailing commas": ("id,a,b,\nx,1,0,\n", "column 4 of the header has no item id"),
    "trailing comma of the header": ("id,a,b,\nx,1,0\n", "column 4 of the header has no item id"),
    "trailing comma of a row": ("id,a,b\nx,1,0\ny,1,0,\n", "line 3 (subject 'y') has 3 responses"),
    "item twice": ("id,a,a\nx,1,0\n", "item id 'a' occurs more than once"),
    "an item first": ("q1,q2\n1,0\n1,1\n", "the first column, 'q1', has only responses where subject ids belong"),
    "an item first, of two rows": ("q1,q2\n0,0\n1,1\n", "call it subject_id if these are ids"),
    "subject twice": ("id,a\nx,1\nx,0\n", "subject id 'x' occurs more than once"),
    "no subject": ("id,a\nx,1\n,0\n", "line 3 has no subject id"),
    "row numbers": ("id,a\n,1\n", "line 2 has no subject id"),
    "NUL ends an item": ("id,a\0,b\nx,1,0\n", "'a\\x00' ends in a NUL"),
    "NUL ends a subject": ("id,a\nx\0,1\n", "'x\\x00' ends in a NUL"),
    "semicolons": ("id;a;b\nx;1;0\n", "the header has no comma"),
    "tabs": ("id\ta\nx\t1\n", "the header has no comma"),
    "spaces between": ("id a\nx 1\n", "no items"),
    "an open quote": ('id,a\nx,"1\n', "line 2 is not CSV (unexpected end of data)"),
    "an open quote in the header": ('id,"a\nx,1\n', "line 2 is not CSV (unexpected end of data)"),
    "an open quote around rows": ('id,a\n"x,1\ny,0\n', "line 3 is not CSV (unexpected end of data)"),
    "text after a quote": ('id,a\nx,"1"0\n', "line 2 is not CSV"),
    "a space after a quote": ('id,a\n"x" ,1\n', "line 2 is not CSV"),
    "a cell without end": ('id,a\n"x,' + "1" * 200_000, "line 2 is not CSV (field larger than field limit (131072))"),
    "a cell of 1 MB": ("id,a\nx," + "1" * 1_000_000 + "\n", "line 2 is not CSV (field larger"),
    "an id of 1 MB": ("id," + "a" * 1_000_000 + "\nx,1\n", "line 1 is not CSV (field larger"),
    "a line of spaces": ("id,a\nx,1\n  \n", "line 3 (subject '  ') has 0 responses"),
    "lines": ('id,"a\nb","a\nb"\nx,1,0\n', "item id 'a\\nb' occurs more than once"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_named(path, case):
    text, message = BAD[case]
    path.write_text(text, newline="", encoding="utf-8")
    assert message in refusal(read_responses, path)


ENCODED = {
    "Latin-1": ("id,é\nx,1\n", "latin-1", "line 1 is not UTF-8"),
    "Latin-1 below": ("id,a\n" + "x,1\n" * 9_000 + "é,1\n", "latin-1", "line 9002 is not UTF-8"),
    "Latin-1, old line ends": ("id,a\rx,1\ré,1\r", "latin-1", "line 3 is not UTF-8"),
    "UTF-16": ("id,a\nx,1\n", "utf-16", "line 1 is not UTF-8"),
    "UTF-16 without a mark": ("id,a\nx,1\n", "utf-16-le", r"'\x001\x00' is not a response"),
    "UTF-32": ("id,a\nx,1\n", "utf-32", "line 1 is not UTF-8"),
    "Shift JIS": ("id,日本\nx,1\n", "shift-jis", "line 1 is not UTF-8"),
}


@pytest.mark.parametrize("case", ENCODED)
def test_other_encodings_are_refused(path, case):
    text, encoding, message = ENCODED[case]
    path.write_bytes(text.encode(encoding))
    assert message in refusal(read_responses, path)


def test_many_columns(path):
    items = [f"i{at}" for at in range(100_000)]
    values = np.arange(200_000).reshape(2, -1) % 3 - 1
    write_responses(ResponseMatrix(values, ["x", "y"], items), path)
    assert plain(read_responses(path)) == (["x", "y"], items, values.tolist())


def test_the_longest_id_that_is_written_is_read(path):
    write_responses(ResponseMatrix([[1]], ["s"], ["x" * 131_072]), path)
    assert read_responses(path).item_ids.tolist() == ["x" * 131_072]


def test_one_id_does_not_make_all_long(path):
    path.write_text(f"id,{','.join(f'i{at}' for at in range(100_000))},{'x' * 10_000}\n")
    assert refusal(read_responses, path).startswith("item 100001 has an id of 10,000 characters, 'xxx")


PATHS = {
    "http://host/r.csv": "is an address, expected a local file: download it first",
    "https://host/r.csv?x=1": "is an address",
    "s3://bucket/r.parquet": "is an address",
    "s3:/bucket/r.npz": "is an address",
    "file:///etc/r.csv": "is an address",
    "simplecache::memory://r.csv": "is an address",
    "r.txt": "unknown ending '.txt', expected one of .csv, .jsonl, .jsonlines, .json, .parquet, .npz",
    "answers": "unknown ending ''",
    "r.CSV": "unknown ending '.CSV'",
    "r.csv.gz": "is compressed; unpack it and name the file that was in it",
    "r.csv.ZIP": "is compressed",
    "r.csv.xz": "is compressed",
    "r.csv.bz2": "is compressed",
    "r.csv.zst": "is compressed",
    "r.tar": "is compressed",
    "absent.csv": "cannot be read (No such file or directory)",
    "a\0b.csv": "cannot be read (",
    f"{'x' * 300}.csv": "cannot be read (File name too long)",
}


@pytest.mark.parametrize("name", PATHS, ids=ascii)
def test_only_local_files_of_known_formats_are_opened(name):
    assert PATHS[name] in refusal(read_responses, name)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".npz"])
def test_folders_pipes_and_devices_are_not_opened(tmp_path, ending):
    (tmp_path / f"folder{ending}").mkdir()
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"zero{ending}").symlink_to("/dev/zero")
    (tmp_path / f"nowhere{ending}").symlink_to(tmp_path / "nothing")
    for name, message in {
        "folder": "it is a folder, expected a file",
        "pipe": "it is a pipe or a device",
        "zero": "it is a pipe or a device",
        "nowhere": "No such file",
    }.items():
        assert message in refusal(read_responses, tmp_path / f"{name}{ending}")


UNWRITABLE = {
    "empty item": (["s"], [""], "item 1 has no id"),
    "empty subject": (["s", ""], ["a"], "subject 2 has no id"),
    "columns of long files": (["s"], ["response", "item_id"], "it would be read as long CSV: write .npz"),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_what_could_not_be_read_back_is_not_written(tmp_path, case):
    subjects, items, message = UNWRITABLE[case]
    responses = ResponseMatrix(np.ones((len(subjects), len(items)), int), subjects, items)
    assert message in refusal(lambda path: write_responses(responses, path), tmp_path / "r.csv")
    assert not list(tmp_path.iterdir())


def test_an_id_is_as_long_as_can_be_read_back(tmp_path):
    quoted = '"' * 131_072  # each is two in the file
    responses = ResponseMatrix(VALUES[:, :2], ["s", "t"], ["i", quoted])
    write_responses(responses, tmp_path / "r.csv")
    assert read_responses(tmp_path / "r.csv") == responses
    for build in (ResponseMatrix, lambda *parts: of_matrix(ResponseMatrix(*parts)), of_grades):
        message = "item 2 has an id of 131,073 characters, 'xxx.*': at most 131,072"
        with pytest.raises(InputError, match=message):
            build(VALUES[:, :2], ["s", "t"], ["i", "x" * 131_073])


def test_other_endings_are_not_written(tmp_path):
    assert "unknown ending '.txt', expected one of .csv, .npz" in refusal(
        lambda path: write_responses(matrix(VALUES), path), tmp_path / "r.txt"
    )
    with pytest.raises(InputError, match="absent: cannot write there"):
        write_responses(matrix(VALUES), tmp_path / "absent" / "r.csv")


@given(matrices())
def test_what_is_written_is_read(path, parts):
    written = ResponseMatrix(*parts)
    try:
        write_responses(written, path)
    except InputError:
        assert {"item_id", "response"} <= set(written.item_ids)
    else:
        assert plain(read_responses(path)) == plain(written)


CODES = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": -1}


def expected(content):
    """Subjects, items and values of a CSV matrix, by a parser without care for speed or messages; None if it is bad."""
    rows = parse_csv(text) if (text := decoded(content)) else None
    if not rows:
        return None
    (_, *items), *rows = rows
    subjects, values = [row[0] for row in rows], [[CODES.get(cell.strip()) for cell in row[1:]] for row in rows]
    for ids in (subjects, items):
        if not ids or len(set(ids)) < len(ids) or not all(ids) or any(one.endswith("\0") for one in ids):
            return None
    if any(len(row) != len(items) or None in row for row in values):
        return None
    return subjects, items, values


WHOLE = '\ufeffid,a,"b, c",d\r\nx,1,0,\r\n"y ""z""",,1.0, 0\r\nß,0,1,0\r\n'.encode()


@given(damaged(WHOLE) | st.binary(max_size=40) | st.text('"\n\r,x01 ', max_size=30).map(str.encode))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    assert plain(read_or_refused(read_responses, path)) == expected(content)
