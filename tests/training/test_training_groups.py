"""Networks trained to the end: what they leave, in files that a kill cannot harm, however they are dealt anew."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from conftest import mesh_of

from irtjax import InputError, tasks
from irtjax.crowd.members import CrowdDesign, sample_members
from irtjax.crowd.train import crowd_job
from irtjax.training import deals, groups, pool
from irtjax.training.checkpoints import adopt, read
from irtjax.training.data import to_device
from irtjax.training.deals import dealt
from irtjax.training.groups import Group, train_groups
from irtjax.training.pool import EMPTY
from irtjax.training.recipe import Recipe
from irtjax.training.results import Results, read_finished

TASK = tasks.load("digits")
# as in the tests of the pool: programs are compiled once for both
RECIPE = Recipe(width=32, learning_rate=5e-3, patience=2, max_epochs=12, steps_per_epoch=20)
MEMBERS = sample_members(11, 1197, 0, RECIPE, CrowdDesign(min_subset=20, max_corruption=0.6, min_width=8))
COLUMNS = {"classes": jax.ShapeDtypeStruct((300,), np.int32)}


def train(num_devices, slots, folder, on_progress=None, seen=None):
    mesh = mesh_of(num_devices)
    data = to_device(TASK, mesh)

    def job(networks):
        if seen is not None:
            seen.append(networks.tolist())
        return crowd_job(TASK, MEMBERS.choose(networks), RECIPE, data, mesh)

    group = Group("mlp", np.arange(11), job, lambda _: slots)

    def answer(_, finished):
        return {"classes": finished.classify(data.test)[:, :300]}

    return train_groups([group], COLUMNS, answer, folder=folder, seconds=0.0, on_progress=on_progress)


class Interruption(Exception):
    """In place of a kill."""


def stop_after(epochs, told):
    def on_progress(progress):
        told.append(progress)
        if len(told) == epochs:
            raise Interruption

    return on_progress


@pytest.fixture(autouse=True)
def checkpoint_after_each_epoch(monkeypatch):
    monkeypatch.setattr(groups, "PAUSE", 0)


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
    told, later, seen = [], [], []
    with pytest.raises(Interruption):
        train(2, 2, tmp_path, stop_after(epochs, told))
    before = read_finished(tmp_path / "deal_0000" / "part_0000", COLUMNS, 11)[0]
    with pytest.raises(Interruption):
        train(1, 1, tmp_path, stop_after(1, later), seen)
    assert later[0].finished >= len(before)
    assert sum(later[0][:3]) == 11
    begun = told[-2].accuracies if epochs > 1 else np.full(11, np.nan)
    assert_almost_the_same(train(2, 2, tmp_path), whole)
    records = [json.loads((tmp_path / f"deal_000{at}" / "deal.json").read_text()) for at in range(3)]
    assert [record["devices"] for record in records] == [[2], [1], [2]]
    assert sorted(records[1]["parts"][0]) == sorted(set(range(11)) - set(before.tolist()))
    if epochs > 1:
        # one that had begun is first, and so goes on
        assert np.isfinite(begun[seen[-1][0]])


def test_one_that_goes_on_does_not_begin_again(tmp_path, whole):
    told, later = [], []
    with pytest.raises(Interruption):
        train(2, 2, tmp_path, stop_after(4, told))
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
    # dealt to a process of its own, a network that had stopped has nothing left to be trained with
    told = []
    with pytest.raises(Interruption):
        train(1, 16, tmp_path, stop_after(1 + int(whole["epochs"].min()), told))
    saved = read(tmp_path / "deal_0000" / "part_0000" / "mlp" / "pool.npz")
    stopped = [int(saved.order[at]) for at, _ in saved.pool.done]
    assert stopped, "none had stopped and waited"
    assert not read_finished(tmp_path / "deal_0000" / "part_0000", COLUMNS, 11)[0].size
    alone = adopt([saved], np.array(stopped[:1]), 16, 16)
    found = []
    mesh = mesh_of(1)
    data = to_device(TASK, mesh)
    job = crowd_job(TASK, MEMBERS.choose(np.array(stopped[:1])), RECIPE, data, mesh)
    pool.train_all(job, pool.resume(job, alone.pool), found.append)
    (one,) = found
    assert one.epochs.tolist() == [whole["epochs"][stopped[0]]]


def test_what_was_removed_is_trained_again(tmp_path, whole):
    with pytest.raises(Interruption):
        train(2, 2, tmp_path, stop_after(8, []))
    lost = read_finished(tmp_path / "deal_0000" / "part_0000", COLUMNS, 11)[0]
    assert lost.size
    with pytest.raises(Interruption):
        train(1, 1, tmp_path, stop_after(1, []))
    shutil.rmtree(tmp_path / "deal_0000" / "part_0000")
    assert_almost_the_same(train(1, 1, tmp_path), whole)
    record = json.loads((tmp_path / "deal_0002" / "deal.json").read_text())
    assert set(lost.tolist()) <= set(record["parts"][0])


def test_results_that_are_gone_beside_their_pool_are_refused(tmp_path):
    with pytest.raises(Interruption):
        train(2, 2, tmp_path, stop_after(8, []))
    part = tmp_path / "deal_0000" / "part_0000"
    (part / "finished.json").unlink()
    with pytest.raises(InputError, match=rf"pool.npz: results of networks that have left it are gone: remove {part}"):
        train(2, 2, tmp_path)


def test_networks_that_never_finish_are_no_result(tmp_path, monkeypatch):
    monkeypatch.setattr(deals, "VISIBLE_SECONDS", 0.1)
    monkeypatch.setattr(groups, "train_all", lambda *_: None)
    with pytest.raises(InputError, match=f"{tmp_path}: 11 of 11 networks are gone: give the same command again"):
        train(2, 2, tmp_path)


def test_what_has_finished_is_told_where_nothing_is_left(tmp_path, whole):
    told = []
    train(2, 2, tmp_path)
    train(2, 2, tmp_path, told.append)
    assert [state[:3] for state in told] == [(11, 0, 0)]


def test_networks_are_dealt_in_turns():
    assert dealt([4, 5, 0, 1, 2, 3], 2) == [[0, 2, 4], [1, 3, 5]]
    assert dealt([7], 3) == [[7], [], []]
    assert EMPTY not in np.concatenate([np.array(part, int) for part in dealt(range(9), 4)])


@pytest.fixture
def results(tmp_path):
    """Results of three networks, one of them finished."""
    found = Results(COLUMNS, 3, tmp_path / "part")
    rng = np.random.default_rng(0)
    row = {"classes": rng.integers(0, 9, (1, 300)), "epochs": [3], "best_epochs": [2], "best_accuracies": [0.5]}
    found.put(np.array([1]), row)
    found.flush()
    return found


def test_files_that_a_kill_left_in_part_are_made_again(tmp_path):
    part = tmp_path / "part"
    Results(COLUMNS, 3, part)
    for path in part.iterdir():
        if path.name != "epochs.npy":
            path.unlink()
    (part / ".partial-x").touch()
    again = Results(COLUMNS, 3, part)
    assert not again.finished.any()
    assert set(again.columns) == {"classes", "epochs", "best_epochs", "best_accuracies"}


def test_rows_that_have_finished_stay_as_they_are(results):
    row = {"classes": np.zeros((2, 300)), "epochs": [7, 7], "best_epochs": [7, 7], "best_accuracies": [0.7, 0.7]}
    results.put(np.array([1, 2]), row)
    assert results.columns["epochs"].tolist() == [0, 3, 7]
    assert results.columns["classes"][1].any()


def test_results_outlive_a_kill(tmp_path, results):
    again = Results(COLUMNS, 3, tmp_path / "part")
    np.testing.assert_array_equal(again.finished, [False, True, False])
    for name, column in results.columns.items():
        np.testing.assert_array_equal(again.columns[name], column)
    rows, columns = read_finished(tmp_path / "part", COLUMNS, 3)
    assert rows.tolist() == [1]
    np.testing.assert_array_equal(columns["classes"], results.columns["classes"])
    assert read_finished(tmp_path / "another", COLUMNS, 3)[0].size == 0


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-100])])
def test_results_that_are_gone_or_cut_are_refused(tmp_path, results, damage):
    damage(tmp_path / "part" / "classes.npy")
    for use in (Results, read_finished):
        arguments = (COLUMNS, 3, tmp_path / "part") if use is Results else (tmp_path / "part", COLUMNS, 3)
        with pytest.raises(InputError, match=rf"classes.npy: .* gone or damaged: remove {tmp_path}"):
            use(*arguments)


def test_no_flipped_bit_in_results_goes_unnoticed(tmp_path, results):
    results.columns["classes"][1, 5] ^= 1
    results.columns["classes"].flush()
    with pytest.raises(InputError, match="part: the results in row 1 are damaged: remove this folder"):
        Results(COLUMNS, 3, tmp_path / "part")
    (tmp_path / "part" / "finished.json").write_text("{")
    with pytest.raises(InputError, match=r"finished.json: checksums .* damaged: remove"):
        Results(COLUMNS, 3, tmp_path / "part")


def test_another_record_of_the_deal_is_refused(tmp_path):
    with pytest.raises(Interruption):
        train(2, 2, tmp_path, stop_after(1, []))
    record = tmp_path / "deal_0000" / "deal.json"
    record.write_text(record.read_text().replace("[[0, 1", "[[1, 1"))
    with pytest.raises(InputError, match=rf"deal.json: a damaged record of networks in training: remove {tmp_path}"):
        train(2, 2, tmp_path)
    record.write_text("{}")
    with pytest.raises(InputError, match=rf"deal.json: a damaged record of networks in training: remove {tmp_path}"):
        train(2, 2, tmp_path)
