"""Settings from flags: which default comes first."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY

from experiments.common.factory import load_task
from experiments.common.settings import Settings

STUDIES = {task: f"experiments/presets/published_{task}.flags" for task in ("mnist", "cifar10", "sst2", "snli")}
COMMANDS = {
    "fast": ["--task=mnist"],
    "study": ["--task=mnist", "--preset=published"],
    "flags first": ["--task=cifar10", "--preset=published", "--epochs=3", "--network=lenet"],
    "other optimizer": ["--task=sst2", "--preset=published", "--optimizer=adam"],
    "noise": ["--label_noise=0.2"],
    **{f"preset {task}": [f"--task={task}", "--preset=published"] for task in STUDIES},
    **{f"flag file {task}": [f"--flagfile={path}"] for task, path in STUDIES.items()},
    "sgd": ["--task=cifar10", "--optimizer=sgd", "--momentum=0.9", "--network=vgg16"],
}
PROGRAM = """
import dataclasses, json, sys
from absl import flags
from experiments.common import flag_settings, task_flags
task_flags.define_flags()
found = []
for arguments in json.loads(sys.argv[1]):
    flags.FLAGS.unparse_flags()
    for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS(["x", *arguments])
    found.append(dataclasses.asdict(flag_settings.from_flags()))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    arguments = json.dumps(list(COMMANDS.values()))
    command = [sys.executable, "-c", PROGRAM, arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(zip(COMMANDS, json.loads(done.stdout.splitlines()[-1]), strict=True))


def test_a_study_has_its_own_settings(found):
    fast, study = found["fast"], found["study"]
    assert (fast["optimizer"], fast["epoch"], fast["network"], fast["num_models"]) == ("adam", "steps", "mlp", 256)
    assert (study["optimizer"], study["momentum"], study["learning_rate"]) == ("sgd", 0.5, 0.01)
    assert (study["epoch"], study["epochs"], study["patience"], study["num_models"]) == ("pass", 100, 0, 1000)
    assert (study["curriculum_epochs"], study["curriculum_patience"]) == (200, 0)
    assert (study["network"], study["probe"], study["floor"]) == ("lenet_study", "all", False)
    assert (fast["probe"], fast["floor"]) == ("sample", True)


def test_the_flag_file_of_a_study_is_its_preset(found):
    for task in STUDIES:
        assert found[f"flag file {task}"] == found[f"preset {task}"]
        assert found[f"preset {task}"]["curriculum_epochs"] == 200


def test_flags_come_before_the_study(found):
    chosen = found["flags first"]
    assert (chosen["epochs"], chosen["network"], chosen["weight_decay"]) == (3, "lenet", 5e-4)


def test_numbers_of_an_optimizer_belong_to_it(found):
    chosen = found["other optimizer"]
    assert (chosen["optimizer"], chosen["momentum"], chosen["learning_rate"]) == ("adam", 0.0, 1e-3)
    assert chosen["epoch"] == "pass"
    assert found["sgd"]["learning_rate"] == pytest.approx(0.01)  # not that of Adam for this network


def test_label_noise_leaves_no_labels_to_be_found(found):
    assert (found["noise"]["label_noise"], found["noise"]["mislabelled"]) == (0.2, 0.0)
    assert found["fast"]["mislabelled"] == 0.05


def test_label_noise_flips_the_same_training_labels_whatever_the_seed():
    task, *noisy = (
        load_task(dataclasses.replace(Settings("digits"), label_noise=share, seed=seed), None)
        for share, seed in ((0.0, 0), (0.4, 0), (0.4, 7))
    )
    wrong = noisy[0].train.labels != task.train.labels
    assert wrong.mean() == pytest.approx(0.4, abs=1e-3)
    np.testing.assert_array_equal(noisy[0].train.labels, noisy[1].train.labels)
    others = load_task(Settings("digits", label_noise=0.4, label_noise_seed=1), None).train.labels
    assert (others != task.train.labels).sum() == wrong.sum()
    assert (others != noisy[0].train.labels).any()
    for split in ("validation", "test"):
        np.testing.assert_array_equal(noisy[0].split(split).labels, task.split(split).labels)
