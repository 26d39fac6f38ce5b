"""Archives of fits that somebody edited are refused in one line, whatever was edited."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import simulate

import irtjax
from irtjax import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit")
    irtjax.fit(simulate(60, 8, missing=0.1)[0], "2pl").save(path)
    return path


@pytest.fixture(scope="module")
def arrays(folder):
    with np.load(folder / "fit.npz") as archive:
        return dict(archive)


def refused(folder, arrays, match):
    np.savez(folder / "fit.npz", **arrays)
    with pytest.raises(InputError, match=match):
        irtjax.load_fit(folder)


EDITS = {
    "a value": lambda of: np.concatenate([of.ravel()[:-1], (of.ravel()[-1:] + 1).astype(of.dtype)]).reshape(of.shape),
    "a type": lambda of: of.astype(np.float32 if of.dtype == float else float),
    "complex": lambda of: of.astype(complex),
    "text": lambda of: of.astype(str),
    "dates": lambda of: of.astype("int64").astype("datetime64[s]"),
    "fewer": lambda of: of[:-1],
    "more": lambda of: np.concatenate([of, of]),
    "a shape": lambda of: of[None],
    "another order": lambda of: of[::-1] if (of != of[::-1]).any() else of[:0],
}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_edited_array_is_named(folder, arrays, data):
    name = data.draw(st.sampled_from(sorted(set(arrays) - {"record", "checksum"})))
    edit = data.draw(st.sampled_from(sorted(EDITS)))
    changed = arrays[name].astype(int) if arrays[name].dtype == bool and edit == "a value" else arrays[name]
    with np.errstate(invalid="ignore"):
        edited = EDITS[edit](changed)
    if edited.dtype == arrays[name].dtype and np.array_equal(edited, arrays[name], equal_nan=edited.dtype.kind == "f"):
        return  # as a NaN plus 1
    refused(folder, arrays | {name: edited}, rf"fit\.npz: {name} is not as the fit was saved")


def test_arrays_that_come_or_go_are_named(folder, arrays):
    for name in set(arrays) - {"record", "checksum"}:
        refused(folder, {other: array for other, array in arrays.items() if other != name}, rf"{name} is not as")
    refused(folder, arrays | {"more": np.ones(2)}, "more is not as the fit was saved")


@pytest.mark.parametrize(
    ("entry", "value"),
    [("model", "9pl"), ("iterations", "many"), ("log_likelihood", 5.0), ("subject_ids", ["a"]), ("checksums", {})],
)
def test_an_edited_record_is_refused(folder, arrays, entry, value):
    record = json.loads(arrays["record"].tobytes()) | {entry: value}
    edited = arrays | {"record": np.frombuffer(json.dumps(record).encode(), np.uint8)}
    refused(folder, edited, "record is not as the fit was saved")
    refused(folder, {name: array for name, array in edited.items() if name != "checksum"}, "not a fit, or damaged")


def test_what_takes_more_memory_than_bytes_is_not_read(folder, arrays):
    path = folder / "fit.npz"
    np.savez_compressed(path, **arrays, more=np.zeros(10**6))
    assert path.stat().st_size < 10**6
    with pytest.raises(InputError, match="arrays that are larger than the file"):
        irtjax.load_fit(folder)
    np.savez(path, **arrays)
    fit = irtjax.load_fit(folder)
    with zipfile.ZipFile(path) as archive:
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
    assert fit.converged
