"""The crowd binary as a user runs it: killed at random moments, read back, mixed, and given bad input."""

import dataclasses
import json
import random
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, start
from binaries import run as run_module

import irtjax
from experiments.common.settings import Settings
from experiments.stages import crowd
from irtjax import InputError, tasks
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
SMALL = [
    "--task=digits",
    "--num_models=14",
    "--network=mlp,lenet",
    "--width=4",
    "--min_width=2",
    "--epochs=5",
    "--patience=2",
    "--batch_size=16",
    "--steps_per_epoch=6",
    "--checkpoint_seconds=0",
    "--slots=1",
]


def run(*arguments):
    return run_module(*arguments, module="experiments.crowd")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("crowd") / "run"
    result = run(*SMALL, f"--output_dir={directory}")
    assert result.returncode == 0, result.stderr
    return directory, result


def test_a_run_leaves_the_promised_files(finished):
    directory, result = finished
    assert f"{directory}/crowd" in result.stdout.strip().splitlines()[-1]
    members = pd.read_csv(directory / "crowd" / "members.csv")
    assert list(members) == [
        "subject_id", "seed", "subset_size", "corruption_rate", "learning_rate", "width", "network", "epochs",
        "best_epoch", "accuracy_train", "accuracy_validation", "accuracy_test",
    ]  # fmt: skip
    assert sorted(members.network) == ["lenet"] * 7 + ["mlp"] * 7
    assert set(members.width) <= {2, 3, 4}
    for split, size in (("train", 1197), ("validation", 300), ("test", 300)):
        responses = irtjax.read_responses(directory / "crowd" / f"responses_{split}.npz")
        assert responses.values.shape == (14, size)
        np.testing.assert_allclose(members[f"accuracy_{split}"], responses.values.mean(1), rtol=1e-5)
        as_csv = irtjax.read_responses(directory / "crowd" / f"responses_{split}.csv")
        np.testing.assert_array_equal(as_csv.values, responses.values)
        with np.load(directory / "crowd" / f"predictions_{split}.npz") as stored:
            right = stored["predictions"] == tasks.load("digits").split(split).labels
            np.testing.assert_array_equal(right, responses.values)
            np.testing.assert_array_equal(stored["item_ids"], responses.item_ids)
            np.testing.assert_array_equal(stored["subject_ids"], responses.subject_ids)
    assert not list(directory.glob(".checkpoints/*"))


