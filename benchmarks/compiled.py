r"""What each main program becomes on a TPU or GPU, judged by the chips' own compilers; no chip is needed.

  python -m benchmarks.compiled --output_dir=DIR
  python -m benchmarks.compiled --output_dir=DIR --chips=v5e,h100 --programs=likelihood

The compilers are installed on first use (1.3 GB of disk, two minutes), into environments of their own, of the version
of jax that runs. Each program is compiled at its true size, in the formulation for the chip. Nothing is run: seconds
are a compiler's estimate or a prediction, never a time.

* **TPU: `estimate`.** The compiler's own cycles of each kernel (`estimated_cycles` in the compiled text), loops
  multiplied by their turns, over the clock; a kernel without an estimate at the rate of the memory.
* **GPU: `prediction`.** Its compiler estimates nothing. Bytes that kernels read and write, loops multiplied, at the
  rate of the memory, and 4 µs for starting each kernel; no less than the limit, as work within kernels is left out.
* **`limit`**, the longest of: one read of the arguments and one write of the results (of a step of training, of all
  that it changes); the matrix products at their peak; all other arithmetic; transcendental functions (`chips`).
* **`ratio`** is the estimate or the prediction over the limit.

Loops that turn until the data say so count once: such a row is *of a turn*, and says of what. `optimal_seconds` of
XLA's cost analysis is in the table, too. It counts every loop once, whatever its turns; multiplied by them, it would
multiply what is outside of the loop.

Writes compiled.csv, compiled.json and compiled.png; what the folder has of other chips and programs stays in them.
`--before=FILE`, the compiled.json of other code, is drawn with hollow markers beside.
Expected duration on 2 CPU cores: up to an hour for each chip of one device.
"""

import contextlib
import datetime
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from matplotlib.figure import Figure

from benchmarks import contestants
from benchmarks.chips import CHIPS, LAUNCH, Chip, limits
from benchmarks.contestants import say
from benchmarks.flops import Work
from experiments.common import app
from experiments.common.path_flags import define_output_dir, define_path
from irtjax.errors import InputError
from irtjax.plots.style import COLOURS, plain, save_figure
from irtjax.storage.files import whole_results, write_csv

_OUTPUT_DIR = define_output_dir("folder for the results")
_CHIPS = flags.DEFINE_list("chips", list(CHIPS), "for which chips, of " + ", ".join(CHIPS))
_PROGRAMS = flags.DEFINE_string("programs", None, "a regular expression that names of programs are to contain")
_ENVIRONMENT = flags.DEFINE_string("environment", ".compiled", "folder of the compilers' virtual environments")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make these with, of the version that runs")
_BEFORE = define_path("before", "compiled.json to compare with, in the picture")
_SECONDS = flags.DEFINE_integer("seconds", 300, "that a program may take to compile", lower_bound=1)
flags.register_validator("chips", lambda given: set(given) <= set(CHIPS), f"expected some of {', '.join(CHIPS)}")
TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}


def requirements(platform: str) -> str:
    """What pip installs for the compiler of a platform: that alone, as all else is here already."""
    version = importlib.metadata.version("jax")
    if platform == "gpu":
        return f"--no-deps jax-cuda12-pjrt=={version} jax-cuda12-plugin=={version} nvidia-cuda-nvcc-cu12"
    of_tpu = (line for line in importlib.metadata.requires("jax") or () if "libtpu" in line and "tpu" in line)
    found = next(of_tpu, "libtpu").split(";")[0].replace(" ", "")
    return f"--no-deps {found}"


