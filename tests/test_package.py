"""The package as it is installed: a clone by its path, from which every folder finds it."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version

import pytest
from conftest import REPOSITORY

BUILD = "from setuptools import build_meta; print(build_meta.build_editable('built'))"
ORIGINS = """
import importlib.util, site, sys
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
    origins = python("-c", ORIGINS, parent / "site", cwd=parent / where).split()
    expected = ("irtjax/__init__.py", "irtjax/fitting.py", "experiments/common/__init__.py")
    assert origins == [str(clone / file) for file in expected]