@pytest.mark.slow
def test_a_crowd_killed_at_random_moments_ends_with_the_same_files(finished, tmp_path):
    complete, _ = finished
    directory = tmp_path / "run"
    arguments = [*SMALL, f"--output_dir={directory}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    seed = time.time_ns()
    print("seed of the moments", seed)
    moments, kills = random.Random(seed), 0
    for _ in range(3):
        with start(*arguments, module="experiments.crowd", **quiet) as process:
            while process.poll() is None and not list(directory.glob(".checkpoints/crowd/live/[0-9]*.npz")):
                time.sleep(0.01)
            time.sleep(moments.uniform(0, 1.5))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    assert kills > 0
    assert run(*SMALL, f"--output_dir={directory}").returncode == 0
    for name in ("members.csv", *(f"responses_{split}.csv" for split in ("train", "validation", "test"))):
        assert (directory / "crowd" / name).read_bytes() == (complete / "crowd" / name).read_bytes(), name


@pytest.mark.slow
def test_a_member_is_retrained_alone(finished, tmp_path):
    complete, _ = finished
    table = complete / "crowd" / "members.csv"
    drawn = ("--num_models", "--min_width")  # which are those of the table
    same = [flag for flag in SMALL if not flag.startswith(drawn)]
    result = run(*same, f"--members={table}", "--only=3,11", f"--output_dir={tmp_path / 'run'}")
    assert result.returncode == 0, result.stderr
    alone = pd.read_csv(tmp_path / "run" / "crowd" / "members.csv").set_index("subject_id")
    whole = pd.read_csv(table).set_index("subject_id").loc[["model_0003", "model_0011"]]
    fixed = ["seed", "subset_size", "corruption_rate", "learning_rate", "width", "network"]
    pd.testing.assert_frame_equal(alone[fixed], whole[fixed])
    np.testing.assert_allclose(alone.accuracy_train, whole.accuracy_train, atol=0.02)


def test_members_of_a_table_are_chosen_by_number(finished):
    table = finished[0] / "crowd" / "members.csv"
    settings = Settings(task="digits", width=4, members=str(table), only="3,11")
    chosen = crowd.choose_members(settings, TASK)
    whole = pd.read_csv(table).set_index("subject_id").loc[["model_0003", "model_0011"]]
    assert list(chosen.subject_ids) == list(whole.index)
    for name in ("seed", "subset_size", "corruption_rate", "learning_rate", "width", "network"):
        np.testing.assert_array_equal(getattr(chosen, name), whole[name].to_numpy(getattr(chosen, name).dtype))
    for change, message in (
        ({"only": "3,17"}, rf"--only=3,17: {table} has no model_0017"),
        ({"width": 1}, rf"{table}: model_\d+: width \d, expected at most 1, the `width` of the recipe"),
    ):
        with pytest.raises(InputError, match=message):
            crowd.choose_members(dataclasses.replace(settings, **change), TASK)


def test_the_stage_trains_what_the_settings_say(monkeypatch):
    calls = []
    monkeypatch.setattr(crowd, "train_crowd", lambda task, members, **options: calls.append((members, options)))
    settings = Settings(
        task="digits", num_models=3, network="lenet,mlp", width=8, min_width=4, learning_rate=0.1, batch_size=7,
        epochs=9, patience=4, steps_per_epoch=11, stop_on="train", out_of_bag=True, seed=5, slots=6,
    )  # fmt: skip
    crowd.train(settings, TASK, checkpoint_seconds=2.0)
    ((members, options),) = calls
    assert sorted(members.network)[0] == "lenet"
    assert set(members.width) <= set(range(4, 9))
    del options["on_progress"], options["mesh"]
    assert options == {
        "seed": 5, "out_of_bag": True, "stop_on": "train", "slots": 6, "checkpoints": None, "checkpoint_seconds": 2.0,
        "recipe": Recipe(
            "lenet", 8, learning_rate=0.1, batch_size=7, max_epochs=9, patience=4, steps_per_epoch=11
        ),
    }  # fmt: skip


@pytest.mark.slow
def test_networks_of_users_train_beside_ours(tmp_path):
    perceptron = "tests.networks.example_networks:Perceptron"
    flags = [
        "--num_models=4",
        f"--network=mlp,{perceptron}",
        "--width=4",
        "--epochs=2",
        "--steps_per_epoch=6",
        "--slots=1",
    ]
    result = run(*flags, f"--output_dir={tmp_path / 'run'}")
    assert result.returncode == 0, result.stderr
    members = pd.read_csv(tmp_path / "run" / "crowd" / "members.csv")
    assert sorted(members.network) == ["mlp"] * 2 + [perceptron] * 2
    # the same command again finds it, but not once the parameters have other shapes
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    again = run(*flags, f"--output_dir={tmp_path / 'run'}")
    assert again.returncode == 0, again.stderr
    (tmp_path / "run" / "config.json").write_text(json.dumps(config | {"parameters": "0" * 32}))
    changed = run(*flags, f"--output_dir={tmp_path / 'run'}")
    assert_one_line(changed, f"--network=mlp,{perceptron} with parameters of other shapes: its code has changed")


def test_members_of_other_settings_are_noticed(tmp_path):
    (tmp_path / "crowd").mkdir()
    table = str(tmp_path / "crowd" / "members.csv")
    now = Settings(task="digits", members=table, only="3", num_models=2, batch_size=64)
    assert crowd.other_settings(now) == []  # a table from elsewhere
    (tmp_path / "config.json").write_text(json.dumps(dataclasses.asdict(Settings(task="digits")) | {"data": "0"}))
    assert crowd.other_settings(now) == ["--batch_size=32 (now 64)"]


BAD_FLAGS = [
    (["--network=lstm"], "--network=lstm: cannot read digits, choose from mlp, lenet, vgg16"),
    (["--network=mlp,vit"], "--network=mlp,vit: 'vit' is none of"),
    (["--network=mlp,no_networks:A"], "--network=no_networks:A: no module 'no_networks'"),
    (["--network=tests.networks.example_networks:A"], "module tests.networks.example_networks has no 'A'"),
    (
        ["--network=mlp,tests.networks.example_networks:Transposed"],
        "--network=tests.networks.example_networks:Transposed: logits of shape (10, 11) for the inputs of digits",
    ),
    (
        ["--network=tests.networks.example_networks:Perceptron", "--min_width=2"],
        "--min_width=2: network tests.networks.example_networks:Perceptron masks no hidden units",
    ),
    (["--stop_on=test"], "--stop_on=test: expected one of validation, train"),
    (["--only=3"], "--only=3: expected numbers like 3,417, beside --members"),
    (["--members={tmp}/no.csv", "--num_models=3"], "--num_models has no effect with --members: leave it out"),
    (["--num_models=100000000000000000000"], "--num_models=100000000000000000000: expected 2 to 1000000"),
    (["--width=100000000000000000000"], "--width=100000000000000000000: expected 1 to 65536"),
    (["--patience=100000000000000000000"], "expected 0 to 1000000"),
    (["--checkpoint_seconds=nan"], "--checkpoint_seconds=nan: expected a finite number"),
    (["--members={tmp}/no.csv"], "{tmp}/no.csv: cannot be read"),
    (["--min_width=9", "--width=8"], "--min_width=9: expected 0 to 8"),
    (["--train_examples=2000"], "a sample of 2000 training examples: digits has 1197"),
    (["--test_examples=301"], "a sample of 301 test examples: digits has 300"),
    (["--glove=vectors.txt"], "--glove=vectors.txt: the task digits has no use for it"),
    (["--checkpoint_seconds=-1"], "error: --checkpoint_seconds=-1"),
    (["--train_embeddings"], "--train_embeddings: digits has no words"),
    (["--momentum=0.5"], "--momentum has no effect with --optimizer=adam: leave it out"),
    (["--optimizer=sgd", "--momentum=1"], "--momentum=1.0: expected 0 to 0.999"),
    (["--epoch=pass", "--steps_per_epoch=5"], "--steps_per_epoch has no effect with --epoch=pass: leave it out"),
    (["--preset=published"], "--preset=published: no study had digits, expected one of mnist, cifar10, sst2, snli"),
]


def test_bad_flags_get_one_line_and_leave_nothing(tmp_path):
    assert_bad_flags("experiments.crowd", BAD_FLAGS, tmp_path)
