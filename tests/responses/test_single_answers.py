"""Tables with one row per response, a part at a time, held by the answer or in a matrix."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from readers import refusal

import irtjax
from irtjax import ResponseMatrix, SparseResponses, read_responses, write_responses
from irtjax.fits.reading import read
from irtjax.responses.convert import as_given, as_responses, as_responses_or_stored
from irtjax.responses.formats import collecting, data_frames, long_csv, parquet

HEAD = "subject_id,item_id,response\n"
NAMES = HEAD.strip().split(",")
IDS = st.sampled_from(["a", "b", "ü", "1", "01", "NA", "x y", 'q"q', "c,c", "l\nl", " s"])
CODES = {"0": 0, "1": 1, "": -1, "True": 1, "0.0": 0, "NA": -1}
TABLES = ("csv", "quoted", "parquet", "categories", "frame", "arrow", "codes", "lines")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("single")


def table_of(rows, kind, folder, responses=None):
    """One kind of table of rows of subject, item and cell, or the path of one; other responses where there are some."""
    frame = pd.DataFrame(rows, columns=NAMES)
    if kind in ("csv", "quoted"):
        frame.to_csv(folder / "r.csv", index=False, quoting=int(kind == "quoted"))
        return folder / "r.csv"
    frame = frame if responses is None else frame.assign(response=responses)
    if kind == "parquet":
        frame.to_parquet(folder / "r.parquet", row_group_size=3)
        return folder / "r.parquet"
    if kind == "categories":
        frame = frame.astype({"subject_id": "category", "item_id": "category"})
    table = pyarrow.table(frame[NAMES]) if kind in ("arrow", "codes") else frame
    if kind == "codes":  # as Parquet may hold them: in no order, some twice or not used
        for at in (0, 1):
            ids = pyarrow.array(["never", *reversed(table.column(at).unique().to_pylist())])
            places = pyarrow.compute.index_in(table.column(at).combine_chunks(), ids).cast(pyarrow.int8())
            table = table.set_column(at, NAMES[at], pyarrow.DictionaryArray.from_arrays(places, ids))
    return table


def held(rows, kind, folder, sparse=True, repeats=None):
    """The responses of such a table."""
    how = {"sparse": sparse, "repeats": repeats}
    if kind == "lines":
        lines = [{"subject_id": s, "responses": {i: None if CODES[c] < 0 else CODES[c]}} for s, i, c in rows]
        (folder / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return read_responses(folder / "r.jsonl", **how)
    codes = pd.array([None if CODES[cell] < 0 else CODES[cell] for _, _, cell in rows], "Int8")
    return as_responses_or_stored(table_of(rows, kind, folder, codes), **how)


def expected(rows):
    """Of rows that give each cell once."""
    subjects, items = (list(dict.fromkeys(row[at] for row in rows)) for at in (0, 1))
    values = np.full((len(subjects), len(items)), -1)
    for subject, item, cell in rows:
        values[subjects.index(subject), items.index(item)] = CODES[cell]
    return ResponseMatrix(values, subjects, items)


ROWS = st.lists(st.tuples(IDS, IDS, st.sampled_from(sorted(CODES))), min_size=1, max_size=12)
ONCE = ROWS.map(lambda rows: [(*cell, code) for cell, code in {(s, i): code for s, i, code in rows}.items()])
SOME = ONCE.filter(lambda rows: any(CODES[cell] >= 0 for _, _, cell in rows))


@pytest.mark.parametrize("kind", TABLES)
@given(rows=SOME)
@settings(max_examples=25, deadline=None)
def test_single_answers_are_those_of_the_matrix(folder, kind, rows):
    single = held(rows, kind, folder)
    assert isinstance(single, SparseResponses)
    assert single.read() == held(rows, kind, folder, sparse=False) == expected(rows)
    assert single.num_answers == sum(CODES[cell] >= 0 for _, _, cell in rows)


@pytest.mark.parametrize("kind", ["csv", "quoted", "parquet", "categories", "frame", "codes"])
@given(rows=st.lists(st.tuples(IDS, IDS, st.sampled_from(["3", "1", "", "high", " NA"])), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_what_was_given_is_kept_row_by_row(folder, kind, rows):
    rows = [*rows, ("s", "i", "2")]
    found = as_given(table_of(rows, kind, folder))
    there = [row for row in rows if row[2].strip() not in ("", "NA")]
    assert [found.subject_ids[at] for at in found.subjects] == [subject for subject, _, _ in there]
    assert [found.item_ids[at] for at in found.items] == [item for _, item, _ in there]
    assert found.cells.tolist() == [cell.strip() for _, _, cell in there]
    assert found.subject_ids == list(dict.fromkeys(subject for subject, _, _ in rows))


@given(rows=SOME, at=st.integers(0, 11))
@settings(max_examples=25, deadline=None)
def test_the_order_of_rows_is_that_of_ids_alone(folder, rows, at):
    one, other = held(rows, "csv", folder), held(rows[at:] + rows[:at], "csv", folder)
    by_id = [np.argsort(ids) for ids in (other.subject_ids, other.item_ids)]
    by_own = [np.argsort(ids) for ids in (one.subject_ids, one.item_ids)]
    assert other.choose_subjects(by_id[0]).choose_items(by_id[1]) == one.choose_subjects(by_own[0]).choose_items(
        by_own[1]
    )


@pytest.mark.parametrize("kind", TABLES)
def test_parts_of_a_file_meet(folder, kind, monkeypatch):
    rng = np.random.default_rng(3)
    cells = rng.permutation(30 * 20)[:150]
    rows = [(f"s{cell // 20}\nof two lines", f'i"{cell % 20}', str(cell % 2)) for cell in cells.tolist()]
    whole = held(rows, kind, folder)
    assert whole.read() == expected(rows)
    monkeypatch.setattr(collecting, "AT_ONCE", 7)
    monkeypatch.setattr(data_frames, "AT_ONCE", 7)
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 7)
    for size in (40, 61, 200):
        monkeypatch.setattr(long_csv, "BLOCK", size)
        assert held(rows, kind, folder) == whole


@pytest.mark.parametrize("quoting", [0, 1], ids=["plain", "quoted"])
def test_plain_files_are_read_by_arrow(folder, quoting, monkeypatch):
    rows = [(f"s{at % 7}", f"i{at // 7}", "1") for at in range(40)]
    pd.DataFrame(rows, columns=NAMES).to_csv(folder / "plain.csv", index=False, quoting=quoting)

    def never(*_):
        raise AssertionError("row by row")

    monkeypatch.setattr(long_csv, "_rows", never)
    assert read_responses(folder / "plain.csv") == expected(rows)


def few(num_subjects=3000, num_items=2000):
    """Three answers of each subject."""
    subjects, at = np.repeat(np.arange(num_subjects), 3), np.tile(np.arange(3), num_subjects)
    items = (subjects * 7 + at * 11) % num_items
    return pd.DataFrame(
        {
            "subject_id": [f"s{subject}" for subject in subjects],
            "item_id": [f"i{item}" for item in items],
            "response": (subjects + at) % 2,
        }
    )


def test_density_says_what_holds_them(folder):
    table = few()
    found = as_responses_or_stored(table)
    assert isinstance(found, SparseResponses)
    assert (found.num_answers, found.num_subjects) == (9000, 3000)
    assert isinstance(as_responses_or_stored(table.head(3000)), ResponseMatrix)  # 1,000 subjects: few cells
    assert as_responses_or_stored(table, sparse=False) == as_responses(table) == found.read()
    table.to_csv(folder / "few.csv", index=False)
    assert read_responses(folder / "few.csv") == irtjax.open_responses(folder / "few.csv") == found
    assert read(folder / "few.csv", "2pl", sparse=None) == (found, "2pl")
    assert read(folder / "few.csv", "2pl", sparse=None, transpose=True)[0] == found.transposed()
    assert isinstance(read(folder / "few.csv", "auto")[0], ResponseMatrix)


def test_arrays_of_scipy_are_single_answers():
    array = scipy.sparse.csr_array(np.array([[1, -1, 0], [0, 1, 1]]))
    found = as_responses_or_stored(array)
    assert isinstance(found, SparseResponses)
    assert found.read() == as_responses(array) == as_responses([[1, 0, None], [None, 1, 1]])
    assert as_given(array).cells.tolist() == [1, 0, 1, 1] == as_given(found).cells.tolist()
    twice = scipy.sparse.coo_array(([1, -1, 1], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert read(twice, "binomial")[0].trials.tolist() == [[2, 1], [1, 1]]
    assert as_responses_or_stored(twice, repeats="last").read() == as_responses([[0, None], [None, 1]])
    grades = scipy.sparse.csr_array(np.array([[1, 3], [2, 2]]))
    assert read(grades, "auto")[0].values.tolist() == [[0, 2], [1, 1]]


TWICE = [("s", "a", "1"), ("t", "a", "0"), ("s", "a", "0"), ("s", "b", "1"), ("s", "a", ""), ("t", "a", "1")]
PLACES = {"csv": "line 4", "quoted": "line 4", "lines": "line 3"}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_second_answer_is_refused_or_the_last_counts(folder, kind, sparse):
    with pytest.raises(irtjax.InputError) as error:
        held(TWICE, kind, folder, sparse)
    assert str(error.value).endswith(
        f"{PLACES.get(kind, 'row 3')}: subject 's' answers item 'a' a second time, the first of 3 such responses: keep "
        "one response (one trial) per subject and item, or take the last (`repeats=last`)"
    )
    last = held(TWICE, kind, folder, sparse, "last")
    assert isinstance(last, SparseResponses) == sparse
    assert last.read() == expected([("s", "a", "0"), ("t", "a", "1"), ("s", "b", "1")])


def test_fits_count_repeated_answers_or_take_the_last():
    rows = pd.DataFrame(TWICE, columns=NAMES)
    counted, model = read(rows, "2pl")
    assert model == "binomial"
    assert counted.trials.tolist() == [[2, 1], [2, 1]]
    last, model = read(rows, "2pl", repeats="last")
    assert model == "2pl"
    assert last == expected([("s", "a", "0"), ("t", "a", "1"), ("s", "b", "1")])
    assert read(as_given(rows), "auto", repeats="last")[0].values.tolist() == [[0, 1], [1, -1]]
    grades = pd.DataFrame([("s", "a", 3), ("t", "a", 1), ("s", "a", 2), ("t", "a", 3)], columns=NAMES)
    assert read(grades, "graded", repeats="last")[0].values.tolist() == [[0], [1]]
    with pytest.raises(irtjax.InputError, match="does not go with a facet"):
        irtjax.fit(rows, facet="judge", repeats="last")
    with pytest.raises(irtjax.InputError, match="`repeats` 'first', expected 'last'"):
        as_responses_or_stored("r.csv", repeats="first")


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_what_is_written_is_read(folder, ending):
    arrays = map(np.array, ([0, 0, 2, 3], [0, 2, 2], [1, 0, 1]))
    single = SparseResponses(*arrays, ["none", "s,1", "t"], ["a", "empty", 'b"'])
    path = folder / f"written.{ending}"
    write_responses(single, path)
    found = read_responses(path, sparse=True)
    assert sorted(found.item_ids) == sorted(single.item_ids)
    order = [found.item_ids.tolist().index(item) for item in single.item_ids]
    assert found.choose_items(np.array(order)) == single
    assert as_given(path).subjects.tolist() == [1, 1, 2]
    assert read_responses(path, sparse=False) == found.read()


def broken(**changes):
    arrays = {
        "starts": [0, 1, 2],
        "items": [0, 1],
        "answers": [1, 0],
        "subject_ids": ["s", "t"],
        "item_ids": ["a", "b"],
    }
    return arrays | changes


FOUR = {"items": range(4), "answers": [1] * 4, "subject_ids": ["s", "t", "u"], "item_ids": ["a", "b", "c", "d"]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (broken(starts=[0, 2]), "starts of 2 subjects do not rise from 0 to 2"),
        (broken(starts=[0, 2, 1]), "starts of 2 subjects do not rise"),
        (broken(starts=np.array([0, 2, 1], np.uint64)), "starts of 2 subjects do not rise"),
        (broken(starts=np.array([0, 3, 1, 4], np.uint64), **FOUR), "starts of 3 subjects do not rise from 0 to 4"),
        (broken(starts=[0, 1, 3]), "starts of 2 subjects do not rise"),
        (broken(items=[0, 2]), "items from 0 to 2, expected 0 to 1"),
        (broken(starts=[0, 2, 2], items=[1, 1]), "items of a subject do not rise"),
        (broken(starts=[0, 2, 2], items=[1, 0]), "items of a subject do not rise"),
        (broken(answers=[1, 2]), "subject 't', item 'b': response 2, expected 0 or 1"),
        (broken(answers=[1.0, 0.0]), "answers are of type float64"),
        (broken(answers=[1]), "2 items and 1 answers, expected as many"),
        (broken(item_ids=["a", "a"]), "item id 'a' occurs more than once"),
        (broken(subject_ids=["s", ""]), "subject 2 has no id"),
    ],
)
def test_broken_archives_are_refused(folder, arrays, message):
    np.savez(folder / "broken.npz", **{name: np.array(array) for name, array in arrays.items()})
    assert message in refusal(read_responses, folder / "broken.npz")


ROW = {"subject_id": ["s", "t"], "item_id": ["a", "a"], "response": [1, 0]}
BAD = {
    "no number": ({"response": ["1", "x"]}, "row 2 (subject 't'), column 'response': 'x' is not a response"),
    "a number": ({"response": [1, 0.5]}, "row 2 (subject 't'), column 'response': 0.5 is not a response"),
    "an empty id": ({"item_id": ["a", ""]}, "row 2 has no item id"),
    "no id": ({"subject_id": [None, "t"]}, "row 1 has no id among the subject_id"),
    "ids of two kinds": ({"subject_id": pd.Series(["s", 1.5], dtype=object)}, "are of the kind mixed"),
    "all missing": ({"response": pd.array([None, None], "Int8")}, "all responses are missing"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_bad_tables_are_named(folder, case, kind):
    changes, message = BAD[case]
    table = pd.DataFrame(ROW | changes)
    if kind == "frame":
        with pytest.raises(irtjax.InputError) as error:
            as_responses_or_stored(table, sparse=True)
        assert message in str(error.value)
    elif case != "ids of two kinds":  # no column of a file has those
        table.to_parquet(folder / "bad.parquet")
        assert message in refusal(lambda path: read_responses(path, sparse=True), folder / "bad.parquet")


def test_a_file_that_is_cut_says_so(folder):
    rows = "".join(f"s{at % 50},i{at // 50},{at % 2}\n" for at in range(2000))
    path = folder / "cut.csv"
    path.write_text((HEAD + rows)[:-4])
    assert "line 2001 has 2 cells, the header 3" in refusal(read_responses, path)
    few().to_parquet(folder / "cut.parquet")
    (folder / "cut.parquet").write_bytes((folder / "cut.parquet").read_bytes()[:-5000])
    assert "not a Parquet file" in refusal(read_responses, folder / "cut.parquet")


def test_other_numbers_lead_to_other_models(folder):
    path = folder / "grades.csv"
    few().assign(response=lambda table: table.index % 3 - 1).to_csv(path, index=False)
    with pytest.raises(irtjax.InputError, match="has grades -1 to 1, and the 2pl is of right and wrong answers"):
        read(path, "2pl", sparse=None)


PEAK = """
import sys, irtjax
irtjax.read_responses(sys.argv[2])  # so that what the program itself takes is there before
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * 4096
open("/proc/self/clear_refs", "w").write("5")
responses = irtjax.read_responses(sys.argv[1])
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print((peak - before) / responses.num_answers)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_reading_takes_three_times_the_answers(tmp_path, ending):
    """A program of its own reads 6 million answers; each is two numbers of 4 bytes and a value, 12 bytes with these."""
    rng = np.random.default_rng(0)
    cells = rng.permutation(np.unique(rng.integers(0, 100_000 * 10_000, 6_000_000)))
    table = pyarrow.table(
        {
            "subject_id": pyarrow.array(np.char.add("learner-", (cells // 10_000).astype(str))),
            "item_id": pyarrow.array(np.char.add("question_", (cells % 10_000).astype(str))),
            "response": rng.integers(0, 2, len(cells)),
        }
    )
    write = pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table
    path, few = tmp_path / f"long.{ending}", tmp_path / f"few.{ending}"
    write(table, path)
    write(table.slice(0, 50_000), few)
    command = [sys.executable, "-c", PEAK, str(path), str(few)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 36
