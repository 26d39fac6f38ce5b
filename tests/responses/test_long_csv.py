"""Long CSV files: one row per response, in any order."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import IDS, damaged, decoded, parse_csv, plain, read_or_refused, refusal, texts

from irtjax import read_responses
from irtjax.responses.formats import collecting

HEAD = "subject_id,item_id,response\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("long") / "long.csv"


def test_rows_and_columns_come_in_any_order(path):
    path.write_text("item_id,note,response,subject_id\nb,x,1,t\na,x,0,s\nb,x,,s\na,x,1.0,t\n")
    assert plain(read_responses(path)) == (["t", "s"], ["b", "a"], [[1, 1], [-1, 0]])


def test_spreadsheets_write_them_too(path):
    path.write_bytes("\ufeffsubject_id,item_id,response\r\n\r\ns,a, 1\r\ns,b,0.0\rt,a,\n".encode())
    assert plain(read_responses(path)) == (["s", "t"], ["a", "b"], [[1, 0], [-1, -1]])


def test_ids_are_kept(path):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [[subject, item, at % 2] for subject in IDS for at, item in enumerate(IDS)]
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([HEAD.strip().split(","), *rows])
    assert plain(read_responses(path)) == (IDS, IDS, [[at % 2 for at in range(len(IDS))]] * len(IDS))


def test_trials_of_a_subject_and_an_item_are_counted(path):
    path.write_text("subject_id,item_id,trial,response\ns,a,1,1\nt,a,2,0\n")
    assert plain(read_responses(path)) == (["s", "t"], ["a"], [[1], [0]])
    rows = [f"{subject},{item},{trial},1\n" for subject in "st" for item in "ab" for trial in (1, 2, 3)]
    path.write_text("".join(["subject_id,item_id,trial,response\n", *rows]))
    assert refusal(read_responses, path) == (
        "line 3: subject 's' answers item 'a' a second time, the first of 8 such responses: "
        "keep one response (one trial) per subject and item, or take the last (`repeats=last`)"
    )


BAD = {
    "nothing below": ("", "no subjects|no items"),
    "blank lines": ("\n\n", "no subjects|no items"),
    "twice": ("s,a,1\ns,a,1\n", "line 3: subject 's' answers item 'a' a second time"),
    "twice, once missing": ("s,a,\ns,a,1\n", "line 3: subject 's' answers item 'a' a second time"),
    "a cell less": ("s,a\n", "line 2 has 2 cells, the header 3"),
    "a cell more": ("s,a,1\ns,b,1,\n", "line 3 has 4 cells, the header 3"),
    "no subject": (",a,1\n", "line 2 has no subject id"),
    "no item": ("s,a,1\ns,,1\n", "line 3 has no item id"),
    "NUL ends an item": ("s,a\0,1\n", "'a\\x00' ends in a NUL"),
    "NUL ends a subject": ("s\0,a,1\n", "'s\\x00' ends in a NUL"),
    "an open quote": ('s,a,"1\n', "line 2 is not CSV (unexpected end of data)"),
    "text after a quote": ('"s"x,a,1\n', "line 2 is not CSV"),
    "a cell of 1 MB": (f"{'s' * 1_000_000},a,1\n", "line 2 is not CSV (field larger"),
    "one long id": ("".join(f"s{at},a,1\n" for at in range(20_000)) + f"{'x' * 100_000},a,1\n", "subject 20001 has an"),
}
BAD |= {
    f"response {cell!r}": (
        f"s,a,1\ns,b,{cell}\n",
        f"line 3, column 3 (subject 's', item 'b'): {cell!r} is not a response",
    )
    for cell in [
        "2",
        "-1",
        "+1",
        "-0",
        "1e0",
        "01",
        "tRUE",
        "nan",
        "na",
        "null",
        "x",
        "１",
        "\0",
        "1\0",
        "0x1",
        "1_0",
        "1%",
    ]
}


@pytest.mark.parametrize("case", BAD, ids=ascii)
def test_bad_rows_are_named(path, case):
    text, message = BAD[case]
    path.write_text(HEAD + text, newline="", encoding="utf-8")
    assert any(part in refusal(read_responses, path) for part in message.split("|"))


@pytest.mark.parametrize("name", HEAD.strip().split(","))
def test_a_column_that_is_there_twice_is_refused(path, name):
    path.write_text(f"{HEAD.strip()},{name}\ns,a,1,1\n")
    assert f"2 columns are called {name}, expected one" in refusal(read_responses, path)


def test_ids_that_are_all_different_are_a_mistake(path):
    path.write_text(HEAD + "".join(f"s{at},i{at},1\n" for at in range(50_000)))
    refused = "50,000 responses of 50,000 subjects to 50,000 items: no subject has two of them: look for ids"
    assert refused in refusal(read_responses, path)
    refused = "50,000 responses of 50,000 subjects to 50,000 items would take 2 GiB"
    assert refused in refusal(lambda path: read_responses(path, sparse=False), path)
    assert read_responses(path, sparse=True).num_answers == 50_000


def test_matrices_with_few_answers_are_made_up_to_a_limit(path, monkeypatch):
    monkeypatch.setattr(collecting, "LARGE", 99)
    monkeypatch.setattr(collecting, "SPARSE", 0.15)
    rows = "".join(f"s{at},i{at},1\n" for at in range(10))
    path.write_text(HEAD + rows)
    assert "look for ids that are different in every row" in refusal(read_responses, path)
    path.write_text(HEAD + rows + "".join(f"s{at},i0,0\n" for at in range(1, 6)))
    assert (read_responses(path).values != -1).sum() == 15


CODES = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": -1, "NA": -1, "NaN": -1}
CODES |= dict.fromkeys(["FALSE", "False", "false"], 0) | dict.fromkeys(["TRUE", "True", "true"], 1)


def expected(content):
    """Subjects, items and values by a parser of its own; None if the file is bad, or is no long one."""
    (header, *rows) = (parse_csv(text) if (text := decoded(content)) else None) or [[]]
    if not rows or [header.count(name) for name in HEAD.strip().split(",")] != [1, 1, 1]:
        return None
    found = {}
    for row in rows:
        if len(row) != len(header):
            return None
        subject, item, cell = (row[header.index(name)] for name in HEAD.strip().split(","))
        bad_id = any(not one or one.endswith("\0") for one in (subject, item))
        if bad_id or cell.strip() not in CODES or (subject, item) in found:
            return None
        found[subject, item] = CODES[cell.strip()]
    subjects, items = (list(dict.fromkeys(pair[at] for pair in found)) for at in (0, 1))
    return subjects, items, [[found.get((subject, item), -1) for item in items] for subject in subjects]


WHOLE = 'item_id,response,"a note",subject_id\r\na,1,"x,\ny",s\r\nb,0,,s\r\n"b",,,"t ""u"""\nß,1.0,,s\n'.encode()
rows = st.lists(st.tuples(texts, texts, st.sampled_from(["0", "1", ""])), min_size=1, max_size=5)


@given(damaged(WHOLE) | rows.map(lambda rows: HEAD.encode() + "\r".join(map(",".join, rows)).encode()))
def test_damaged_files_are_read_as_they_are_or_refused(path, content):
    path.write_bytes(content)
    found = plain(read_or_refused(read_responses, path))
    if b"item_id" in content and b"response" in content and b"subject_id" in content:
        assert found == expected(content)
