"""The pool: every network trained once and to its own end, the same whoever its neighbours are, wherever it stops."""

import dataclasses
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import mesh_of

from irtjax import InputError, networks, tasks
from irtjax.crowd import members
from irtjax.training import pool
from irtjax.training import slots as pool_size
from irtjax.training.checkpoints import Checkpoints
from irtjax.training.data import accuracy, to_device
from irtjax.training.pool import EMPTY, Job
from irtjax.training.trainer import Trainer

TASK = tasks.load("digits")
TRAINER = Trainer(networks.build("mlp", TASK, 8), optax.adam(1.0), batch_size=32, patience=2, max_epochs=12)
MEMBERS = members.sample_members(
    11, 1197, 0, min_subset=20, max_corruption=0.6, learning_rate=2e-2, width=8, min_width=3, networks=["mlp"]
)


def job_of(num_devices=2, slots=2, **changes):
    mesh = mesh_of(num_devices)
    job = Job(
        trainer=TRAINER,
        plan=members.plan_member,
        rows=members.rows_of(MEMBERS),
        shared=members.gold_of(TASK),
        data=to_device(TASK, mesh),
        steps_per_epoch=20,
        slots=slots,
        mesh=mesh,
    )
    return dataclasses.replace(job, **changes)


def run(job, **options):
    handed = {}

    def on_finished(numbers, parameters):
        for at, number in enumerate(numbers):
            assert number not in handed
            handed[number] = jax.tree.map(lambda leaf, at=at: leaf[at], parameters)

    end = pool.train_all(job, options.pop("pool", pool.begin(job)), on_finished, **options)
    return end, handed


@pytest.fixture(scope="module")
def alone():
    """Every member as it becomes on one device with nobody beside it."""
    return run(job_of(num_devices=1, slots=1))


def assert_same(one, other, **tolerance):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize(("num_devices", "slots"), [(1, 4), (2, 2), (4, 1), (2, 100)])
def test_a_network_in_a_pool_is_what_it_is_alone(alone, num_devices, slots):
    end, handed = run(job_of(num_devices, slots))
    expected, networks_alone = alone
    assert sorted(handed) == list(range(11))
    assert np.ptp(end.epochs) > 0, "all stopped at once: no slot was ever given to another"
    np.testing.assert_array_equal(end.epochs, expected.epochs)
    np.testing.assert_array_equal(end.best_epochs, expected.best_epochs)
    for number in range(11):
        assert_same(handed[number], networks_alone[number], atol=2e-4)


def test_what_is_handed_over_is_the_best_epoch(alone):
    end, handed = alone
    data = to_device(TASK)
    assert (end.best_epochs < end.epochs).any()
    for number, parameters in handed.items():
        right = accuracy(TRAINER.network, parameters, None, data.validation)
        assert right == pytest.approx(end.best_accuracies[number], abs=1e-6)


def test_slots_are_filled_and_ranks_closed():
    job = job_of(num_devices=1, slots=8)
    sizes, live = [], []

    def on_epoch(state):
        sizes.append(state.numbers.size)
        live.append(int((state.numbers != EMPTY).sum()))
        assert pool.progress(state).training == live[-1]

    end, _ = run(job, on_epoch=on_epoch)
    assert sizes[0] == 8
    assert sizes[-1] <= 2, "the last ones had the pool of eight to themselves"
    slot_epochs = sum(sizes)
    assert end.epochs.sum() <= slot_epochs < 11 * end.epochs.max()  # less than if all had waited for the slowest


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_pool_goes_on_from_any_epoch_to_the_same_last_bit(tmp_path, at):
    job = job_of(num_devices=2, slots=2)
    end, handed = run(job)
    with Checkpoints(tmp_path, seconds=0) as checkpoints:
        count, before = 0, {}

        def stop(state):
            nonlocal count
            checkpoints.save(state)
            if count == at:
                raise KeyboardInterrupt
            count += 1

        with pytest.raises(KeyboardInterrupt):
            pool.train_all(
                job,
                pool.begin(job),
                lambda numbers, parameters: before.update(
                    {n: jax.tree.map(lambda leaf, k=k: leaf[k], parameters) for k, n in enumerate(numbers)}
                ),
                stop,
            )
    with Checkpoints(tmp_path, seconds=0) as checkpoints:
        again, rest = run(job, pool=checkpoints.restore(job))
    assert set(before).isdisjoint(rest)
    for number, parameters in (before | rest).items():
        assert_same(parameters, handed[number], rtol=0)
    for name in ("epochs", "best_epochs", "best_accuracies"):
        np.testing.assert_array_equal(getattr(again, name), getattr(end, name))


