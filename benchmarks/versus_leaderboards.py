r"""Against theta-irt, the mirt of PyPI and R's mirt: likelihood, time and memory on responses of language models.

  python -m benchmarks.versus_leaderboards --output=runs/versus_leaderboards.json
  python -m benchmarks.versus_leaderboards --sets=arc,mmlu --rivals=theta-irt

Fits the four sets of metabench (Kipnis et al., 2024: 4,278 to 5,041 models × 100 to 249 items) with the defaults of
irtjax and of each rival, and with the best settings of the rivals. Each contestant has a process of its own, the rivals
in virtual environments of their own, which are made on first use (half a minute, 1 GB of disk). The parameters of R's
mirt are those that metabench has published.

Prints one row per contestant: the exact marginal log-likelihood at its parameters, and its log-loss on subjects that it
was not fitted to, both by one rule for all (benchmarks/exact_likelihood.py); time and memory in units of irtjax's in
the same run. Expected duration on 2 CPU cores: a minute or two for irtjax, 20 to 30 minutes for the rivals. Their
results are kept beside their environments, and used again without a comparison of times; --refresh measures anew.
"""

import dataclasses
import datetime
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from benchmarks import contestants
from benchmarks.contestants import say
from benchmarks.exact_likelihood import Items, log_likelihoods
from experiments.common import app
from irtjax import ResponseMatrix, write_responses
from irtjax.errors import InputError
from irtjax.storage.files import whole_file, writable_directory

MODELS = {"gsm8k": "2pl", "arc": "2pl", "arc_v2": "4pl", "mmlu": "3pl"}  # those of metabench
REQUIREMENTS = {"theta-irt": "theta-irt==0.1.1", "mirt": "mirt==1.2.0"}
# about as many nodes as NumPy's Gauss-Hermite rule, which theta-irt uses, can make; iterations enough where the items
# let it converge; nothing that is not asked for
TUNED = {
    "theta-irt": {"n_points": 361, "max_iter": 2000},
    "mirt": {"n_quadpts": 361, "max_iter": 5000, "accelerate": "squarem", "compute_standard_errors": False},
}
OURS, RECORDED = "irtjax", "R's mirt, as published"
HELD_OUT = 5  # one subject in five
# OpenBLAS waits busily for threads that other work keeps from running: mirt's 4PL then takes ten times as long
VARIABLES = {"OPENBLAS_NUM_THREADS": "1"}

_SETS = flags.DEFINE_list("sets", list(MODELS), "sets of metabench")
_RIVALS = flags.DEFINE_list("rivals", list(REQUIREMENTS), "who to run beside irtjax")
_TUNED = flags.DEFINE_bool("tuned", True, "run the rivals by their best settings too, beside their defaults")
_DATA_DIR = flags.DEFINE_string("data_dir", "../shared/llm_responses", "folder with metabench_SET.npz")
_TIMEOUT = flags.DEFINE_float("timeout", 1800, "seconds after which a contestant is ended, per set", lower_bound=1)
_REFRESH = flags.DEFINE_bool("refresh", False, "measure rivals whose results are there from an earlier run")
_ENVIRONMENT = flags.DEFINE_string(
    "environment", ".versus_leaderboards", "folder of the rivals' virtual environments and results"
)
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make the rivals' environments with")
_OUTPUT = flags.DEFINE_string("output", None, "JSON file for the results")
for _flag, _known in ((_SETS, tuple(MODELS)), (_RIVALS, tuple(REQUIREMENTS))):
    flags.register_validator(
        _flag, lambda given, known=_known: set(given) <= set(known), f"expected some of {', '.join(_known)}"
    )


