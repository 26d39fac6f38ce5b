r"""Against py-irt, girth and PyPI's mirt: time, memory and error of the difficulties on the same simulated answers.

  python -m benchmarks.versus_pyirt --num_subjects=1000 --num_items=10000
  python -m benchmarks.versus_pyirt --num_subjects=100000 --num_items=2000 --answers=20 --rivals=pyirt,mirt

Each contestant runs in a process of its own, the rivals in virtual environments of their own, which are made on first
use (6 GB of disk, two minutes). Prints a table and py-irt's time in units of irtjax's, measured in the same run.
Expected duration on 2 CPU cores: one minute for 300 × 500. Most of it is py-irt's, which grows with answers × epochs:
for 1000 × 10,000 expect 20 minutes for each kind of priors.
"""

import dataclasses
import datetime
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from benchmarks import contestants, sparse_data
from benchmarks.contestants import say
from experiments.common import app
from irtjax import ResponseMatrix, SparseResponses, write_responses
from irtjax.errors import InputError
from irtjax.responses.sparse import of_matrix
from irtjax.storage.files import whole_file, writable_directory
from irtjax.svi.choices import PRIORS

REQUIREMENTS = {"pyirt": "py-irt==0.7.1", "girth": "girth==0.8.0", "mirt": "mirt==1.2.0"}
TOLERANCE = 1.05  # of the smallest RMSE: an earlier end of py-irt's training that is as good as its best

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 10_000, "I", lower_bound=2)
_ANSWERS = flags.DEFINE_integer(
    "answers", None, "of each subject, drawn by the popularity of items, a power law; all by default", lower_bound=2
)
_PYIRT_EPOCHS = flags.DEFINE_integer("pyirt_epochs", 2000, "epochs of py-irt; 2000 is its default", lower_bound=1)
_PRIORS = flags.DEFINE_list("priors", list(PRIORS), "priors of py-irt and of irtjax's svi")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data and of the fits", lower_bound=0, upper_bound=2**31 - 1)
_RIVALS = flags.DEFINE_list("rivals", ["pyirt", "girth"], "who to run beside irtjax")
_GIRTH_ITEMS = flags.DEFINE_integer(
    "girth_items",
    500,
    "the first items, for girth and irtjax's mml: girth's likelihood underflows at 1,000",
    lower_bound=2,
)
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_pyirt", "folder of the rivals' virtual environments")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make the rivals' environments with")
_OUTPUT = flags.DEFINE_string("output", None, "JSON file for the results")
for _flag, _known in ((_PRIORS, PRIORS), (_RIVALS, tuple(REQUIREMENTS))):
    flags.register_validator(
        _flag, lambda given, known=_known: set(given) <= set(known), f"expected some of {', '.join(_known)}"
    )


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Answers of the 1PL: θ and b from N(0, 1), P(right) = σ(θ - b)."""

    theta: np.ndarray
    b: np.ndarray
    responses: ResponseMatrix | SparseResponses

    def first(self, num_items: int) -> "Simulation":
        """The same subjects on the first items."""
        chosen = np.arange(min(num_items, self.b.size))
        return Simulation(self.theta, self.b[chosen], self.responses.choose_items(chosen))


class Row(NamedTuple):
    """One line of the table: a fit, or the error that came in its place; seconds, and 2²⁰ bytes.

    `wall` and `cpu` are of the fit, `total` is wall time from the start of the process: imports, reading, fit.
    """

    contestant: str
    label: str
    num_items: int
    reference: str | None = None
    wall: float | None = None
    cpu: float | None = None
    total: float | None = None
    peak_mb: float | None = None
    rmse: float | None = None
    rmse_by_ability: float | None = None
    steps: int | None = None
    converged: bool | None = None
    error: str | None = None


def simulate(num_subjects: int, num_items: int, seed: int) -> Simulation:
    """Draws abilities, difficulties and answers: all, or as many of each subject as `--answers` says."""
    if _ANSWERS.value is not None:
        drawn = sparse_data.simulate(num_subjects, num_items, _ANSWERS.value, "random", "1pl", seed)
        return Simulation(drawn.theta, drawn.b, drawn.responses)
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=num_subjects), rng.normal(size=num_items)
    values = np.empty((num_subjects, num_items), np.int8)
    for row, ability in zip(values, theta, strict=True):
        row[:] = rng.random(num_items) < 1 / (1 + np.exp(b - ability))
    subjects, items = (np.arange(size).astype(str) for size in values.shape)
    return Simulation(theta, b, ResponseMatrix(values, subjects, items))


def write_npz(simulation: Simulation, path: Path, *, whole: bool = False) -> None:
    """Writes the answers for irtjax, girth and mirt; with `whole` the whole matrix of few answers each."""
    write_responses(simulation.responses.read() if whole else simulation.responses, path)


def write_json_lines(simulation: Simulation, path: Path) -> None:
    """Writes the answers for py-irt."""
    responses = simulation.responses
    sparse = responses if isinstance(responses, SparseResponses) else of_matrix(responses)
    items, answers = sparse.items.tolist(), sparse.answers.tolist()
    with path.open("w") as file:
        for j, (begin, end) in enumerate(itertools.pairwise(sparse.starts.tolist())):
            given = dict(zip(map(str, items[begin:end]), answers[begin:end], strict=True))
            file.write(json.dumps({"subject_id": str(j), "responses": given}) + "\n")


def errors(simulation: Simulation, difficulty: np.ndarray, mean_ability: float) -> tuple[float, float]:
    """RMSE of difficulties in logits, their free origin set by mean error 0, and by the subjects' mean ability."""
    error = difficulty - simulation.b
    by_ability = error - mean_ability + simulation.theta.mean()
    return float(error.std()), float(np.sqrt(np.mean(by_ability**2)))


