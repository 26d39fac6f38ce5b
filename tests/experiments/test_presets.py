"""Presets: flag files that every command which trains networks can read."""

import pytest
from binaries import assert_one_line, run
from conftest import REPOSITORY

PRESETS = sorted((REPOSITORY / "experiments" / "presets").glob("*.flags"))
TRAINING = [
    path.stem
    for path in (REPOSITORY / "experiments").glob("*.py")
    if "task_flags.define_flags" in path.read_text(encoding="utf-8") and path.stem != "synthetic_items"
]  # which has no network for the classes
OTHERS = {  # flags that commands need beside those of the task
    "filtering": ["--items=no.csv"],
    "curriculum": ["--items=no.csv"],
    "joint_training": ["--items=no.csv"],
    "training_size": ["--items={tmp}/items.csv"],
    "soft_labels": ["--predictions=no.npz"],
}


@pytest.mark.parametrize("command", TRAINING)
def test_every_command_that_trains_reads_every_preset(command, tmp_path):
    """Each takes all the flags, and then misses the data; of digits, which need none, it refuses the width."""
    (tmp_path / "items.csv").write_text("item_id,difficulty\na,0\n")
    others = [flag.format(tmp=tmp_path) for flag in OTHERS.get(command, [])]
    for path in PRESETS:
        flags = [f"--flagfile={path}", *others, f"--data_dir={tmp_path}", f"--output_dir={tmp_path / 'run'}"]
        lines = path.read_text(encoding="ascii").splitlines()
        if "--task=digits" in lines:
            assert_one_line(run(*flags, "--width=0", module=f"experiments.{command}"), "--width=0")
            continue
        own_folder = any(f"--task={name}" in lines for name in ("snli_pairs", "sst5", "sst5_phrases"))
        missing = ": unknown task, " if own_folder else ": no prepared copy "
        assert_one_line(run(*flags, module=f"experiments.{command}"), missing)


def test_a_file_that_is_not_for_a_command_is_named(tmp_path):
    for command, flags, message in (
        ("prepare", [f"--flagfile={PRESETS[0]}"], f"--flagfile={PRESETS[0]}: this command has no flag --dataset"),
        ("crowd", [f"--flagfile={tmp_path}/no.flags"], "--flagfile: cannot be read: [Errno 2]"),
        ("crowd", [f"--flagfile={PRESETS[0]}", "--tusk=a"], "Unknown command line flag 'tusk'"),
    ):
        assert_one_line(run(*flags, module=f"experiments.{command}"), message)


def test_a_file_that_names_itself_is_read_once(tmp_path):
    path = tmp_path / "own.flags"
    path.write_text(f"--flagfile={path}\n--model=rasch\n")
    responses = REPOSITORY / "docs" / "guide" / "responses.csv"
    result = run(
        f"--flagfile={path}",
        f"--responses={responses}",
        f"--output_dir={tmp_path / 'fit'}",
        module="experiments.fit_irt",
    )
    assert result.returncode == 0, result.stderr
    assert "circular flagfile dependency" in result.stderr
    assert '"model": "rasch"' in (tmp_path / "fit" / "fit.json").read_text()


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_says_what_it_is(path):
    text = path.read_text(encoding="ascii")  # absl reads it in whatever encoding the machine has
    name = path.relative_to(REPOSITORY)
    for part in (f" --flagfile={name} ", "docs/", "CPU core", "# Expected"):
        assert part in text
