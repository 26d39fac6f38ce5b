"""Presets: flag files that every command which trains networks can read."""

import pytest
from binaries import assert_one_line, run
from conftest import REPOSITORY

PRESETS = sorted((REPOSITORY / "experiments" / "presets").glob("*.flags"))
TRAINING = [
    path.stem
    for path in (REPOSITORY / "experiments").glob("*.py")
    if "task_flags.define_flags" in path.read_text(encoding="utf-8")
]
OTHERS = {  # flags that commands need beside those of the task
    "filtering": ["--items=no.csv"],
    "curriculum": ["--items=no.csv"],
    "joint_training": ["--items=no.csv"],
    "training_size": ["--items={tmp}/items.csv"],
    "soft_labels": ["--predictions=no.npz"],
}


@pytest.mark.parametrize("command", TRAINING)
def test_every_command_that_trains_reads_every_preset(command, tmp_path):
    """Each takes all the flags, and then misses the data."""
    (tmp_path / "items.csv").write_text("item_id,difficulty\na,0\n")
    others = [flag.format(tmp=tmp_path) for flag in OTHERS.get(command, [])]
    for path in PRESETS:
        flags = [f"--flagfile={path}", *others, f"--data_dir={tmp_path}", f"--output_dir={tmp_path / 'run'}"]
        assert_one_line(run(*flags, module=f"experiments.{command}"), ": no prepared copy ")


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_says_what_it_is(path):
    text = path.read_text(encoding="ascii")  # absl reads it in whatever encoding the machine has
    name = path.relative_to(REPOSITORY)
    for part in (f" --flagfile={name} ", "docs/", "CPU core", "# Expected"):
        assert part in text
