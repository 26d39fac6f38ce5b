"""Files are whole or absent."""

import pytest

from irtjax import InputError
from irtjax.storage.files import whole_directory, whole_file, writable_directory


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with whole_file(path) as partial:
            partial.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"


def test_a_failed_stage_leaves_no_folder(tmp_path):
    def fail():
        with whole_directory(tmp_path / "stage") as partial:
            (partial / "a").write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert not list(tmp_path.iterdir())


def test_leftovers_of_a_killed_attempt_are_removed(tmp_path):
    (tmp_path / ".partial-stage-killed").mkdir()
    (tmp_path / ".partial-stage-killed" / "a").write_text("half")
    with whole_directory(tmp_path / "stage") as partial:
        (partial / "a").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["stage"]
    assert (tmp_path / "stage" / "a").read_text() == "whole"


def test_a_leftover_file_does_not_stop_a_folder_of_its_name(tmp_path):
    (tmp_path / ".partial-stage-killed.png").write_text("half")
    with whole_directory(tmp_path / "stage"):
        pass
    (tmp_path / ".partial-picture-killed.png").write_text("half")
    with whole_file(tmp_path / "picture.png") as partial:
        partial.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"stage", "picture.png"}


def test_unwritable_places_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write there"):
        writable_directory(tmp_path / "file" / "run")
    with pytest.raises(InputError, match="cannot write there"), whole_file(tmp_path / "absent" / "a.csv"):
        pass
