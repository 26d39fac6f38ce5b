"""Fits of single answers in files: the same to the last bit, small, and refused where damaged."""

import numpy as np
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError, SparseResponses
from irtjax.fits.response_arrays import from_arrays, to_arrays, to_record
from irtjax.responses.scaled import Scale
from irtjax.responses.sparse import of_matrix


@pytest.fixture(scope="module")
def responses():
    return of_matrix(simulate(200, 20, seed=3, missing=0.5)[0])


def test_a_saved_fit_is_the_same(responses, tmp_path):
    fit = irtjax.fit(responses, "1pl")
    fit.save(tmp_path)
    found = irtjax.load_fit(tmp_path)
    assert found == fit
    assert isinstance(found.responses, SparseResponses)
    with np.load(tmp_path / "fit.npz") as archive:
        assert archive["rows.right"].nbytes == -(-responses.num_answers // 8)
        assert archive["rows.items"].dtype == archive["rows.lengths"].dtype == np.uint8
    path = tmp_path / "fit.npz"
    content = bytearray(path.read_bytes())
    content[content.index(b"rows.items") + 200] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"fit\.npz: "):
        irtjax.load_fit(tmp_path)


def scaled(responses):
    """Counts of up to 300 trials beside grades, the last subject without an answer."""
    scales = tuple(Scale() if i % 2 else Scale((1, 2, 5)) for i in range(20))
    answers = np.where(responses.items % 2, 250, 2).astype(np.int32)
    trials = np.where(responses.items % 2, 300, 1).astype(np.int32)
    starts = np.append(responses.starts, responses.starts[-1])
    ids = [*responses.subject_ids, "nobody"], responses.item_ids
    return SparseResponses(starts, responses.items, answers, *ids, scales, trials)


def test_arrays_hold_all_that_there_is(responses):
    for each in (responses, scaled(responses)):
        found = from_arrays(to_arrays(each), to_record(each))
        assert found == each
        assert found.answers.dtype == each.answers.dtype
        assert (found.starts.dtype, found.items.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows.lengths", lambda of: of + np.uint8(1)),
        ("rows.lengths", lambda of: of[:-1]),
        ("rows.lengths", lambda of: of.astype(float)),
        ("rows.items", lambda of: np.where(np.arange(len(of)) == 5, 20, of).astype(np.uint8)),
        ("rows.items", lambda of: of[::-1].copy()),
        ("rows.items", lambda of: np.append(of, of[-1:])),
        ("rows.items", lambda of: of[:, None]),
        ("rows.right", lambda of: of[:-1]),
        ("rows.right", lambda of: np.append(of, of[:1])),
    ],
)
def test_damaged_rows_are_refused(responses, name, change):
    arrays = to_arrays(responses)
    with pytest.raises(InputError, match="damaged"):
        from_arrays(arrays | {name: change(arrays[name])}, to_record(responses))
