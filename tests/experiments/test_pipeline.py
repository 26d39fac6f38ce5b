"""The pipeline as a user runs it: end to end, twice the same, interrupted, and given bad input."""

import dataclasses
import json
import re
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec

import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, csv_files, run, start
from event_files import curves
from matplotlib.image import imread

from experiments.common.run_directory import checkpoints_of, open_run, stage
from experiments.common.settings import FIELDS as SETTINGS
from experiments.common.settings import Settings
from experiments.common.task_defaults import TASK_DEFAULTS
from irtjax import InputError, tasks

SMALL = [
    "--task=digits",
    "--num_models=16",
    "--slots=8",
    "--epochs=4",
    "--width=8",
    "--steps_per_epoch=10",
    "--filtering_seeds=2",
    "--curriculum_seeds=2",
    "--curriculum_length=2",
]
PICTURES = {"densities.png", "contact_sheet.png", "suspects.png", "mislabelled.png", "filtering.png", "curriculum.png"}


def from_defaults(task):
    return Settings(task=task, **TASK_DEFAULTS[task].settings)


def open_with(directory, settings, task):
    return open_run(str(directory), dataclasses.asdict(settings), task)


def curves_of(directory):
    return directory.parent / "curves"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pipeline") / "run"
    recorded = [f"--tensorboard={curves_of(directory)}"] if find_spec("tensorboardX") else []
    result = run(*SMALL, *recorded, f"--output_dir={directory}")
    assert result.returncode == 0, result.stderr
    return directory, result


@pytest.mark.slow
def test_a_run_leaves_the_promised_files(finished):
    directory, result = finished
    last = result.stdout.strip().splitlines()[-1]
    assert str(directory) in last
    assert all(picture in last for picture in PICTURES)
    for picture in PICTURES:
        assert imread(directory / picture).std() > 0.01
    report = (directory / "report.md").read_text()
    assert all(f"]({picture})" in report for picture in PICTURES)
    members = pd.read_csv(directory / "crowd" / "members.csv")
    columns = "seed subset_size corruption_rate network epochs accuracy_train accuracy_validation accuracy_test"
    assert set(columns.split()) <= set(members)
    assert len(members) == 16
    for split, size in (("train", 1197), ("validation", 300), ("test", 300)):
        responses = pd.read_csv(directory / "crowd" / f"responses_{split}.csv", index_col=0)
        assert responses.shape == (16, size)
        assert (directory / "crowd" / f"responses_{split}.npz").exists()
    for priors in ("vague", "hierarchical"):
        assert len(pd.read_csv(directory / "difficulty" / priors / "items.csv")) == 1797
        assert json.loads((directory / "difficulty" / priors / "fit.json").read_text())["priors"] == priors
    suspects = pd.read_csv(directory / "suspects" / "suspects.csv")
    assert len(suspects) == 1797
    assert suspects.item_id[0] in report.split("## Suspects")[1].split("## Mislabelled")[0]
    assert len(pd.read_csv(directory / "filtering" / "filtering.csv")) == 7 * 7 * 2
    curriculum = pd.read_csv(directory / "curriculum" / "curriculum.csv")
    assert list(curriculum) == [
        "strategy", "seed", "epoch", "share", "ability", "examples_used", "dev_accuracy", "test_accuracy",
        "test_geometric_mean",
        "ability_se", "items_asked",
    ]  # fmt: skip
    assert set(curriculum.strategy) == {"baseline", "CB-linear", "CB-root", "DDaCLAE"}
    assert (curriculum[curriculum.strategy == "baseline"].share == 1).all()
    assert curriculum[curriculum.strategy == "DDaCLAE"].ability.notna().all()
    assert len(pd.read_csv(directory / "curriculum" / "summary.csv")) == 4


@pytest.mark.slow
def test_every_stage_writes_curves(finished):
    directory, _ = finished
    names = {re.sub(r"/[a-z_]+$", "", name) for name in curves(curves_of(directory))}
    assert {"crowd", "mislabelled", "filtering", "fit/hierarchical", "fit/mislabelled", "curriculum/DDaCLAE"} <= names


