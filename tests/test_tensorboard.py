"""Event files hold what the callbacks were called with."""

import sys
from collections import defaultdict

import jax
import numpy as np
import pytest
from binaries import assert_one_line, run
from conftest import REPOSITORY
from event_files import curves
from simulation import simulate

import irtjax
from irtjax import InputError, tasks
from irtjax.crowd import train_crowd
from irtjax.selection import compare_curricula
from irtjax.tensorboard import Writer, of_progress
from irtjax.training.progress import Progress
from irtjax.training.recipe import Recipe

RESPONSES = REPOSITORY / "docs/guide/responses.csv"
TASK = tasks.load("digits")
RECIPE = Recipe("mlp", width=8, patience=2, max_epochs=4, steps_per_epoch=10)


def last(curve):
    return {step: values[-1] for step, values in curve.items()}


class Written(Writer):
    """Keeps in memory what it would write."""

    def __init__(self):
        self.curves = defaultdict(dict)

    def scalars(self, values, step):
        for name, value in values.items():
            self.curves[name][step] = value


def both(*callbacks):
    return lambda *args: [callback(*args) for callback in callbacks] and None


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("tensorboardX")
    return tmp_path / "some" / "curves"


def test_scalars_come_back_and_later_writers_go_on(folder):
    with Writer(folder) as writer:
        writer.scalars({"train/accuracy_best": 0.5, "a name": 2}, 1)
    with Writer(folder) as writer:
        writer.scalars({"train/accuracy_best": 0.75}, 2)
    assert curves(folder) == {"train/accuracy_best": {1: [0.5], 2: [0.75]}, "a_name": {1: [2.0]}}


def test_only_the_first_process_writes(folder, monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with Writer(folder) as writer:
        writer.scalars({"x": 1.0}, 1)
    assert not list(folder.iterdir())


def test_a_missing_package_and_a_file_in_the_way_are_one_line(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: File exists, expected a folder"):
        Writer(tmp_path / "file")
    for name in ("tensorboardX", "torch", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match="pip install tensorboardX"):
        Writer(tmp_path / "curves")
    assert not (tmp_path / "curves").exists()


@pytest.mark.parametrize(
    ("estimator", "callback", "quantity"), [("mml", "on_iteration", "change"), ("svi", "on_chunk", "elbo")]
)
def test_a_fit_is_what_its_callback_says(folder, estimator, callback, quantity):
    responses, told = simulate(60, 8)[0], {}
    with Writer(folder) as writer:
        on_step = both(told.__setitem__, writer.of_fit("difficulty", quantity))
        irtjax.fit(responses, "1pl", estimator, **{callback: on_step})
    assert list(curves(folder)) == [f"difficulty/{quantity}"]
    assert last(curves(folder)[f"difficulty/{quantity}"]) == pytest.approx(told, rel=1e-6)


def test_progress_as_numbers():
    state = Progress(2, 1, 3, np.array([0.5, np.nan, 0.75, 0.25], np.float32), 9)
    counts = {"finished": 2, "training": 1, "waiting": 3}
    assert of_progress(state) == counts | {"accuracy_best": 0.75, "accuracy_median": 0.5}
    assert of_progress(state._replace(accuracies=np.full(4, np.nan))) == counts


@pytest.mark.slow
def test_a_crowd_counts_epochs_and_goes_on_where_it_stopped(tmp_path):
    class StopNow(Exception):
        pass

    def train(writer, told, most=sys.maxsize):
        def on_progress(state):
            told.append(state)
            if len(told) == most:
                raise StopNow

        return train_crowd(
            TASK,
            num_models=4,
            recipe=RECIPE,
            slots=2,
            checkpoints=tmp_path / "state",
            checkpoint_seconds=0.0,
            on_progress=both(writer.of_crowd(), on_progress),
        )

    writer, before, after = Written(), [], []
    with pytest.raises(StopNow):
        train(writer, before, 4)
    crowd = train(writer, after)
    assert 0 < before[0].epochs < before[-1].epochs <= after[0].epochs
    assert after[-1].epochs == crowd.members.epochs.sum()
    finished = writer.curves["crowd/finished"]
    assert list(finished) == sorted(finished)
    assert finished[after[-1].epochs] == 4
    assert writer.curves["crowd/accuracy_best"][after[-1].epochs] == pytest.approx(np.max(after[-1].accuracies))


@pytest.mark.slow
def test_curricula_are_means_over_networks_by_epoch():
    writer = Written()
    progress = writer.of_curricula()
    table = compare_curricula(
        TASK,
        np.zeros(len(TASK.train.labels)),
        ("baseline", "no-effect"),
        recipe=RECIPE,
        num_seeds=2,
        slots=2,
        mesh=jax.make_mesh((1,), ("network",), devices=jax.devices()[:1]),
        on_strategy=progress.strategy,
        on_epoch=progress.on_epoch,
    )
    assert writer.curves.keys() == {"curriculum/baseline/accuracy", "curriculum/no-effect/accuracy"}
    for name, rows in table.groupby("strategy"):
        best = rows.pivot(index="epoch", columns="seed", values="dev_accuracy").ffill().cummax().mean(axis=1)
        expected = dict(zip(best.index + 1, best, strict=True))
        assert writer.curves[f"curriculum/{name}/accuracy"] == pytest.approx(expected, rel=1e-6)


def test_curves_of_groups_of_a_strategy():
    writer = Written()
    progress = writer.of_curricula("c")
    with progress.strategy("DDaCLAE 1/2"):
        progress.on_epoch(np.array([1, 1]), np.array([0.25, 0.75]))
        progress.on_epoch(np.array([1, 2]), np.array([0.25, 0.75]))  # one of them has stopped
    assert writer.curves["c/DDaCLAE 1 of 2/accuracy"] == {1: 0.5, 2: 0.5}


def test_fit_irt_writes_curves(folder, tmp_path):
    place = [f"--responses={RESPONSES}", f"--output_dir={tmp_path / 'fit'}", f"--tensorboard={folder}"]
    result = run(*place, "--max_iterations=5", module="experiments.fit_irt")
    assert result.returncode == 0, result.stderr
    told = {}
    with pytest.warns(irtjax.FitWarning):
        irtjax.fit(RESPONSES, max_iterations=5, on_iteration=told.__setitem__)
    assert last(curves(folder)["fit/2pl/change"]) == pytest.approx(told, rel=1e-3)
    (tmp_path / "file").write_text("")
    result = run(*place[:2], f"--tensorboard={tmp_path / 'file'}", module="experiments.fit_irt")
    assert_one_line(result, "file: File exists, expected a folder")
