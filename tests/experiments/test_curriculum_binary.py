"""The curriculum binary as a user runs it."""

import dataclasses
import functools
import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from binaries import assert_bad_flags, assert_one_line, run
from matplotlib.image import imread

from experiments.common.settings import Settings
from experiments.common.task_items import CrowdCost, crowd_cost, crowd_population
from experiments.reports import curriculum as report
from experiments.reports.render import render
from experiments.stages import curriculum
from irtjax import InputError, tasks
from irtjax.selection import compare
from irtjax.selection.ddaclae import History
from irtjax.selection.rules import Window
from irtjax.selection.strategies import STRATEGIES as ALL_STRATEGIES
from irtjax.selection.strategies import choices
from irtjax.selection.tracking import Tracked

TASK = tasks.load("digits")
SMALL = ["--task=digits", "--width=8", "--curriculum_epochs=4", "--seeds=2"]
MODULE = "experiments.curriculum"
STRATEGIES = ["baseline", "no-effect", "DDaCLAE", "window"]  # the baseline without being asked for


@pytest.fixture(scope="module")
def crowd_run(tmp_path_factory):
    """What a run directory of a crowd holds, as far as a curriculum needs it."""
    directory = tmp_path_factory.mktemp("crowd")
    (directory / "crowd").mkdir()
    (directory / "fit").mkdir()
    (directory / "config.json").write_text(json.dumps({"steps_per_epoch": 10, "batch_size": 32}))
    (directory / "crowd" / "stage.json").write_text(json.dumps({"seconds": 60.0}))
    (directory / "fit" / "fit.json").write_text(json.dumps({"seconds": 30.0}))
    pd.DataFrame({"epochs": [3, 5]}).to_csv(directory / "crowd" / "members.csv")
    pd.DataFrame({"subject_id": ["a", "b"], "ability": [1.0, 3.0]}).to_csv(directory / "fit" / "subjects.csv")
    difficulty = np.random.default_rng(0).normal(size=len(TASK.train.labels))
    table = pd.DataFrame({"item_id": TASK.train.ids, "difficulty": difficulty})
    table.to_csv(directory / "fit" / "items.csv", index=False)
    return directory


@pytest.fixture(scope="module")
def finished(crowd_run, tmp_path_factory):
    directory = tmp_path_factory.mktemp("curriculum") / "run"
    arguments = [*SMALL, "--strategies=no-effect,DDaCLAE,window", "--ability=map", f"--items={crowd_run}/fit/items.csv"]
    result = run(*arguments, f"--output_dir={directory}", module=MODULE)
    assert result.returncode == 0, result.stderr
    return directory, result


def test_a_run_leaves_the_promised_files(finished):
    directory, result = finished
    report = (directory / "report.md").read_text()
    assert imread(directory / "curriculum.png").std() > 0.01
    assert "](curriculum.png)" in report
    assert "](forest.png)" in report
    assert "curriculum.png" in result.stdout.strip().splitlines()[-1]
    table = pd.read_csv(directory / "curriculum" / "curriculum.csv")
    assert list(table.strategy.unique()) == STRATEGIES
    by_ability = table.strategy.isin(["DDaCLAE", "window"])
    asked = table[by_ability]
    assert (asked.items_asked == len(TASK.train.labels)).all()  # few enough to ask them all
    assert asked.ability.notna().all()
    assert (table[~by_ability].items_asked == 0).all()
    summary = pd.read_csv(directory / "curriculum" / "summary.csv")
    assert list(summary.strategy) == STRATEGIES
    assert (table.test_geometric_mean < table.test_accuracy + 0.02).all()
    assert table.test_geometric_mean.max() > 0.3
    cell = f"{100 * summary.test_geometric_mean[0]:.1f}"
    assert f"| baseline | {cell} |" in report or f"| baseline | {cell} ± " in report


def test_runs_of_earlier_versions_have_no_geometric_means(finished, tmp_path):
    directory, _ = finished
    (tmp_path / "curriculum").mkdir()
    table = pd.read_csv(directory / "curriculum" / "curriculum.csv").drop(columns="test_geometric_mean")
    table.to_csv(tmp_path / "curriculum" / "curriculum.csv", index=False)
    values = report.compared(Settings(task="digits"), *report.read(tmp_path), tmp_path)
    text, _ = render("_curriculum", values)
    assert "test accuracy (%)" in text
    assert "eometric mean" not in text


