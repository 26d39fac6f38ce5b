"""What all commands share: help, flags, output folders, Ctrl-C, progress; and the console entry."""

import csv
import inspect
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from absl.flags import DEFINE_bool, DEFINE_integer, DEFINE_string, FlagValues
from binaries import assert_one_line, run, start
from conftest import REPOSITORY
from simulation import simulate

import irtjax
from experiments.common import app, cli, progress
from experiments.common.peers import require_port
from irtjax import FitWarning, InputError
from irtjax.training.progress import Progress

RESPONSES = REPOSITORY / "docs" / "guide" / "responses.csv"
BINARIES = sorted(path.stem for path in (REPOSITORY / "experiments").glob("[a-z]*.py"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    path = tmp_path_factory.mktemp("app") / "responses.csv"
    irtjax.write_responses(simulate(60, 12)[0], path)
    return path


@pytest.mark.parametrize("binary", BINARIES)
def test_help_shows_the_docstring_and_the_flags(binary):
    result = run("--help", module=f"experiments.{binary}")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"usage: python -m experiments.{binary} --" in result.stdout
    needed = result.stdout.split("needed:")[1].split("\nflags:")[0]
    others = {"prepare": "--task=", "adaptive_test": "--items=PATH"}  # a dialogue needs no folder
    assert others.get(binary, "--output_dir=PATH") in needed
    if binary in ("crowd", "pipeline", "filtering", "curriculum"):
        assert "--task=TEXT" in result.stdout
        assert "--data_dir=PATH" in result.stdout
    assert "--verbosity" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120


LOADED = """
import os, runpy, sys
from experiments.common import app, shared_flags, task_defaults  # light, or it shows below
for name in sys.argv[1:]:
    for flag in ("--help", "--no_such_flag"):
        if not os.fork():  # commands have flags of the same names
            sys.argv = [name, flag]
            try:
                runpy.run_module(f"experiments.{name}", run_name="__main__")
            except SystemExit as end:
                heavy = {"jax", "numpy", "pandas", "scipy", "matplotlib"} & sys.modules.keys()
                print("loaded:", name, end.code or 0, *sorted(heavy), flush=True)
            os._exit(0)
        os.wait()
"""


def test_help_and_wrong_flags_load_neither_jax_nor_pandas():
    """What a command does is in `experiments/commands`, which it imports when its flags are right."""
    result = subprocess.run(
        [sys.executable, "-c", LOADED, *BINARIES], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    found = [line for line in result.stdout.splitlines() if line.startswith("loaded:")]
    assert found == [f"loaded: {binary} {status}" for binary in BINARIES for status in (0, 2)]


def test_every_command_has_its_work_in_the_module_of_its_name():
    places = (REPOSITORY / "experiments" / "commands").glob("[a-z]*.py")
    assert sorted(path.stem for path in places) == BINARIES


def test_many_flags_are_grouped_by_purpose():
    shown = run("--help", module="experiments.pipeline").stdout.split("needed:")[1]
    groups = {part.split(":\n")[0].strip(): part for part in shown.split("\n\n")[1:]}
    titles = ["flags", "data", "your own data", "crowd", "training of networks", "difficulty", "filtering", "curricula"]
    assert list(groups) == [*titles, "several processes"]
    first = [line.split("=")[0].strip() for line in groups["flags"].splitlines() if line.startswith("  --")]
    assert first == [
        "--task",
        "--data_dir",
        "--preset",
        "--seed",
        "--num_models",
        "--network",
        "--epochs",
        "--tensorboard",
    ]
    assert "--window=" in groups["curricula"]
    assert max(part.count("\n  --") for part in groups.values()) < 20


@pytest.mark.parametrize("binary", BINARIES)
def test_a_flag_that_is_missing_is_named_with_its_purpose(binary):
    result = run(module=f"experiments.{binary}")
    assert_one_line(result, " is missing: ")
    assert "None" not in result.stderr


@pytest.mark.parametrize("own", [[], ["--nofloor"], ["--probe=all", "--seeds=2"], ["-probe", "all"], ["--seeds", "2"]])
def test_a_shared_flag_of_a_flag_file_may_have_no_effect(own, monkeypatch, tmp_path):
    path = tmp_path / "some.flags"
    path.write_text("--probe=all\n--nofloor\n--seeds=3\n")
    values = FlagValues()
    DEFINE_bool("floor", True, "", flag_values=values)
    DEFINE_string("probe", "sample", "", flag_values=values)
    DEFINE_integer("seeds", 10, "", flag_values=values)
    monkeypatch.setattr(sys, "argv", ["command", f"--flagfile={path}", *own])
    monkeypatch.setattr(app.flags, "FLAGS", values)
    values(sys.argv)
    for name in ("probe", "floor"):
        if any(name in argument for argument in own):
            with pytest.raises(InputError, match=f"--{name} has no effect with the window: leave it out"):
                app.without_effect([name], "the window", ["probe", "floor"])
        else:
            with pytest.warns(FitWarning, match=f"--{name} of the flag file has no effect with the window"):
                app.without_effect([name], "the window", ["probe", "floor"])
    with pytest.raises(InputError, match="--seeds has no effect with the window"):
        app.without_effect(["seeds"], "the window", ["probe", "floor"])


def test_paths_are_on_this_machine(tmp_path, answers):
    for flags, message in (
        (
            ["--responses=https://example.org/r.csv", "--output_dir=o"],
            "--responses=https://example.org/r.csv: expected a",
        ),
        (["--responses=s3://bucket/r.parquet", "--output_dir=o"], "found an address: download the file first"),
        ([f"--responses={answers}", "--output_dir="], "--output_dir=: expected a path, found nothing"),
        ([f"--responses={answers}", "--output_dir=~nobody_here/x"], "no home folder is known for ~nobody_here"),
        ([f"--responses={answers}", f"--output_dir={answers}"], "is a file, expected a folder"),
        (["--responses=", f"--output_dir={tmp_path}"], "--responses=: expected a path"),
    ):
        assert_one_line(run(*flags, module="experiments.fit_irt"), message)
    assert not list(tmp_path.iterdir())


def test_a_tilde_is_the_home_folder(answers, monkeypatch, tmp_path):
    from experiments.common.path_flags import _PathParser

    monkeypatch.setenv("HOME", str(tmp_path))
    assert _PathParser().parse("~/runs") == f"{tmp_path}/runs"
    assert _PathParser().parse("./~name") == "./~name"
    assert irtjax.fit("~/r.csv").responses.num_items == 12 if answers.rename(tmp_path / "r.csv") else False
    (tmp_path / "r.csv").rename(answers)


@pytest.mark.parametrize(
    ("binary", "inputs"),
    [
        ("fit_irt", {"responses": "items.csv"}),
        ("compare_models", {"responses": "folds.csv"}),
        ("build_scale", {"responses": "items.csv"}),
        ("score", {"items": "items.csv", "responses": "subjects.csv"}),
    ],
)
def test_no_command_writes_over_what_it_reads(binary, inputs, answers, tmp_path):
    for name in inputs.values():
        (tmp_path / name).write_bytes(answers.read_bytes())
    flags = [f"--{flag}={tmp_path / name}" for flag, name in inputs.items()]
    last, name = list(inputs.items())[-1]
    result = run(*flags, f"--output_dir={tmp_path}", module=f"experiments.{binary}")
    assert_one_line(result, f"--{last}={tmp_path / name} would be overwritten: choose another --output_dir")
    (tmp_path / "link.csv").symlink_to(tmp_path / name)
    linked = [f"--{last}={tmp_path / 'link.csv'}"]
    result = run(*flags, *linked, f"--output_dir={tmp_path}", module=f"experiments.{binary}")
    assert_one_line(result, f"--{last}={tmp_path / 'link.csv'} would be overwritten")
    assert (tmp_path / name).read_bytes() == answers.read_bytes()


@pytest.mark.slow
def test_a_full_disk_leaves_the_former_result(answers, tmp_path):
    place = [f"--responses={answers}", f"--output_dir={tmp_path / 'fit'}", "--model=1pl"]
    assert run(*place, module="experiments.fit_irt").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "fit").iterdir()}
    for largest in (300, 1500, 3000):
        result = run(*place, "--max_iterations=2", module="experiments.fit_irt", largest_file=largest)
        assert result.returncode == 2
        assert "File too large" in result.stderr.splitlines()[-1]
        assert "Traceback" not in result.stderr
        assert {path.name: path.read_bytes() for path in (tmp_path / "fit").iterdir()} == before
    result = run(*place[:1], f"--output_dir={tmp_path / 'new' / 'fit'}", module="experiments.fit_irt", largest_file=300)
    assert result.returncode == 2
    assert not (tmp_path / "new").exists()


CONSOLE = "from experiments.common.cli import main; main()"


def test_ctrl_c_while_a_command_is_being_imported_is_one_line(answers, tmp_path):
    command = [sys.executable, "-c", CONSOLE, "fit_irt", f"--responses={answers}", f"--output_dir={tmp_path / 'fit'}"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "interrupted")
    assert not list(tmp_path.iterdir())


def test_who_imports_a_command_keeps_the_process(tmp_path):
    """No signal handler, no other stream and no restart, though its own flags look like those of several processes."""
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "__init__.py").write_text(
        "import os, signal, sys\n"
        "def state(): return os.environ.get('PYTHONHASHSEED'), signal.getsignal(signal.SIGINT), "
        "signal.getsignal(signal.SIGTERM), sys.stdout, sys.stderr, sys.excepthook\n"
        "before = state()\n"
        "import experiments.fit_irt\n"
    )
    (tmp_path / "user" / "__main__.py").write_text(
        "import user\nprint(user.state() == user.before, *user.sys.argv[1:])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    result = subprocess.run(
        [sys.executable, "-m", "user", "--coordinator=localhost:1"], cwd=tmp_path, capture_output=True, text=True,
        env=environment | {"PYTHONPATH": str(REPOSITORY)}, check=False,
    )  # fmt: skip
    assert (result.stdout, result.stderr) == ("True --coordinator=localhost:1\n", "")