@pytest.mark.slow
def test_the_figures_of_the_report_are_those_of_the_files(finished):
    directory, _ = finished
    report = (directory / "report.md").read_text()
    reliability = json.loads((directory / "difficulty" / "reliability.json").read_text())
    detection = json.loads((directory / "mislabelled" / "detection.json").read_text())
    assert f"**{reliability['split_half_spearman']:.3f}**" in report
    assert f"**AUC {detection['auc']:.4f}**" in report


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_csv_files(finished, tmp_path):
    complete, _ = finished
    directory = tmp_path / "run"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with start(*SMALL, f"--output_dir={directory}", **quiet) as process:
        # killed within the difficulty stage, which has begun when its temporary folder is there
        while process.poll() is None and not (directory / "crowd").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert (directory / "crowd").exists()
    assert not (directory / "difficulty").exists()
    again = run(*SMALL, f"--output_dir={directory}")
    assert again.returncode == 0, again.stderr
    assert "1/6 crowd: reused" in again.stdout
    assert "2/6 difficulty: reused" not in again.stdout
    assert not list(directory.glob(".partial-*"))
    # two processes, one seed: the same files byte for byte
    assert csv_files(directory) == csv_files(complete)


def test_an_interrupted_stage_is_done_again_and_a_finished_one_reused(tmp_path, capsys):
    def interrupted(_, folder):
        (folder / "half.csv").touch()
        kept.mkdir(parents=True)
        raise KeyboardInterrupt

    def whole(name, folder):
        assert not list(folder.iterdir())
        (folder / name).touch()

    kept = checkpoints_of(tmp_path, "crowd")
    with pytest.raises(KeyboardInterrupt):
        stage(tmp_path, "crowd", "1/6 crowd", str, interrupted)
    assert not (tmp_path / "crowd").exists()
    assert kept.exists()
    stage(tmp_path, "crowd", "1/6 crowd", lambda: "whole.csv", whole)
    assert {path.name for path in (tmp_path / "crowd").iterdir()} == {"whole.csv", "stage.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"crowd"}
    assert "reused" not in capsys.readouterr().out
    stage(tmp_path, "crowd", "1/6 crowd", str, interrupted)
    assert f"1/6 crowd: reused from {tmp_path}/crowd\n" in capsys.readouterr().out


def test_files_of_a_finished_stage_that_have_changed_are_named(tmp_path):
    def write(_, folder):
        (folder / "inner").mkdir()
        (folder / "inner" / "a.csv").write_text("a\n1\n")

    folder = stage(tmp_path, "crowd", "1/6 crowd", str, write)
    (folder / "of_the_user.txt").write_text("notes are welcome")
    stage(tmp_path, "crowd", "1/6 crowd", str, write)
    (folder / "inner" / "a.csv").write_text("a\n2\n")
    with pytest.raises(InputError, match=rf"a.csv has changed since it was written: remove {folder}, and the stage"):
        stage(tmp_path, "crowd", "1/6 crowd", str, write)
    (folder / "inner" / "a.csv").unlink()
    with pytest.raises(InputError, match=r"inner/a.csv is gone: remove"):
        stage(tmp_path, "crowd", "1/6 crowd", str, write)


@pytest.mark.slow
def test_a_finished_run_is_reused_but_not_with_other_settings(finished):
    directory, _ = finished
    again = run(*SMALL, f"--output_dir={directory}")
    assert again.returncode == 0
    assert again.stdout.count("reused from") == 6
    other = run(*SMALL, "--seed=1", f"--output_dir={directory}")
    assert_one_line(other, "holds a run with --seed=0 (now 1)")


def test_directories_that_are_not_runs(tmp_path):
    settings, task = from_defaults("digits"), tasks.load("digits")
    (tmp_path / "run" / "crowd").mkdir(parents=True)
    with pytest.raises(InputError, match="crowd is not a finished stage"):
        stage(tmp_path / "run", "crowd", "1/6 crowd", str, lambda _, folder: None)
    (tmp_path / "run" / "crowd" / "stage.json").write_text("{}")
    (tmp_path / "run" / "config.json").write_text("[1]")
    with pytest.raises(InputError, match="not the settings of a run"):
        open_with(tmp_path / "run", settings, task)


def test_a_directory_without_a_finished_stage_takes_other_settings(tmp_path):
    first, second, task = from_defaults("digits"), from_defaults("mnist"), tasks.load("digits")
    open_with(tmp_path / "run", first, task)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["task"] == "digits"
    (tmp_path / "run" / ".lock").unlink()  # this process holds it still
    open_with(tmp_path / "run", second, task)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["task"] == "mnist"


def test_a_run_is_not_mixed_with_other_data(tmp_path):
    settings, task = from_defaults("digits"), tasks.load("digits")
    directory = open_with(tmp_path / "run", settings, task)
    (directory / "crowd").mkdir()
    (directory / "crowd" / "stage.json").write_text("{}")
    (directory / ".lock").unlink()  # this process holds it still
    other, _ = tasks.flip_labels(task, 0.01, 0)
    with pytest.raises(InputError, match="holds a run on other data: what lies in --task, --data_dir, --glove"):
        open_with(directory, settings, other)
    (directory / ".lock").unlink()
    assert open_with(directory, settings, task) == directory
    (directory / ".lock").unlink()
    (directory / "config.json").unlink()
    with pytest.raises(InputError, match=r"holds crowd/stage.json, but no config.json that tells of which settings"):
        open_with(directory, settings, task)


def test_two_runs_do_not_share_a_directory(tmp_path):
    open_with(tmp_path / "run", from_defaults("digits"), tasks.load("digits"))
    assert_one_line(run(*SMALL, f"--output_dir={tmp_path / 'run'}"), "another run is writing there")


@pytest.mark.parametrize(("resumes", "hint"), [(True, "; the same command goes on where it stopped"), (False, "")])
def test_an_interrupt_is_one_line_and_its_own_status(tmp_path, resumes, hint):
    script = tmp_path / "binary.py"
    script.write_text(
        "import signal\n"
        "from experiments.common import app\n"
        f"app.run(lambda: signal.raise_signal(signal.SIGINT), resumes={resumes})\n"
    )
    result = run(module=script)
    assert (result.returncode, result.stderr) == (130, f"\ninterrupted{hint}\n")


@pytest.mark.slow
def test_an_interrupted_run_ends_in_one_line(tmp_path):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with start(*SMALL, f"--output_dir={tmp_path / 'run'}", **quiet) as process:
        while process.poll() is None and not list((tmp_path / "run").glob(".checkpoints/crowd/live")):
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "interrupted; the same command goes on where it stopped"
    assert "Traceback" not in errors
    assert not (tmp_path / "run" / "crowd").exists()


@pytest.mark.slow
def test_map_abilities_without_mislabelled_stage(finished, tmp_path):
    complete, _ = finished
    directory = tmp_path / "run"
    directory.mkdir()
    arguments = [*SMALL, "--ability=map", "--mislabelled=0"]
    config = json.loads((complete / "config.json").read_text()) | {"ability": "map", "mislabelled": 0.0}
    (directory / "config.json").write_text(json.dumps(config))
    for name in ("crowd", "difficulty", "filtering"):
        shutil.copytree(complete / name, directory / name)
    result = run(*arguments, f"--output_dir={directory}")
    assert result.returncode == 0, result.stderr
    assert not (directory / "mislabelled").exists()
    assert "Mislabelled" not in (directory / "report.md").read_text()


BAD_FLAGS = [
    (["--task=imagenet"], "--task=imagenet: unknown task, expected one of digits, mnist, cifar10, sst2, snli"),
    (
        ["--task=mnist", "--data_dir={tmp}"],
        "mnist: no prepared copy in {tmp}; prepare mnist there once, as array_record files: "
        "pip install 'irtjax[prepare]' and python -m experiments.prepare --task=mnist --data_dir={tmp}",
    ),
    (["--num_models=2"], "--num_models=2: expected at least 4"),
    (["--max_corruption=2"], "--max_corruption=2.0: expected 0 to 1"),
    (["--learning_rate=0"], "--learning_rate=0.0: expected a positive number"),
    (["--priors=flat"], "--priors=flat: expected one of vague, hierarchical"),
    (["--epochs=many"], "error: --epochs=many"),
    (["--min_subset=5000"], "--min_subset=5000: digits has 1197 training examples"),
    (["--mislabelled=0.0001"], "--mislabelled=0.0001: not one of 1197 training labels"),
    (["--initial_share=nan"], "--initial_share=nan: expected a finite number"),
    (["--learning_rate=nan"], "--learning_rate=nan: expected a finite number"),
    (["--seed=99999999999999999999"], "--seed=99999999999999999999: expected 0 to 2147483647"),
    (["stray"], "unexpected argument 'stray'"),
    (["--no_such_flag=1"], "no_such_flag"),
    (["--output_dir={tmp}/file/run"], "cannot write there"),
    (["--output_dir={tmp}/file"], "{tmp}/file: is a file"),
    (["--learning_rate_factor=inf"], "--learning_rate_factor=inf: expected a finite number"),
    (["--out_of_bag", "--min_subset=1197"], "1197 training examples, of which each member must leave one"),
    (["--out_of_bag", "--min_subset=1196", "--num_models=4"], "so none could answer it"),
]


def test_bad_flags_get_one_line_and_leave_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert_bad_flags("experiments.pipeline", BAD_FLAGS, tmp_path)


def test_help_names_every_setting():
    result = run("--help")
    assert result.returncode == 0
    assert "From a task to a curriculum in one command" in result.stdout
    words = " ".join(result.stdout.split())
    assert "--num_models=NUMBER networks in the artificial crowd (default 384; mnist: 256" in words
    assert all(f" --{name}=" in words or f" --[no]{name} " in words for name in SETTINGS)
