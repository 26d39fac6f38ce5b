r"""Marginal maximum likelihood against the recorded CPU seconds of R's mirt, on the same human responses.

  python -m benchmarks.versus_mirt --shared=../shared

Fits the 2PL at mirt's tolerance of 1e-7 to sets of human responses, each in a fresh process: the first fit compiles,
the second does not, and another also finds standard errors; whether mirt's recorded times include them is not known.
They were measured on another machine of this kind: ratios hold to a factor of about two. Expected duration: 10 seconds.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
from absl import app, flags

import irtjax

_SHARED = flags.DEFINE_string("shared", "../shared", "folder with oracle/ and human_responses/")
_SET = flags.DEFINE_string("set", None, "one set, fitted in this process; prints JSON (used by the benchmark itself)")
SETS = ("5_contradiction", "5_neutral", "5_all")
TOLERANCE = 1e-7


def fit_repeatedly(name: str) -> dict:
    """CPU and wall seconds of a first and a second fit, of a later one with standard errors, and the log-likelihood."""
    folder = Path(_SHARED.value)
    responses = irtjax.read_responses(folder / "human_responses" / "snli_emnlp2016" / f"irt_file_{name[0]}_coded.csv")
    kept = pd.read_csv(folder / "oracle" / f"items_{name}_2PL.csv")["item"]
    at = pd.Index(responses.item_ids).get_indexer(kept)
    responses = irtjax.ResponseMatrix(responses.values[:, at], responses.subject_ids, responses.item_ids[at])
    taken = {}
    for name, errors in (("first", False), ("second", False), ("_", True), ("with errors", True)):
        cpu, wall = time.process_time(), time.perf_counter()
        fit = irtjax.estimation.mml.fit_mml(responses, "2pl", standard_errors=errors)
        taken[name] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return taken | {"log_likelihood": fit.log_likelihood}


def main(_: list[str]) -> None:
    """Measures and prints."""
    if _SET.value is not None:
        print(json.dumps(fit_repeatedly(_SET.value)))
        return
    timing = pd.read_csv(Path(_SHARED.value) / "oracle" / "timing.csv")
    timing = timing[(timing["itemtype"] == "2PL") & (timing["tol"] == TOLERANCE)].set_index("set")
    rows = []
    for name in SETS:
        command = [sys.executable, "-m", "benchmarks.versus_mirt", f"--shared={_SHARED.value}", f"--set={name}"]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        mirt = timing.loc[name]
        row = {"set": name, "mirt, CPU s": mirt.cpu_seconds}
        for fit in ("first", "second", "with errors"):
            row |= {f"{fit}: wall": ours[fit]["wall"], "CPU" + " " * len(row): ours[fit]["cpu"]}
        row["mirt / second, CPU"] = mirt.cpu_seconds / ours["second"]["cpu"]
        rows.append(row | {"log-likelihood - mirt's": ours["log_likelihood"] - mirt.logLik})
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    app.run(main)
