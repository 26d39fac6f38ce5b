"""Every benchmark can be started, and says what it does; scripts of rivals can be read without the rivals."""

import ast
import importlib.util
import json
import runpy

from binaries import run
from conftest import REPOSITORY

BENCHMARKS = sorted((REPOSITORY / "benchmarks").glob("*.py"))
RIVALS = sorted((REPOSITORY / "benchmarks" / "rivals").glob("*.py"))
NEEDED_AT_ONCE = {"torch_crowd": "torch"}  # the others import their package when they are asked to fit
WORKERS = {"scaling_worker": json.dumps({"cores": [], "coordinator": None})}  # reads requests: here there are none


def test_every_benchmark_starts_and_explains_itself():
    explained = []
    for path in BENCHMARKS:
        result = run(WORKERS.get(path.stem, "--help"), module=f"benchmarks.{path.stem}")
        assert "Traceback" not in result.stderr, result.stderr
        assert result.returncode == 0, path.stem
        assert "tpu" not in result.stderr.lower(), path.stem
        if "app.run(main" in path.read_text(encoding="utf-8"):
            first = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()[0]
            assert result.stdout.startswith(first), path.stem
            explained.append(path.stem)
    assert {"crowd", "curriculum", "regrouping", "recovery"} <= set(explained)


def test_every_script_of_a_rival_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(RIVALS[0].parent))
    for path in RIVALS:
        needed = NEEDED_AT_ONCE.get(path.stem)
        if needed is None or importlib.util.find_spec(needed) is not None:
            found = runpy.run_path(str(path))
            assert callable(found["main"]), path.stem
