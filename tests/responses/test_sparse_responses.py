"""Answers in compressed rows, against the matrix that they are the answers of."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from simulation import simulate

import irtjax
from irtjax.errors import InputError
from irtjax.responses.joining import concatenate_subjects
from irtjax.responses.linked_blocks import linked_blocks
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.responses.sparse import SparseResponses, is_sparse, of_matrix

SUBJECTS, ITEMS = [f"s{j}" for j in range(7)], [f"i{i}" for i in range(5)]


def some(seed: int, missing: float = 0.5) -> ResponseMatrix:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((7, 5)) < missing, -1, rng.integers(0, 2, (7, 5)))
    return ResponseMatrix(values, SUBJECTS, ITEMS)


def shuffled(matrix: ResponseMatrix, seed: int) -> SparseResponses:
    j, i = np.nonzero(matrix.values >= 0)
    order = np.random.default_rng(seed).permutation(len(j))
    return SparseResponses.from_triples(j[order], i[order], matrix.values[j, i][order], SUBJECTS, ITEMS)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 0.9]))
def test_equals_the_matrix_whatever_the_order_of_answers(seed, missing):
    matrix = some(seed, missing)
    if (matrix.values < 0).all():
        return
    sparse = shuffled(matrix, seed)
    assert sparse.read() == matrix
    assert sparse == of_matrix(matrix)
    assert hash(sparse) == hash(of_matrix(matrix))
    for axis in (0, 1):
        np.testing.assert_array_equal(sparse.counts(axis), matrix.counts(axis))
    np.testing.assert_array_equal(sparse.values[1:4, 2:9], matrix.values[1:4, 2:9])
    assert sparse.transposed().read() == matrix.transposed()
    chosen = np.array([4, 0, 2])
    assert sparse.choose_items(chosen).read() == matrix.choose_items(chosen)
    assert sparse.choose_subjects(chosen).read() == matrix.choose_subjects(chosen)
    assert sparse.with_responses().read() == matrix.with_responses()
    left = sparse.choose_answers(np.arange(sparse.num_answers) % 2 == 0)
    assert left.num_answers == -(-sparse.num_answers // 2)
    assert set(map(tuple, np.argwhere(left.values[:, :] >= 0))) <= set(map(tuple, np.argwhere(matrix.values >= 0)))


@given(st.integers(0, 10_000))
def test_linked_blocks_are_those_of_the_matrix(seed):
    matrix = some(seed, 0.8)
    if (matrix.values < 0).all():
        return
    by_matrix, by_answer = linked_blocks(matrix.values), linked_blocks(of_matrix(matrix).values)
    for one, other in zip(
        *(sorted(map(lambda b: (tuple(b[0]), tuple(b[1])), x)) for x in (by_matrix, by_answer)), strict=True
    ):
        assert one == other
    assert [len(block.subjects) for block in by_answer] == [len(block.subjects) for block in by_matrix]


def test_arrays_are_its_own_and_cannot_be_written_to():
    sparse = of_matrix(some(0))
    with pytest.raises(ValueError, match="read-only"):
        sparse.answers[0] = 1
    assert repr(sparse).startswith("SparseResponses: 7 subjects × 5 items, ")


def test_a_second_answer_is_refused_or_the_last_counts():
    triples = [2, 0, 2], [1, 1, 1], [0, 1, 1]
    with pytest.raises(InputError, match=r"subject 's2' answered item 'i1' more than once \(1 such answers\)"):
        SparseResponses.from_triples(*triples, SUBJECTS, ITEMS)
    last = SparseResponses.from_triples(*triples, SUBJECTS, ITEMS, repeats="last")
    assert last.values[2:3, 1:2] == 1
    reverse = SparseResponses.from_triples(*(part[::-1] for part in triples), SUBJECTS, ITEMS, repeats="last")
    assert reverse.values[2:3, 1:2] == 0


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        (([7], [0], [1]), r"`subjects` are from 7 to 7, expected 0 to 6"),
        (([0], [-1], [1]), r"`items` are from -1 to -1"),
        (([0.5], [0], [1]), r"`subjects` are of type float64"),
        (([0, 1], [0], [1]), r"2 subjects, 1 items and 1 answers"),
        (([0], [0], [2]), r"subject 's0', item 'i0': response 2, expected 0 or 1"),
        (([0], [0], [-2]), r"answer -2, expected 0, 1 or -1"),
        (([0], [0], [np.nan]), r"there is no answer"),
        (([0], [0], ["x"]), r"answers of type <U1"),
    ],
)
def test_bad_triples_are_one_line(triples, message):
    with pytest.raises(InputError, match=message) as caught:
        SparseResponses.from_triples(*triples, SUBJECTS, ITEMS)
    assert "\n" not in str(caught.value)


def test_missing_triples_are_left_out():
    found = SparseResponses.from_triples([0, 1, 2], [0, 1, 2], [1, np.nan, -1], SUBJECTS, ITEMS)
    assert found.num_answers == 1
    with pytest.raises(InputError, match="subject 's1' has no responses"):
        require_estimable(found)


@pytest.mark.parametrize("wrong", [0, -1])
def test_from_scipy_wrong_is_a_stored_zero_or_minus_one(wrong):
    matrix = some(3)
    j, i = np.nonzero(matrix.values >= 0)
    data = np.where(matrix.values[j, i] == 1, 1, wrong)
    found = SparseResponses.from_scipy(scipy.sparse.coo_array((data, (j, i)), (7, 5)), SUBJECTS, ITEMS)
    assert found.read() == matrix


def test_from_scipy_refuses_entries_that_are_all_right():
    with pytest.raises(InputError, match="store wrong answers as 0 or -1"):
        SparseResponses.from_scipy(scipy.sparse.eye_array(5))


def test_what_is_not_sparse_or_not_there_is_refused():
    with pytest.raises(InputError, match="responses of type ndarray, expected a sparse array of SciPy"):
        SparseResponses.from_scipy(np.eye(3))
    with pytest.raises(InputError, match="items from 0 to 5, expected 0 to 4"):
        SparseResponses(np.array([0, 2, *[2] * 6]), np.array([0, 5]), np.array([1, 0]), SUBJECTS, ITEMS)
    with pytest.raises(InputError, match="starts of 7 subjects do not rise from 0 to 2"):
        SparseResponses(np.array([0, 2, 1, *[2] * 5]), np.array([0, 1]), np.array([1, 0]), SUBJECTS, ITEMS)


def test_rule_and_whole_matrix():
    assert is_sparse(10**6, 10**4, 10**4)
    assert not is_sparse(10**6, 10**3, 10**3)
    huge = SparseResponses.from_triples([0], [0], [1], [f"s{j}" for j in range(10**5)], [f"i{i}" for i in range(10**5)])
    with pytest.raises(InputError, match="does not fit into memory"):
        huge.read()
    with pytest.raises(InputError, match=r"`responses.read\(\)`"):
        huge.values[:3:2, :]
    assert irtjax.SparseResponses is SparseResponses


def test_several_sources_are_joined_by_the_answer(monkeypatch):
    one, other = (simulate(40, 12, seed=seed, missing=0.6)[0] for seed in (1, 2))
    other = irtjax.ResponseMatrix(other.values[:, ::-1], other.subject_ids, np.array([*one.item_ids[:6], *"uvwxyz"]))
    expected = concatenate_subjects({"a": one, "b": other})
    single = of_matrix(one), of_matrix(other)
    assert concatenate_subjects({"a": single[0], "b": other}) == expected  # few cells: a matrix is as good
    with monkeypatch.context() as patch:
        patch.setattr(SparseResponses, "read", lambda self: pytest.fail("made the matrix"))
        for parts in (single, (single[0], other)):
            assert concatenate_subjects(dict(zip("ab", parts, strict=True)), sparse=True) == of_matrix(expected)
    assert expected.subject_ids[0] == "a/" + str(one.subject_ids[0])