def _difficulties(run: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Those of a run, and its mean ability; of the 2PL -intercept / slope, the mean being 0."""
    slope = np.array(run.get("items", {}).get("slope", [1.0]))
    if np.ptp(slope) > 0:
        return -np.array(run["items"]["intercept"]) / slope, 0.0
    return np.array(run["difficulty"]), run["mean_ability"]


def measure(
    name: str, python: Path | str, settings: dict, simulation: Simulation, reference: str | None = None
) -> tuple[list[Row], dict[str, str]]:
    """Runs a contestant in a fresh process.

    Args:
        name: of the contestant; its first word names the script.
        python: its interpreter.
        settings: for its script.
        simulation: what it fits.
        reference: the contestant whose time is its unit.

    Returns:
        One row per fit, or one with the error, and the versions of the contestant's packages.
    """
    say(f"{name}: {simulation.responses}")
    num_items = simulation.b.size
    found = contestants.run(name, python, settings)
    if "error" in found:
        return [Row(name, "", num_items, error=found["error"])], {}
    rows = []
    for run in found["runs"]:
        rmse, rmse_by_ability = errors(simulation, *_difficulties(run))
        row = Row(
            contestant=name,
            label=run["label"],
            num_items=num_items,
            reference=reference,
            wall=run["wall"],
            cpu=run["cpu"],
            total=None if run["label"] == "second fit" else run["at"] - found["began"],
            peak_mb=run["peak_mb"],
            rmse=rmse,
            rmse_by_ability=rmse_by_ability,
            steps=run["steps"],
            converged=run.get("converged"),
        )
        rows.append(row)
    return rows, found["versions"]


def best(rows: list[Row]) -> Row | None:
    """The fastest of the fits whose RMSE is within 5% of the smallest."""
    fitted = [(row.rmse, row.wall, row) for row in rows if row.rmse is not None and row.wall is not None]
    smallest = min((rmse for rmse, _, _ in fitted if np.isfinite(rmse)), default=-np.inf)
    good = [(wall, row) for rmse, wall, row in fitted if rmse <= TOLERANCE * smallest]
    return min(good, key=lambda one: one[0])[1] if good else None


def shown(rows: list[Row]) -> list[Row]:
    """What the table has of one training of py-irt: its earliest good end and its end."""
    earliest = best(rows)
    return rows[-1:] if earliest in (None, rows[-1]) else [earliest, rows[-1]]


def table(rows: list[Row]) -> str:
    """Aligned columns; the last two are wall time over the reference's, with and without its compilation."""
    heads = ("items", "wall s", "CPU s", "total s", "peak MB", "RMSE", "RMSE θ", "steps", "× first", "× second")
    lines = [f"{'':<42}" + "".join(f"{head:>9}" for head in heads)]
    for row in rows:
        line = f"{', '.join(filter(None, row[:2])):<42}{row.num_items:>9,}"
        if row.error is not None:
            lines.append(f"{line}  {row.error}")
            continue
        cells = [f"{value:.2f}" if value is not None else "" for value in (row.wall, row.cpu, row.total)]
        cells += [f"{row.peak_mb:,.0f}", f"{row.rmse:.4f}", f"{row.rmse_by_ability:.4f}"]
        cells += [f"{row.steps:,}{'' if row.converged in (None, True) else '!'}" if row.steps is not None else ""]
        units = [unit.wall for unit in rows if unit.contestant == row.reference and unit.wall]
        cells += [f"{row.wall / unit:.2f}" for unit in units if row.wall is not None]
        lines.append(line + "".join(f"{cell:>9}" for cell in cells))
    return "\n".join(lines)


def compete(folder: Path) -> tuple[list[Row], list[Row], dict[str, str]]:
    """Runs every contestant.

    Args:
        folder: for the files of answers.

    Returns:
        The rows of the table, those of py-irt's looks along the way, and versions.
    """
    simulation = simulate(_NUM_SUBJECTS.value, _NUM_ITEMS.value, _SEED.value)
    part = simulation.first(_GIRTH_ITEMS.value)
    npz, part_npz, json_lines = (folder / name for name in ("all.npz", "part.npz", "all.jsonlines"))
    write_npz(simulation, npz)
    rows: list[Row] = []
    looks: list[Row] = []
    versions: dict[str, str] = {}
    pythons: dict[str, Path] = {}
    for rival in _RIVALS.value:
        try:
            pythons[rival] = contestants.interpreter(rival, REQUIREMENTS[rival], _ENVIRONMENT.value, _PYTHON.value)
        except InputError as error:
            rows.append(Row(REQUIREMENTS[rival], "", 0, error=str(error)))

    def run(*arguments: Any) -> list[Row]:
        found, used = measure(*arguments)
        versions.update(used)
        return found

    for priors in _PRIORS.value:
        options: dict[str, Any] = {"model": "1pl", "estimator": "svi", "priors": priors, "seed": _SEED.value}
        rows += run(f"irtjax svi {priors}", sys.executable, {"responses": str(npz), "options": options}, simulation)
    options = {"model": "1pl", "estimator": "mml"}
    rows += run("irtjax mml", sys.executable, {"responses": str(npz), "options": options}, simulation)

    for rival, python in pythons.items():
        if rival == "girth":
            reference = "irtjax mml"
            write_npz(part, part_npz)
            settings: dict[str, Any] = {"responses": str(part_npz)}
            if part.b.size < simulation.b.size:
                reference = f"irtjax mml of {part.b.size:,} items"
                rows += run(reference, sys.executable, settings | {"options": options}, part)
            rows += run("girth", python, settings, part, reference)
        elif rival == "mirt":
            write_npz(simulation, whole := folder / "whole.npz", whole=True)
            ours = {"model": "2pl", "estimator": "mml"}
            rows += run("irtjax mml of the 2PL", sys.executable, {"responses": str(npz), "options": ours}, simulation)
            settings = {"responses": str(whole), "model": "2pl", "options": {"compute_standard_errors": False}}
            rows += run("mirt of the 2PL", python, settings, simulation, "irtjax mml of the 2PL")
        else:
            write_json_lines(simulation, json_lines)
            for priors in _PRIORS.value:
                settings = {"responses": str(json_lines), "epochs": _PYIRT_EPOCHS.value, "seed": _SEED.value}
                found = run(
                    f"py-irt {priors}", python, settings | {"priors": priors}, simulation, f"irtjax svi {priors}"
                )
                looks += found
                rows += shown(found)
    return rows, looks, versions


def main() -> None:
    """Runs, prints and writes; exit status 1 where irtjax has fitted nothing."""
    output = None
    try:
        if _OUTPUT.value is not None:
            output = writable_directory(Path(_OUTPUT.value).parent) / Path(_OUTPUT.value).name
        with tempfile.TemporaryDirectory() as folder:
            rows, looks, versions = compete(Path(folder))
    except InputError as error:
        sys.exit(f"error: {error}")
    cores = contestants.cpu_cores()
    few = "" if _ANSWERS.value is None else f", {_ANSWERS.value} answers of each subject"
    print(f"{_NUM_SUBJECTS.value:,} subjects × {_NUM_ITEMS.value:,} items{few}, seed {_SEED.value}, {cores} CPU cores")
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print(table(rows))
    rival = best(looks)
    ours = [row for row in rows if row.contestant.startswith("irtjax") and row.error is None]
    if rival is not None:
        print(
            f"\npy-irt at its best ({rival.contestant.split()[1]} priors, {rival.label}): "
            f"{rival.wall:.1f} s, RMSE {rival.rmse:.4f}"
        )
        for row in ours:
            if row.num_items == rival.num_items and row.wall is not None and rival.wall is not None:
                print(f"{rival.wall / row.wall:9.2f} × {row.contestant}, {row.label} (RMSE {row.rmse:.4f})")
    if output is not None:
        results = {
            "date": datetime.date.today().isoformat(),
            "num_subjects": _NUM_SUBJECTS.value,
            "num_items": _NUM_ITEMS.value,
            "seed": _SEED.value,
            "cpu_cores": cores,
            "versions": versions,
            "rows": [row._asdict() for row in rows],
            "pyirt_looks": [row._asdict() for row in looks],
        }
        with whole_file(output) as path:
            path.write_text(json.dumps(results, indent=2) + "\n")
    if not ours:
        sys.exit("error: no fit by irtjax")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
