"""The compilers of a TPU and a GPU on main programs: what they make of them does not become worse."""

import json
import subprocess
import sys

import pytest
from conftest import REPOSITORY

# ratios to the limit of the chip, as the table of docs/results/accelerators.md has them, and a tenth
MOST = {
    ("v5e", "likelihood: 1PL"): 3.0,
    ("v5e", "likelihood: 2PL"): 3.0,
    ("h100", "likelihood: 1PL"): 1.33,
    ("h100", "likelihood: 2PL"): 1.30,
    ("h100", "MML on nodes: E-step, tiles"): 19.4,
    ("h100", "MML on nodes: E-step, many subjects"): 2.6,
    ("h100", "scores: EAP"): 4.9,
}
LIKELIHOODS = {key for key in MOST if "likelihood" in key[1]}


@pytest.mark.slow
def test_programs_stay_as_near_to_the_limit(tmp_path):
    for chip in ("v5e", "h100"):
        names = "|".join(name for key, name in MOST if key == chip)
        command = "-m", "benchmarks.compiled", f"--chips={chip}", f"--programs=^({names})$", f"--output_dir={tmp_path}"
        ended = subprocess.run([sys.executable, *command], cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
        skipped = [line for line in ended.stderr.splitlines() if "skipped" in line]
        if skipped:
            pytest.skip(skipped[0])
        assert ended.returncode == 0, ended.stderr
    rows = {(row["chip"], row["program"]): row for row in json.loads((tmp_path / "compiled.json").read_text())["rows"]}
    assert set(rows) == set(MOST)
    for key, most in MOST.items():
        row = rows[key]
        assert not row["error"]
        # below a half a limit would be wrong, or the text misread
        assert 0.5 < row["ratio"] < most, (key, row["ratio"])
        if key in LIKELIHOODS:
            # no float matrix of J × I: 400 MB
            assert row["bytes_materialised"] < 40e6
            assert row["bytes_moved"] >= 1e8  # all responses are read
