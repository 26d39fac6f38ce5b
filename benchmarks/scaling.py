r"""How much faster do several devices, or several processes, do the same work, or as fast more of it?

  python -m benchmarks.scaling --output_dir=benchmarks/results

Strong scaling: the same work on 1, 2, 4, … devices; weak scaling: work in proportion. Programs: the 2PL likelihood
kernel with gradients, an iteration of marginal maximum likelihood (2PL, long tests), a step of variational inference
(1PL), a gradient step of a crowd of LeNets on digits; and a copy of the response matrix, for what the memory allows.
Then the same with one process per device, on the loopback. One and several are timed alternately.

Writes scaling.json, scaling.csv and scaling.png. On a CPU a device is a core, and programs on n devices may use n
cores; there must be as many as devices. On GPUs a process of several has one of them. On a TPU give --processes=1.
Expected duration on 2 CPU cores: four minutes.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from matplotlib.figure import Figure

from benchmarks.contestants import cpu_cores, say
from experiments.common import app
from experiments.common.path_flags import define_output_dir
from irtjax import InputError
from irtjax.plots.style import COLOURS, plain, save_figure
from irtjax.storage.files import whole_results, write_csv

_OUTPUT_DIR = define_output_dir("folder for the results")
_DEVICES = flags.DEFINE_list("devices", None, "numbers of devices (default: 1, 2, 4, … of this machine)")
_PROCESSES = flags.DEFINE_list("processes", None, "numbers of processes with one device each (default: likewise)")
_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=1)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 65_536, "I on one device", lower_bound=1)
_MEMBERS = flags.DEFINE_integer("members", 8, "of the crowd on one device", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 9, "measurements", lower_bound=1)
PROGRAMS = {
    "copy": "copy of the matrix",
    "likelihood": "likelihood and gradients",
    "mml": "iteration of MML",
    "svi": "step of SVI",
    "crowd": "step of a crowd",
}
WAYS = {"strong": "strong: the same work", "weak": "weak: work in proportion to the number"}


class Group:
    """Workers that are one program: a process with several devices, or several with one each."""

    def __init__(self, platform: str, devices: int, processes: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}" if processes > 1 else None
        self._processes = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        for process in range(processes):
            environment = os.environ | {"PYTHONHASHSEED": "0"}
            cores: list[int] = []
            if platform == "cpu":
                environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
                everyone = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
                cores = everyone[process * devices : (process + 1) * devices]
            elif processes > 1:
                visible = [*filter(None, environment.get("CUDA_VISIBLE_DEVICES", "").split(","))]
                environment["CUDA_VISIBLE_DEVICES"] = visible[process] if visible else str(process)
            settings = {"cores": cores, "coordinator": address, "processes": processes, "process": process}
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.scaling_worker", json.dumps(settings)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    text=True,
                    env=environment,
                )
            )

    def ask(self, request: dict[str, Any], number: int) -> dict[str, Any]:
        """What the first of so many workers answers, after all have."""
        for worker in self._processes[:number]:
            assert worker.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended, and has no answer either
                worker.stdin.write(json.dumps(request) + "\n")
                worker.stdin.flush()
        answers = [worker.stdout.readline() for worker in self._processes[:number] if worker.stdout]
        if not all(answers):
            raise InputError(self._failure(answers.index("")))
        return json.loads(answers[0])

    def _failure(self, at: int) -> str:
        """Why a worker gave no answer."""
        status = self._processes[at].wait()
        if status == -signal.SIGKILL:
            return "a worker was killed, most likely for lack of memory: give fewer --num_items or --num_subjects"
        self._log.seek(0)
        return f"a worker ended with status {status}: {self._log.read().decode(errors='replace').strip()}"

    @property
    def size(self) -> int:
        """Workers."""
        return len(self._processes)

    def close(self) -> None:
        """Ends them."""
        for worker in self._processes:
            worker.kill()
            with contextlib.suppress(BrokenPipeError), worker:  # which closes its pipes and waits
                pass
        self._log.close()


def sizes_of(given: list[str] | None, most: int, flag: str) -> list[int]:
    """The numbers that a flag gives; else powers of two up to those that there are.

    Raises:
        InputError: the flag gives something else.
    """
    if given is None:
        return [2**power for power in range(most.bit_length())]
    if not all(size.isdigit() and 1 <= int(size) <= most for size in given):
        raise InputError(f"--{flag}={','.join(given)}: expected numbers from 1 to {most}, which are here")
    return sorted({1, *map(int, given)})


def machine() -> tuple[str, int]:
    """The platform, and how many devices it has; on a CPU, cores. Asked of another process, which leaves them free."""
    code = "import jax; print(jax.default_backend(), jax.device_count())"
    platform, devices = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    return platform, cpu_cores() if platform == "cpu" else int(devices)


def measure(platform: str, kind: str, sizes: list[int]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """One row per program, size and way of scaling, see `row`; and what the largest group says of the machine."""
    if kind == "processes":
        groups = {size: Group(platform, 1, size) for size in sizes[1:]}
    elif platform == "cpu":
        groups = {size: Group(platform, size, 1) for size in sizes}
    else:
        groups = dict.fromkeys(sizes, Group(platform, max(sizes), 1))
    rows = []
    fixed = {"num_subjects": _NUM_SUBJECTS.value, "num_items": _NUM_ITEMS.value, "members": _MEMBERS.value}
    try:
        for name in PROGRAMS:
            for size in sizes[1:]:
                alone = groups[size] if kind == "processes" else groups[1]
                cases = {"one": (alone, 1, 1), "strong": (groups[size], size, 1), "weak": (groups[size], size, size)}
                answers: dict[str, list[dict[str, float]]] = {case: [] for case in cases}
                for repeat in range(_REPEATS.value + 1):
                    for case, (group, devices, scale) in cases.items():
                        request = {"name": name, "size": devices, "scale": scale, **fixed}
                        answer = group.ask(request, group.size if devices > 1 else 1)
                        if repeat > 0:  # in the first, others may be starting beside it
                            answers[case].append(answer)
                rows += [row(name, kind, size, way, answers) for way in ("strong", "weak")]
                say(f"{name} on {size} {kind}: {rows[-2]['efficiency']:.2f} strong, {rows[-1]['efficiency']:.2f} weak")
        largest = groups[sizes[-1]]
        about = largest.ask({}, largest.size)
        one = groups[1].ask({}, 1)["product_rate"] if 1 in groups else about["product_rate"]
        return pd.DataFrame(rows), about | {"product_rate": one}
    finally:
        for group in groups.values():
            group.close()


def row(name: str, kind: str, size: int, way: str, answers: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """The efficiency against one device, the median of repeats and their quartiles, and the rates of a device."""
    one, several = (np.array([answer["seconds"] for answer in answers[case]]) for case in ("one", way))
    efficiency = one / several / (size if way == "strong" else 1)
    low, middle, high = np.quantile(efficiency, [0.25, 0.5, 0.75])
    seconds, work = float(np.median(several)), answers[way][0]
    return {
        "program": name,
        "over": kind,
        "number": size,
        "scaling": way,
        "seconds_of_one": float(np.median(one)),
        "seconds": seconds,
        "efficiency": middle,
        "lower_quartile": low,
        "upper_quartile": high,
        "gigabytes_per_second_per_device": work["bytes"] / seconds / size / 1e9,
        "gigaflops_per_device": work["products"] / seconds / size / 1e9,
    }


def picture(table: pd.DataFrame, device: str) -> Figure:
    """Efficiency of each program, strong and weak, with its quartiles: one panel per number of devices or processes."""
    panels = list(table.groupby(["over", "number"], sort=False))
    names = [name for name in PROGRAMS if name in set(table.program)]
    figure = Figure(figsize=(2.4 + 3.6 * len(panels), 1.4 + 0.45 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True).ravel()
    for axis, ((kind, number), part) in zip(axes, panels, strict=True):
        axis.axvline(1, color="black", linewidth=1, zorder=1)
        for way, offset, face in (("strong", -0.14, COLOURS[0]), ("weak", 0.14, "white")):
            rows = part[part.scaling == way].set_index("program").loc[names]
            at = np.arange(len(names)) + offset
            axis.hlines(at, rows.lower_quartile, rows.upper_quartile, color=COLOURS[0], linewidth=1.6)
            axis.plot(rows.efficiency, at, "o", color=COLOURS[0], markerfacecolor=face, label=WAYS[way])
        axis.set(title=f"{number} {kind}, {device}", xlabel="efficiency: speed-up / number")
    axes[0].set_xlim(0, None)
    axes[0].set_yticks(range(len(names)), [PROGRAMS[name] for name in names])
    axes[0].invert_yaxis()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return plain(figure)


def main() -> None:
    """Measures, prints and writes."""
    platform, most = machine()
    sizes = {
        "devices": sizes_of(_DEVICES.value, most, "devices"),
        "processes": sizes_of(_PROCESSES.value, most, "processes"),
    }
    tables, about = [], {}
    for kind, numbers in sizes.items():
        if len(numbers) > 1:
            table, about[kind] = measure(platform, kind, numbers)
            tables.append(table)
    if not tables:
        print(f"There is one {platform} device here: nothing to scale to.")
        return
    whole = pd.concat(tables, ignore_index=True)
    device = next(iter(about.values()))
    # share of what a device alone reaches: of the copy, and of one large product
    copied = whole[whole.program == "copy"].assign(rate=lambda t: t.gigabytes_per_second_per_device)
    peak = 2 * _NUM_SUBJECTS.value * _NUM_ITEMS.value / copied.seconds_of_one.median() / 1e9
    whole["share_of_bandwidth"] = whole.gigabytes_per_second_per_device / peak
    whole["share_of_products"] = whole.gigaflops_per_device / (device["product_rate"] / 1e9)
    settings = {flag: flags.FLAGS[flag].value for flag in ("num_subjects", "num_items", "members", "repeats")}
    with whole_results(_OUTPUT_DIR.value) as folder:
        write_csv(whole, folder / "scaling.csv")
        found = {"settings": settings, "bytes_per_second": 1e9 * peak, "about": about, "rows": whole.to_dict("records")}
        (folder / "scaling.json").write_text(json.dumps(found, indent=1) + "\n")
        save_figure(picture(whole, device["device"]), folder / "scaling.png")
    rate = device["product_rate"] / 1e9
    print(f"{device['device']}, jax {device['jax']}: copy {peak:.1f} GB/s, products {rate:.0f} GFLOP/s")
    print(whole.drop(columns="seconds_of_one").to_string(index=False, float_format=lambda x: f"{x:.3g}"))
    print(f"Done: {Path(_OUTPUT_DIR.value) / 'scaling.png'}")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
