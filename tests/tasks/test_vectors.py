"""Word vectors: co-occurrences and PPMI by hand, GloVe files good and bad."""

import numpy as np
import pytest
from hypothesis import given
from readers import damaged, read_or_refused, refusal

from irtjax import InputError
from irtjax.tasks import vectors
from irtjax.tasks.glove import embed, read_glove


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "cache"))


def test_cooccurrences_by_hand(monkeypatch):
    monkeypatch.setattr(vectors, "WINDOW", 2)
    rows = np.array([[2, 3, 2, 4, 0], [3, 0, 0, 0, 0]], np.uint8)
    counts = vectors._cooccurrences([rows, rows[:, :2]], 5).toarray()
    expected = np.zeros((5, 5))
    expected[2, 2] = 2  # at distance 2, counted from either end
    expected[2, 3] = expected[3, 2] = 3  # 2 3, 3 2, and 2 3 again in the second array
    expected[2, 4] = expected[4, 2] = 1
    expected[3, 4] = expected[4, 3] = 1
    np.testing.assert_array_equal(counts, expected)


def test_ppmi_by_hand():
    import scipy.sparse

    counts = np.array([[0.0, 3.0], [3.0, 1.0]])
    smoothed = np.array([3.0, 4.0]) ** 0.75
    q = smoothed / smoothed.sum()
    by_hand = np.maximum(0, [[0, np.log(3 / (q[1] * 3))], [np.log(3 / (q[0] * 4)), np.log(1 / (q[1] * 4))]])
    np.testing.assert_allclose(vectors._ppmi(scipy.sparse.csr_array(counts)).toarray(), by_hand)
    assert by_hand[1, 1] == 0  # rarer together than by chance


def test_vectors_have_unit_mean_square_zeros_for_padding_and_come_again():
    rows = np.random.default_rng(0).integers(2, 40, (200, 9)).astype(np.uint8)
    made = vectors.make_vectors("ppmi", [rows], 40, dim=8, seed=1)
    assert made.shape == (40, 8)
    assert made.dtype == np.float32
    assert not made[0].any()
    np.testing.assert_allclose(np.mean(made[1:] ** 2), 1, rtol=1e-5)
    np.testing.assert_array_equal(made, vectors.ppmi_vectors([rows], 40, 8, 1))
    np.testing.assert_array_equal(made, vectors.make_vectors("ppmi", [rows], 40, dim=8, seed=1))  # from the cache
    random = vectors.make_vectors("random", [rows], 40, dim=8, seed=1)
    assert not random[0].any()
    np.testing.assert_array_equal(random, vectors.random_vectors(40, 8, 1))


def test_words_in_like_company_are_alike():
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, 10, 2000), rng.integers(10, 18, 2000)
    first[::20], second[10::20] = 18, 18
    rows = np.where(rng.integers(0, 2, (2000, 1)), rng.permutation(first).reshape(-1, 1), second.reshape(-1, 1))
    rows = np.concatenate([rows, np.where(rows < 10, 19, 20)], axis=1)  # one word of company for either half
    made = vectors.ppmi_vectors([rows], 21, 2, 0)
    unit = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
    assert (unit[2:10] @ unit[2:10].T).min() > 0.9
    assert (unit[2:10] @ unit[10:18].T).max() < 0.5


def test_a_dimension_beyond_the_vocabulary_is_zeros_and_no_text_is_no_vectors():
    rows = np.array([[2, 3, 4]], np.uint8)
    made = vectors.ppmi_vectors([rows], 5, 10, 0)
    assert made.shape == (5, 10)
    assert not made[:, 4:].any()
    assert not vectors.ppmi_vectors([rows[:, :1]], 5, 3, 0).any()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("glove")


def write(tmp_path, *lines):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_glove_rows_of_known_words_are_kept(tmp_path):
    path = write(tmp_path, ", 1 2 3", "the 4 5e-1 -6", ". . . 7 8 9", "é 1 1 1", "the 0 0 0", "other 1 2 3")
    found = read_glove(path, {"the", ",", ".", "é", "absent"})
    assert {word: list(vector) for word, vector in found.items()} == {
        ",": [1, 2, 3],
        "the": [4, 0.5, -6],
        "é": [1, 1, 1],
    }  # not ".", since ". . ." is another word
    embedded = embed(["<padding>", "<unknown>", "the", "absent"], found, seed=0)
    assert embedded.shape == (4, 3)
    assert embedded.dtype == np.float32
    np.testing.assert_array_equal(embedded[[0, 2]], [[0, 0, 0], [4, 0.5, -6]])
    assert embedded[[1, 3]].all()
    np.testing.assert_array_equal(embedded, embed(["<padding>", "<unknown>", "the", "absent"], found, seed=0))