def test_checkpoints_are_of_one_job(tmp_path):
    job = job_of()
    with Checkpoints(tmp_path, seconds=60) as checkpoints:
        assert checkpoints.restore(job) is None
        assert checkpoints.choose_slots(job, lambda: 3).slots == 3
        assert checkpoints.choose_slots(job, lambda: 5).slots == 3  # chosen once
        assert not checkpoints.due
        for other in (
            dataclasses.replace(job, rows=members.rows_of(MEMBERS[:5])),
            dataclasses.replace(job, rows=job.rows._replace(learning_rate=job.rows.learning_rate * 2)),
            job_of(num_devices=1),
        ):
            with pytest.raises(InputError, match="with other members, data or number of devices"):
                checkpoints.choose_slots(other, lambda: 3)


def test_damaged_checkpoints_are_named(tmp_path):
    job = job_of()
    with Checkpoints(tmp_path / "mlp", seconds=0) as checkpoints:
        checkpoints.choose_slots(job, lambda: 3)
        checkpoints.save(pool.fill(job, pool.begin(job)))
    (tmp_path / "mlp" / "job.json").write_text('{"slots": 3')
    (step,) = (path for path in (tmp_path / "mlp").iterdir() if path.is_dir())
    shutil.rmtree(step / "default")
    with Checkpoints(tmp_path / "mlp", seconds=0) as checkpoints:
        for use in (lambda: checkpoints.choose_slots(job, lambda: 3), lambda: checkpoints.restore(job)):
            with pytest.raises(InputError, match=rf"a damaged checkpoint \(.*\): remove {tmp_path}$"):
                use()


def test_masked_units_stay_as_they_are():
    _, handed = run(job_of(rows=members.rows_of(MEMBERS[:2])))
    for number in (0, 1):
        mask = np.asarray(handed[number]["mask"].get_value())
        np.testing.assert_array_equal(mask, np.arange(8) < MEMBERS.width[number])


def test_epochs_are_compiled_once():
    job = job_of(num_devices=2, slots=3)
    compilations, after = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compilations.append(name) if "backend_compile" in name else None
    )
    rows = jax.tree.map(lambda column: np.tile(column, 2), job.rows)  # 22 networks: several are replaced

    def on_epoch(state):
        if state.waiting < 22:
            after.append(len(compilations))

    run(dataclasses.replace(job, rows=rows), on_epoch=on_epoch)
    assert len(after) > 5
    assert len(set(after[4:])) == 1


def test_the_size_is_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path))
    job = job_of(num_devices=2)
    best, rates = pool_size.measure(job)
    assert {1, 4} <= set(rates) <= {1, 4, 6}  # 6 on each of two devices hold all 11 networks
    assert rates[best] >= 0.95 * max(rates.values())
    slots = pool_size.remembered(job, ("a", 1))
    monkeypatch.setattr(pool_size, "measure", lambda job: (slots + 1, {}))
    assert pool_size.remembered(job, ("a", 1)) == slots
    assert pool_size.remembered(job, ("a", 2)) == slots + 1


def test_training_learns():
    one = members.Members(*(np.array([value]) for value in (0, 5, 1197, 0.0, 5e-3, 32, "mlp")))
    trainer = dataclasses.replace(TRAINER, network=networks.build("mlp", TASK, 32), patience=5, max_epochs=15)
    job = job_of(1, 1, trainer=trainer, rows=members.rows_of(one), steps_per_epoch=37)
    _, handed = run(job)
    assert accuracy(trainer.network, handed[0], None, jax.tree.map(jnp.asarray, job.data.test)) > 0.94
