"""`experiments.score` as a user runs it, on the files that `experiments.fit_irt` wrote."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, run
from simulation import simulate

import irtjax


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("score")
    responses, _, _ = simulate(400, 20, missing=0.1)
    irtjax.write_responses(responses, folder / "responses.csv")
    fit = irtjax.fit(responses, "2pl")
    fit.save(folder)
    return folder, fit


def score(folder, output, *more):
    return run(
        f"--items={folder / 'items.csv'}", f"--responses={folder / 'responses.csv'}", f"--output_dir={output}", *more,
        module="experiments.score",
    )  # fmt: skip


def test_eap_of_the_file_equals_that_of_the_fit(fitted, tmp_path):
    folder, fit = fitted
    result = score(folder, tmp_path, "--method=eap")
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "subjects.csv")
    assert list(table) == ["subject_id", "ability", "ability_se", "percentile", "num_responses", "proportion_correct"]
    np.testing.assert_allclose(table.ability, fit.ability, atol=1e-3)
    np.testing.assert_allclose(table.ability_se, fit.ability_se, atol=1e-3)
    assert table.percentile.between(0, 100).all()
    assert np.corrcoef(table.percentile.rank(), table.ability.rank())[0, 1] > 0.9999


def test_items_may_be_the_folder_of_a_fit_which_keeps_its_files(fitted, tmp_path):
    folder, fit = fitted
    arguments = f"--items={folder}", f"--responses={folder / 'responses.csv'}"
    result = run(*arguments, f"--output_dir={tmp_path}", module="experiments.score")
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(pd.read_csv(tmp_path / "subjects.csv").ability, fit.ability, atol=1e-4)
    before = (folder / "subjects.csv").read_bytes()
    result = run(*arguments, f"--output_dir={folder}", module="experiments.score")
    assert_one_line(result, "holds a fit and its subjects.csv: choose another folder")
    assert (folder / "subjects.csv").read_bytes() == before


def test_ml_of_a_perfect_score_is_infinite(fitted, tmp_path):
    folder, _ = fitted
    responses = irtjax.read_responses(folder / "responses.csv")
    values = responses.values[:2].copy()
    values[0], values[1] = 1, 0
    irtjax.write_responses(
        irtjax.ResponseMatrix(values, ["all", "none"], responses.item_ids), tmp_path / "responses.csv"
    )
    (tmp_path / "items.csv").write_bytes((folder / "items.csv").read_bytes())
    assert score(tmp_path, tmp_path / "out", "--method=ml").returncode == 0
    table = pd.read_csv(tmp_path / "out" / "subjects.csv")
    assert list(table.ability) == [np.inf, -np.inf]
    assert list(table.percentile) == [100, 0]


def test_percentiles_among_people(fitted, tmp_path):
    folder, fit = fitted
    people = tmp_path / "people.csv"
    pd.DataFrame({"ability": [-np.inf, fit.ability.min() - 1, np.nan, fit.ability.max() + 1]}).to_csv(people)
    assert score(folder, tmp_path / "out", f"--population={people}").returncode == 0
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out" / "subjects.csv").percentile, 200 / 3, rtol=1e-4)
    (tmp_path / "bad.csv").write_text("subject_id,theta\na,1\n")
    result = score(folder, tmp_path / "other", f"--population={tmp_path / 'bad.csv'}")
    assert result.returncode == 2
    assert "bad.csv: no abilities in a column ability" in result.stderr


@pytest.mark.slow
def test_ties_among_people_count_half(tmp_path):
    responses, _, _ = simulate(300, 6)
    fit = irtjax.fit(responses, "2pl")
    fit.save(tmp_path)
    irtjax.write_responses(responses, tmp_path / "responses.csv")
    assert score(tmp_path, tmp_path / "out", f"--population={tmp_path / 'subjects.csv'}").returncode == 0
    percentile = pd.read_csv(tmp_path / "out" / "subjects.csv").percentile
    rank = pd.Series(fit.ability.round(6)).rank()  # subjects with the same answers get their mean rank
    assert rank.duplicated().mean() > 0.5
    np.testing.assert_allclose(percentile, 100 * (rank - 0.5) / 300, rtol=1e-4)


def test_items_without_parameters_are_left_out_and_counted(fitted, tmp_path):
    folder, _ = fitted
    pd.read_csv(folder / "items.csv").head(12).to_csv(tmp_path / "items.csv", index=False)
    some, every = tmp_path / "some.csv", pd.read_csv(folder / "responses.csv", index_col=0)
    every.iloc[:, :12].to_csv(some)
    tables = []
    for responses in (some, folder / "responses.csv"):
        arguments = f"--items={tmp_path / 'items.csv'}", f"--responses={responses}"
        result = run(*arguments, f"--output_dir={tmp_path / responses.stem}", module="experiments.score")
        assert result.returncode == 0, result.stderr
        tables.append(pd.read_csv(tmp_path / responses.stem / "subjects.csv"))
    assert "note: 8 of 20 items, such as 'i12', have no parameters: left out" in result.stdout
    pd.testing.assert_frame_equal(*tables)


def test_bad_items_get_one_line(fitted, tmp_path):
    folder, _ = fitted
    items, cases = pd.read_csv(folder / "items.csv"), []
    for change, message in (
        (items.assign(item_id=items.item_id + "x"), "none of its 20 items, such as 'i0', has parameters in"),
        (items.drop(columns="difficulty"), "no column difficulty"),
        (items.assign(difficulty=["x"] * 20), "column difficulty: no number for item 'i0'"),
        (items.assign(guessing=1.5), "0 <= guessing < upper <= 1"),
    ):
        path = tmp_path / f"items_{len(cases)}.csv"
        change.to_csv(path, index=False)
        cases.append(([f"--items={path}", f"--responses={folder / 'responses.csv'}"], message))
    assert_bad_flags("experiments.score", cases, tmp_path)


@pytest.mark.slow
def test_a_group_is_scored_by_its_own_items(tmp_path):
    responses, _, _ = simulate(400, 8)
    groups = np.array(["a", "b"])[np.arange(400) % 2]
    irtjax.write_responses(responses, tmp_path / "responses.csv")
    fit = irtjax.fit(responses, "2pl", groups=groups, free_by_group=[str(responses.item_ids[0])])
    fit.save(tmp_path / "fit")
    data = f"--items={tmp_path / 'fit'}", f"--responses={tmp_path / 'responses.csv'}"
    result = run(*data, "--group=b", f"--output_dir={tmp_path / 'b'}", module="experiments.score")
    assert result.returncode == 0, result.stderr
    expected = irtjax.score(fit, responses, population="b")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "b" / "subjects.csv").ability, expected.ability, atol=1e-5)
    result = run(*data, f"--output_dir={tmp_path / 'none'}", module="experiments.score")
    assert result.returncode == 2
    assert "name the group of these subjects, --group='a'" in result.stderr
