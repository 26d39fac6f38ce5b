"""The binary that prepares data sets, as far as it goes without TensorFlow and a network."""

import importlib.util
import os
import subprocess
import sys

import pytest


def prepare(*arguments):
    command = [sys.executable, "-m", "experiments.prepare", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is not None, reason="TensorFlow is here")
def test_the_missing_extra_is_named(tmp_path):
    result = prepare("--task=sst2", f"--data_dir={tmp_path}")
    assert result.returncode == 2
    assert result.stderr == (
        "error: preparing a data set needs TensorFlow, which the extra `prepare` brings: "
        "pip install 'irtjax[prepare]'\n"
    )
    assert not list(tmp_path.iterdir())


def test_what_is_prepared_already_is_left_alone(shared):
    result = prepare("--task=mnist", f"--data_dir={shared / 'tfds'}")
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"Done: {shared / 'tfds' / 'mnist' / '3.0.1'} (train 60,000, test 10,000)\n"
