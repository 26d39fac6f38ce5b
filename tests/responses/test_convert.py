"""Responses as users have them in memory: the same matrix from every kind of table, array and list."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow
import pytest
from other_packages import Polars, Streamed

import irtjax
from irtjax import InputError, ResponseMatrix
from irtjax.responses.convert import as_responses
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares
from irtjax.responses.masks import as_floats
from irtjax.responses.matrix import grade
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.selection.own_loop import scored

VALUES = np.array([[1, 0, -1], [0, 1, 1]])
NAMED = ResponseMatrix(VALUES, ["ann", "bob"], ["i", "j", "k"])
NUMBERED = ResponseMatrix(VALUES, ["subject_1", "subject_2"], ["item_1", "item_2", "item_3"])
WIDE = pd.DataFrame([[1, 0, np.nan], [0, 1, 1]], index=["ann", "bob"], columns=["i", "j", "k"])
CELLS = [("ann", "i", 1), ("ann", "j", 0), ("bob", "i", 0), ("bob", "j", 1), ("bob", "k", 1)]
LONG = pd.DataFrame(CELLS, columns=["subject_id", "item_id", "response"])

TABLES = {
    "floats and NaN": WIDE,
    "nullable integers": WIDE.astype("Int64"),
    "nullable booleans": WIDE.astype("boolean"),
    "objects": WIDE.astype(object).where(WIDE.notna(), None),
    "booleans and None": pd.DataFrame(
        [[True, False, None], [False, True, True]], index=["ann", "bob"], columns=["i", "j", "k"]
    ),
    "ids in a column": WIDE.reset_index(names="subject_id"),
    "ids in a first column of text": WIDE.reset_index(names="who"),
    "ids in another column": WIDE.assign(subject_id=["ann", "bob"]),
    "sparse": WIDE.astype(pd.SparseDtype(float)),
    "categories": WIDE.astype("category"),
    "long": LONG,
    "long with other columns": LONG.assign(seconds=3.5),
    "long with nulls": pd.concat([LONG, pd.DataFrame([("ann", "k", None)], columns=LONG.columns)]).astype(object),
    "Arrow": pyarrow.Table.from_pandas(WIDE.reset_index(names="subject_id")),
}
ARRAYS = {
    "integers": VALUES,
    "int8": VALUES.astype(np.int8),
    "floats": np.where(VALUES < 0, np.nan, VALUES),
    "masked": np.ma.array(np.abs(VALUES), mask=VALUES < 0),
    "masked floats": np.ma.array(np.abs(VALUES) * 1.0, mask=VALUES < 0),
    "masked unsigned": np.ma.array(np.abs(VALUES).astype(np.uint8), mask=VALUES < 0),
    "masked booleans": np.ma.array(VALUES == 1, mask=VALUES < 0),
    "masked objects": np.ma.array(np.abs(VALUES).astype(object), mask=VALUES < 0),
    "list with None": [[1, 0, None], [0, 1, 1]],
    "list with NaN": [[1, 0, float("nan")], [0, 1, 1]],
    "booleans and None": [[True, False, None], (False, True, True)],
    "objects": np.array([[1, 0, pd.NA], [0, True, 1.0]], dtype=object),
    "strided": np.repeat(VALUES, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind):
    before = TABLES[kind]
    assert as_responses(before) == NAMED


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_and_lists(kind):
    assert as_responses(ARRAYS[kind]) == NUMBERED


def test_paths(tmp_path):
    irtjax.write_responses(NAMED, tmp_path / "r.csv")
    assert as_responses(tmp_path / "r.csv") == as_responses(str(tmp_path / "r.csv")) == NAMED
    assert as_responses(NAMED) is NAMED


def test_ids_stay_what_they_are():
    table = pd.DataFrame([[1, 0], [0, 1]], index=[7, 8], columns=[100, 200])
    found = as_responses(table)
    assert (found.subject_ids.tolist(), found.item_ids.tolist()) == (["7", "8"], ["100", "200"])
    counted = as_responses(pd.DataFrame([[1, 0], [0, 1]], columns=["a", "b"]))
    assert counted.subject_ids.tolist() == ["0", "1"]
    text = pd.DataFrame([["NA", 1], ["null", 0]], columns=["who", "a"])
    assert as_responses(text).subject_ids.tolist() == ["NA", "null"]


REFUSED = {
    "a number": (3, "int with shape ()"),
    "None": (None, "NoneType with shape ()"),
    "one row": ([1, 0, 1], r"list with shape \(3,\): expected a table, a path, or rows"),
    "three dimensions": (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    "ragged": ([[1, 0], [1]], "no rows of equal length"),
    "a dictionary": ({"a": [1, 0]}, r"dict with shape \(\)"),
    "no rows": (np.zeros((0, 3)), "no subjects"),
    "no columns": (np.zeros((3, 0)), "no items"),
    "two": (VALUES + 1, "subject 'subject_1', item 'item_1': response 2, expected 0, 1 or -1"),
    "a half": (VALUES * 0.5, "column 'item_1': 0.5 is not a response"),
    "minus one among floats": (VALUES * 1.0, "column 'item_3': -1.0 is not a response; use 0, 1 or null for missing"),
    "infinity": ([[np.inf, 1]], "inf is not a response"),
    "text": ([["a", "b"]], "column 'item_1': 'a' is not a response"),
    "complex": (VALUES * 1j, "responses of type complex128, expected numbers or texts"),
    "records": (np.zeros((5, 4), [("a", int), ("b", float)]), "responses are records, expected numbers"),
    "dates": (np.zeros((5, 4), "M8[s]"), r"responses of type datetime64\[s\], expected numbers or texts"),
    "table of text": (WIDE.astype(object).replace(0, "no"), r"subject 'ann'\), column 'j': 'no' is not a response"),
    "duplicate items": (WIDE.set_axis(["i", "i", "k"], axis=1), "two columns are called 'i'"),
    "duplicate subjects": (WIDE.set_axis(["ann", "ann"]), "subject id 'ann' occurs more than once"),
    "levels": (WIDE.set_axis(pd.MultiIndex.from_tuples([(1, 1), (1, 2)])), "several levels"),
    "no id of a subject": (WIDE.set_axis(["ann", None]), "row 2 has no id among the subject ids"),
    "no id of an item": (WIDE.set_axis(["i", None, "k"], axis=1), "row 2 has no id among the item ids"),
    "answered twice": (pd.concat([LONG, LONG.head(1)]), "row 6: subject 'ann' answers item 'i' a second time"),
    "long without id": (LONG.assign(item_id=["i", None, "i", "j", "k"]), "row 2 has no id among the item_id"),
    "long with text": (LONG.assign(response="right"), "'right' is not a response"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_response_is_one_error(kind):
    data, message = REFUSED[kind]
    with pytest.raises(InputError, match=message) as error:
        as_responses(data)
    assert "\n" not in str(error.value)


def test_halves_of_jax_are_numbers():
    """NumPy takes them for bytes."""
    right = np.abs(VALUES)
    np.testing.assert_array_equal(as_responses(jnp.asarray(right, jnp.bfloat16)).values, right)


def test_an_array_must_answer_all_items_that_are_named_for_it():
    assert as_responses(VALUES, item_ids=["i", "j", "k"]).item_ids.tolist() == ["i", "j", "k"]
    with pytest.raises(InputError, match="responses to 3 items, expected all 4"):
        as_responses(VALUES, item_ids=["i", "j", "k", "l"])


def test_a_matrix_owns_what_no_one_can_change():
    values = VALUES.astype(np.int8)
    matrix = ResponseMatrix(values, ["a", "b"], ["i", "j", "k"])
    values[0, 0] = 0
    assert matrix.values[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        matrix.values[0, 0] = 0
    assert ResponseMatrix(matrix.values, matrix.subject_ids, matrix.item_ids).values is matrix.values
    view = matrix.values[:, :2]
    assert ResponseMatrix(view, ["a", "b"], ["i", "j"]).values is view
    hidden = values.view()
    hidden.setflags(write=False)
    assert ResponseMatrix(hidden, ["a", "b"], ["i", "j", "k"]).values is not hidden  # its owner can change it


MASKED = np.ma.array(np.abs(VALUES), mask=VALUES < 0)


def test_what_is_masked_is_missing_everywhere(tmp_path):
    subjects, items = ["ann", "bob"], ["i", "j", "k"]
    assert ResponseMatrix(MASKED, subjects, items) == NAMED
    irtjax.write_shards([(MASKED[:, :2], items[:2]), (MASKED[:, 2:], items[2:])], subjects, tmp_path / "shards")
    assert irtjax.read_responses(tmp_path / "shards") == NAMED
    rows, columns = np.indices(VALUES.shape)
    triples = rows.ravel(), columns.ravel(), MASKED.ravel()
    assert irtjax.SparseResponses.from_triples(*triples, subjects, items).read() == NAMED
    grades = of_grades(3 * MASKED, subjects, items)
    assert grades.scales[0].labels == (0, 3)
    for found in (grades, of_counts(MASKED, 2, subjects, items), of_shares(MASKED, subjects, items)):
        np.testing.assert_array_equal(found.observed, VALUES >= 0)
        again = dataclasses.replace(found, values=np.ma.array(np.abs(found.values), mask=VALUES < 0))
        np.testing.assert_array_equal(again.observed, VALUES >= 0)
    np.testing.assert_array_equal(grade(MASKED, np.ones(3, int)), VALUES)
    np.testing.assert_array_equal(scored(MASKED[0]), VALUES[0])


@pytest.mark.parametrize("kind", ["complex", "text"])
def test_what_is_no_number_is_refused_everywhere(kind, tmp_path):
    values = VALUES + 0j if kind == "complex" else np.abs(VALUES).astype(str)
    subjects, items = ["ann", "bob"], ["i", "j", "k"]
    message = "responses of type (complex128|<U)"
    for make in (
        lambda: ResponseMatrix(values, subjects, items),
        lambda: irtjax.write_shards([(values, items)], subjects, tmp_path / "shards"),
        lambda: ScaledResponses(values, np.array(subjects), np.array(items), (Scale(),) * 3),
    ):
        with pytest.raises(InputError, match=message):
            make()
    if kind == "complex":
        for make in (of_grades, of_shares, lambda values, *ids: of_counts(values, 2, *ids)):
            with pytest.raises(InputError, match=message):
                make(values, subjects, items)
    assert not (tmp_path / "shards").exists()


def test_equality_hash_and_repr():
    same = ResponseMatrix(VALUES.tolist(), ["ann", "bob"], ["i", "j", "k"])
    assert same == NAMED
    assert len({same, NAMED, NUMBERED}) == 2
    assert NAMED != NUMBERED
    assert NAMED != "a matrix"
    assert repr(NAMED) == "ResponseMatrix: 2 subjects × 3 items, 60.0% right, 16.7% missing"


class Tensor:
    """What tensors of PyTorch have of NumPy's protocols."""

    def __init__(self, values, error=None):
        self.values, self.error = np.asarray(values), error
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        return Tensor(self.values[at], self.error)

    def __array__(self, dtype=None, copy=None):
        if self.error is not None:
            raise self.error
        return self.values.astype(dtype or self.values.dtype)


