"""The package as it is installed: a clone by its path, from which every folder finds it; a wheel with all it needs."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version

import pytest
from conftest import REPOSITORY

BUILD = "from setuptools import build_meta; print(build_meta.build_editable('built'))"
ORIGINS = """
import importlib.util, site, sys
sys.path.remove(sys.argv[2])  # where this repository is installed for its tests
site.addsitedir(sys.argv[1])
for name in ("irtjax", "irtjax.fitting", "experiments.common"):
    print(importlib.util.find_spec(name).origin)
"""


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A folder with a clone in it that is called as the package, and the files of its installation in `site`."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("needs the setuptools of the test extra")
    folder = tmp_path_factory.mktemp("parent")
    clone = folder / "irtjax"
    clone.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, clone)
    for package in ("irtjax", "experiments"):
        shutil.copytree(REPOSITORY / package, clone / package, ignore=shutil.ignore_patterns("__pycache__"))
    wheel = python("-W", "ignore", "-c", BUILD, cwd=clone).splitlines()[-1]
    zipfile.ZipFile(clone / "built" / wheel).extractall(folder / "site")
    return folder


def python(*arguments, cwd):
    """What Python prints that knows nothing of this repository but what is in `cwd`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_clone_is_installed_by_its_path(parent):
    assert [path.suffix for path in (parent / "site").glob("*irtjax*") if path.is_file()] == [".pth"]


@pytest.mark.parametrize("where", [".", "irtjax", "site"])
def test_the_package_is_found_from_every_folder(parent, where):
    """In the folder that holds the clone, the folder of the clone would pass for a package without code."""
    clone = (parent / "irtjax").resolve()
    origins = python("-c", ORIGINS, parent / "site", REPOSITORY, cwd=parent / where).split()
    expected = ("irtjax/__init__.py", "irtjax/fitting.py", "experiments/common/__init__.py")
    assert origins == [str(clone / file) for file in expected]


def test_a_wheel_holds_the_files_that_are_no_code(parent):
    wheel = python("-W", "ignore", "-c", BUILD.replace("editable", "wheel"), cwd=parent / "irtjax").splitlines()[-1]
    names = set(zipfile.ZipFile(parent / "irtjax" / "built" / wheel).namelist())
    folders = (REPOSITORY / "experiments" / name for name in ("presets", "reports", "reports/templates"))
    found = (path for folder in folders for path in folder.iterdir() if path.is_file() and path.suffix != ".py")
    files = {path.relative_to(REPOSITORY).as_posix() for path in found}
    assert {"experiments/reports/page.html", "experiments/reports/templates/audit.md.j2"} <= files <= names
    assert "irtjax/py.typed" in names


EXAMPLE = REPOSITORY / "docs" / "guide" / "responses.csv"
USE = """
import sys, irtjax
assert "site-packages" in irtjax.__file__, irtjax.__file__
fit = irtjax.fit([[(7 * j + i * i) % 5 < 3 - (i > j % 6) for i in range(6)] for j in range(60)], "rasch")
print(fit.responses.num_subjects, len(fit.items()))
"""


@pytest.mark.slow
def test_a_wheel_brings_all_that_it_needs(tmp_path):
    """Built from the source distribution, so that this is whole too; installed with its dependencies and no others."""
    pytest.importorskip("build")
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY, text=True).split("\0")[:-1]
    for file in files:
        if (REPOSITORY / file).exists() and not file.startswith("docs/"):
            (tmp_path / "clone" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / file, tmp_path / "clone" / file)
    python("-m", "build", "--outdir", tmp_path / "dist", cwd=tmp_path / "clone")
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert len(list((tmp_path / "dist").glob("*.tar.gz"))) == 1
    python("-m", "venv", tmp_path / "empty", cwd=tmp_path)
    own = tmp_path / "empty" / "bin"
    install = [own / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True, cwd=tmp_path)
    alone = {"PATH": str(own), "HOME": str(tmp_path)}
    for command, expected in (
        ([own / "python", "-c", USE], "60 6"),
        ([own / "irtjax", "--help"], "usage: irtjax COMMAND [flags]"),
        ([own / "irtjax", "fit", f"--responses={EXAMPLE}", "--model=rasch", "--output_dir=fit"], "Done: fit/items.csv"),
    ):
        done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


def test_continuous_integration_runs_the_makefile_on_every_python_of_the_package():
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"test", "test-slow", "docs", "dist"} == set(re.findall(r"run: make ([a-z-]+)", workflow)) <= set(targets)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert re.findall(r'"(3\.\d+)"', re.search(r"python: \[.*\]", workflow)[0]) == pythons
    assert project["requires-python"] == f">={pythons[0]}"
