"""Response matrices: grading, counting, and what is refused."""

import numpy as np
import pytest
from conftest import matrix

from irtjax import InputError, ResponseMatrix, grade
from irtjax.responses.joining import concatenate_items, concatenate_subjects
from irtjax.responses.matrix import completed, proportion_correct, require_estimable

VALUES = np.array([[1, 0, -1], [0, -1, 1]], np.int8)


def test_bad_matrices_are_refused():
    with pytest.raises(InputError, match="response 2, expected 0, 1 or -1"):
        matrix(np.array([[0, 2]]))
    with pytest.raises(InputError, match=r"shape \(2, 3\), expected \(2, 2\)"):
        ResponseMatrix(VALUES, ["s", "t"], ["a", "b"])


def test_subjects_and_items_without_responses_are_named():
    with pytest.raises(InputError, match="subject 's1' has no responses"):
        require_estimable(matrix(np.array([[0, 1], [-1, -1]])))
    with pytest.raises(InputError, match=r"item 'i0' has no responses \(1 of 2"):
        require_estimable(matrix(np.array([[-1, -1, 1], [-1, -1, 0]])))


def test_missing_answers_are_graded_as_wrong_or_their_subjects_dropped_or_refused():
    values = np.array([[1, 0, 1], [0, -1, 1], [1, 1, 0]], np.int8)
    responses = ResponseMatrix(values, ["s", "t", "u"], ["a", "b", "c"])
    np.testing.assert_array_equal(completed(responses, "wrong").values, [[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    dropped = completed(responses, "drop")
    np.testing.assert_array_equal(dropped.values, values[[0, 2]])
    assert dropped.subject_ids.tolist() == ["s", "u"]
    assert completed(dropped) is dropped
    with pytest.raises(
        InputError, match=r"subject 't' did not answer item 'b' \(1 of 3 subjects have missing answers\)"
    ):
        completed(responses)
    with pytest.raises(InputError, match="no subject answered every item"):
        completed(matrix(VALUES), "drop")


def test_some_of_the_items():
    chosen = matrix(VALUES).choose_items(np.array([2, 0]))
    np.testing.assert_array_equal(chosen.values, VALUES[:, [2, 0]])
    assert chosen.item_ids.tolist() == matrix(VALUES).item_ids[[2, 0]].tolist()


def test_grading_by_hand():
    np.testing.assert_array_equal(grade(np.array([[3, 1, 2], [3, 3, 3]]), np.array([3, 1, 0])), [[1, 1, 0], [1, 0, 0]])


def test_proportion_correct_leaves_missing_out():
    np.testing.assert_array_equal(proportion_correct(VALUES, axis=0), [0.5, 0, 1])
    np.testing.assert_array_equal(proportion_correct(np.array([[-1, -1]]), axis=1), [np.nan])


def test_concatenation_needs_the_same_subjects():
    one = matrix(VALUES)
    two = ResponseMatrix(VALUES, one.subject_ids, ["x", "y", "z"])
    joined = concatenate_items([one, two])
    np.testing.assert_array_equal(joined.values, np.hstack([VALUES, VALUES]))
    assert list(joined.item_ids) == ["i0", "i1", "i2", "x", "y", "z"]
    with pytest.raises(InputError, match="different subjects"):
        concatenate_items([one, ResponseMatrix(VALUES, ["a", "b"], ["x", "y", "z"])])


def test_subjects_of_several_sources_are_joined_by_item():
    one = ResponseMatrix([[1, 0], [0, -1]], ["a", "b"], ["x", "y"])
    two = ResponseMatrix([[1, 0]], ["c"], ["z", "y"])
    joined = concatenate_subjects({"one": one, "two": two})
    assert list(joined.item_ids) == ["x", "y", "z"]
    assert list(joined.subject_ids) == ["a", "b", "c"]
    np.testing.assert_array_equal(joined.values, [[1, 0, -1], [0, -1, -1], [-1, 0, 1]])
    same = concatenate_subjects({"one": one, "two": one})
    assert list(same.subject_ids) == ["one/a", "one/b", "two/a", "two/b"]
    with pytest.raises(InputError, match="two has no item in common with the others"):
        concatenate_subjects({"one": one, "two": ResponseMatrix([[1]], ["c"], ["z"])})
    with pytest.raises(InputError, match="no response matrices"):
        concatenate_subjects({})