@pytest.mark.slow
def test_a_monitor_is_told_beside_true_accuracies(crowd_run, finished, tmp_path):
    arguments = [*SMALL, "--strategies=baseline", f"--items={crowd_run}/fit/items.csv", f"--output_dir={tmp_path}"]
    result = run(*arguments, "--monitor=10", module=MODULE)
    assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "curriculum" / "monitor.csv")
    assert list(table) == ["strategy", "seed", "epoch", *Tracked._fields, "dev_accuracy"]
    assert table.notna().all(axis=None)
    curves = pd.read_csv(tmp_path / "curriculum" / "curriculum.csv")
    plain = pd.read_csv(finished[0] / "curriculum" / "curriculum.csv")
    of_baseline = plain[plain.strategy == "baseline"].reset_index(drop=True)
    pd.testing.assert_frame_equal(curves, of_baseline, check_dtype=False)
    assert not (finished[0] / "curriculum" / "monitor.csv").exists()
    np.testing.assert_array_equal(table.dev_accuracy, curves.dev_accuracy)
    assert "## Do 10 items track a network?" in (tmp_path / "report.md").read_text()
    assert imread(tmp_path / "monitor.png").std() > 0.01
    more = [*SMALL, f"--items={crowd_run}/fit/items.csv", "--monitor=99999"]
    assert_bad_flags(MODULE, [(more, "--monitor 99,999, but there are")], tmp_path / "bad")


def test_the_report_tells_what_the_crowd_cost(finished):
    directory, _ = finished
    report = (directory / "report.md").read_text()
    assert "The crowd of 2 networks was trained on 2,560 examples" in report  # 8 epochs of 10 minibatches of 32
    assert "took 1.5 minutes" in report


@pytest.mark.parametrize(
    ("spread", "asked", "change", "told"),
    [
        (
            1.05,
            150,
            -1,
            "points below the baseline's (95% interval: ± 5.0). The crowd of 7 networks was trained on 1,000",
        ),
        (1.05, 150, -1, "took 2.0 minutes: 20 trainings of such a network save as much"),
        (1.2, 150, -1, "it is not certain that any number of trainings saves as much"),
        (np.nan, 150, -1, "a difference that may be chance"),
        (1.05, 150, -1, "a saving of 50 examples per training, at a test accuracy 1.0 points below the baseline's"),
        (1.05, 150, 2, "at a test accuracy 2.0 points above the baseline's (95% interval: ± 5.0)"),
        (1.05, 360, -1, "Together this is a loss of 20 examples per training"),
        (1.05, 360, -1, "took 2.0 minutes: no number of trainings saves as much"),
        (1.05, 150, -24, "**That is no saving:** its test accuracy is 24.0 points below the baseline's"),
        (1.05, 150, -24, "took 2.0 minutes: no number of trainings pays for that"),
    ],
)
def test_what_pays_for_the_crowd(spread, asked, change, told):
    ratios = {
        "examples_ratio": [1, 0.9],
        "examples_ratio_low": [1, 0.9 / spread],
        "examples_ratio_high": [1, 0.9 * spread],
    }
    columns = {"examples_used": [1000, 900], "items_asked": [0, asked]} | ratios
    columns |= {"accuracy_change_points": [0, change], "accuracy_change_points_ci": [0, 5]}
    table = pd.DataFrame({"strategy": ["baseline", "DDaCLAE"], **columns})
    text, _ = render("_cost", report.costs(table, CrowdCost(7, 1000, 120.0)))
    assert told in text
    assert ("of the ratio includes 1" in text) == (not spread < 1 / 0.9)


def test_abilities_and_cost_of_the_crowd(crowd_run, tmp_path):
    population = crowd_population(str(crowd_run / "fit" / "items.csv"))
    assert population.mean == 2
    assert population.sd == pytest.approx(2**0.5)
    with pytest.raises(InputError, match="--ability=map needs abilities of the crowd"):
        crowd_population(str(tmp_path / "items.csv"))
    assert crowd_cost(str(tmp_path / "items.csv")) is None


@pytest.mark.parametrize("abilities", [[1.0], [2.0, 2.0], [1.0, np.inf], ["high", "low"]])
def test_abilities_that_make_no_population(tmp_path, abilities):
    pd.DataFrame({"ability": abilities}).to_csv(tmp_path / "subjects.csv")
    with pytest.raises(InputError, match="--ability=map needs two different abilities"):
        crowd_population(str(tmp_path / "items.csv"))


def test_another_population_is_another_run(crowd_run, finished):
    directory, _ = finished
    subjects = crowd_run / "fit" / "subjects.csv"
    before = subjects.read_text()
    pd.DataFrame({"subject_id": ["a", "b"], "ability": [8.0, 9.0]}).to_csv(subjects)
    arguments = [*SMALL, "--strategies=no-effect,DDaCLAE,window", "--ability=map", f"--items={crowd_run}/fit/items.csv"]
    result = run(*arguments, f"--output_dir={directory}", module=MODULE)
    subjects.write_text(before)
    assert_one_line(result, "holds a run with --population_mean=2.0 (now 8.5)")


