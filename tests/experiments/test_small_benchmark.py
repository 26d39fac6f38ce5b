"""`experiments.small_benchmark`, as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, run
from simulation import by_difficulty, draw

import irtjax
from experiments.reports.small_benchmark import FILES
from irtjax import ResponseMatrix
from irtjax.evaluation.study import best_method

MODULE = "experiments.small_benchmark"
MODELS, ITEMS = 60, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Answers of 60 models to 30 items in two files by items, their scores, and answers of two more to five items."""
    folder, rng = tmp_path_factory.mktemp("benchmark"), np.random.default_rng(0)
    p = by_difficulty(rng.normal(size=MODELS + 2), 1.5, rng.normal(size=ITEMS))
    values = draw(rng, p)
    models, items = np.array([f"m{k}" for k in range(MODELS + 2)]), np.array([f"i{k}" for k in range(ITEMS)])
    for name, some in (("a", slice(0, 18)), ("b", slice(12, ITEMS))):
        part = ResponseMatrix(values[:MODELS, some], models[:MODELS], items[some])
        irtjax.write_responses(part, folder / f"{name}.csv")
    fresh = np.where(np.arange(ITEMS) < 8, values[MODELS:], -1)[:, 3:]  # a wide file, most of whose columns are empty
    irtjax.write_responses(ResponseMatrix(fresh.astype(np.int8), models[MODELS:], items[3:]), folder / "new.csv")
    scores = 100 * rng.binomial(10, p).sum(axis=1) / (10 * ITEMS)
    pd.DataFrame({"subject_id": models, "score": scores}).to_csv(folder / "scores.csv", index=False)
    pd.DataFrame({"item_id": items, "category": np.where(np.arange(ITEMS) < 20, "x", "y")}).to_csv(
        folder / "categories.csv", index=False
    )
    return folder


@pytest.fixture(scope="module")
def result(folder, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "out"
    ended = run(
        f"--responses={folder}/a.csv,{folder}/b.csv",
        f"--scores={folder}/scores.csv",
        f"--categories={folder}/categories.csv",
        f"--new_responses={folder}/new.csv",
        "--num_items=3,9",
        "--forms=random,variance",
        "--predictors=mean,calibrated",
        "--calibration=30,all",
        "--seeds=1",
        f"--output_dir={directory}",
        module=MODULE,
    )
    assert ended.returncode == 0, ended.stderr
    return directory, ended


def test_writes_what_it_promises(result):
    directory, ended = result
    assert {path.name for path in directory.iterdir()} == {*FILES, "forms", "predictions.csv"}
    errors = pd.read_csv(directory / "errors.csv")
    assert errors.columns[:6].tolist() == ["method", "num_items", "seed", "mae", "rmse", "coverage_90"]
    assert len(errors) == 2 * 2 * 2 * 2
    report = (directory / "report.md").read_text()
    assert "# A small benchmark of 60 models × 30 items" in report
    assert "How many models to calibrate with?" in report
    verdict = ended.stdout.splitlines()[0]
    assert verdict in report
    assert verdict.startswith("3 items (")


def test_luck_does_not_choose_the_method():
    rows = [
        {"method": f"{form} mean" if form == "random" else "variance calibrated", "num_items": 5, "seed": seed}
        | {"mae": mae, "form": form, "predictor": "mean" if form == "random" else "calibrated", "calibration": 50}
        for form, errors in (("random", (1.0, 3.0, 2.0)), ("variance", (2.0, 2.0, 2.2)))
        for seed, mae in enumerate(errors)
    ]
    table = pd.DataFrame(rows)
    assert str(best_method(table)) == "variance calibrated"  # behind by less than its standard error
    assert str(best_method(table[table.seed == 0])) == "variance calibrated"  # one split tells nothing
    table.loc[table.form == "random", "mae"] = 1.0
    assert str(best_method(table)) == "random mean"


def test_forms_keep_the_shares_of_categories(result):
    directory, _ = result
    for size in (3, 9):
        (path,) = (directory / "forms").glob(f"*_{size}.csv")
        form = pd.read_csv(path)
        assert form.columns[:3].tolist() == ["item_id", "weight", "category"]
        assert form.category.value_counts().to_dict() == {"x": 2 * size // 3, "y": size // 3}
        assert form.item_id.is_unique
        assert form.weight.sum() == pytest.approx(1, abs=1e-5)  # written with six digits


def test_new_models_get_scores_with_intervals(result, folder):
    found = pd.read_csv(result[0] / "predictions.csv")
    assert found.subject_id.tolist() == ["m60", "m61"]
    assert found.num_responses.tolist() == [5, 5]
    assert (found.low < found.score).all()
    assert (found.score < found.high).all()
    answers = pd.read_csv(folder / "new.csv", index_col=0)
    assert (found.score.diff().iloc[1] > 0) == (answers.sum(axis=1).diff().iloc[1] > 0)


def test_bad_input_ends_in_one_line(folder, tmp_path):
    own = f"--responses={folder}/a.csv"
    answers = pd.read_csv(folder / "a.csv", index_col=0)
    answers.iloc[:1].assign(i0=1 - answers.i0.iloc[0]).to_csv(tmp_path / "other.csv")
    (tmp_path / "few.csv").write_text("subject_id,score\nm0,50\n")
    (tmp_path / "shares.csv").write_text("subject_id,score\n" + "".join(f"{model},53%\n" for model in answers.index))
    (tmp_path / "category.csv").write_text("item_id,category\ni0,x\n")
    assert_bad_flags(
        MODULE,
        [
            ([own, "--num_items=5,x"], "--num_items=5,x: expected whole numbers above 0"),
            ([own, "--num_items=50"], "--num_items=50: there are 18 items"),
            ([own, "--forms=best"], "--forms=best: 'best' is none of random"),
            ([own, "--scores={tmp}/few.csv"], "few.csv: scores: none of subject 'm1' (1 of 59 such)"),
            (
                [own, "--scores={tmp}/shares.csv"],
                "shares.csv: scores: subject 'm0' has '53%', no number: expected points",
            ),
            ([own, "--categories={tmp}/category.csv"], "category.csv: no category of item 'i1' (1 of 17 such)"),
            ([own, f"--new_responses={folder}/b.csv"], "b.csv: item 'i18' (1 of 12 such) is not in --responses"),
            ([f"{own},{tmp_path}/other.csv"], "other.csv: the answer of subject 'm0' to item 'i0'"),
        ],
        tmp_path,
    )
