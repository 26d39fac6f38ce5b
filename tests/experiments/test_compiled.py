"""Compiled programs that commands keep: where, how many, for whom, and what happens where they cannot be kept."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import pytest
from conftest import REPOSITORY

from experiments.common.compiled import ENVIRONMENT, KEPT_SHARE, LEAST_FREE, SHORTEST, discard_oldest, keep_compiled

SCRIPT = """
import jax, sys
from experiments.common import app
import experiments.common.compiled as compiled
compiled.SHORTEST = 0.0
jax.monitoring.register_event_listener(lambda name, **_: print(name) if "cache_" in name else None)
app.run(lambda: print(jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((3, 3)))), **eval(sys.argv.pop()))
"""
HIT, MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


@pytest.fixture
def unset(monkeypatch, tmp_path):
    """No cache as yet, and none chosen by the environment."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", raising=False)
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    jax.config.update("jax_compilation_cache_dir", None)
    yield tmp_path / "cache" / "compiled"
    jax.config.update("jax_compilation_cache_dir", before[0])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


def _run(options="{}", **variables):
    without = (*ENVIRONMENT, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, options],
        cwd=REPOSITORY,
        env=kept | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split(), found.stderr


def test_the_second_command_reads_what_the_first_compiled_and_only_the_first_tells(tmp_path):
    first, told = _run(IRTJAX_CACHE=str(tmp_path))
    second, nothing = _run(IRTJAX_CACHE=str(tmp_path))
    assert MISS in first
    assert HIT not in first
    assert HIT in second
    assert MISS not in second
    assert told.startswith(f"note: compiled programs are kept in {tmp_path / 'compiled'}, 256 MB at most")
    assert (told.count("\n"), nothing) == (1, "")
    anew, nothing = _run("{'compiles_anew': True}", IRTJAX_CACHE=str(tmp_path))
    assert (HIT in anew, nothing) == (False, "")
    # what was cut short is compiled again
    for path in tmp_path.rglob("*-cache"):
        path.write_bytes(path.read_bytes()[:50])
    damaged, nothing = _run(IRTJAX_CACHE=str(tmp_path))
    assert (damaged[-1], nothing) == ("27.0", "")
    assert HIT not in damaged


def test_a_folder_of_the_user_alone_with_one_for_this_processor(unset, capsys):
    keep_compiled()
    folder = jax.config.jax_compilation_cache_dir
    assert [str(path) for path in unset.iterdir()] == [folder]
    assert jax.config.jax_persistent_cache_min_compile_time_secs == SHORTEST
    assert unset.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_what_the_user_set_stays(unset, monkeypatch, name):
    monkeypatch.setenv(name, "")
    keep_compiled()
    assert (jax.config.jax_compilation_cache_dir, unset.exists()) == (None, False)


def test_a_place_that_cannot_be_used_is_left_alone(unset, monkeypatch):
    unset.parent.write_text("a file where the folder should be")
    keep_compiled()
    assert jax.config.jax_compilation_cache_dir is None
    unset.parent.unlink()
    unset.mkdir(parents=True)
    unset.chmod(0o777)  # others could put programs there, which would run as the user
    keep_compiled()
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.delenv("IRTJAX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(unset.parent / "other"))
    keep_compiled()
    assert jax.config.jax_compilation_cache_dir.startswith(str(unset.parent / "other" / "irtjax" / "compiled"))


def test_the_files_used_last_stay(tmp_path):
    for at in range(10):
        path = tmp_path / f"{at % 2}" / f"{at}-cache"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1_000 - at, 500))
    discard_oldest(tmp_path, 1_000)
    assert len(list(tmp_path.glob("*/*"))) == 10
    discard_oldest(tmp_path, 999)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == [f"{at}-cache" for at in range(int(9.99 * KEPT_SHARE))]


def test_nothing_is_kept_on_a_disk_that_is_nearly_full(unset, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=LEAST_FREE - 1))
    keep_compiled()
    assert (jax.config.jax_compilation_cache_dir, unset.exists()) == (None, False)
    assert capsys.readouterr().err == f"note: compiled programs are not kept: the disk of {unset} has 63 MB left\n"


def test_empty_files_of_a_full_disk_go(tmp_path):
    (tmp_path / "own").mkdir()
    for name, size in (("empty", 0), ("whole", 10)):
        (tmp_path / "own" / name).write_bytes(bytes(size))
    discard_oldest(tmp_path, 1_000)
    assert [path.name for path in tmp_path.glob("*/*")] == ["whole"]


@pytest.mark.slow
def test_commands_at_once_share_a_folder(tmp_path):
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: _run(IRTJAX_CACHE=str(tmp_path)), range(3)))
    assert [output[-1] for output, _ in found] == ["27.0"] * 3
    assert sum(told.count("\n") for _, told in found) == 1