@dataclasses.dataclass(frozen=True)
class Leaderboard:
    """Responses of many models to one benchmark, and the parameters that R's mirt found for it."""

    name: str
    responses: ResponseMatrix
    recorded: Items
    recorded_log_likelihood: float

    @property
    def model(self) -> str:
        """The item response model."""
        return MODELS[self.name]

    def parts(self) -> tuple[ResponseMatrix, ResponseMatrix]:
        """Four fifths of the subjects and the other fifth, drawn with seed 0."""
        order = np.random.default_rng(0).permutation(self.responses.num_subjects)
        held_out, training = np.split(order, [len(order) // HELD_OUT])
        return self._of(np.sort(training)), self._of(np.sort(held_out))

    def _of(self, subjects: np.ndarray) -> ResponseMatrix:
        return ResponseMatrix(
            self.responses.values[subjects], self.responses.subject_ids[subjects], self.responses.item_ids
        )


class Row(NamedTuple):
    """One line of the table: a contestant on a set, or the error that came in its place; seconds, and 2²⁰ bytes.

    `log_loss` is the mean of -log P of a response of the held-out subjects, by parameters from the others. `cached`:
    measured in an earlier run.
    """

    set: str
    contestant: str
    log_likelihood: float | None = None
    reported: float | None = None
    log_loss: float | None = None
    converged: bool | None = None
    steps: int | None = None
    wall_first: float | None = None
    wall_second: float | None = None
    cpu_first: float | None = None
    cpu_second: float | None = None
    peak_mb: float | None = None
    cached: bool = False
    error: str | None = None


def read(name: str) -> Leaderboard:
    """Reads a set.

    Raises:
        InputError: it is not there.
    """
    path = Path(_DATA_DIR.value) / f"metabench_{name}.npz"
    if not path.is_file():
        raise InputError(f"{path}: no such file; --data_dir names the folder with the sets of metabench")
    with np.load(path, allow_pickle=False) as arrays:
        responses = ResponseMatrix(arrays["responses"], arrays["subject_ids"], arrays["item_ids"])
        recorded = Items(arrays["a1"], arrays["d"], arrays["g"], 1 - arrays["u"])
        return Leaderboard(name, responses, recorded, float(arrays["log_likelihood"]))


def row_of(board: Leaderboard, contestant: str, found: dict[str, Any]) -> Row:
    """The row of what a contestant's script returned."""
    if "error" in found:
        return Row(board.name, contestant, error=found["error"])
    first, second, training = found["runs"]
    held_out = board.parts()[1].values
    return Row(
        set=board.name,
        contestant=contestant,
        log_likelihood=float(log_likelihoods(Items(**first["items"]), board.responses.values).sum()),
        reported=first["log_likelihood"],
        log_loss=float(-log_likelihoods(Items(**training["items"]), held_out).sum() / (held_out >= 0).sum()),
        converged=first["converged"],
        steps=first["steps"],
        wall_first=first["wall"],
        wall_second=second["wall"],
        cpu_first=first["cpu"],
        cpu_second=second["cpu"],
        peak_mb=second["peak_mb"],
        cached=found.get("cached", False),
    )


def recorded_row(board: Leaderboard) -> Row:
    """The row of R's mirt, which is not run: no parameters without the held-out subjects, and no time."""
    exact = float(log_likelihoods(board.recorded, board.responses.values).sum())
    return Row(board.name, RECORDED, log_likelihood=exact, reported=board.recorded_log_likelihood)


def run_rival(contestant: str, board: Leaderboard, settings: dict[str, Any]) -> dict[str, Any]:
    """What a rival's script returns, now or in an earlier run on the same data by the same package and script.

    Only results are kept: an error or a timeout is tried again.

    Raises:
        InputError: its environment cannot be made.
    """
    rival = contestant.split()[0]
    key = hashlib.sha256()
    for part in (settings["model"], settings["options"], REQUIREMENTS[rival], HELD_OUT, VARIABLES):
        key.update(json.dumps(part, sort_keys=True).encode())
    key.update(np.ascontiguousarray(board.responses.values).tobytes())
    for script in (contestants.script_of(contestant), contestants.SCRIPTS / "measure.py"):
        key.update(script.read_bytes())
    results = writable_directory(contestants.environments(_ENVIRONMENT.value) / "results")
    kept = results / f"{board.name}-{contestant.replace(' ', '-')}-{key.hexdigest()[:16]}.json"
    if kept.is_file() and not _REFRESH.value:
        return json.loads(kept.read_text()) | {"cached": True}
    python = contestants.interpreter(rival, REQUIREMENTS[rival], _ENVIRONMENT.value, _PYTHON.value)
    say(f"{board.name}: {contestant}")
    found = contestants.run(contestant, python, settings, VARIABLES, _TIMEOUT.value)
    if "error" not in found:
        with whole_file(kept) as path:
            path.write_text(json.dumps(found))
    return found


def compete(board: Leaderboard, folder: Path) -> tuple[list[Row], dict[str, str]]:
    """Runs every contestant on a set.

    Args:
        board: the set.
        folder: for the files of responses.

    Returns:
        One row per contestant, and versions.
    """
    paths = {name: folder / f"{board.name}_{name}.npz" for name in ("responses", "training")}
    for path, responses in zip(paths.values(), (board.responses, board.parts()[0]), strict=True):
        write_responses(responses, path)
    data = {name: str(path) for name, path in paths.items()}
    say(f"{board.name}: {OURS}")
    settings = data | {"options": {"model": board.model}}
    results = {OURS: contestants.run(OURS, sys.executable, settings, VARIABLES, _TIMEOUT.value)}
    for rival in _RIVALS.value:
        tunings = {rival: {}} | ({f"{rival} tuned": TUNED[rival]} if _TUNED.value else {})
        for contestant, options in tunings.items():
            try:
                results[contestant] = run_rival(contestant, board, data | {"model": board.model, "options": options})
            except InputError as error:
                results[contestant] = {"error": str(error)}
    rows = [row_of(board, contestant, found) for contestant, found in results.items()]
    versions = {name: at for found in results.values() for name, at in found.get("versions", {}).items()}
    versions |= results[OURS].get("versions", {})  # of packages that several have
    return [*rows, recorded_row(board)], versions


def number(value: float | None, decimals: int = 0) -> str:
    """Digits with separators; nothing for what is not known."""
    return "" if value is None else f"{value:,.{decimals}f}"


def ratio(row: Row, reference: Row | None, name: str) -> str:
    """A column in units of irtjax's; nothing for what an earlier run has measured."""
    ours, theirs = reference and getattr(reference, name), getattr(row, name)
    return number(theirs / ours, 2) if ours and theirs is not None and not row.cached else ""


def table(rows: list[Row]) -> str:
    """Aligned columns, for one set; the last five are in units of irtjax's."""
    heads = ("exact", "- irtjax's", "reported", "log-loss", "steps", "wall s", "second", "CPU s", "second", "MB")
    units = {"wall_first": "× wall", "wall_second": "second", "cpu_first": "× CPU", "cpu_second": "second"}
    units |= {"peak_mb": "× MB"}
    lines = [f"{'':<24}" + "".join(f"{head:>13}" for head in heads[:3])]
    lines[0] += "".join(f"{head:>9}" for head in (*heads[3:], *units.values()))
    reference = next((row for row in rows if row.contestant == OURS and row.error is None), None)
    for row in rows:
        line = f"{row.contestant + ('*' if row.cached else ''):<24}"
        if row.error is not None:
            lines.append(f"{line}  {row.error}")
            continue
        known = reference is not None and row is not reference
        ours, theirs = reference and reference.log_likelihood, row.log_likelihood
        difference = theirs - ours if known and theirs is not None and ours is not None else None
        wide = [number(row.log_likelihood, 1), number(difference, 1), number(row.reported, 1)]
        cells = [number(row.log_loss, 5), number(row.steps) + ("!" if row.converged is False else "")]
        cells += [number(x, 2) for x in (row.wall_first, row.wall_second, row.cpu_first, row.cpu_second)]
        cells += [number(row.peak_mb)] + [ratio(row, reference, name) if known else "" for name in units]
        lines.append(line + "".join(f"{cell:>13}" for cell in wide) + "".join(f"{cell:>9}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    """Runs, prints and writes; exit status 1 where irtjax has failed on a set."""
    output = None
    try:
        if _OUTPUT.value is not None:
            output = writable_directory(Path(_OUTPUT.value).parent) / Path(_OUTPUT.value).name
        boards = [read(name) for name in _SETS.value]
        contestants.environments(_ENVIRONMENT.value)
    except InputError as error:
        sys.exit(f"error: {error}")
    cores, rows = contestants.cpu_cores(), []
    versions: dict[str, str] = {}
    for board in boards:
        with tempfile.TemporaryDirectory() as folder:
            found, used = compete(board, Path(folder))
        rows += found
        versions |= used
        subjects, items = board.responses.values.shape
        print(f"{board.name}, {board.model}: {subjects:,} subjects × {items:,} items, {cores} CPU cores")
        print(table(found), end="\n\n", flush=True)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print("!: not converged, as it says itself. *: measured in an earlier run, times are not compared.")
    if output is not None:
        results = {
            "date": datetime.date.today().isoformat(),
            "cpu_cores": cores,
            "versions": versions,
            "rows": [row._asdict() for row in rows],
        }
        with whole_file(output) as path:
            path.write_text(json.dumps(results, indent=2) + "\n")
    failed = [row.set for row in rows if row.contestant == OURS and row.error is not None]
    if failed:
        sys.exit(f"error: no fit by irtjax of {', '.join(failed)}")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
