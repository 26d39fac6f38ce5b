"""Networks trained to the end: what they leave, in files that a kill cannot harm, and on other devices than before."""

from pathlib import Path

import jax
import numpy as np
import pytest
from conftest import mesh_of

from irtjax import InputError, tasks
from irtjax.crowd.members import CrowdDesign, sample_members
from irtjax.crowd.train import crowd_job
from irtjax.storage.archives import read_arrays
from irtjax.training import groups, resume
from irtjax.training.data import to_device
from irtjax.training.groups import Group, train_groups
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
# as in the tests of the pool: programs are compiled once for both
RECIPE = Recipe(width=32, learning_rate=5e-3, patience=2, max_epochs=12, steps_per_epoch=20)
MEMBERS = sample_members(11, 1197, 0, RECIPE, CrowdDesign(min_subset=20, max_corruption=0.6, min_width=8))
COLUMNS = {"classes": jax.ShapeDtypeStruct((300,), np.int32)}


def train(num_devices, slots, folder, on_progress=None, options=""):
    mesh = mesh_of(num_devices)
    data = to_device(TASK, mesh)

    def job(networks):
        return crowd_job(TASK, MEMBERS.choose(networks), RECIPE, data, mesh)

    group = Group("mlp", np.arange(11), job, lambda _: slots)

    def answer(_, finished):
        return {"classes": finished.classify(data.test)[:, :300]}

    progress = {"on_progress": on_progress, "options": options}
    return train_groups([group], COLUMNS, answer, folder=folder, seconds=0.0, **progress)


class Interruption(Exception):
    """In place of a kill."""


def stop_after(epochs, told):
    def on_progress(progress):
        told.append(progress)
        if len(told) == epochs:
            raise Interruption

    return on_progress


def interrupted(num_devices, slots, folder, epochs):
    """What was told of a run that ends in an epoch; it was not saved."""
    told = []
    with pytest.raises(Interruption):
        train(num_devices, slots, folder, stop_after(epochs, told))
    return told


def finished_in(folder):
    batches = [np.load(path)["networks"] for path in sorted(folder.glob("finished/*.npz"))]
    return np.concatenate([np.zeros(0, int), *batches])


@pytest.fixture(autouse=True)
def checkpoint_after_each_epoch(monkeypatch):
    monkeypatch.setattr(resume, "PAUSE_FACTOR", 0)


@pytest.fixture(scope="module")
def whole():
    return train(2, 2, None)


def assert_almost_the_same(found, expected):
    np.testing.assert_array_equal(found["epochs"], expected["epochs"])
    np.testing.assert_array_equal(found["best_epochs"], expected["best_epochs"])
    assert (found["classes"] == expected["classes"]).mean() > 0.999  # to rounding


# slots on devices, before and after: another number of devices, back and forth
@pytest.mark.parametrize("epochs", [1, 6, 10])
def test_networks_go_on_where_they_were_on_other_devices(tmp_path, whole, epochs):
    interrupted(2, 2, tmp_path, epochs)
    before = finished_in(tmp_path)
    later = interrupted(1, 1, tmp_path, 2)
    assert later[0].finished >= len(before)
    assert sum(later[0][:3]) == 11
    assert_almost_the_same(train(2, 2, tmp_path), whole)
    assert sorted(finished_in(tmp_path)) == list(range(11))
    layouts = [read_arrays(path)["devices"].tolist() for path in sorted(tmp_path.glob("live/*.npz"))]
    assert layouts == [[2], [1], [2]][epochs == 1 :]  # the first had saved nothing by its first epoch


@pytest.mark.parametrize("epochs", [3, 8])
def test_a_run_that_goes_on_ends_with_the_same_bits(tmp_path, whole, epochs):
    interrupted(2, 2, tmp_path, epochs)
    for name, column in train(2, 2, tmp_path).items():
        np.testing.assert_array_equal(column, whole[name], err_msg=name)


