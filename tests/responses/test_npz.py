"""NPZ files: three arrays, told apart from all that could be in a ZIP archive."""

import io
import re
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers import IDS, damaged, matrices, plain, read_or_refused, refusal

from irtjax import ResponseMatrix, read_responses, write_responses

VALUES = np.array([[1, 0, -1], [0, -1, 1]], np.int8)
GOOD = {"responses": VALUES, "subject_ids": np.array(["s", "t"]), "item_ids": np.array(["a", "b", "c"])}
EXPECTED = (["s", "t"], ["a", "b", "c"], VALUES.tolist())


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("npz") / "r.npz"


def test_ids_are_kept(path):
    written = ResponseMatrix(np.arange(len(IDS) ** 2).reshape(len(IDS), -1) % 3 - 1, IDS, IDS)
    write_responses(written, path)
    assert plain(read_responses(path)) == plain(written)
    assert read_responses(path).values.dtype == np.int8


def test_empty_ids_are_not_written(tmp_path):
    responses = ResponseMatrix([[1]], [""], ["a"])
    assert "subject 1 has no id" in refusal(lambda path: write_responses(responses, path), tmp_path / "r.npz")
    assert not list(tmp_path.iterdir())


ARRAYS = {
    "int64": {"responses": VALUES.astype(int)},
    "big-endian": {"responses": VALUES.astype(">i4")},
    "float": {"responses": VALUES.astype(np.float16)},
    "by columns": {"responses": np.asfortranarray(VALUES)},
    "big-endian ids": {"item_ids": np.array(["a", "b", "c"], ">U3")},
    "bytes as ids": {"item_ids": np.array([b"a", b"b", b"c"])},
    "another array": {"notes": np.arange(3)},
}


@pytest.mark.parametrize("case", ARRAYS)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_are_read(path, save, case):
    save(path, **GOOD | ARRAYS[case])
    assert plain(read_responses(path)) == EXPECTED


def test_numbers_as_ids(path):
    np.savez(path, **GOOD | {"item_ids": np.array([3, -7, 2**62])})
    assert read_responses(path).item_ids.tolist() == ["3", "-7", str(2**62)]


def test_truth_values_are_read(path):
    np.savez(path, **GOOD | {"responses": VALUES > 0})
    assert read_responses(path).values.tolist() == [[1, 0, 0], [0, 0, 1]]


