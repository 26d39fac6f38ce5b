"""Files from outside: what is opened at all, and how values are shown."""

import os

import pytest
from readers import refusal

import irtjax
from irtjax import InputError, read_items, tasks
from irtjax.crowd.members import read_members
from irtjax.storage.sources import LONGEST, expanded, one_line, reading, refuse_address, shown
from irtjax.storage.tables import read_table
from irtjax.tasks import prepared
from irtjax.tasks.glove import read_glove
from irtjax.tasks.item_ids import rename
from irtjax.tasks.sst2 import read_test_labels
from irtjax.tasks.text import Examples

NO_EXAMPLES = {split: Examples(([],), [], []) for split in ("train", "validation", "test")}
READERS = {
    "tables": read_table,
    "items": read_items,
    "members": read_members,
    "labels": lambda path: read_test_labels(path, []),
    "ids": lambda path: rename(path, NO_EXAMPLES, ("a", "b")),
    "vectors": lambda path: read_glove(path, {"a"}),
}


@pytest.mark.parametrize("kind", READERS)
def test_only_ordinary_local_files_are_opened(tmp_path, kind):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name, message in {
        "http://host/t.csv": "is an address, expected a local file: download it first",
        "s3://bucket/t.csv": "is an address",
        "gs:/bucket/t.csv": "is an address",
        tmp_path / "t.csv.gz": "is compressed; unpack it",
        tmp_path / "t.ZIP": "is compressed; unpack it",
        tmp_path / "t.txt.xz": "is compressed; unpack it",
        tmp_path: "it is a folder, expected a file",
        tmp_path / "pipe.csv": "it is a pipe or a device",
        tmp_path / "zero.csv": "it is a pipe or a device",
        tmp_path / "absent.csv": "cannot be read (No such file or directory)",
        f"{tmp_path}/a\0b.csv": "cannot be read (",
    }.items():
        assert message in refusal(READERS[kind], name)


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "vectors"])
def test_text_in_another_encoding_is_refused(tmp_path, kind):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\nx,1\nÿ,2\n".encode("latin-1"))
    assert refusal(READERS[kind], path) == "line 3 is not UTF-8: save the file as UTF-8"


WHOLE = ("tsv", "json")  # are read at once, other texts line by line
HUGE = 2**42  # bytes that take no place on the disk


@pytest.mark.parametrize("ending", ["csv", "jsonl", *WHOLE])
@pytest.mark.parametrize("read", [irtjax.read_responses, tasks.from_table, read_table])
def test_a_file_that_is_one_hole_is_one_line(tmp_path, read, ending):
    """At its beginning, and after a table."""
    path = tmp_path / f"hole.{ending}"
    for beginning in ("", "subject_id,a,label\nx,1,0\ny,0,1\n"):
        path.write_text(beginning)
        os.truncate(path, HUGE)
        with pytest.raises(InputError) as found:
            read(path)
        assert len(str(found.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["C:/r.csv", "a:b.csv", "./http/r.csv", "x:y/z.csv", "-://r"])
def test_paths_with_colons_are_no_addresses(name):
    if "://" not in name:
        refuse_address(name)
    else:
        with pytest.raises(InputError, match="is an address"):
            refuse_address(name)


def test_data_folders_are_local_too():
    with pytest.raises(InputError, match="gs://tfds-data: is an address"):
        prepared.find("mnist", "mnist", "gs://tfds-data")


def test_an_error_of_the_block_names_the_file(tmp_path):
    path = tmp_path / "f"
    path.touch()
    for error, message in (
        (InputError("row 3"), "row 3"),
        (OSError(5, "Input/output error"), "cannot be read (Input/"),
    ):
        with pytest.raises(InputError, match="f: ") as caught, reading(path):
            raise error
        assert message in str(caught.value)


@pytest.mark.parametrize(
    "value", ["a\nb", "x" * 10**6, "\u2028", 1, None, 10**90, 0.5, [1] * 10**6, {"a": "\n"}, b"\n", object()]
)
def test_values_are_shown_on_a_short_line(value):
    assert len(shown(value).splitlines()) == 1
    assert len(shown(value)) <= LONGEST
    assert len(one_line(ValueError(f"{value}\n\n{value}")).splitlines()) == 1
    assert one_line(ValueError()) == "ValueError"


def test_a_home_that_nobody_has():
    with pytest.raises(InputError, match=r"^~nobody-here/a\.csv: no home folder is known for ~nobody-here"):
        expanded("~nobody-here/a.csv")