def test_one_that_goes_on_does_not_begin_again(tmp_path, whole):
    told, later = interrupted(2, 2, tmp_path, 4), []
    found = train(4, 1, tmp_path, later.append)
    assert_almost_the_same(found, whole)
    # each epoch trains four at most, and one was not saved
    assert len(told) + len(later) <= np.ceil(whole["epochs"].sum() / 4) + whole["epochs"].max() + 1
    begun = np.flatnonzero(np.isfinite(told[-2].accuracies))
    running = [at for at in begun if told[-1].training and whole["epochs"][at] > 3]
    assert running
    # by its first epoch here each has at least the accuracy that it had
    for at in running:
        assert later[0].accuracies[at] >= told[-2].accuracies[at] - 1e-6


@pytest.mark.slow
def test_one_that_had_stopped_is_handed_over(tmp_path, whole):
    # in a pool for other devices, a network that had stopped has nothing left to be trained with
    interrupted(1, 16, tmp_path, 1 + int(whole["epochs"].min()))
    (path,) = tmp_path.glob("live/*.npz")
    stopped = read_arrays(path)["stopped"]
    assert stopped.size, "none had stopped and waited"
    assert not finished_in(tmp_path).size
    assert_almost_the_same(train(2, 2, tmp_path), whole)


@pytest.mark.parametrize("devices", [1, 2])
def test_what_was_removed_is_trained_again(tmp_path, whole, devices):
    interrupted(2, 2, tmp_path, 8)
    lost = finished_in(tmp_path)
    assert lost.size
    for path in tmp_path.glob("finished/*.npz"):
        path.unlink()
    assert_almost_the_same(train(devices, devices, tmp_path), whole)


def test_networks_that_never_finish_are_no_result(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "VISIBLE_SECONDS", 0.1)
    monkeypatch.setattr(groups, "train_all", lambda *_: None)
    with pytest.raises(InputError, match=f"{tmp_path}: 11 of 11 networks are gone: give the same command again"):
        train(2, 2, tmp_path)


def test_what_has_finished_is_told_where_nothing_is_left(tmp_path):
    told = []
    train(2, 2, tmp_path)
    train(2, 2, tmp_path, told.append)
    assert [state[:3] for state in told] == [(11, 0, 0)]


@pytest.mark.parametrize("of", ["finished", "live"])
def test_damaged_files_are_named(tmp_path, whole, of):
    """Cut, or with any bit flipped; without the file, its networks are trained again."""
    interrupted(2, 2, tmp_path, 8)
    path = min(tmp_path.glob(f"{of}/*.npz"))
    content = path.read_bytes()
    arrays = read_arrays(path)
    refused = 0
    for at in np.linspace(0, len(content) - 1, 100, dtype=int):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        try:
            found = resume._read(path)
        except InputError:
            refused += 1
        else:
            jax.tree.map(np.testing.assert_array_equal, arrays, found)
    assert refused > 75
    for damaged in (b"", content[:-100]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=rf"{path}: damaged, .*: remove it, and its networks are trained again"):
            train(2, 2, tmp_path)
    path.unlink()
    assert_almost_the_same(train(2, 2, tmp_path), whole)


def test_another_run_is_refused(tmp_path):
    interrupted(2, 2, tmp_path, 2)
    with pytest.raises(InputError, match=f"{tmp_path} holds networks in training with other members, data or options"):
        train(2, 2, tmp_path, options="another recipe")
    (tmp_path / "signature.txt").unlink()
    with pytest.raises(InputError, match=rf"signature.txt: is missing, though results exist: remove {tmp_path}"):
        train(2, 2, tmp_path)


def test_a_folder_that_is_not_shared_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "VISIBLE_SECONDS", 0.1)
    monkeypatch.setattr(resume.processes, "index", lambda: 1)
    with pytest.raises(InputError, match="what process 0 writes there cannot be seen"):
        resume.open_folder(tmp_path, "any")


def test_what_a_kill_left_in_part_is_not_read(tmp_path, whole):
    interrupted(2, 2, tmp_path, 8)
    for folder in ("finished", "live"):
        Path(tmp_path / folder / ".partial-0000-x.npz").touch()
    for name, column in train(2, 2, tmp_path).items():
        np.testing.assert_array_equal(column, whole[name])