def environment_of(chip: Chip, folder: str, python: str) -> dict[str, str]:
    """Variables under which this interpreter finds the compiler of a chip; it is installed where it is missing.

    Raises:
        InputError: it cannot be installed.
    """
    installed = contestants.interpreter(chip.platform, requirements(chip.platform), folder, python)
    (packages,) = installed.parents[1].glob("lib/python*/site-packages") if os.name != "nt" else (Path(),)
    variables = {
        "PYTHONPATH": os.pathsep.join([contestants.OURS["PYTHONPATH"], str(packages)]),
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    if chip.platform == "gpu":
        ptxas = packages / "nvidia" / "cuda_nvcc" / "bin"
        return variables | {"PATH": os.pathsep.join([str(ptxas), os.environ.get("PATH", "")])}
    # only the number of hosts is taken from it: chips are those of the topology
    return variables | TPU | {"TPU_ACCELERATOR_TYPE": f"v5litepod-{max(4, chip.number)}"}


def rows_of(chip: Chip, variables: dict[str, str], programs: str | None, seconds: int) -> Iterator[dict[str, Any]]:
    """The figures of all programs on a chip; a program that its compiler does not survive is a row with an error."""
    names: list[str] | None = None
    while names is None or names:
        settings = {"platform": chip.platform, "topology": chip.topology, "number": chip.number}
        settings |= {"names": names, "pattern": programs or "", "seconds": seconds}
        at, last, status = None, "", 0
        done: list[str] = []
        for message in _messages(settings, variables):
            if "names" in message:
                names = message["names"]
            elif "begins" in message:
                at = message["begins"]
            elif "program" in message:
                at = None
                done.append(message["program"])
                say(f"{chip.name}, {_told(message)}")
                yield message
            elif "ended" in message:
                status, last = message["ended"], message["last"]
        if at is not None:
            of_time = status == -signal.SIGALRM
            error = f"not compiled within {seconds} s" if of_time else f"the compiler ended ({status}): {last}"
            done.append(at)
            say(f"{chip.name}, {at}: {error}")
            yield {"program": at, "error": error}
        elif names is None or (names and not done):
            raise InputError(f"the compiler for {chip.name} does not start: {last}")
        names = [name for name in names or () if name not in done]


def _messages(settings: dict[str, Any], variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What a process that compiles says, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        given, log = Path(folder, "settings.json"), Path(folder, "log.txt")
        given.write_text(json.dumps(settings))
        with log.open("w") as errors:
            command = [sys.executable, str(contestants.script_of("compilers")), str(given)]
            worker = subprocess.Popen(
                command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            try:
                assert worker.stdout is not None
                for line in worker.stdout:
                    if line.startswith("ROW "):
                        yield json.loads(line[4:])
                status = worker.wait()
            finally:
                worker.kill()
                with contextlib.suppress(OSError), worker:
                    pass
        lines = log.read_text(errors="replace").strip().splitlines()
        yield {"ended": status, "last": lines[-1] if lines else ""}


def _told(message: dict[str, Any]) -> str:
    if "error" in message:
        return f"{message['program']}: {message['error'][:160]}"
    return f"{message['program']}: compiled in {message['compilation_seconds']:.1f} s"


def judged(key: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table, out of what the compiled text says."""
    chip = CHIPS[key]
    if "error" in row:
        return {"chip": key, "program": row["program"], "ratio": np.nan, "error": row["error"]}
    work = Work(*(row[f"work_{field}"] // chip.number for field in ("products", "elementwise", "transcendental")))
    parts = limits(chip, work, row["least_bytes"], row["products"])
    bound = max(parts, key=lambda part: parts[part])
    if chip.platform == "tpu":
        seconds, kind = row["cycles"] / chip.clock + row["unestimated"] / chip.bandwidth, "estimate"
    else:
        seconds, kind = row["bytes"] / chip.bandwidth + LAUNCH * row["kernels"], "prediction"
        seconds = max(seconds, parts[bound])  # a kernel's work is not in its bytes
    held = row["argument_bytes"] + row["output_bytes"] + row["materialised_bytes"] - row["alias_bytes"]
    return {
        "chip": key,
        "program": row["program"],
        "of_a_turn": row["turn"] or ("a turn" if row["unknown_loops"] else ""),
        "seconds": seconds,
        "seconds_are": kind,
        "limit_seconds": parts[bound],
        "limited_by": bound,
        "ratio": seconds / parts[bound] if parts[bound] else np.nan,
        "share_of_peak": work.products / seconds / chip.products["bfloat16"] if seconds else np.nan,
        "bytes_read_once": row["least_bytes"],
        "bytes_moved": row["bytes"],
        "bytes_materialised": row["materialised_bytes"],
        "share_of_memory": held / chip.memory,
        "kernels": row["kernels"],
        "kernels_per_turn": row["kernels_per_turn"],
        "turns": row["loop_turns"],
        "collectives": row["collectives"],
        "collective_bytes": row["collective_bytes"],
        "products": work.products,
        "elementwise": work.elementwise,
        "transcendental": work.transcendental,
        "optimal_seconds_loops_once": row["optimal_seconds_of_one_turn"],
        "compilation_seconds": row["compilation_seconds"],
        "error": "",
    }


def picture(table: pd.DataFrame, before: pd.DataFrame | None = None) -> Figure:
    """Ratio to the limit of each program on one device, by chip; those that do not compile are left out.

    Args:
        table: of this code.
        before: of other code, drawn hollow where it has the same program.
    """
    alone = [key for key in CHIPS if CHIPS[key].number == 1 and key in set(table.chip)]
    table = table[table.chip.isin(alone) & table.ratio.notna()]
    names = sorted(set(table.program))
    figure = Figure(figsize=(9, 1.6 + 0.24 * len(names)), layout="constrained")
    axis = figure.subplots()
    axis.axvline(1, color="black", linewidth=1, zorder=1)
    for colour, marker, key in zip(COLOURS, "osD", alone, strict=False):
        rows = table[table.chip == key].set_index("program")
        at = [names.index(name) for name in rows.index]
        what = rows.seconds_are.iloc[0]
        axis.plot(rows.ratio, at, marker, color=colour, markersize=5, label=f"{CHIPS[key].name}: {what}", zorder=3)
        if before is None:
            continue
        old = before[(before.chip == key) & before.ratio.notna() & before.program.isin(names)]
        at = [names.index(name) for name in old.program]
        axis.plot(
            old.ratio, at, marker, color=colour, markersize=5, fillstyle="none", label=f"{CHIPS[key].name}: before"
        )
    axis.set(xscale="log", xlabel="seconds of the compiled program (estimate or prediction) / limit of the chip")
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", linewidth=0.4, color="#dddddd")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3 if before is None else 2, frameon=False)
    return plain(figure)


def shown(table: pd.DataFrame) -> str:
    """The table for readers, a block for each chip."""
    lines = []
    heads = ("seconds", "limit", "by", "ratio", "materialised", "of memory", "kernels", "turns", "collectives")
    for key, rows in table.groupby("chip", sort=False):
        lines.append(f"\n{CHIPS[str(key)].name}\n{'':<44}" + "".join(f"{head:>15}" for head in heads))
        for row in rows.itertuples():
            if row.error:
                lines.append(f"{row.program:<44}  {row.error[:120]}")
                continue
            cells = (
                f"{row.seconds:.3g}{' a turn' if row.of_a_turn else ''}",
                f"{row.limit_seconds:.3g}",
                row.limited_by,
                f"{row.ratio:.2f}",
                f"{row.bytes_materialised / 1e6:,.1f} MB",
                f"{row.share_of_memory:.1%}",
                f"{row.kernels_per_turn:,.0f}",
                f"{row.turns:,.0f}",
                f"{row.collectives:,.0f}",
            )
            lines.append(f"{row.program:<44}" + "".join(f"{cell:>15}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    """Compiles, prints and writes; a chip whose compiler cannot be had is skipped in one line."""
    rows: list[dict[str, Any]] = []
    before = _rows_before()
    for key in _CHIPS.value:
        chip = CHIPS[key]
        try:
            variables = environment_of(chip, _ENVIRONMENT.value, _PYTHON.value)
            for row in rows_of(chip, variables, _PROGRAMS.value, _SECONDS.value):
                rows.append(judged(key, row))
                _write(rows)
        except InputError as error:
            say(f"skipped {chip.name}: {error}")
    if not rows:
        raise InputError("no chip has a compiler here: see above")
    _write(rows)
    table = pd.DataFrame(json.loads(Path(_OUTPUT_DIR.value, "compiled.json").read_text())["rows"])
    if table.ratio.notna().any():
        save_figure(picture(table, before), Path(_OUTPUT_DIR.value, "compiled.png"))
    print(shown(pd.DataFrame(rows)))
    print(f"Done: {Path(_OUTPUT_DIR.value) / 'compiled.png'}")


def _write(rows: list[dict[str, Any]]) -> None:
    """What there is so far, as the next program may end the run; and other rows that were there before."""
    former, mine = Path(_OUTPUT_DIR.value, "compiled.json"), {(row["chip"], row["program"]) for row in rows}
    kept = json.loads(former.read_text())["rows"] if former.is_file() else []
    table = pd.DataFrame([row for row in kept if (row["chip"], row["program"]) not in mine] + rows)
    table = table.sort_values("chip", kind="stable", key=lambda column: column.map(list(CHIPS).index))
    versions = {name: importlib.metadata.version(name) for name in ("irtjax", "jax")}
    about = {"date": datetime.date.today().isoformat(), "versions": versions}
    chips = {key: vars(CHIPS[key]) for key in dict.fromkeys(table.chip)}
    with whole_results(_OUTPUT_DIR.value) as folder:
        write_csv(table, folder / "compiled.csv")
        found = {**about, "chips": chips, "rows": json.loads(table.to_json(orient="records"))}
        (folder / "compiled.json").write_text(json.dumps(found, indent=1) + "\n")


def _rows_before() -> pd.DataFrame | None:
    if _BEFORE.value is None:
        return None
    try:
        return pd.DataFrame(json.loads(Path(_BEFORE.value).read_text())["rows"])[["chip", "program", "ratio"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--before={_BEFORE.value}: no compiled.json of this command ({error})") from error


if __name__ == "__main__":
    app.run(main)