def test_missing_words_get_vectors_of_the_same_scale():
    known = {"a": np.full(500, 3, np.float32), "b": np.full(500, -3, np.float32)}
    embedded = embed(["<padding>", "<unknown>", "a", "b"], known, 0)
    np.testing.assert_allclose(np.sqrt(np.mean(embedded[1] ** 2)), 3, rtol=0.1)


def test_a_header_of_word2vec_is_skipped(tmp_path):
    assert list(read_glove(write(tmp_path, "2 3", "a 1 2 3", "b 1 2 3"), {"a"})["a"]) == [1, 2, 3]


def test_a_mark_at_the_start_is_no_part_of_the_first_word(tmp_path):
    assert list(read_glove(write(tmp_path, "\ufeffa 1 2 3", "b 1 2 3"), {"a"})["a"]) == [1, 2, 3]


def test_the_first_row_of_a_word_counts_and_any_line_ends_do(tmp_path):
    path = write(tmp_path, "a 1 2", "b 3 4\r", "a 5 6")
    assert {word: list(vector) for word, vector in read_glove(path, {"a", "b"}).items()} == {"a": [1, 2], "b": [3, 4]}


def test_rows_without_end_are_not_read_to_it(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"a 1 2\n" + bytes(2**21))
    assert refusal(lambda path: read_glove(path, {"a"}), path).startswith("row 2 has more than 1,048,576 bytes")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a 1 2 3", "b 1 inf 3"], "row 2 has a number that is not finite"),
        (["a 1 2 3", "b 1 1e39 3"], "row 2 has a number that is not finite"),
        (["a 1 2 3", "b 1 ２ 3"], "row 2 has something other than numbers"),
        (["a 1 2 3", "b 1 2_0 3"], "row 2 has something other than numbers"),
        (["a\t1\t2"], "row 1 has 0 numbers after the word, expected some"),
        (["a,1,2"], "row 1 has 0 numbers after the word, expected some"),
        (["a 1 2 3", "b 1 2 3", "c 1"], "row 3 has 1 numbers after the word, expected 3"),
        (["a 1 2 3", "b 1 2"], "row 2 has 2 numbers after the word, expected 3"),
        (["a 1 2", "b 1 2 3"], "row 2 has 3 numbers after the word, expected 2"),
        (["a 1 2 3", "b  1 2 3"], "row 2 has 4 numbers after the word, expected 3"),
        (["a  1 2", "b 1 2 3"], "row 1 has 2 numbers after the word, expected 3"),
        (["a 1 2 3", ""], "row 2 has 0 numbers after the word, expected 3"),
        (["a 1 2 3", "b 1 x 3"], "row 2 has something other than numbers"),
        (["a 1 2 3", "b 1 nan 3"], "row 2 has a number that is not finite"),
        (["c 1 2 3"], "has none of the task's words"),
        ([], "has none of the task's words"),
        (["a"], "row 1 has 0 numbers after the word, expected some"),
    ],
)
def test_bad_glove_files_are_named(tmp_path, lines, message):
    path = write(tmp_path, *lines)
    with pytest.raises(InputError, match=f"{path}: {message}"):
        read_glove(path, {"a", "b"})


WHOLE = "the 1 2.5 -3e-1\né 4 5 6\n. . . 7 8 9\nthe 0 0 0\n".encode()


def expected(content):
    """The vectors of the two words wanted, row by row; None if a row is no word and numbers, or none is there."""
    found, dim = {}, 0
    for line in content.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n"):
        fields = line.rstrip().split(b" ")
        dim = dim or len(fields) - 1
        if not dim or len(fields) <= dim:
            return None
        word = fields[0].decode(errors="replace")
        if len(fields) > dim + 1:
            if not fields[1] or numbers([fields[1]]) is not None:
                return None
        elif word in ("the", "é") and word not in found:
            vector = numbers(line.split(b" ", 1)[1].split())
            if vector is None or len(vector) != dim or not np.isfinite(vector).all():
                return None
            found[word] = vector
    return found or None


def numbers(fields):
    try:
        return [float(np.float32(float(field))) for field in fields]
    except ValueError:
        return None


@given(damaged(WHOLE))
def test_damaged_glove_files_are_read_as_they_are_or_refused(folder, content):
    path = folder / "vectors.txt"
    path.write_bytes(content)
    first = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
    found = read_or_refused(lambda path: read_glove(path, {"the", "é"}), path)
    if not first.replace(b" ", b"").strip().isdigit():  # no header of word2vec
        assert (found and {word: vector.tolist() for word, vector in found.items()}) == expected(content)


def test_a_glove_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"none.txt: cannot be read \(No such file"):
        read_glove(tmp_path / "none.txt", {"a"})
