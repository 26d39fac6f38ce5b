"""What processes compare before they begin."""

import itertools

import pytest

from experiments.common.same_command import ENDS, among, between, prints_of


def said(shown, **files):
    return {"shown": shown, "files": {name.replace("__", "/").replace("_", "."): one for name, one in files.items()}}


def test_the_first_difference_is_named():
    mine = {"model": said("2pl"), "responses": said("r.npz", r_npz="a")}
    assert between(mine, dict(mine), 0, 1) is None
    assert between(mine, mine | {"model": said("rasch")}, 0, 1) == (
        "--model=2pl of process 0, --model=rasch of process 1: start all processes with the same flags"
    )
    assert between(mine, mine | {"responses": said("r.npz", r_npz="b")}, 1, 0) == (
        "--responses: r.npz of process 1 is not the file of process 0: copy one to all"
    )
    absent = mine | {"responses": said("r.npz")}
    for one, other, process in ((mine, absent, 0), (absent, mine, 1)):
        assert between(one, other, process, 1 - process) == (
            "--responses: r.npz, which process 0 has, is missing on process 1: copy it to all"
        )
    assert "--responses=left out of process 1" in between(mine, {"model": said("2pl")}, 0, 1)


def test_of_a_folder_processes_may_have_other_parts_but_no_other_files():
    mine = {"responses": said("r", r__index="a", r__first="b")}
    assert between(mine, {"responses": said("r", r__index="a", r__second="c")}, 0, 1) is None
    assert between(mine, {"responses": said("r", r__index="z", r__second="c")}, 0, 1) == (
        "--responses: r/index of process 0 is not the file of process 1: copy one to all"
    )


def test_a_process_without_the_file_in_which_others_differ_says_so_too():
    one, other = {"responses": said("r", r__first="a")}, {"responses": said("r", r__first="b")}
    without = {"responses": said("r", r__second="c")}
    for order in itertools.permutations([(0, one), (1, without), (2, other)]):
        assert "r/first of process" in among(dict(order))
    assert among({0: one, 1: without, 2: one}) is None


@pytest.mark.parametrize("at", [0, ENDS - 1, 2 * ENDS + 4])
def test_a_byte_at_either_end_of_a_file_makes_another(tmp_path, at):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        content = bytearray(2 * ENDS + 5)
        content[at] = folder == other
        (folder / "file").write_bytes(content)
    assert prints_of(one / "file") != prints_of(other / "file")
    (found,), (another,) = (prints_of(folder).values() for folder in (one, other))
    assert (found != another) == (at != ENDS - 1)  # in a folder less of each file is read
    assert list(prints_of(one)) == ["one/file"]
    (other / "file").write_bytes((one / "file").read_bytes())
    assert prints_of(one / "file") == prints_of(other / "file")