BAD = {
    "2": ({"responses": VALUES + 1}, "subject 's', item 'a': response 2, expected 0, 1 or -1"),
    "-2": ({"responses": VALUES - 1}, "subject 's', item 'c': response -2"),
    "255": ({"responses": VALUES.astype(np.uint8)}, "subject 's', item 'c': response 255"),
    "0.5": ({"responses": VALUES / 2}, "subject 's', item 'a': response 0.5"),
    "NaN": ({"responses": np.where(VALUES < 0, np.nan, VALUES)}, "subject 's', item 'c': response nan"),
    "texts": ({"responses": VALUES.astype(str)}, "responses of type <U4, expected integers"),
    "complex": ({"responses": VALUES.astype(complex)}, "responses of type complex128"),
    "dates": ({"responses": VALUES.astype("M8[s]")}, "responses of type datetime64[s]"),
    "records": ({"responses": np.zeros((2, 3), [("a", "i1")])}, "responses are records, expected numbers"),
    "turned": ({"responses": VALUES.T}, "responses have shape (3, 2), expected (2, 3) from the ids"),
    "flat": ({"responses": VALUES.ravel()}, "responses have shape (6,), expected (2, 3)"),
    "a number": ({"responses": np.int8(1)}, "responses have shape ()"),
    "no subjects": ({"responses": VALUES[:0], "subject_ids": GOOD["subject_ids"][:0]}, "no subjects"),
    "no items": ({"responses": VALUES[:, :0], "item_ids": GOOD["item_ids"][:0]}, "no items"),
    "an id short": ({"item_ids": np.array(["a", "b"])}, "responses have shape (2, 3), expected (2, 2)"),
    "ids in rows": ({"item_ids": np.array([["a", "b", "c"]])}, "item_ids are of type <U1 and shape (1, 3)"),
    "one id": ({"item_ids": np.array("abc")}, "item_ids are of type <U3 and shape ()"),
    "an item twice": ({"item_ids": np.array(["a", "b", "a"])}, "item id 'a' occurs more than once"),
    "an empty item": ({"item_ids": np.array(["a", "", "c"])}, "item 2 has no id"),
    "fractions as ids": ({"item_ids": np.array([1.0, 2.0, 3.0])}, "item_ids are of type float64"),
    "truth values as ids": ({"subject_ids": np.array([True, False])}, "subject_ids are of type bool"),
    "dates as ids": ({"subject_ids": np.array(["2020", "2021"], "M8[Y]")}, "subject_ids are of type datetime64"),
    "records as ids": ({"subject_ids": np.zeros(2, [("a", "i1")])}, "subject_ids are of type [('a', 'i1')]"),
    "bytes that are no text": (
        {"item_ids": np.array([b"\xff", b"b", b"c"])},
        "item_ids hold something that is no text",
    ),
    "a lone surrogate": ({"item_ids": np.array(["\ud800", "b", "c"])}, "lone surrogate"),
    "no character": (
        {"item_ids": np.array([2**30, 1, 2], "<u4").view("<U1")},
        "item_ids hold something that is no text",
    ),
    "a pickle": ({"item_ids": np.array(["a", {"b"}, 3], object)}, "allow_pickle"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_named(path, case):
    arrays, message = BAD[case]
    np.savez(path, **GOOD | arrays)
    assert message in refusal(read_responses, path)


@pytest.mark.parametrize("name", GOOD)
def test_an_array_that_is_not_there_is_named(path, name):
    np.savez(path, **{other: array for other, array in GOOD.items() if other != name})
    assert f"has no array {name}; expected responses, subject_ids, item_ids" in refusal(read_responses, path)


def parts(**changes):
    """The members of an NPZ file as bytes."""
    members = {}
    for name, array in GOOD.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        members[f"{name}.npy"] = buffer.getvalue()
    return members | {f"{name}.npy": content for name, content in changes.items()}


def archive_of(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def header(shape="(2, 3)", descr="'|i1'", more=""):
    """An array of six bytes that claims a shape and a type."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + VALUES.tobytes()


HEADERS = [
    header(shape)
    for shape in [
        "(10000000, 10000000)", "(100000000000000000000, 2)", "(2, 3", "(-1, 2)", "(-1,)", "(2, 2.5)", "'x'", "(2,,)",
        "None", "(2, 2)", "(1, 3)", "(2, 4)", "(0, 3)", "(2, True)", "(" * 3000, "()", "6", "[2, 3]",
        "(2, __import__('os'))", "2**9",
    ]
]  # fmt: skip
HEADERS += [
    header(descr=kind) for kind in ["'|O'", "'|O8'", "'|i3'", "'x'", "''", "None", "[]", "[('a', '|i1')]", "'|V1'"]
]
HEADERS += [header(more=more) for more in ["'x': 1, ", "'shape': (2, 2), ", "{"]]
HEADERS += [header()[:at] for at in (0, 5, 6, 9, 10, 50, 128, 130)]
HEADERS += [
    header() + b"\1",
    b"\x93NUMPY\x09\x00" + header()[8:],
    header()[:8] + b"\xff\xff" + header()[10:],
    b"\x80\x04K.",
]


@pytest.mark.parametrize("content", HEADERS, ids=range(len(HEADERS)))
def test_headers_that_do_not_fit_are_refused(path, content):
    path.write_bytes(archive_of(parts(responses=content).items()))
    assert refusal(read_responses, path).startswith(("not an NPZ file of plain arrays (", "responses "))


def test_headers_of_python_2_are_read_without_a_warning(path):
    path.write_bytes(archive_of(parts(responses=header("(2L, 3L)")).items()))
    assert plain(read_responses(path)) == EXPECTED


FILES = {
    "nothing": b"",
    "text": b"id,a\nx,1\n",
    "an array": parts()["responses.npy"],
    "an archive of nothing": archive_of([]),
    "an archive cut": archive_of(parts().items())[:-30],
    "an archive without a start": archive_of(parts().items())[30:],
    "arrays without an ending": archive_of((name[:-4], content) for name, content in parts().items()),
    "an array twice": archive_of([*parts().items(), ("responses.npx", header())]).replace(b"npx", b"npy"),
}


@pytest.mark.parametrize("case", FILES)
def test_other_archives_are_refused(path, case):
    path.write_bytes(FILES[case])
    assert refusal(read_responses, path).startswith(("not an NPZ file of plain arrays (", "has "))


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_of_any_compression_are_read_and_told_when_damaged(path, compression):
    content = archive_of(parts().items(), compression)
    path.write_bytes(content)
    assert plain(read_responses(path)) == EXPECTED
    path.write_bytes(content[:60] + b"0123456789" + content[70:])
    assert "not an NPZ file" in refusal(read_responses, path)


@pytest.mark.parametrize(("local", "central", "value"), [(8, 10, 97), (6, 8, 1)])  # compression, encryption
def test_archives_packed_in_another_way_are_refused(path, local, central, value):
    content = bytearray(archive_of(parts().items()))
    for magic, place in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        for found in re.finditer(re.escape(magic), bytes(content)):
            content[found.start() + place] = value
    path.write_bytes(content)
    assert "not an NPZ file" in refusal(read_responses, path)


@given(matrices())
def test_what_is_written_is_read(path, parts):
    written = ResponseMatrix(*parts)
    write_responses(written, path)
    assert plain(read_responses(path)) == plain(written)


WHOLE = [archive_of(parts().items(), how) for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)]


@given(st.sampled_from(WHOLE).flatmap(damaged))
def test_damaged_files_are_read_as_they_were_or_refused(path, content):
    path.write_bytes(content)
    assert plain(read_or_refused(read_responses, path)) in (EXPECTED, None)
