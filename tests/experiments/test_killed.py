"""Commands that are killed at a random moment, and begun again: the same files as of a run that was left alone."""

import random
import time

import numpy as np
import pandas as pd
import pytest
from binaries import Fork, csv_files, run
from conftest import REPOSITORY

from irtjax import tasks

RESPONSES = f"--responses={REPOSITORY / 'docs' / 'guide' / 'responses.csv'}"
TRAINING = ["--task=digits", "--width=8", "--epochs=2", "--seeds=1"]
COMMANDS = {
    "audit": [RESPONSES],
    "small_benchmark": [RESPONSES, "--num_items=10", "--forms=random,variance", "--predictors=mean,p-irt", "--seeds=1"],
    "filtering": [*TRAINING, "--items={folder}/train.csv", "--strategies=AVI,UB", "--shares=0.1,0.5"],
    "training_size": [*TRAINING, "--items={folder}/test.csv", "--sizes=100,all"],
    "joint_training": [*TRAINING, "--items={folder}/train.csv"],
    "soft_labels": [*TRAINING, "--predictions={folder}/predictions.npz", "--methods=B0,I-CCE"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Difficulties of digits, and what a crowd says that they are."""
    folder, task, rng = tmp_path_factory.mktemp("items"), tasks.load("digits"), np.random.default_rng(0)
    for name in ("train", "test"):
        ids = task.split(name).ids
        columns = {"item_id": ids, "difficulty": rng.normal(size=len(ids)), "difficulty_se": 0.1}
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
    labels = task.train.labels
    said = np.where(rng.random((9, len(labels))) < 0.8, labels, rng.integers(0, 10, (9, len(labels))))
    ids = {"item_ids": task.train.ids, "subject_ids": [f"s{j}" for j in range(9)]}
    np.savez(folder / "predictions.npz", predictions=said, **ids)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_and_begun_again_writes_the_same(name, folder, tmp_path):
    module, arguments = f"experiments.{name}", [one.format(folder=folder) for one in COMMANDS[name]]
    begun = time.monotonic()
    result = run(*arguments, f"--output_dir={tmp_path / 'whole'}", module=module)
    seconds = time.monotonic() - begun
    assert result.returncode == 0, result.stderr
    seed = time.time_ns()
    print("seed of the moment", seed)
    flags = [*arguments, f"--output_dir={tmp_path / 'killed'}"]
    fork = Fork(module, flags, tmp_path / "log")
    time.sleep(random.Random(seed).uniform(0, seconds))
    fork.kill()
    while fork.poll() is None:
        time.sleep(0.01)
    again = run(*flags, module=module)
    assert again.returncode == 0, again.stderr
    whole = csv_files(tmp_path / "whole")
    assert whole
    assert csv_files(tmp_path / "killed") == whole