class Exchanged:
    """A table of which no more is known than that it has the protocol that pandas no longer reads."""

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        raise TypeError("a copy is not allowed")


@pytest.mark.parametrize("table", [Streamed, Polars])
def test_tables_of_other_packages(table):
    assert as_responses(table(WIDE.reset_index(names="subject_id"))) == NAMED
    assert as_responses(table(LONG)) == NAMED


def test_arrays_of_other_packages():
    assert as_responses(Tensor(VALUES)) == NUMBERED


GRADIENT = RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
DEVICE = TypeError("can't convert cuda:0 device type tensor to numpy.\nUse Tensor.cpu() first.")
CONVERT = (
    r"^responses of type Tensor become no array of NumPy \(Can't .+\): convert them, a tensor by \.detach\(\)\.cpu"
)


@pytest.mark.parametrize("error", [GRADIENT, DEVICE])
@pytest.mark.parametrize("take", [as_responses, as_floats, irtjax.fit])
def test_what_becomes_no_array_says_what_to_do(take, error):
    with pytest.raises(InputError, match=f"(?i){CONVERT}"):
        take(Tensor(VALUES, error))


def test_what_becomes_no_table_says_what_to_do():
    missing = ModuleNotFoundError("pyarrow is required for converting to pandas")
    with pytest.raises(InputError, match=r"^responses of type Polars become no table of pandas \(pyarrow is required"):
        as_responses(Polars(LONG, missing))
    with pytest.raises(InputError, match="Exchanged"):
        as_responses(Exchanged())
