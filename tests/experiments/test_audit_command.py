"""`experiments.audit`: what it writes, what it refuses, its exit status for the tests of a benchmark."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from scipy.special import expit


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Letters of 60 subjects, a key with three faults, dates and cutoffs."""
    folder, rng = tmp_path_factory.mktemp("audit"), np.random.default_rng(1)
    subjects, items = [f"s{j}" for j in range(60)], [f"i{i}" for i in range(200)]
    theta, truth = rng.normal(size=60), rng.integers(0, 4, 200)
    able = rng.random((60, 200)) < expit(1.2 * theta[:, None] + rng.normal(size=200))
    letters = np.array(list("ABCD"))
    chosen = pd.DataFrame(letters[np.where(able, truth, rng.integers(0, 4, (60, 200)))], subjects, items)
    chosen.to_csv(folder / "choices.csv", index_label="subject_id")
    key = np.where(np.arange(200) < 3, (truth + 1) % 4, truth)
    dates = pd.date_range("2024-01-01", periods=200).strftime("%Y-%m-%d")
    table = pd.DataFrame({"item_id": items, "answer": letters[key], "date": dates})
    table.to_csv(folder / "items.csv", index=False)
    cutoffs = ["2024-04-01" if j < 20 else "2023-01-01" for j in range(60)]
    pd.DataFrame({"subject_id": subjects, "cutoff": cutoffs}).to_csv(folder / "models.csv", index=False)
    return folder


@pytest.mark.slow
def test_it_writes_what_it_finds_and_fails_where_it_is_asked_to(files, tmp_path):
    keys = [f"--choices={files}/choices.csv", f"--key={files}/items.csv:answer"]
    dated = [f"--dates={files}/items.csv:date", f"--cutoffs={files}/models.csv:cutoff"]
    result = run(
        *keys,
        *dated,
        "--model=2pl",
        "--fail_on=doubtful_key",
        f"--output_dir={tmp_path}/out",
        module="experiments.audit",
    )
    assert result.returncode == 3
    assert "60 subjects, 200 items" in result.stdout
    assert "error: --fail_on: items with doubtful_key (" in result.stderr
    table = pd.read_csv(tmp_path / "out" / "audit.csv")
    assert set(table["item_id"][:3]) == {"i0", "i1", "i2"}
    assert table["reasons"][:3].str.startswith("doubtful key").all()
    assert len(pd.read_csv(tmp_path / "out" / "gains.csv")) == 20
    assert len(pd.read_csv(tmp_path / "out" / "ranking.csv")) == 60
    text = (tmp_path / "out" / "report.md").read_text()
    for picture in ("items.png", "keys.png", "ranks.png", "gains.png"):
        assert f"({picture})" in text
        assert (tmp_path / "out" / picture).stat().st_size > 5000


def test_what_is_refused(files, tmp_path):
    choices, answers = f"--choices={files}/choices.csv", f"--responses={files}/items.csv"
    cases = [
        ([], "--responses or --choices: expected one of them"),
        ([choices], "--choices and --key are given together"),
        (
            [f"--responses={files}/items.csv", f"--dates={files}/items.csv:date"],
            "--dates and --cutoffs are given together",
        ),
        ([choices, f"--key={files}/items.csv:right"], "items.csv has no column 'right', but answer, date"),
        ([answers, "--fail_on=dull"], "'dull' is none of doubtful_key"),
    ]
    assert_bad_flags("experiments.audit", cases, tmp_path)
