"""The filtering binary as a user runs it."""

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, csv_files, run
from matplotlib.image import imread

from experiments.common.settings import Settings
from experiments.common.task_items import items_of
from experiments.reports import filtering as report
from irtjax import InputError, ResponseMatrix, tasks, write_responses

TASK = tasks.load("digits")
NUM_ITEMS = len(TASK.train.labels)
RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(size=NUM_ITEMS)
SMALL = ["--task=digits", "--width=8", "--epochs=3", "--steps_per_epoch=10", "--slots=8", "--seeds=2"]
MODULE = "experiments.filtering"


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """An items.csv in another order than the task's, with items of another split too."""
    ids = [*TASK.train.ids, *TASK.test.ids]
    difficulty = np.concatenate([DIFFICULTY, np.zeros(len(TASK.test.ids))])
    table = pd.DataFrame({"item_id": ids, "difficulty": difficulty, "proportion_correct": 1 / (1 + np.exp(difficulty))})
    path = tmp_path_factory.mktemp("items") / "items.csv"
    table.sample(frac=1, random_state=0).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def finished(items, tmp_path_factory):
    directory = tmp_path_factory.mktemp("filtering") / "run"
    result = run(*SMALL, f"--items={items}", "--shares=0.01,1,0.1", f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    return directory, result


def test_a_run_leaves_the_promised_files(finished):
    directory, result = finished
    text = (directory / "report.md").read_text()
    for picture in ("densities.png", "filtering.png", "class_balance.png"):
        assert imread(directory / picture).std() > 0.01
        assert f"]({picture})" in text
        assert picture in result.stdout.strip().splitlines()[-1]
    table = pd.read_csv(directory / "filtering" / "filtering.csv")
    assert len(table) == 7 * 3 * 2
    assert sorted(table.share.unique()) == [0.01, 0.1, 1]
    # classes of the digits are about equally frequent: by the inequality of both means, up to their small differences
    assert (table.test_geometric_mean < table.test_accuracy + 0.02).all()
    assert table.test_geometric_mean.max() > 0.3
    assert ((table.test_geometric_mean == 0) & (table.test_accuracy > 0)).any()  # a class all wrong
    assert "Geometric mean of the recalls" in text


def test_runs_of_earlier_versions_have_no_geometric_means(finished, tmp_path):
    directory, _ = finished
    folder = tmp_path / "filtering"
    folder.mkdir()
    (folder / "kept.csv").write_bytes((directory / "filtering" / "kept.csv").read_bytes())
    table = pd.read_csv(directory / "filtering" / "filtering.csv")
    table.drop(columns="test_geometric_mean").to_csv(folder / "filtering.csv", index=False)
    values = report.write(TASK, pd.DataFrame({"difficulty": DIFFICULTY}), Settings(task="digits"), tmp_path)
    assert values["geometric_means"] is None


def test_the_report_compares_with_the_random_choice(finished):
    directory, _ = finished
    table = pd.read_csv(directory / "filtering" / "filtering.csv")
    means = 100 * table.groupby(["strategy", "share"]).test_accuracy.mean()
    text = (directory / "report.md").read_text().split("against the random choice")[1].split("## ")[0]
    rows = {cells[1].strip(): cells[2:5] for line in text.splitlines() if len(cells := line.split("|")) == 6}
    assert "random" not in rows
    for strategy in ("AVI", "PCLB"):
        for share, cell in zip((0.01, 0.1, 1), rows[strategy], strict=True):
            assert cell.strip().startswith(f"{means[strategy, share] - means['random', share]:+.1f}")


def test_what_is_kept_is_counted_by_class(finished):
    directory, _ = finished
    kept = pd.read_csv(directory / "filtering" / "kept.csv")
    size = round(0.1 * NUM_ITEMS)
    easiest = np.argsort(DIFFICULTY)[:size]
    rows = kept[(kept.strategy == "UB") & (kept.share == 0.1)]
    np.testing.assert_array_equal(rows.examples, np.bincount(TASK.train.labels[easiest], minlength=10))
    np.testing.assert_allclose(rows.share_of_kept, rows.examples / size, rtol=1e-5)
    np.testing.assert_allclose(rows.threshold, DIFFICULTY[easiest[-1]], rtol=1e-5)
    assert kept[kept.strategy == "random"].threshold.isna().all()


def test_classes_stay_as_frequent_and_seeds_draw_difficulties(items, tmp_path):
    known = changed(items, tmp_path, lambda table: table.assign(difficulty_se=0.5))
    flags = [*SMALL, f"--items={known}", "--shares=0.1", "--strategies=UB,random", "--by_class", "--sampled"]
    result = run(*flags, f"--output_dir={tmp_path / 'run'}", module=MODULE)
    assert result.returncode == 0, result.stderr
    kept = pd.read_csv(tmp_path / "run" / "filtering" / "kept.csv")
    of_all = 0.1 * np.bincount(TASK.train.labels, minlength=10)
    for _, rows in kept.groupby("strategy"):
        assert np.abs(rows.examples - of_all).max() < 1.5  # a share of the data is rounded, too
    assert kept[kept.strategy == "UB"].threshold.nunique() == 10
    text = (tmp_path / "run" / "report.md").read_text()
    assert "Each keeps its share of every class." in text
    assert "For every seed difficulties are drawn" in text


def test_it_is_reused_but_not_with_other_items(finished, items, tmp_path):
    directory, _ = finished
    before = csv_files(directory)
    arguments = [*SMALL, "--shares=0.01,0.1,1", f"--output_dir={directory}"]
    again = run(*arguments, f"--items={items}", module=MODULE)
    assert "reused from" in again.stdout
    assert csv_files(directory) == before
    table = pd.read_csv(items)
    table.assign(difficulty=-table.difficulty).to_csv(tmp_path / "items.csv", index=False)
    assert_one_line(run(*arguments, f"--items={tmp_path / 'items.csv'}", module=MODULE), "holds a run on other data")
    fewer = [*SMALL, "--shares=0.1", f"--items={items}", f"--output_dir={directory}"]
    assert_one_line(run(*fewer, module=MODULE), "holds a run with --shares=0.01,0.1,1 (now 0.1)")


def test_proportion_correct_comes_from_responses_where_they_are_given(items, tmp_path):
    answers = RNG.integers(0, 2, (5, NUM_ITEMS)).astype(np.int8)
    write_responses(ResponseMatrix(answers, np.arange(5).astype(str), TASK.train.ids), tmp_path / "r.npz")
    table = items_of(str(items), TASK, str(tmp_path / "r.npz"), ("difficulty", "proportion_correct"))
    np.testing.assert_allclose(table.proportion_correct, answers.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(table.difficulty, DIFFICULTY, rtol=1e-6)


def changed(items, tmp_path, change):
    path = tmp_path / "changed.csv"
    change(pd.read_csv(items)).to_csv(path, index=False)
    return str(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="difficulty"), "changed.csv: no column difficulty"),
        (lambda table: table[table.item_id != TASK.train.ids[3]], f"1 of 1,197 .* such as {TASK.train.ids[3]}"),
        (lambda table: pd.concat([table, table[table.item_id == TASK.train.ids[3]]]), "is there twice"),
        (lambda table: table.replace({"difficulty": {table.difficulty.max(): np.inf}}), "no number for difficulty"),
    ],
)
def test_items_that_do_not_fit_the_task(items, tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        items_of(changed(items, tmp_path, change), TASK)


def test_a_note_tells_of_items_that_count_as_easy_because_few_have_them_right(items, tmp_path, capsys):
    items_of(changed(items, tmp_path, lambda table: table.assign(discrimination=1.0)), TASK)
    assert capsys.readouterr().out == ""
    slopes = dict.fromkeys(TASK.train.ids, 1.0) | dict.fromkeys(TASK.train.ids[:5], -0.5)
    items_of(changed(items, tmp_path, lambda table: table.assign(discrimination=table.item_id.map(slopes))), TASK)
    assert "note: 5 of 1,197 items of" in capsys.readouterr().out


def test_the_former_name_of_proportion_correct_is_read(items, tmp_path):
    both = ("difficulty", "proportion_correct")
    former = changed(items, tmp_path, lambda table: table.rename(columns={"proportion_correct": "percent_correct"}))
    pd.testing.assert_frame_equal(items_of(str(former), TASK, None, both), items_of(str(items), TASK, None, both))


def test_proportion_correct_is_checked_where_it_is_used(items, tmp_path):
    both = ("difficulty", "proportion_correct")
    wrong = changed(items, tmp_path, lambda table: table.assign(proportion_correct=100 * table.proportion_correct))
    assert list(items_of(wrong, TASK)) == ["difficulty"]
    with pytest.raises(InputError, match="expected a share from 0 to 1 as proportion_correct"):
        items_of(wrong, TASK, need=both)
    empty = changed(items, tmp_path, lambda table: table.assign(proportion_correct=np.nan))
    with pytest.raises(InputError, match="no number for proportion_correct"):
        items_of(empty, TASK, need=both)


def test_bad_flags_get_one_line_and_leave_nothing(items, tmp_path):
    bare = changed(items, tmp_path, lambda table: table.drop(columns="proportion_correct"))
    cases = [
        ([], "--items is missing: items.csv with the difficulty"),
        (["--items={tmp}/no.csv"], "{tmp}/no.csv: cannot be read"),
        ([f"--items={items}", "--strategies=AVI,BEST"], "--strategies=AVI,BEST: 'BEST' is none of AVI, AVO, UB"),
        ([f"--items={items}", "--shares=0,1"], "--shares=0,1: expected numbers above 0, up to 1"),
        ([f"--items={items}", "--shares=half"], "--shares=half: expected numbers above 0, up to 1"),
        ([f"--items={items}", "--num_models=3"], "num_models"),
        ([f"--items={bare}"], "no column proportion_correct, which PCUB and PCLB need: give --responses"),
        ([f"--items={items}", "--responses={tmp}/no.npz"], "{tmp}/no.npz"),
        ([f"--items={items}", "--sampled"], "no column difficulty_se"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
