"""`experiments.item_fit` as a user runs it."""

import json

import numpy as np
import pandas as pd
import pytest
from binaries import assert_one_line, run
from simulation import by_difficulty, draw

import irtjax
from experiments.reports import item_fit as report


@pytest.mark.slow
def test_it_writes_what_the_functions_find_and_keeps_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    p = by_difficulty(rng.normal(size=200), 1.3, np.linspace(-1, 1, 6))
    table = pd.DataFrame(draw(rng, p) + draw(rng, p), columns=[f"q{i}" for i in range(6)])
    table.insert(0, "subject_id", [f"s{j}" for j in range(200)])
    table.to_csv(tmp_path / "grades.csv", index=False)
    fit = irtjax.fit(tmp_path / "grades.csv", "graded")
    fit.save(tmp_path / "fit")
    given = f"--fit={tmp_path / 'fit'}", f"--responses={tmp_path / 'grades.csv'}"
    done = run(*given, "--pairs=5", f"--output_dir={tmp_path / 'out'}", module="experiments.item_fit")
    assert done.returncode == 0, done.stderr
    assert "Whole test: C2 = " in done.stdout
    found = pd.read_csv(tmp_path / "out" / "item_fit.csv")
    np.testing.assert_allclose(found.s_x2, irtjax.item_fit(fit).s_x2, rtol=1e-4)
    assert len(pd.read_csv(tmp_path / "out" / "local_dependence.csv")) == 5
    assert len(pd.read_csv(tmp_path / "out" / "person_fit.csv")) == 200
    assert json.loads((tmp_path / "out" / "overall_fit.json").read_text())["name"] == "C2"
    done = run(*given, f"--output_dir={tmp_path / 'fit'}", module="experiments.item_fit")
    assert_one_line(done, "holds a fit: choose another folder")
    done = run(f"--fit={tmp_path / 'out'}", f"--output_dir={tmp_path / 'more'}", module="experiments.item_fit")
    assert_one_line(done, "holds no fit (fit.npz): expected the folder that fit_irt wrote")


def test_the_items_of_the_report_are_the_farthest_off_with_and_without_t():
    items = pd.DataFrame({"item_id": [f"i{k}" for k in range(12)], "p_holm": np.nan, "infit": 1.0, "outfit": 1.0})
    items = items.assign(infit_t=np.nan, outfit_t=np.nan)
    items.loc[11, "outfit"], items.loc[5, "infit"] = 0.1, 3.0
    subjects = pd.DataFrame({"lz_star": [np.nan], "p_value": [np.nan], "outfit": [1.0]})
    pairs = pd.DataFrame({"p_holm": [np.nan]})
    shown = report.values(report.Found(items, subjects, pairs, "too few"))["items"]
    assert shown["item_id"].tolist()[:3] == ["i11", "i5", "i0"]
    items = items.assign(infit_t=0.5, outfit_t=np.where(items.index == 7, -4.0, 0.0))
    shown = report.values(report.Found(items, subjects, pairs, "too few"))["items"]
    assert shown["item_id"].iloc[0] == "i7"
