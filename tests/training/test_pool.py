"""The pool: every network trained once and to its own end, the same whoever its neighbours are, wherever it stops.

Programs are compiled for each number of devices and slots, so that all tests share four: one slot on one device, two
slots on each of two devices, which shrink to one each, and one slot on each of four.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import data_of, mesh_of

from irtjax import tasks
from irtjax.crowd.members import CrowdDesign, Members, sample_members
from irtjax.crowd.train import crowd_job
from irtjax.networks import Network
from irtjax.storage.archives import read_arrays
from irtjax.training import pool, pool_size, resume
from irtjax.training.data import accuracy, to_device
from irtjax.training.loop import WINDOW
from irtjax.training.pool import EMPTY
from irtjax.training.recipe import Recipe, epoch_lengths, longest_first, optimizer_of

TASK = tasks.load("digits")
RECIPE = Recipe(width=32, learning_rate=5e-3, patience=2, max_epochs=12, steps_per_epoch=20)
NAMES = 100 + np.arange(11)  # of the networks in a larger whole
MEMBERS = sample_members(11, 1197, 0, RECIPE, CrowdDesign(min_subset=20, max_corruption=0.6, min_width=8))


def job_of(num_devices=2, members=MEMBERS):
    mesh = mesh_of(num_devices)
    return crowd_job(TASK, members, RECIPE, to_device(TASK, mesh), mesh)


class Tables:
    """The epochs and accuracies of all networks, as they are handed over."""

    NAMES = ("epochs", "best_epochs", "best_accuracies")

    def __init__(self, count):
        self.epochs, self.best_epochs, self.best_accuracies = (np.full(count, np.nan) for _ in self.NAMES)

    def put(self, finished):
        for name in self.NAMES:
            getattr(self, name)[finished.numbers] = getattr(finished, name)


def run(job, slots, state=None, on_epoch=None, before=None):
    handed, tables = {}, Tables(job.num_networks) if before is None else before

    def on_finished(finished):
        tables.put(finished)
        for at, number in enumerate(finished.numbers):
            assert number not in handed
            handed[number] = jax.tree.map(lambda leaf, at=at: leaf[at], finished.parameters)

    end = pool.train_all(job, pool.begin(job, slots) if state is None else state, on_finished, on_epoch)
    assert not end.waiting
    assert (end.numbers == EMPTY).all()
    return tables, handed


@pytest.fixture(scope="module")
def alone():
    """Every member as it becomes on one device with nobody beside it."""
    return run(job_of(num_devices=1), slots=1)


@pytest.fixture(scope="module")
def pooled():
    """The same in a pool of two slots on each of two devices, with its size and slots in use after each epoch."""
    sizes, live = [], []

    def on_epoch(state):
        sizes.append(state.numbers.size)
        live.append(int((state.numbers != EMPTY).sum()))
        training = state.numbers[state.numbers != EMPTY]
        assert np.isfinite(pool.accuracies(job, state)[training]).all()

    job = job_of()
    return *run(job, 2, on_epoch=on_epoch), sizes, live


def assert_same(one, other, **tolerance):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


# the last: as many slots as three networks can fill, one of them empty from the beginning
@pytest.mark.parametrize(
    ("num_devices", "slots", "count"),
    [(2, 2, 11), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 1, 11), (4, 1, 11))), (4, 100, 3)],
)
def test_a_network_in_a_pool_is_what_it_is_alone(alone, pooled, num_devices, slots, count):
    members = MEMBERS.choose(slice(count))
    end, handed = pooled[:2] if slots == 2 else run(job_of(num_devices, members), slots)
    expected, networks_alone = alone
    assert sorted(handed) == list(range(count))
    assert np.ptp(end.epochs) > 0, "all stopped at once: no slot was ever given to another"
    np.testing.assert_array_equal(end.epochs, expected.epochs[:count])
    np.testing.assert_array_equal(end.best_epochs, expected.best_epochs[:count])
    for number in range(count):
        assert_same(handed[number], networks_alone[number], atol=2e-4)


PASSES = dataclasses.replace(RECIPE, batch_size=4, max_epochs=4, steps_per_epoch=None)


def passes(num_devices):
    mesh = mesh_of(num_devices)
    order = longest_first(epoch_lengths(PASSES, MEMBERS.subset_size))
    return crowd_job(TASK, MEMBERS.choose(order), PASSES, to_device(TASK, mesh), mesh)


@pytest.fixture(scope="module")
def passes_alone():
    return run(passes(1), slots=1)


@pytest.mark.slow
def test_epochs_may_be_of_different_length(passes_alone):
    job = passes(2)
    assert job.steps.max() > 2 * WINDOW  # some take several rounds of the others
    assert job.steps.min() < 10
    positions = []
    end, handed = run(job, 2, on_epoch=lambda state: positions.append(state.positions[state.numbers != EMPTY]))
    expected, networks_alone = passes_alone
    assert any(len(set(at)) > 1 for at in positions), "all were in step: nothing was tested"
    assert all((at % WINDOW == 0).all() for at in positions)
    for name in ("epochs", "best_epochs"):
        np.testing.assert_array_equal(getattr(end, name), getattr(expected, name))
    for number in range(11):
        assert_same(handed[number], networks_alone[number], atol=2e-4)


@pytest.mark.slow
def test_a_pass_reads_each_example_once():
    # networks that learn nothing but which examples they have read, in a pool of two
    job = passes(1)
    counting = Network(
        init=lambda key, width, weights: jnp.zeros(1197),
        logits=lambda parameters, _, inputs, key: jnp.stack([parameters[inputs[:, 0]], 0.0 * inputs[:, 0]], axis=1),
    )
    trainer = dataclasses.replace(
        job.trainer, network=counting, optimizer=optimizer_of("sgd"), patience=99, max_epochs=2
    )
    rows = job.rows._replace(learning_rate=np.full(11, 1e-6, np.float32))
    shared = job.shared._replace(num_classes=np.int32(2))
    data = data_of(np.arange(1197)[:, None], np.zeros(1197))
    _, handed = run(dataclasses.replace(job, trainer=trainer, rows=rows, data=data, shared=shared), 2)
    for number, size in enumerate(job.rows.subset_size):
        # at a tiny rate each reading of an example moves its parameter by half of the rate over 4
        counts = (np.abs(handed[number]) / (0.5e-6 / 4)).round()
        assert counts.sum() == 4 * (size // 4)  # of the best epoch, the first
        assert counts.max() == 1


def test_a_pool_is_no_larger_than_its_networks_can_fill():
    assert pool.begin(job_of(2), 100).numbers.size == 12
    assert pool.begin(job_of(2), 3).numbers.size == 6


def test_what_is_handed_over_is_the_best_epoch(alone):
    end, handed = alone
    data = to_device(TASK)
    assert (end.best_epochs < end.epochs).any()
    right = jax.jit(lambda parameters: accuracy(job_of(1).trainer.network, parameters, None, data.validation))
    for number, parameters in handed.items():
        assert right(parameters) == pytest.approx(end.best_accuracies[number], abs=1e-6)


def test_slots_are_filled_and_the_pool_shrinks(pooled):
    end, _, sizes, live = pooled
    assert sizes[0] == 4
    assert live[0] == 4
    assert sizes[-1] == 2, "the last ones had the pool of four to themselves"
    slot_epochs = sum(sizes)
    assert end.epochs.sum() <= slot_epochs < 11 * end.epochs.max()  # less than if all had waited for the slowest


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_pool_goes_on_from_any_epoch_to_the_same_last_bit(tmp_path, pooled, at):
    job = job_of()
    end, handed = pooled[:2]
    count, before, tables = 0, {}, Tables(11)

    def remember(finished):
        tables.put(finished)
        for k, number in enumerate(finished.numbers):
            before[number] = jax.tree.map(lambda leaf, k=k: leaf[k], finished.parameters)

    def stop(state):
        nonlocal count
        np.savez(tmp_path / "pool.npz", allow_pickle=False, **resume.stored(state, NAMES))
        if count == at:
            raise KeyboardInterrupt
        count += 1

    with pytest.raises(KeyboardInterrupt):
        pool.train_all(job, pool.begin(job, 2), remember, stop)
    state = resume.restored(job, NAMES, read_arrays(tmp_path / "pool.npz"), {})
    assert state.slots == 2
    again, rest = run(job, 2, state, before=tables)
    assert set(before).isdisjoint(rest)
    for number, parameters in (before | rest).items():
        assert_same(parameters, handed[number], rtol=0)
    for name in ("epochs", "best_epochs", "best_accuracies"):
        np.testing.assert_array_equal(getattr(again, name), getattr(end, name))


def test_masked_units_stay_as_they_are(pooled):
    assert MEMBERS.width.min() < 32
    for number in range(11):
        mask = np.asarray(pooled[1][number]["mask"].get_value())
        np.testing.assert_array_equal(mask, np.arange(32) < MEMBERS.width[number])


def test_epochs_are_compiled_once():
    job = job_of()
    compilations, after = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compilations.append(name) if "backend_compile" in name else None
    )
    rows = jax.tree.map(lambda column: np.tile(column, 2), job.rows)  # 22 networks: several are replaced

    def on_epoch(state):
        if state.waiting:
            after.append(len(compilations))

    run(dataclasses.replace(job, rows=rows, steps=np.tile(job.steps, 2)), 2, on_epoch=on_epoch)
    assert len(after) > 5
    assert len(set(after[4:])) == 1


@pytest.mark.slow
def test_the_size_is_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path))
    monkeypatch.setattr(pool_size, "KNOWN", {})
    mesh = mesh_of(2)
    of = TASK, RECIPE, to_device(TASK, mesh), 4, mesh
    assert pool_size.choose_slots(*of) == 2  # a short training of two networks on each device
    monkeypatch.setattr(pool_size, "SHORT", 0)
    best, rates = pool_size.measure(pool_size.on_all_examples(*of))
    assert set(rates) == {1, 2}  # 2 on each of two devices hold all 4 networks
    assert rates[best] >= 0.95 * max(rates.values())
    slots = pool_size.choose_slots(*of)
    assert slots in (1, 2)
    monkeypatch.setattr(pool_size, "measure", lambda job: (slots + 1, {}))
    assert pool_size.choose_slots(*of) == slots
    assert pool_size.choose_slots(TASK, dataclasses.replace(RECIPE, width=16), *of[2:]) == slots + 1
    assert pool_size.choose_slots(*of, 7) == 7


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of processors only")
def test_an_encoder_is_alone_on_its_core_without_being_measured(monkeypatch):
    monkeypatch.delattr(pool_size, "measure")
    assert pool_size.choose_slots(TASK, dataclasses.replace(RECIPE, network="bert"), None, 4, mesh_of(2)) == 1


@pytest.mark.parametrize(
    ("speeds", "best"),
    [
        ({1: 10.0, 4: 20.0, 6: 30.0}, 6),
        ({1: 10.0, 4: 20.0, 6: 20.5}, 4),  # not by enough to be worth the memory
        ({1: 10.0, 4: 9.0}, 1),  # slower: the next is not tried
    ],
)
def test_sizes_are_tried_until_one_is_slower(monkeypatch, speeds, best):
    monkeypatch.setattr(pool_size, "_rate", lambda job, slots: (speeds[slots], 0.0))
    assert pool_size.measure(job_of()) == (best, speeds)


def test_training_learns():
    one = Members(*(np.array([value]) for value in (0, 5, 1197, 0.0, 5e-3, 32, "mlp")))
    job = dataclasses.replace(job_of(1, one), steps=np.full(1, 37))
    _, handed = run(job, 1)
    assert accuracy(job.trainer.network, handed[0], None, jax.tree.map(jnp.asarray, job.data.test)) > 0.94
