r"""Marginal maximum likelihood against the recorded seconds of R's mirt, on the same responses.

  python -m benchmarks.versus_mirt --shared=../shared

Fits the 2PL at mirt's tolerance of 1e-7 to sets of human responses, and models of grades and categories by their
defaults to simulated ones, 1,000 × 20 × 4. Each has a fresh process: the first fit compiles, the second does not, and
another also finds standard errors. mirt's times of grades include them; whether those of the 2PL do is not known. They
were measured on another machine of this kind: ratios hold to a factor of about two. Expected duration: 30 seconds.
"""

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from absl import flags

import irtjax
from experiments.common import app
from irtjax.estimation.families import fit_families
from irtjax.estimation.mml import fit_mml
from irtjax.fits.result import Fit
from irtjax.responses.from_arrays import of_grades

_SHARED = flags.DEFINE_string("shared", "../shared", "folder with oracle/, oracle2/ and human_responses/")
_SET = flags.DEFINE_string("set", None, "one set, fitted in this process; prints JSON (used by the benchmark itself)")
SETS = ("5_contradiction", "5_neutral", "5_all")
GRADES = ("sim_grm__graded", "sim_gpcm__gpcm", "sim_nominal__nominal")
TOLERANCE = 1e-7


@dataclasses.dataclass(frozen=True)
class Recorded:
    """What R's mirt needed for a set, and the log-likelihood that it found."""

    seconds: float
    log_likelihood: float


def recorded(name: str) -> Recorded:
    """CPU seconds of a right/wrong set; of grades seconds whose kind is not known, with standard errors."""
    if name in GRADES:
        row = pd.read_csv(Path(_SHARED.value) / "oracle2" / "a" / name / "fit.csv").iloc[0]
        return Recorded(row["time"], row["logLik"])
    timing = pd.read_csv(Path(_SHARED.value) / "oracle" / "timing.csv")
    row = timing[(timing["itemtype"] == "2PL") & (timing["tol"] == TOLERANCE)].set_index("set").loc[name]
    return Recorded(row.cpu_seconds, row.logLik)


def fit_of(name: str) -> Callable[[bool], Fit]:
    """Fits a set, with standard errors or without."""
    folder = Path(_SHARED.value)
    if name in GRADES:
        data, model = name.split("__")
        table = pd.read_csv(folder / "oracle2" / "data" / f"{data}.csv")
        subjects = [f"s{k}" for k in range(len(table))]
        grades = of_grades(table.to_numpy(float), subjects, list(table.columns))
        return lambda errors: fit_families(grades, model, standard_errors=errors)
    responses = irtjax.read_responses(folder / "human_responses" / "snli_emnlp2016" / f"irt_file_{name[0]}_coded.csv")
    kept = pd.read_csv(folder / "oracle" / f"items_{name}_2PL.csv")["item"]
    at = pd.Index(responses.item_ids).get_indexer(kept)
    chosen = irtjax.ResponseMatrix(responses.values[:, at], responses.subject_ids, responses.item_ids[at])
    return lambda errors: fit_mml(chosen, "2pl", standard_errors=errors)


def fit_repeatedly(name: str) -> dict:
    """CPU and wall seconds of a first and a second fit, of a later one with standard errors, and the log-likelihood."""
    fit_it, taken = fit_of(name), {}
    for label, errors in (("first", False), ("second", False), ("_", True), ("with errors", True)):
        cpu, wall = time.process_time(), time.perf_counter()
        fit = fit_it(errors)
        taken[label] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return taken | {"log_likelihood": fit.log_likelihood}


def main() -> None:
    """Measures and prints."""
    if _SET.value is not None:
        print(json.dumps(fit_repeatedly(_SET.value)))
        return
    rows = []
    for name in (*SETS, *GRADES):
        command = [sys.executable, "-m", "benchmarks.versus_mirt", f"--shared={_SHARED.value}", f"--set={name}"]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        mirt = recorded(name)
        row = {"set": name, "mirt, s": mirt.seconds}
        for fit in ("first", "second", "with errors"):
            row |= {f"{fit}: wall": ours[fit]["wall"], "CPU" + " " * len(row): ours[fit]["cpu"]}
            row[f"mirt / {fit}, CPU"] = mirt.seconds / ours[fit]["cpu"]
        rows.append(row | {"log-likelihood - mirt's": ours["log_likelihood"] - mirt.log_likelihood})
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
