"""What processes compare before they begin."""

import pytest

from experiments.common.same_command import ENDS, between, print_of


def test_the_first_difference_is_named():
    mine = {"model": ["2pl"], "responses": ["r.npz", "hash"]}
    assert between(mine, dict(mine), 0, 1) is None
    assert between(mine, mine | {"model": ["rasch"]}, 0, 1) == (
        "--model=2pl of process 0, --model=rasch of process 1: start all processes with the same flags"
    )
    assert between(mine, mine | {"responses": ["r.npz", "other"]}, 1, 0) == (
        "--responses=r.npz of process 1 is not the file of process 0: copy one to all"
    )
    for one, other, process in ((mine, mine | {"responses": ["r.npz"]}, 0), (mine | {"responses": ["r.npz"]}, mine, 1)):
        assert between(one, other, process, 1 - process) == (
            "--responses=r.npz: a file that process 0 has is missing on process 1: copy it to all"
        )
    assert "--responses=left out of process 1" in between(mine, {"model": ["2pl"]}, 0, 1)


@pytest.mark.parametrize("at", [0, ENDS - 1, 2 * ENDS + 4])
def test_a_byte_at_either_end_of_a_file_makes_another(tmp_path, at):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        content = bytearray(2 * ENDS + 5)
        content[at] = folder == other
        (folder / "file").write_bytes(content)
    assert print_of(one / "file") != print_of(other / "file")
    assert (print_of(one) != print_of(other)) == (at != ENDS - 1)  # in a folder less of each file is read
    (other / "file").write_bytes((one / "file").read_bytes())
    assert print_of(one / "file") == print_of(other / "file")
    assert print_of(one) == print_of(other)
    (other / "file").rename(other / "another")
    assert print_of(one) != print_of(other)
