r"""Adaptive tests against catsim and adaptivetesting: time per test, error of the abilities, and the items asked.

  python -m benchmarks.adaptive --num_subjects=10000 --num_items=5000

A bank of the 3PL, recorded answers of all subjects, tests by maximum information. irtjax runs all tests in one call,
twice, so that the second has nothing to compile; the rivals run a few tests, one after the other. Each contestant has a
process of its own, the rivals environments of their own, which are made on first use (1 GB of disk, a minute). Prints a
table with times per test in units of irtjax's second call, measured in the same run, and in how many of the rivals'
tests irtjax asks the same items, given the same answers and the same kind of ability. Expected duration on 2 CPU cores:
two minutes.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from benchmarks import contestants
from benchmarks.contestants import say
from experiments.common import app
from irtjax.errors import InputError

REQUIREMENTS = {"catsim": "catsim==0.21.0", "adaptivetesting": "adaptivetesting==1.1.4"}
OURS = "irtjax-adaptive"

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 10_000, "J, tests of irtjax", lower_bound=1)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 5000, "I, items of the bank", lower_bound=1)
_LENGTH = flags.DEFINE_integer("length", 50, "items of a test", lower_bound=1)
_RULES = flags.DEFINE_list("rules", ["information", "variance"], "rules of irtjax; the first is the reference")
_CATSIM_TESTS = flags.DEFINE_integer("catsim_tests", 20, "tests of catsim", lower_bound=1)
_ADAPTIVETESTING_TESTS = flags.DEFINE_integer("adaptivetesting_tests", 2, "tests of adaptivetesting", lower_bound=1)
_RIVALS = flags.DEFINE_list("rivals", list(REQUIREMENTS), "who to run beside irtjax")
_SEED = flags.DEFINE_integer("seed", 0, "seed of bank, abilities and answers", lower_bound=0, upper_bound=2**31 - 1)
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_adaptive", "folder of the rivals' virtual environments")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make the rivals' environments with")
flags.register_validator(
    _RIVALS, lambda given: set(given) <= set(REQUIREMENTS), f"expected some of {', '.join(REQUIREMENTS)}"
)


def write_data(path: Path) -> np.ndarray:
    """Writes a bank (a lognormal, b normal, c uniform up to 0.25) and answers; returns the abilities."""
    rng = np.random.default_rng(_SEED.value)
    size = _NUM_ITEMS.value
    a, b, c = rng.lognormal(0, 0.3, size), rng.normal(size=size), rng.uniform(0.01, 0.25, size)
    theta = rng.normal(size=_NUM_SUBJECTS.value)
    values = np.empty((theta.size, size), np.int8)
    for row, ability in zip(values, theta, strict=True):
        row[:] = rng.random(size) < c + (1 - c) / (1 + np.exp(-a * (ability - b)))
    np.savez(path, a=a, b=b, c=c, theta=theta, values=values)
    return theta


def line(name: str, run: dict[str, Any], theta: np.ndarray, reference: float | None) -> str:
    """A row of the table."""
    each = run["wall"] / run["number"]
    rmse = np.sqrt(np.mean((np.array(run["ability"]) - theta[: run["number"]]) ** 2))
    ratio = f"{each / reference:10,.1f}" if reference else ""
    cells = f"{run['number']:8,}{run['wall']:9.2f}{run['cpu']:9.2f}{1e3 * each:11.3f}{run['peak_mb']:9,.0f}{rmse:8.3f}"
    return f"{name + ', ' + run['label']:<44}{cells}{ratio}"


def agreement(ours: list[list[int]], theirs: list[list[int]]) -> str:
    """How many tests have the same items in the same order, and at how many places tests have the same item."""
    one, other = (np.array(items)[: len(theirs)] for items in (ours, theirs))
    same = one == other
    return f"{same.all(axis=1).sum()} of {len(same)} tests, {same.sum():,} of {same.size:,} items"


def main() -> None:
    """Runs and prints; exit status 1 where irtjax has run no test."""
    tests = {"catsim": _CATSIM_TESTS.value, "adaptivetesting": _ADAPTIVETESTING_TESTS.value}
    tests = {rival: min(number, _NUM_SUBJECTS.value) for rival, number in tests.items()}
    lines: list[str] = []
    found: dict[str, Any] = {}
    versions: dict[str, str] = {}
    reference = None
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        theta = write_data(data)
        settings = {"data": str(data), "length": _LENGTH.value, "compared": max(tests.values())}
        for rule in _RULES.value:
            say(f"irtjax {rule}: {_NUM_SUBJECTS.value:,} tests")
            result = contestants.run(OURS, sys.executable, settings | {"rule": rule, "ability": "eap"})
            if "error" in result:
                sys.exit(f"error: irtjax {rule}: {result['error']}")
            found.setdefault("irtjax", result)
            versions |= result["versions"]
            reference = reference or result["runs"][-1]["wall"] / result["runs"][-1]["number"]
            lines += [line(f"irtjax {rule}, eap", run, theta, reference) for run in result["runs"]]
        for rival in _RIVALS.value:
            try:
                python = contestants.interpreter(rival, REQUIREMENTS[rival], _ENVIRONMENT.value, _PYTHON.value)
                say(f"{rival}: {tests[rival]} tests")
                chosen = settings | {"number": tests[rival], "compared": tests[rival]}
                result = contestants.run(rival, python, chosen)
            except InputError as error:
                result = {"error": str(error)}
            if "error" in result:
                lines.append(f"{rival}: {result['error']}")
                continue
            found[rival] = result
            versions |= {name: version for name, version in result["versions"].items() if name == rival}
            lines += [line(rival, run, theta, reference) for run in result["runs"]]
    sizes = (
        f"{_NUM_ITEMS.value:,} items, tests of {_LENGTH.value}, seed {_SEED.value}, {contestants.cpu_cores()} CPU cores"
    )
    print(sizes)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    heads = f"{'tests':>8}{'wall s':>9}{'CPU s':>9}{'ms a test':>11}{'peak MB':>9}{'RMSE':>8}{'× first':>10}"
    print("\n".join([f"{'':<44}{heads}", *lines]))
    ours = found.pop("irtjax")
    for rival, result in found.items():
        theirs = result["runs"][0]["items"]
        for dtype, items in (("float64", ours["exact"]["items"]), ("float32", ours["runs"][-1]["items"])):
            print(f"the same items as {rival}, irtjax in {dtype}: {agreement(items, theirs)}")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
