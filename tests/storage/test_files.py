"""Files are whole or absent."""

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from irtjax import InputError
from irtjax.storage.files import whole_directory, whole_file, whole_results, writable_directory, write_csv
from irtjax.storage.tables import read_table


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


def test_a_link_to_nothing_is_named(tmp_path):
    (link := tmp_path / "run").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"run: is a link to .*gone, which is not there"), whole_results(link):
        pass
    assert list(tmp_path.iterdir()) == [link]


def test_results_appear_together_or_not_at_all(tmp_path):
    folder = tmp_path / "new" / "run"

    def write(*names, fail=False, former=()):
        with whole_results(folder, former) as partial:
            for name in names:
                (partial / name).parent.mkdir(exist_ok=True)
                (partial / name).write_text(name)
            assert not fail, "stop"

    def files():
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    with pytest.raises(AssertionError, match="stop"):
        write("a.csv", fail=True)
    assert not list(tmp_path.iterdir())  # nor the folders that were made for it
    write("a.csv", "group/b.csv")
    assert files() == ["a.csv", "group/b.csv"]
    (folder / "of_the_user.txt").write_text("")
    with pytest.raises(AssertionError, match="stop"):
        write("a.csv", "c.csv", fail=True, former=["group/b.csv"])
    assert files() == ["a.csv", "group/b.csv", "of_the_user.txt"]
    write("c.csv", former=["a.csv", "group/b.csv"])
    assert files() == ["c.csv", "of_the_user.txt"]
    write("group/d.csv", "group/e.csv")
    write("group/e.csv", former=["group"])  # a folder that is not the same in every run
    assert files() == ["c.csv", "group/e.csv", "of_the_user.txt"]


def test_what_another_process_is_writing_is_no_leftover(tmp_path):
    with whole_file(tmp_path / "a.csv") as first:
        first.write_text("first")
        with whole_file(tmp_path / "a.csv") as second:
            second.write_text("second")
        assert (tmp_path / "a.csv").read_text() == "second"
    assert (tmp_path / "a.csv").read_text() == "first"
    with whole_results(tmp_path) as first:
        with whole_results(tmp_path) as second:
            (second / "b.csv").write_text("second")
        assert first.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv"]


def test_many_writers_of_one_file(tmp_path):
    def write(number):
        for _ in range(10):
            with whole_file(tmp_path / "a.csv") as partial:
                partial.write_text(f"{number}" * 1000)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(write, range(5)))
    assert len(set((tmp_path / "a.csv").read_text())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def write_results(folder, *names):
    with whole_results(folder) as partial:
        for name in names:
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_text(name)


@pytest.mark.parametrize("linked", [False, True])
def test_a_file_where_a_folder_belongs_is_named(tmp_path, linked):
    place = tmp_path / "group"
    if linked:
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.write_text("of the user")
    with pytest.raises(InputError, match=r"group: is a file where a folder of the results belongs"):
        write_results(tmp_path, "group/a.csv", "b.csv")
    assert list(tmp_path.iterdir()) == [place]


def test_links_of_another_program_lead_nowhere(tmp_path):
    """Neither where results go, nor where leftovers of killed runs may be."""
    (victim := tmp_path / "victim.txt").write_text("victim")
    (run := tmp_path / "run").mkdir()
    for name in ("a.csv", ".partial-results-link"):
        (run / name).symlink_to(victim)
    os.mkfifo(run / ".partial-results-pipe")  # whom to open waits for a writer
    write_results(run, "a.csv")
    assert [victim.read_text(), (run / "a.csv").read_text()] == ["victim", "a.csv"]


def test_what_changes_while_results_are_moved_is_one_error(tmp_path, monkeypatch):
    replace = Path.replace

    def late(file, place):
        place.mkdir()  # by another program
        return replace(file, place)

    monkeypatch.setattr(Path, "replace", late)
    with pytest.raises(InputError, match=r"a\.csv: another program writes to this folder"):
        write_results(tmp_path / "run", "a.csv")


@pytest.mark.parametrize("writer", [whole_file, whole_directory, whole_results])
def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path, writer):
    with pytest.raises(InputError, match=r"new: cannot be written \(No space left\)"), writer(tmp_path / "new"):
        raise OSError(errno.ENOSPC, "No space left")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_that_is_removed_meanwhile_is_one_error(tmp_path, linked):
    """Also where the folder of the results is a link, whose target goes."""
    (target := tmp_path / "target").mkdir()
    folder = tmp_path / "link" if linked else target
    if linked:
        folder.symlink_to(target)

    def write(when):
        target.mkdir(exist_ok=True)
        with whole_results(folder) as partial:
            if when == "before":
                shutil.rmtree(target)
            (partial / "a.csv").write_text("a")
            write_csv(pd.DataFrame({"a": [1]}), partial / "b.csv")
            if when == "after":
                shutil.rmtree(target)

    for when in ("before", "after"):
        with pytest.raises(InputError, match=rf"{folder.name}: cannot be written \(its folder was removed meanwhile\)"):
            write(when)
    write("never")
    assert sorted(path.name for path in folder.iterdir()) == ["a.csv", "b.csv"]


def test_results_within_results(tmp_path):
    """As a fit is saved into the folder of a command."""
    with whole_results(tmp_path / "run") as outer, whole_results(outer) as inner:
        (inner / "a.csv").write_text("a")
    with whole_results(tmp_path / "run") as outer, whole_results(outer / "fit") as inner:
        (inner / "b.csv").write_text("b")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.csv"))
    assert names == ["run/a.csv", "run/fit/b.csv"]


def test_results_of_two_commands_do_not_mix(tmp_path):
    names = [f"{at}.csv" for at in range(50)]

    def write(number):
        for _ in range(5):
            with whole_results(tmp_path / "run") as partial:
                for name in names:
                    (partial / name).write_text(str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len({(tmp_path / "run" / name).read_text() for name in names}) == 1
    assert len(list((tmp_path / "run").iterdir())) == len(names)


def test_ids_of_any_characters_are_read_back(tmp_path):
    ids = ["plain", "a,b", 'quo"te', "two\nlines", "car\rriage", "=1+1", " space ", "NA", "ü€😀"]
    for some in (ids, ids[:4]):
        write_csv(pd.DataFrame({"item_id": some, "difficulty": 1 / 3}), tmp_path / "items.csv")
        found = read_table(tmp_path / "items.csv", "item_id")
        assert found.item_id.tolist() == some
        assert found.difficulty.tolist() == [0.333333] * len(some)
