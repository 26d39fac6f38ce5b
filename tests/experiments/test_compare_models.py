"""`experiments.compare_models`, and `experiments.fit_irt --misfit`, as a user runs them."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, csv_files, run
from simulation import simulate

import irtjax
from experiments.reports import models
from experiments.reports.render import render

MODULE = "experiments.compare_models"


def test_compares_models_of_a_file(tmp_path):
    responses, _, _ = simulate(150, 20, missing=0.1)
    irtjax.write_responses(responses, tmp_path / "r.csv")
    given = [f"--responses={tmp_path / 'r.csv'}", "--models=2pl,1pl", "--by=subjects,cells", "--folds=2"]
    runs = [run(*given, f"--output_dir={tmp_path / name}", module=MODULE) for name in ("one", "other")]
    for result in runs:
        assert result.returncode == 0, result.stderr
    assert "Recommendation: the 1PL. Its log-loss on held-out subjects" in runs[0].stdout
    table = pd.read_csv(tmp_path / "one" / "comparison.csv")
    assert list(table["by"] + " " + table["model"]) == [
        f"{by} {model}" for by in ("subjects", "cells") for model in ("2pl", "1pl", "rates")
    ]
    assert {"log_loss", "log_loss_se", "brier", "auc", "calibration_error", "aic", "bic"} < set(table)
    assert table.log_loss.between(0.3, 0.7).all()
    report = (tmp_path / "one" / "report.md").read_text()
    assert f"| 1PL | {table.log_loss[1]:.4f} ± {table.log_loss_se[1]:.4f} |" in report
    assert report.count("Recommendation") == 1
    assert (tmp_path / "one" / "calibration.png").read_bytes()[:4] == b"\x89PNG"
    assert csv_files(tmp_path / "one") == csv_files(tmp_path / "other")  # the same seed, the same files


def report_of(comparison):
    given = {"file": "r.csv", "size": "", "flags": {"folds": 2}, "versions": {}}
    return render("models", models.values(comparison) | given)


def test_fits_under_priors_have_no_criteria_and_the_report_repeats_warnings():
    values = np.array(simulate(150, 20, missing=0.1)[0].values)
    values[:, :4] = np.where(values[:, :4] < 0, -1, 1 - values[:, :4])  # wrong keys
    responses = irtjax.ResponseMatrix(values, [f"s{j}" for j in range(150)], [f"i{i}" for i in range(20)])
    comparison = irtjax.compare(responses, ("1pl", "4pl"), folds=2)
    one, four = (comparison.table.iloc[row] for row in (0, 1))
    assert not one.priors
    assert four.priors
    assert np.isnan([four.aic, four.bic]).all()
    assert np.isfinite([one.aic, one.bic, four.log_likelihood]).all()
    text = report_of(comparison)[0].partition("## Fits to all responses")[2].partition("## How it was made")[0]
    text, _, section = text.partition("## Warnings of the fits")
    assert "there is no AIC, BIC or likelihood ratio" in text
    assert [line.split(" | ")[3:6] for line in text.strip().splitlines()[-3:-1]] == [
        ["no", f"{one.aic:,.1f}", f"{one.bic:,.1f}"],
        ["yes", "", ""],
    ]
    of_all = comparison.warnings[comparison.warnings["fold"] == 0]
    assert set(of_all["model"]) == {"1pl", "4pl"}
    assert of_all["message"].str.startswith("of 20 items 4 correlate negatively").all()
    assert "* 1PL, all responses: of 20 items 4 correlate" in section
    assert "* 1PL, 2 of 2 folds of cells, such as fold 1: " in section
    assert "## Warnings" not in report_of(comparison._replace(warnings=comparison.warnings[:0]))[0]
    shown = repr(comparison).splitlines()
    assert len(shown) == 6
    assert shown[0].endswith(f"recommended: {comparison.recommended('cells')}")
    assert shown[1].endswith("of the fits converged")
    assert shown[4].startswith(f"{len(comparison.warnings)} warning")


def test_where_no_model_beats_the_item_rates_none_is_recommended():
    values = (np.random.default_rng(0).random((40, 12)) < np.linspace(0.2, 0.8, 12)).astype(np.int8)
    _, (advice,) = report_of(irtjax.compare(values, "1pl"))
    assert advice.startswith("Recommendation: none of the models. The item rates")
    assert "their log-loss on held-out cells" in advice


def test_bad_flags_get_one_line(tmp_path):
    irtjax.write_responses(simulate(10, 5)[0], tmp_path / "r.csv")
    file = "--responses={tmp}/r.csv"
    assert_bad_flags(
        MODULE,
        [
            ([], "responses"),
            ([file, "--models=2pl,9pl"], "--models=2pl,9pl: '9pl' is none of"),
            ([file, "--by=rows"], "--by=rows: 'rows' is none of cells, subjects, items"),
            ([file, "--dims=1,x"], "--dims=1,x: expected whole numbers from 1 up"),
            ([file, "--models=3pl", "--estimators=svi"], "no candidates"),
            (["--responses={tmp}/no.csv"], "--responses={tmp}/no.csv: cannot be read (No such file"),
            ([file, "--folds=6"], "--folds=6, expected 2 to 5"),
        ],
        tmp_path,
    )


@pytest.mark.slow
def test_fit_irt_adds_columns_of_misfit(tmp_path):
    responses, _, _ = simulate(150, 20, missing=0.1)
    values = responses.values.copy()
    values[:5] = np.random.default_rng(0).integers(0, 2, (5, 20))
    irtjax.write_responses(irtjax.ResponseMatrix(values, responses.subject_ids, responses.item_ids), tmp_path / "r.csv")
    place = [f"--responses={tmp_path / 'r.csv'}", "--model=1pl", f"--output_dir={tmp_path / 'fit'}"]
    result = run(*place, "--misfit", module="experiments.fit_irt")
    assert result.returncode == 0, result.stderr
    items, subjects = (pd.read_csv(tmp_path / "fit" / f"{name}.csv") for name in ("items", "subjects"))
    assert list(items)[-2:] == ["infit", "outfit"]
    assert list(subjects)[-3:] == ["infit", "outfit", "lz"]
    assert items.infit.between(0.5, 1.5).all()
    assert subjects.lz[:5].mean() < -1 < subjects.lz[5:].mean()