@pytest.mark.slow
def test_an_interrupted_fit_leaves_nothing(answers, tmp_path):
    output = tmp_path / "new" / "fit"
    process = start(
        f"--responses={answers}", "--model=3pl", f"--output_dir={output}", module="experiments.fit_irt",
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(tmp_path.glob("new/fit/.partial-*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error.strip()) == (130, "interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_a_file_is_named_and_nothing_is_written(answers, tmp_path):
    (tmp_path / "items.csv").mkdir()
    result = run(f"--responses={answers}", "--model=1pl", f"--output_dir={tmp_path}", module="experiments.fit_irt")
    assert_one_line(result, f"{tmp_path / 'items.csv'}: is a folder where a file of the results belongs")
    assert [path.name for path in tmp_path.rglob("*")] == ["items.csv"]


def test_a_port_that_another_program_has_is_named():
    with socket.create_server(("", 0)) as other:
        address = f"localhost:{other.getsockname()[1]}"
        with pytest.raises(InputError, match=f"--coordinator={address}: process 0 cannot listen at that port"):
            require_port(address)
    require_port(address)


def test_devices_that_are_not_there_are_one_line(answers, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    process = start(
        f"--responses={answers}",
        f"--output_dir={tmp_path / 'run'}",
        module="experiments.fit_irt",
        stderr=subprocess.PIPE,
        text=True,
    )
    said = process.communicate()[1]
    assert process.returncode == 2
    assert re.fullmatch("error: JAX finds no devices .*JAX_PLATFORMS\n", said), said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--max_iterations=1e3", "--max_iterations=1e3: expected a whole number, at least 1"),
        ("--misfit=maybe", "--misfit=maybe: expected true or false"),
        ("--model=5pl", "--model=5pl: expected one of rasch, 1pl, 2pl, 3pl, 4pl"),
        ("--seed=-1", "--seed=-1: expected a whole number, at least 0, at most 2,147,483,647"),
        ("--dims=99", "error: --dims 99, expected a whole number, 1 to 6"),
    ],
)
def test_flags_say_what_they_take(answers, tmp_path, flag, message):
    result = run(f"--responses={answers}", f"--output_dir={tmp_path / 'o'}", flag, module="experiments.fit_irt")
    assert_one_line(result, message)


def test_output_may_go_anywhere():
    """A pipe that is closed, a full disk, an encoding without our signs."""

    def shell(more, **environment):
        command = [sys.executable, "-c", CONSOLE, "--help"]
        quoted = " ".join(f"'{word}'" for word in command)
        options = {"capture_output": True, "cwd": REPOSITORY, "env": os.environ | environment, "text": True}
        return subprocess.run(["bash", "-c", f"{quoted} {more}"], **options)

    for more, error, status in (
        ("| true; exit ${PIPESTATUS[0]}", "", (0, 141)),  # true may end later than we do
        (">/dev/full", "error: output cannot be written (No space left on device)\n", (2,)),
        ("2>&-", "", (0,)),
        (">&-", "", (0,)),
    ):
        result = shell(more)
        assert result.stderr == error, more
        assert result.returncode in status, more
    plain = shell("", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (plain.returncode, plain.stderr) == (0, "")


@pytest.mark.slow
def test_results_are_the_same_in_every_locale_and_time_zone(tmp_path):
    """Also where ids are of letters that the encoding of the locale has not."""
    for language in ("tr_TR", "de_DE"):
        if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales", language).exists():
            pytest.skip(f"no localedef, or no source of {language}, to make the locale from")
        subprocess.run(["localedef", "-i", language, "-f", "UTF-8", tmp_path / f"{language}.UTF-8"], check=True)
    table = tmp_path / "responses.csv"
    lines = (REPOSITORY / "docs" / "guide" / "responses.csv").read_text().splitlines()
    header = lines[0].split(",")
    table.write_text("\n".join([",".join([header[0], "ıİß 项目", *header[2:]]), *lines[1:]]) + "\n", encoding="utf-8")
    found = []
    for place in (
        {"LC_ALL": "C.UTF-8", "TZ": "UTC"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Pacific/Kiritimati"},
        {"LC_ALL": "tr_TR.UTF-8", "LOCPATH": str(tmp_path), "TZ": "America/St_Johns"},  # i and I are two letters there
        {"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(tmp_path), "TZ": "Europe/Berlin"},  # a comma is the decimal point
    ):
        out = tmp_path / place["TZ"].replace("/", "_")
        command = [sys.executable, "-m", "experiments.fit_irt", f"--responses={table}", f"--output_dir={out}"]
        result = subprocess.run(command, cwd=REPOSITORY, env=os.environ | place, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        found.append([(out / name).read_bytes() for name in ("items.csv", "subjects.csv")])
    assert found[0] == found[1] == found[2] == found[3]
    assert "ıİß 项目".encode() in found[0][0]


def test_off_a_terminal_progress_is_lines(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.fit_bar("2pl") as on_step:
        for step in range(1, 101):
            clock[0] += 1.0
            on_step(step, 0.5)
    lines = stream.getvalue().splitlines()
    assert "\r" not in stream.getvalue()
    assert len(lines) == 100 // progress.SECONDS_PER_LINE + 1
    assert lines[-1].startswith("  2pl          100 steps [")
    assert lines[-1].endswith("0.5")


def test_lines_go_on_while_nothing_is_reported(monkeypatch):
    stream, told = io.StringIO(), threading.Event()
    stream.write = lambda text, write=stream.write: (write(text), told.set())
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SECONDS_PER_BEAT", 0.01)
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.05)
    with progress.steps("scale") as say:
        say("two factors")
        told.clear()
        assert told.wait(10)
        assert stream.getvalue().splitlines()[0].endswith("two factors")

    def beats():
        return [thread for thread in threading.enumerate() if thread.name == progress.BEAT]

    for thread in beats():  # of what has ended
        thread.join(10)
    assert not beats()
    with progress.steps("scale"):
        assert len(beats()) == 1
    assert stream.getvalue().splitlines()[-1].endswith("done")


def test_the_time_left_of_networks_is_that_of_those_in_training_too(monkeypatch):
    """All train side by side and end soon after one another: by those that have finished it would be an hour."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "SECONDS_PER_BEAT", 3600.0)
    with progress.networks_bar("crowd", 105) as on_progress:
        bar = inspect.getclosurevars(on_progress).nonlocals["bar"]
        bar._time = lambda: bar.start_t + 40.0
        on_progress(Progress(5, 100, 0, np.full(105, 0.5)))  # of an earlier run
        assert "5/105 networks [00:40<?], 100 training" in str(bar)
        on_progress(Progress(6, 99, 0, np.full(105, 0.5)))
        assert "6/105 networks [00:40<00:39], 99 training" in str(bar)


def test_on_a_terminal_a_bar_fits(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "60")
    with progress.fit_bar("2pl") as on_step:
        on_step(3, 0.5)
    assert max(len(line) for line in stream.getvalue().replace("\n", "\r").split("\r")) < 60


def test_the_console_entry_runs_the_binaries(answers, tmp_path, monkeypatch, capsys):
    assert sorted(cli.COMMANDS) == BINARIES
    monkeypatch.setattr(sys, "argv", ["irtjax"])
    monkeypatch.setattr(cli, "end_on_ctrl_c", lambda: None)
    cli.main()
    shown = capsys.readouterr().out
    assert all(f"\n  {command} " in shown for command in cli.COMMANDS)
    monkeypatch.setattr(sys, "argv", ["irtjax", "fits"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert "no command 'fits', expected one of fit_irt, score" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["irtjax", "fit_itr"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert "no command 'fit_itr': did you mean fit_irt?" in capsys.readouterr().err
    (tmp_path / "experiments").mkdir()  # of the user, and not ours
    (tmp_path / "experiments" / "__init__.py").write_text("raise SystemExit('the wrong one')")
    entry = Path(sys.executable).with_name("irtjax")
    result = subprocess.run(
        [entry, "score", "--help"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "usage: irtjax score --items=PATH --responses=PATH --output_dir=PATH" in result.stdout


def test_former_names_of_commands_still_run():
    assert not set(cli.FORMER) & set(cli.COMMANDS)
    assert set(cli.FORMER.values()) < set(cli.COMMANDS)
    result = subprocess.run(
        [sys.executable, "-c", CONSOLE, "fit", "--help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert "usage: irtjax fit_irt --responses=PATH --output_dir=PATH" in result.stdout


@pytest.mark.slow
def test_formulas_are_guarded_where_that_is_asked_for(tmp_path):
    responses = simulate(60, 12)[0]
    ids = ["=1+1", "@sum", "-x", "+y", "plain", "-1.5", "a=b", "=two\nlines", *responses.item_ids[8:]]
    odd = irtjax.ResponseMatrix(responses.values, responses.subject_ids, ids)
    irtjax.write_responses(odd, tmp_path / "r.npz")
    for flags, expected in (
        ([], ids),
        (["--guard_formulas"], [f"'{i}" if k in (0, 1, 2, 3, 7) else i for k, i in enumerate(ids)]),
    ):
        place = [f"--responses={tmp_path / 'r.npz'}", f"--output_dir={tmp_path / 'fit'}", "--model=1pl"]
        assert run(*place, *flags, module="experiments.fit_irt").returncode == 0
        table = irtjax.read_items(tmp_path / "fit" / "items.csv")
        assert table.item_id.tolist() == expected
        assert (table.difficulty < 0).any()
    assert irtjax.load_fit(tmp_path / "fit").responses == odd
    pd.DataFrame({"item_id": ids, "difficulty": np.arange(12.0)}).to_csv(tmp_path / "items.csv", index=False)
    flags = [f"--items={tmp_path / 'items.csv'}", f"--responses={tmp_path / 'r.npz'}", "--guard_formulas"]
    compared = run(*flags, f"--output_dir={tmp_path / 'compared'}", module="experiments.compare_difficulty")
    assert compared.returncode == 0, compared.stderr
    with (tmp_path / "compared" / "difficulty.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=1+1" in cells
    assert not any(cell.startswith("=") for cell in cells)


def test_all_commands_that_write_tables_of_ids_guard_them():
    """But for those whose files later stages read."""
    for name in cli.COMMANDS:
        files = (REPOSITORY / "experiments" / f"{name}.py", REPOSITORY / "experiments" / "commands" / f"{name}.py")
        text = "".join(file.read_text() for file in files)
        assert "whole_results(" not in text, name
        assert ("guarded_results(" in text or "results_of_first(" in text) == ("define_guard()" in text), name
