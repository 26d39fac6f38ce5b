"""Tables as people write them, and as spreadsheets do."""

import csv
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import IDS, damaged, decoded, parse_csv, read_or_refused, refusal, texts

from irtjax.errors import InputError
from irtjax.storage.files import write_csv
from irtjax.storage.tables import EMPTY, read_table


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("tables") / "items.csv"


def items(path):
    return read_table(path, "item_id")


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "mixed"])
def test_ids_stay_text_whatever_ends_lines(path, end):
    ids = ["NA", "null", "nan", "None", "007", "1.0", "a,b", 'say "no"', "é"]
    cells = [f'"{item.replace(chr(34), chr(34) * 2)}"' for item in ids]
    ends = itertools.cycle(["\n", "\r\n", "\r"] if end == "mixed" else [end])
    lines = ["item_id,difficulty,label", *(f"{cell},{at}.5,NA" for at, cell in enumerate(cells))]
    for bom, blank, last in itertools.product([False, True], repeat=3):
        text = "".join(line + next(ends) + next(ends) * blank for line in lines)
        path.write_bytes(("\ufeff" * bom + (text if last else text.rstrip())).encode())
        table = items(path)
        assert list(table.item_id) == ids
        assert list(table.difficulty) == [at + 0.5 for at in range(len(ids))]
        assert table.label.isna().all()
        assert list(read_table(path, 0, text=True).difficulty)[:2] == ["0.5", "1.5"]


def test_ids_are_kept(path):
    write(path, ["item_id", *IDS], *([one, *IDS] for one in IDS))
    table = read_table(path, "item_id", text=True)
    assert list(table.item_id) == IDS
    assert list(table.columns) == ["item_id", *IDS]
    for name in set(IDS) - EMPTY:
        assert list(table[name]) == [name] * len(IDS)


def test_what_write_csv_writes_is_read(path):
    ids = [one for one in IDS if one != "a\rb"]  # which pandas writes without quotes
    table = pd.DataFrame(
        {"item_id": ids, "b": np.arange(len(ids)) / 8, "n": range(len(ids)), "p": np.nan, "why": "x, y"}
    )
    write_csv(table, path)
    pd.testing.assert_frame_equal(items(path), table, check_dtype=False)