def test_settings_reach_the_program(small_texts, tmp_path, monkeypatch):
    """Schedules by length get the lengths, rules by ability the probe; nothing is trained."""
    task, lengths = small_texts
    given = {}

    def spy(trainer, keys, data, scale, selection, **options):
        given[len(given)] = np.asarray(scale), selection, options
        return History(*[np.ones((1, 1))] * len(History._fields))

    monkeypatch.setattr(compare, "train_curriculum", spy)
    difficulty = np.linspace(-1, 1, len(lengths))
    settings = Settings(
        task="sst2",
        network="lstm",
        width=4,
        slots=1,
        curriculum_epochs=3,
        curriculum_seeds=1,
        probe_error=0.02,
        window=0.3,
    )
    run_stage = functools.partial(
        curriculum.run, task=task, items=pd.DataFrame({"difficulty": difficulty}), population=None
    )
    run_stage(settings, strategies=tuple(ALL_STRATEGIES))
    by_name = dict(zip(ALL_STRATEGIES, given.values(), strict=True))
    for name, (scale, selection, options) in by_name.items():
        order = name.rpartition("-")[2]
        scales = {"length": lengths, "average": np.abs(difficulty - np.mean(difficulty))}
        np.testing.assert_array_equal(scale, scales.get(order, difficulty))
        assert options["probe_error"] == 0.02
        if order in scales:
            np.testing.assert_array_equal(selection, by_name[name.removesuffix(f"-{order}")][1])
    assert by_name["window"][1] == Window(0.3)
    given.clear()
    run_stage(dataclasses.replace(settings, probe="all"), strategies=["baseline", "DDaCLAE"])
    assert given[1][2]["probe_error"] is None


def test_names_are_text_in_any_reader():
    """To pandas and others "null" and "NA" are missing values."""
    table = pd.read_csv(StringIO("strategy\n" + "\n".join(ALL_STRATEGIES)))
    assert tuple(table.strategy) == tuple(ALL_STRATEGIES)


def test_lengths_are_for_texts(small_texts):
    assert choices(small_texts[0]) == tuple(ALL_STRATEGIES)
    assert set(ALL_STRATEGIES) - set(choices(TASK)) == {"CB-linear-length", "CB-root-length"}


def test_discrepancies_name_the_short_and_hard_and_the_long_and_easy(small_texts):
    task, lengths = small_texts
    difficulty = np.linspace(-1, 1, len(lengths))
    found = report.discrepancies(task, pd.DataFrame({"difficulty": difficulty}))
    ranks = pd.DataFrame({"difficulty": difficulty, "words": lengths}).rank(pct=True)
    gaps = ranks.difficulty - ranks.words
    for kind, furthest in (("short and hard", gaps.idxmax()), ("long and easy", gaps.idxmin())):
        first = found[kind].iloc[0]
        assert (first.difficulty, first.words) == (difficulty[furthest], lengths[furthest])


@pytest.fixture
def small_texts():
    from conftest import sentences

    lengths = np.random.default_rng(1).integers(1, 10, 40)
    return sentences(lengths), lengths


def test_the_published_figures_are_beside_those_of_their_task(finished):
    directory, _ = finished
    _, summary = report.read(directory)
    other, text = (
        render("_published", report.against_published(Settings(task=task), summary, directory))[0]
        for task in ("digits", "sst2")
    )
    assert "| at most |" in text
    assert "+0.45" not in other  # published: -88.68% and +0.45%
    assert [line for line in text.splitlines() if "| 0.11 |" in line and "| +0.45 |" in line and "| DDaCLAE |" in line]


def test_bad_flags_get_one_line_and_leave_nothing(crowd_run, tmp_path):
    items = f"--items={crowd_run}/fit/items.csv"
    cases = [
        ([], "--items is missing: items.csv with the difficulty"),
        ([items, "--strategies=CB-linear-length"], "'CB-linear-length' is none of baseline, no-effect, CB-linear"),
        ([items, "--probe=some"], "--probe=some: expected one of sample, all"),
        ([items, "--probe_error=0"], "--probe_error=0.0: expected a positive number"),
        ([items, "--window=-1"], "--window=-1.0: expected a positive number"),
        ([items, "--seeds=0"], "error: --seeds=0"),
    ]
    assert_bad_flags(MODULE, cases, tmp_path)
