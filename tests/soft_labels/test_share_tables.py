"""Soft labels in a CSV: all of the file counts, or one line says what is wrong with it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import damaged, decoded, parse_csv, read_or_refused, refusal

from irtjax.soft_labels.share_tables import read_shares

CLASSES = ("no", "yes")
WHOLE = b"item_id,yes,no\na,0.25,0.75\nb,1,0\nc,0,1\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("shares") / "shares.csv"


def read(path):
    return read_shares(path, CLASSES)


def test_columns_may_be_in_any_order(path):
    path.write_bytes(WHOLE)
    assert read(path).ids.tolist() == ["a", "b", "c"]
    assert read(path).shares.tolist() == [[0.75, 0.25], [0, 1], [1, 0]]


def test_numbers_of_answers_are_shares_too(path):
    path.write_text("item_id,yes,no\na,30,10\nb,1,0\n", encoding="utf-8")
    found = read(path)
    assert found.counts.tolist() == [[10, 30], [0, 1]]
    assert found.shares.tolist() == [[0.25, 0.75], [0, 1]]


@pytest.mark.parametrize("cell", ["-0.25", "nan", "", "NA", "x", "inf", "-inf", "1e999", "0x1", "1_0", "25%", "True"])
@pytest.mark.parametrize("column", [1, 2])
def test_a_share_that_is_none_is_named(path, cell, column):
    rows = [["item_id", "yes", "no"], ["a", "0.25", "0.75"], ["b", "0.25", "0.75"]]
    rows[2][column] = cell
    path.write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    assert (
        refusal(read, path)
        == f"line 3, column {rows[0][column]}: {cell!r}, expected a share from 0 to 1, or a number of answers"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item_id,yes,no\na,0.5,0.4\n", "item a: its soft labels sum to 0.9, expected 1: divide them by their sum"),
        ("item_id,yes,no\na,50,50.5\n", "item a: its soft labels sum to 100.5, expected 1: divide them by their sum"),
        ("item_id,yes,no\na,1,0\nb,1,1\n", "item b: its soft labels sum to 2, expected 1: divide them by their sum"),
        ("item_id,yes,no\na,3,0\nb,0,0\n", "line 3: item 'b' has no answers: leave it out"),
        ("item_id,yes,no\na,1e300,0\n", "line 2, column yes: '1e300', expected a share from 0 to 1"),
        ("item_id,yes,no\n", "has no rows, expected one for each item"),
        ("item_id,yes,no\na,1,0\na,1,0\n", "item_id 'a' is there twice, in lines 2 and 3"),
        ("item_id,yes,no\n,1,0\n", "line 2 has no item_id"),
        ("item_id,yes,no,maybe\na,1,0,0\n", "column 'maybe' is of no class; expected item_id and no, yes: leave"),
        ("item_id,yes,no,yes\na,1,0,1\n", "2 columns are called 'yes', expected one"),
        ("item_id,yes,No\na,1,0\n", "no column no; expected item_id and no, yes"),
        ("item,yes,no\na,1,0\n", "no column item_id; expected item_id and no, yes"),
        ("item_id,yes,no\na,1\n", "line 2 has 2 cells, expected 3 as in the header"),
    ],
)
def test_what_would_be_left_aside_is_refused(path, text, said):
    path.write_text(text, encoding="utf-8")
    assert refusal(read, path).startswith(said)


@given(damaged(WHOLE))
@settings(max_examples=200)
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    found = read_or_refused(read, path)
    if found is not None:
        header, *rows = parse_csv(decoded(content))
        assert sorted(header) == ["item_id", "no", "yes"]
        assert found.ids.tolist() == [row[header.index("item_id")] for row in rows]
        cells = np.array([[float(row[header.index(name)]) for name in CLASSES] for row in rows])
        np.testing.assert_array_equal(cells, found.shares if found.counts is None else found.counts)
        np.testing.assert_allclose(found.shares.sum(1), 1, atol=1e-6)


@given(st.lists(st.floats(-1, 2) | st.sampled_from([math.nan, math.inf, 0.0, 1.0]), min_size=2, max_size=2))
def test_what_is_read_are_probabilities(path, pair):
    path.write_text(f"item_id,no,yes\na,{pair[0]!r},{pair[1]!r}\n", encoding="utf-8")
    found = read_or_refused(read, path)
    counts = all(cell >= 0 and cell == round(cell) for cell in pair if math.isfinite(cell)) and 2.0 in pair
    good = all(0 <= cell < math.inf for cell in pair) and (counts or abs(sum(pair) - 1) <= 1e-6)
    assert (found is not None) == good