COLUMNS = {
    "whole numbers": (["1", "-2", "+3", " 4 ", "007"], [1, -2, 3, 4, 7], "i"),
    "numbers": (["1", "2.5", "-.5", "1e-3", "5."], [1, 2.5, -0.5, 0.001, 5], "f"),
    "every digit": (["0.1234567890123456789", "1e23", "2.5e-310"], [0.12345678901234568, 1e23, 2.5e-310], "f"),
    "infinite": (["inf", "-Infinity", "1e400"], [np.inf, -np.inf, np.inf], "f"),
    "missing": (["1", *sorted(EMPTY)], [1.0, *[np.nan] * len(EMPTY)], "f"),
    "all missing": (["", "NA"], [np.nan, np.nan], "f"),
    "large": (["18446744073709551615", "1"], [2**64 - 1, 1], "u"),
    "larger": (["99999999999999999999999", "1"], ["99999999999999999999999", "1"], None),
    "large and negative": (["18446744073709551615", "-1"], ["18446744073709551615", "-1"], None),
    "texts": (["1", "a", ""], ["1", "a", np.nan], None),
    "truth values": (["TRUE", "false"], ["TRUE", "false"], None),
    "full-width": (["１", "２"], ["１", "２"], None),
    "underscores": (["1_000", "2"], ["1_000", "2"], None),
    "thousands": (["1,000", "2"], ["1,000", "2"], None),
    "hexadecimal": (["0x10", "1"], ["0x10", "1"], None),
    "percent": (["10%", "2"], ["10%", "2"], None),
    "NUL": (["1\0", "2"], ["1\0", "2"], None),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_are_numbers_if_all_cells_are(path, case):
    cells, expected, kind = COLUMNS[case]
    write(path, ["item_id", "b"], *([str(at), cell] for at, cell in enumerate(cells)))
    found = items(path).b
    assert found.dtype.kind == kind if kind else found.dtype.kind == "O"
    pd.testing.assert_series_equal(found, pd.Series(expected, name="b"), check_dtype=False, check_exact=True)


def test_columns_are_not_read_in_parts(path):
    cells = [*map(str, range(60_000)), "x"]
    write(path, ["item_id", "b"], *zip(cells, cells, strict=True))
    assert list(items(path).b) == cells  # pandas alone has numbers in the first part, texts in the last


BAD = {
    "nothing": ("", "is empty, expected a header and rows"),
    "a BOM": ("\ufeff", "is empty"),
    "blank lines": ("\n\n\r\n\r", "is empty"),
    "spaces": ("  \n", "no column item_id"),
    "trailing commas of rows": ("item_id,b,b_se\nx,1,2,\ny,3,4,\n", "line 2 has 4 cells, expected 3 as in the header"),
    "trailing commas": ("item_id,b,,\nx,1,,\n", "2 columns are called '', expected one"),
    "short row": ("item_id,b,b_se\nx,1,2\ny,3\n", "line 3 has 2 cells, expected 3"),
    "short row further down": ('item_id,b\n"x\ny",1\n\nz\n', "line 5 has 1 cells, expected 2"),
    "a line of spaces": ("item_id,b\nx,1\n  \n", "line 3 has 1 cells"),
    "two names": ("item_id,b,b\nx,1,2\n", "2 columns are called 'b', expected one"),
    "ids twice": ("item_id,item_id\nx,y\n", "2 columns are called 'item_id'"),
    "no ids": ("item,b\nx,1\n", "no column item_id"),
    "other case": ("Item_ID,b\nx,1\n", "no column item_id"),
    "a space before": (" item_id,b\nx,1\n", "no column item_id"),
    "semicolons": ("item_id;b\nx;1\n", "no column item_id"),
    "empty id": ("item_id,b\nx,1\n,2\n", "line 3 has no item_id"),
    "id twice": ("item_id,b\nx,1\ny,2\nx,3\n", "item_id 'x' is there twice, in lines 2 and 4"),
    "NUL ends an id": ("item_id,b\nx\0,1\n", "line 2: item_id 'x\\x00' ends in a NUL"),
    "an open quote": ('item_id,b\nx,"1\ny,2\n', "line 3 is not CSV (unexpected end of data)"),
    "text after a quote": ('item_id,b\n"x"y,1\n', "line 2 is not CSV"),
    "a cell of 1 MB": (f"item_id,b\nx,{'1' * 1_000_000}\n", "line 2 is not CSV (field larger"),
    "a name of 10 kB": (f"item_id,{'b' * 10_000},{'b' * 10_000}\n", "2 columns are called 'bbb"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_named(path, case):
    text, message = BAD[case]
    path.write_text(text, newline="", encoding="utf-8")
    assert message in refusal(items, path)


@pytest.mark.parametrize(
    "content", [b"item_id,b\n\xff\xfe,1\n", "item_id,b\nx,1\n".encode("utf-16"), b"\x1f\x8b\x08\0\xff"]
)
def test_what_is_no_text_is_refused(path, content):
    path.write_bytes(content)
    assert "is not UTF-8: save the file as UTF-8" in refusal(items, path)


def test_many_columns(path):
    names = [f"c{at}" for at in range(3_000)]
    write(path, ["item_id", *names], ["x", *map(str, range(3_000))])
    assert items(path).iloc[0].tolist() == ["x", *range(3_000)]
    write(path, ["item_id", *(f"c{at}" for at in range(100_000)), "c99999"])
    assert "2 columns are called 'c99999'" in refusal(items, path)


def expected(content):
    """Columns of text by a parser of its own; None if the file is bad or its ids are."""
    (header, *rows) = (parse_csv(text) if (text := decoded(content)) else None) or [[]]
    if "item_id" not in header or len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
        return None
    columns = {name: [row[at] for row in rows] for at, name in enumerate(header)}
    ids = columns["item_id"]
    return None if len(set(ids)) < len(ids) or not all(ids) or any(one.endswith("\0") for one in ids) else columns


def cells(table):
    """The columns of a table that was read, with "" where a cell is empty."""
    return table if table is None else {name: table[name].fillna("").tolist() for name in table}


def emptied(columns):
    return columns and {
        name: column if name == "item_id" else ["" if cell in EMPTY else cell for cell in column]
        for name, column in columns.items()
    }


WHOLE = '\ufeffitem_id,b,"why, then"\r\nx,1.5,\r\n"y ""z""",NA,"a\r\nb"\r\nß,-1,é\r\n'.encode()
rows = st.lists(st.tuples(texts, texts), max_size=4)


@given(damaged(WHOLE) | rows.map(lambda rows: "\n".join(["item_id,b", *map(",".join, rows)]).encode()))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    assert cells(read_or_refused(lambda path: read_table(path, "item_id", text=True), path)) == emptied(
        expected(content)
    )
    table = read_or_refused(items, path)
    for column in () if table is None else table.select_dtypes("number"):
        read = [np.nan if cell in EMPTY else float(cell) for cell in expected(content)[column]]
        np.testing.assert_array_equal(table[column].to_numpy(float), read)


TEXTS = ['say "no"', "a,b", "'n'", "NA", '"quoted"', "two words", '"half', "plain"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tabs_with_quotes_as_characters_or_as_in_csv(tmp_path, end):
    path = tmp_path / "items.tsv"
    as_they_stand = ["text\tlabel", *(f"{text}\t{at}" for at, text in enumerate(TEXTS))]
    path.write_bytes((end.join(as_they_stand) + end).encode())  # as GLUE's files
    table = read_table(path, "text")
    assert table.text.tolist() == TEXTS
    assert table.label.tolist() == list(range(len(TEXTS)))
    quoted = pd.DataFrame({"text": [*TEXTS, "tab\tand", f"line{end}break"]}).assign(label=1)
    quoted.to_csv(path, sep="\t", index=False, lineterminator=end)
    assert read_table(path, "text").text.tolist() == quoted.text.tolist()
    one_line = quoted[: len(TEXTS)]  # of as many cells in every line
    one_line.to_csv(path, sep="\t", index=False, lineterminator=end)
    assert read_table(path, "text").text.tolist() == TEXTS


def test_a_line_with_other_tabs_is_named(tmp_path):
    path = tmp_path / "items.tsv"
    path.write_text("text\tlabel\na\t1\nb\n")
    with pytest.raises(InputError, match=r"items.tsv: line 3 has 1 cells, expected 2 as in the header"):
        read_table(path)
    path.write_text('text\tlabel\na\t1\n"b" c\t1\t2\n')
    with pytest.raises(InputError, match=r"items.tsv: line 3 "):
        read_table(path)
