"""Images from a file, which a crowd answers beside those of its task."""

import numpy as np
import pytest

from irtjax import InputError, tasks

GOOD = {
    "images": np.full((3, 8, 8), 16, np.uint8),
    "labels": np.array(["7", "0", "9"]),
    "item_id": np.array(["a", "b", "c"]),
}


def test_images_are_a_split_of_their_own(tmp_path):
    np.savez(tmp_path / "more.npz", **GOOD)
    task = tasks.load("digits", extra_items=tmp_path / "more.npz")
    assert task.extra.inputs.shape == (3, 8, 8, 1)
    assert task.extra.inputs.dtype == task.train.inputs.dtype
    assert task.extra.labels.tolist() == [7, 0, 9]
    assert task.extra.ids.tolist() == ["a", "b", "c"]
    np.savez(tmp_path / "parts.npz", **GOOD | {"images": np.full((3, 8, 8, 1), 3.6), "labels": np.array([1, 2, 3])})
    assert (tasks.load("digits", extra_items=tmp_path / "parts.npz").extra.inputs == 4).all()
    np.savez(tmp_path / "bytes.npz", **GOOD | {"labels": np.array([b"1"] * 3), "item_id": np.array([b"a", b"b", b"c"])})
    assert tasks.load("digits", extra_items=tmp_path / "bytes.npz").extra.ids.tolist() == ["a", "b", "c"]


def test_decimal_images_of_ones_own_are_on_the_scale_of_those_trained_on(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "more.npz"
    own = rng.random((40, 4, 4)), [0, 1] * 20
    for top, message in ((1.5, None), (200, "values outside of")):
        np.savez(path, images=top * rng.random((3, 4, 4)), labels=np.array([0, 1, 1]), item_id=np.array([1, 2, 3]))
        if message is None:
            assert tasks.from_arrays(*own, extra_items=path).extra.ids.tolist() == ["1", "2", "3"]
        else:
            with pytest.raises(InputError, match=message):
                tasks.from_arrays(*own, extra_items=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros((3, 8, 9))}, r"shape \(3, 8, 9\), expected numbers, M × 8 × 8 × 1"),
        ({"images": np.full((3, 8, 8), "x")}, "expected numbers"),
        ({"images": np.full((3, 8, 8), 17)}, "item 'a' has values outside of 0 to 16"),
        ({"images": np.full((3, 8, 8), np.nan)}, "outside of 0 to 16"),
        ({"images": np.full((3, 8, 8), 0.9)}, "values up to 0.9, those of the task go up to 16: multiply"),
        ({"images": np.zeros((3, 8, 8), bool)}, r"type bool and shape \(3, 8, 8\), expected numbers"),
        ({"images": np.float64(3.0)}, r"shape \(\), expected numbers"),
        ({"images": np.zeros((0, 8, 8)), "labels": np.array([], int), "item_id": np.array([], str)}, "no examples"),
        ({"labels": np.array([0, 1])}, r"labels of shape \(2,\), expected one for each of 3 images"),
        ({"labels": np.array([0, 1, 10])}, "item 'c' has the label '10', expected one of 0, 1"),
        ({"labels": np.array([0.0, 1.0, 2.0])}, "labels of type float64, expected texts or integers"),
        ({"item_id": np.array(["a", "b", "a"])}, "item_id 'a' is there twice"),
        ({"item_id": np.array(["a", "", "c"])}, "image 1 .* has the item_id ''"),
        ({"item_id": np.array(["a", "b\nb", "c"])}, "printable characters"),
        ({"item_id": np.array(["a", "b" * 1001, "c"])}, "1 to 1,000 printable characters"),
        ({"item_id": np.array([["a"]])}, "item_id of shape"),
        ({"labels": None}, "has no array labels"),
    ],
)
def test_bad_files_are_named(tmp_path, change, message):
    arrays = {name: array for name, array in (GOOD | change).items() if array is not None}
    np.savez(tmp_path / "more.npz", **arrays)
    with pytest.raises(InputError, match=rf"more\.npz: .*{message}"):
        tasks.load("digits", extra_items=tmp_path / "more.npz")
    (tmp_path / "more.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(InputError, match="not an NPZ file"):
        tasks.load("digits", extra_items=tmp_path / "more.npz")


def test_tables_of_features_have_no_use_for_images(tmp_path):
    np.savez(tmp_path / "more.npz", **GOOD)
    with pytest.raises(InputError, match="has no use for it"):
        tasks.from_arrays(np.eye(20), [0, 1] * 10, extra_items=str(tmp_path / "more.npz"))
