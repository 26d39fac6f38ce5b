"""Responses that stay in files: folders of shards, and what is read of other formats."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError
from irtjax.responses.stored import StoredResponses

RESPONSES, _, _ = simulate(23, 41, missing=0.1)
CUTS = (0, 1, 17, 40, 41)  # shards of unequal size


def shards(folder, responses=RESPONSES, cuts=CUTS):
    ranges = itertools.starmap(slice, itertools.pairwise(cuts))
    parts = ((responses.values[:, at], responses.item_ids[at]) for at in ranges)
    irtjax.write_shards(parts, responses.subject_ids, folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same responses in every format that parts can be read from."""
    folder = tmp_path_factory.mktemp("stored")
    shards(folder / "r.shards")
    irtjax.write_responses(RESPONSES, folder / "r.npz")
    wide = pd.DataFrame(RESPONSES.values, RESPONSES.subject_ids, RESPONSES.item_ids).astype("Int8")
    wide = wide.mask(wide < 0)
    wide.rename_axis("subject").to_parquet(folder / "by_subject.parquet")
    wide.T.rename_axis("item_id").to_parquet(folder / "by_item.parquet", row_group_size=7)
    return folder


FORMATS = ("r.shards", "r.npz", "by_subject.parquet", "by_item.parquet")


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_stored_is_what_was_written(files, name):
    stored = irtjax.open_responses(files / name)
    assert isinstance(stored, StoredResponses)
    assert stored.read() == RESPONSES == irtjax.read_responses(files / name)
    for axis in (0, 1):
        np.testing.assert_array_equal(stored.counts(axis), RESPONSES.counts(axis))
    assert stored == irtjax.open_responses(files / "r.npz")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "at",
    [
        (slice(None), slice(None)),
        (slice(3, 9), slice(0, 2)),  # the end of a shard
        (slice(20, None), slice(16, 41)),  # several shards
        (slice(None), slice(5, 5)),
        (slice(None), slice(39, 100)),
    ],
)
def test_parts_are_those_of_the_whole(files, name, at):
    np.testing.assert_array_equal(irtjax.open_responses(files / name).values[at], RESPONSES.values[at])


def test_what_was_asked_for_last_is_held_though_more_is_in_memory(files):
    values = irtjax.open_responses(files / "r.npz").values
    assert values.held is None
    asked = (slice(0, 23), slice(3, 41)), (slice(0, 23), slice(5, 50))  # the parts of processes do not overlap
    for part in asked:
        values.keep(*part)
        assert values.held == part
        np.testing.assert_array_equal(values[part], RESPONSES.values[part])


def test_the_whole_matrix_must_be_asked_for(files):
    stored = irtjax.open_responses(files / "r.shards")
    with pytest.raises(InputError, match=r"r\.shards: this needs the responses in memory: give it `responses\.read"):
        stored.values[::2, :]


def value(path, change):
    array = np.load(path)
    np.save(path, change(array))


DAMAGE = {
    "is missing, though shards.json lists it": lambda folder: (folder / "responses_00002.npy").unlink(),
    "not an array of NumPy": lambda folder: (folder / "responses_00001.npy").write_bytes(b"\x93NUMPY"),
    "expected shape (23, 16) as shards.json says": lambda folder: value(
        folder / "responses_00001.npy", lambda array: array[:, :5]
    ),
    "int64 of shape (23, 16)": lambda folder: value(folder / "responses_00001.npy", lambda array: array.astype(int)),
    "subject_ids.npy: <U3 of shape (22,), expected shape (23,)": lambda folder: value(
        folder / "subject_ids.npy", lambda array: array[1:]
    ),
    "r.shards: item id 'i0' occurs more than once": lambda folder: value(
        folder / "item_ids_00003.npy", lambda array: np.array(["i0"])
    ),
    "shards.json: not JSON (": lambda folder: (folder / "shards.json").write_text("{"),
    "shards.json: of another version (format 2, expected 1)": lambda folder: (folder / "shards.json").write_text(
        json.dumps({"format": 2, "num_subjects": 23, "num_items": [41]})
    ),
    "r.shards: subject 's4', item 'i9': response 7, expected 0, 1 or -1 (missing)": lambda folder: value(
        folder / "responses_00001.npy", lambda array: np.where(np.arange(23 * 16).reshape(23, 16) == 72, 7, array)
    ),
}


@pytest.mark.parametrize("line", DAMAGE)
def test_damaged_shards_are_named(tmp_path, line):
    folder = shards(tmp_path / "r.shards")
    DAMAGE[line](folder)
    with pytest.raises(InputError) as caught:
        irtjax.open_responses(folder).counts(axis=0)
    assert line in str(caught.value)
    assert str(caught.value).count(str(folder)) == 1
    assert "\n" not in str(caught.value)


def test_parts_that_do_not_fit_leave_nothing(tmp_path):
    good = np.zeros((2, 3), np.int8), ["a", "b", "c"]
    folder = tmp_path / "r.shards"

    def stopped():
        yield good
        raise KeyboardInterrupt

    for parts, error, line in (
        ([good, (np.zeros((3, 1), np.int8), ["d"])], InputError, "part 1: "),
        ([good, (np.full((2, 1), 3), ["d"])], InputError, "part 1: subject 's', item 'd': response 3, expected"),
        ([good, (np.zeros((2, 1), np.int8), ["a"])], InputError, "'a'"),
        ([], InputError, "no parts, so there are no items"),
        (stopped(), KeyboardInterrupt, ""),
    ):
        with pytest.raises(error) as caught:
            irtjax.write_shards(parts, ["s", "t"], folder)
        assert line in str(caught.value)
        assert list(tmp_path.iterdir()) == []
    folder.mkdir()
    with pytest.raises(InputError, match="exists already; remove it, or name another folder"):
        irtjax.write_shards([good], ["s", "t"], folder)
