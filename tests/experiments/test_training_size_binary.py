"""The binary on difficulty and training-set size as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, run
from matplotlib.image import imread

from irtjax import tasks
from irtjax.comparison.training_size import TERMS

TASK = tasks.load("digits")
SMALL = ["--task=digits", "--width=8", "--epochs=3", "--steps_per_epoch=10", "--slots=4", "--seeds=2"]
MODULE = "experiments.training_size"


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Two scales: items of test and validation, and some of test only, beside items that nobody answers."""
    folder = tmp_path_factory.mktemp("items")
    rng = np.random.default_rng(0)
    for name, ids in (("all", [*TASK.test.ids, *TASK.validation.ids]), ("few", [*TASK.test.ids[:40], "elsewhere"])):
        table = pd.DataFrame({"item_id": ids, "difficulty": rng.normal(size=len(ids))})
        table.sample(frac=1, random_state=0).to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def finished(items, tmp_path_factory):
    directory = tmp_path_factory.mktemp("training_size") / "run"
    scales = f"--items={items}/all.csv,{items}/few.csv"
    result = run(*SMALL, scales, "--sizes=64,16,all", f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    return directory, result


@pytest.mark.slow
def test_a_run_leaves_the_promised_files(finished):
    directory, result = finished
    report = (directory / "report.md").read_text()
    assert imread(directory / "training_size.png").std() > 0.01
    assert "](training_size.png)" in report
    assert "training_size.png" in result.stdout.strip().splitlines()[-1]
    members = pd.read_csv(directory / "crowd" / "members.csv")
    assert members.subset_size.tolist() == [16, 16, 64, 64, 1197, 1197]
    assert not members.corruption_rate.any()
    coefficients = pd.read_csv(directory / "coefficients.csv")
    assert coefficients.term.tolist() == [*TERMS] * 2
    assert coefficients.answers.tolist() == [6 * 600] * 4 + [6 * 40] * 4
    assert (coefficients.low < coefficients.estimate).all()
    assert (coefficients.estimate > 0)[coefficients.term == "log size"].all()


def test_observed_shares_are_those_of_the_answers(finished, items):
    directory, _ = finished
    observed = pd.read_csv(directory / "observed.csv")
    members = pd.read_csv(directory / "crowd" / "members.csv")
    assert observed[observed.scale == "few"].groupby("size")["items"].sum().tolist() == [40] * 3
    ids = pd.read_csv(items / "few.csv").item_id[lambda ids: ids != "elsewhere"]
    answers = pd.read_csv(directory / "crowd" / "responses_test.csv", index_col=0)[ids]
    for size, rows in observed[observed.scale == "few"].groupby("size"):
        expected = answers[(members.subset_size == size).to_numpy()].to_numpy().mean()
        assert np.average(rows.share, weights=rows["items"]) == pytest.approx(expected, abs=1e-4)


def test_other_scales_reuse_the_networks(finished, items):
    directory, _ = finished
    arguments = [*SMALL, "--sizes=16,64,1197", f"--output_dir={directory}", f"--items={items}/few.csv", "--names=some"]
    again = run(*arguments, module=MODULE)
    assert "reused from" in again.stdout
    assert set(pd.read_csv(directory / "coefficients.csv").scale) == {"some"}


def test_bad_input_gets_one_line_and_leaves_nothing(items, tmp_path):
    pd.DataFrame({"item_id": TASK.train.ids, "difficulty": 0.5}).to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame({"item_id": TASK.test.ids, "difficulty": 0.5}).to_csv(tmp_path / "same.csv", index=False)
    scale = f"--items={items}/all.csv"
    cases = [
        ([], "--items is missing"),
        ([scale, "--sizes=64"], "--sizes=64: expected two or more different numbers, 1 to 1197"),
        ([scale, "--sizes=64,some"], "--sizes=64,some: expected two or more"),
        ([scale, "--sizes=64,2000"], "--sizes=64,2000: expected two or more"),
        ([scale, "--names=a,b"], "--names=a,b: expected 1 different names"),
        ([f"--items={tmp_path}/train.csv"], "train.csv: 0 of its items are in the validation, test or extra split"),
        ([f"--items={tmp_path}/same.csv"], "same.csv: all difficulties are the same"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
    assert_one_line(run(scale, f"--output_dir={tmp_path}/train.csv", module=MODULE), "train.csv")
