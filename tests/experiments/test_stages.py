"""The stages on real digits: the figures that they must reach, recomputed from what they wrote."""

import json
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

import irtjax
from experiments.common.factory import recipe_of
from experiments.common.settings import Settings
from experiments.stages import crowd, difficulty, filtering, mislabelled
from irtjax import FitWarning, ResponseMatrix, tasks
from irtjax.comparison.reliability import alternate_subjects
from irtjax.selection.filtering import ranking
from irtjax.selection.subsets import SubsetRow, plan_subset
from irtjax.selection.summary import summarise
from irtjax.training import loop as training
from irtjax.training.data import accuracy, to_device
from irtjax.training.recipe import make_trainer

TASK = tasks.load("digits")
DEFAULTS = Settings(task="digits", slots=4)  # fewer than usual: programs are compiled for each size of the pool


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """The crowd and difficulty stages at their default settings."""
    folder = tmp_path_factory.mktemp("stages")
    for name in ("crowd", "difficulty", "mislabelled"):
        (folder / name).mkdir()
    crowd.write(crowd.train(DEFAULTS, TASK), folder / "crowd")
    difficulty.write(difficulty.run(DEFAULTS, crowd.load_responses(folder / "crowd")), folder / "difficulty")
    mislabelled.write(mislabelled.run(DEFAULTS, TASK), folder / "mislabelled")
    return folder


def spearman(x, y):
    return np.corrcoef(rankdata(x), rankdata(y))[0, 1]


@pytest.mark.slow
def test_halves_of_the_default_crowd_agree_on_difficulty(stages):
    members = pd.read_csv(stages / "crowd" / "members.csv")
    assert members.accuracy_test.min() < 0.25
    assert members.accuracy_test.max() > 0.95
    printed = json.loads((stages / "difficulty" / "reliability.json").read_text())["split_half_spearman"]
    responses = crowd.load_responses(stages / "crowd")
    one, two = alternate_subjects(responses)
    assert set(one.subject_ids).isdisjoint(two.subject_ids)
    # percent correct says almost the same as the 1PL when all answer everything, and needs no fit
    by_percent = spearman(-one.values.mean(axis=0), -two.values.mean(axis=0))
    assert printed == pytest.approx(by_percent, abs=0.02)
    assert printed >= 0.88


@pytest.mark.slow
def test_difficulty_finds_flipped_labels(stages):
    table = pd.read_csv(stages / "mislabelled" / "mislabelled.csv")
    printed = json.loads((stages / "mislabelled" / "detection.json").read_text())
    flipped = table.flipped == 1
    np.testing.assert_array_equal(table.gold_label != table.shown_label, flipped)
    # the probability that a flipped item is harder than another, by the Mann-Whitney statistic
    ranks = rankdata(table.difficulty)[flipped]
    auc = (ranks.sum() - flipped.sum() * (flipped.sum() + 1) / 2) / (flipped.sum() * (~flipped).sum())
    assert printed["auc"] == pytest.approx(auc, abs=1e-4)
    assert printed["auc"] >= 0.98
    hardest = table.sort_values("difficulty", ascending=False).head(60)
    assert printed["flipped_among_as_many_hardest"] == (hardest.flipped == 1).sum()


@pytest.mark.slow
def test_filtering_reports_the_best_epoch_of_the_right_subset(tmp_path):
    settings = Settings(task="digits", width=8, epochs=12, patience=2, steps_per_epoch=10, filtering_seeds=1, slots=2)
    items = pd.DataFrame({"difficulty": np.linspace(-3, 3, 1197), "proportion_correct": np.linspace(0.9, 0.1, 1197)})
    filtering.write(filtering.run(settings, TASK, items, tmp_path, shares=(0.02, 0.2, 1.0)), tmp_path)
    table = pd.read_csv(tmp_path / "filtering.csv")
    assert len(table) == 21
    assert (table.epochs < settings.epochs).any()
    trainer, data = make_trainer(recipe_of(settings), TASK), to_device(TASK)
    start, epoch, answer = one_by_one(trainer, data)
    for row in table.iloc[::4].itertuples():
        order = ranking(row.strategy, items.difficulty.to_numpy(), items.proportion_correct.to_numpy(), row.seed)
        assert row.examples == max(round(row.share * 1197), 1)
        plan = plan_subset(
            SubsetRow(np.uint32(row.seed), order, np.int32(row.examples), np.float32(5e-3), np.int32(8)),
            TASK.train.labels,
        )
        plans = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], plan)
        learners = start(plans)
        while training.is_training(trainer, learners):
            learners = epoch(learners, plans)
        assert row.epochs == learners.epoch
        assert row.test_accuracy == pytest.approx(float(answer(learners)), abs=0.0101)
        assert row.dev_accuracy == pytest.approx(float(learners.best_accuracy[0]), abs=0.0101)


def one_by_one(trainer, data):
    """Programs for one network without a pool: its start, an epoch of ten steps, the test accuracy of its best."""

    def start(plans):
        return jax.vmap(lambda plan: training.start(trainer, plan, (None, None)))(plans)

    def epoch(learners, plans):
        return training.validate(trainer, training.train_epoch(trainer, learners, plans, data, 10), data)

    def answer(learners):
        best = jax.tree.map(lambda leaf: leaf[0], learners.best_parameters)
        return accuracy(trainer.network, best, None, data.test)

    return jax.jit(start), jax.jit(epoch), jax.jit(answer)


def test_summary_by_hand():
    rows = [
        ("baseline", 0, 0, 100, 0, 0.5, 0.4), ("baseline", 0, 1, 100, 0, 0.9, 0.8),
        ("baseline", 0, 2, 100, 0, 0.7, 0.9),
        ("baseline", 1, 0, 100, 0, 0.9, 0.6), ("baseline", 1, 1, 100, 0, 0.8, 0.7),
        ("DDaCLAE", 0, 0, 20, 7, 0.2, 0.1), ("DDaCLAE", 0, 1, 40, 8, 0.8, 0.9),
        ("DDaCLAE", 1, 0, 30, 9, 0.7, 0.7), ("DDaCLAE", 1, 1, 50, 7, 0.6, 0.8),
    ]  # fmt: skip
    columns = ["strategy", "seed", "epoch", "examples_used", "items_asked", "dev_accuracy", "test_accuracy"]
    summary = summarise(pd.DataFrame(rows, columns=columns)).set_index("strategy")
    assert summary.best_epoch.to_dict() == {"baseline": 1.5, "DDaCLAE": 1.5}
    assert summary.examples_used.to_dict() == {"baseline": 150, "DDaCLAE": 45}
    assert summary.test_accuracy["baseline"] == pytest.approx(0.7)
    assert summary.test_accuracy["DDaCLAE"] == pytest.approx(0.8)
    # of each seed against the baseline of that seed: 60 of 200 and 30 of 100 examples
    assert summary.examples_ratio["DDaCLAE"] == pytest.approx(0.3)
    assert list(summary.loc["DDaCLAE", ["examples_ratio_low", "examples_ratio_high"]]) == pytest.approx([0.3, 0.3])
    assert summary.examples_ratio["baseline"] == 1
    # all of 60 and 80 examples, of 200 and 100; all of 300 and 200
    assert summary.examples_most["DDaCLAE"] == pytest.approx((0.3 * 0.8) ** 0.5)
    assert summary.examples_most["baseline"] == pytest.approx((1.5 * 2) ** 0.5)
    assert summary.accuracy_change_points["DDaCLAE"] == pytest.approx(10)
    assert summary.accuracy_change_percent["DDaCLAE"] == pytest.approx(100 * 0.1 / 0.7)
    assert summary.items_asked.to_dict() == {"baseline": 0, "DDaCLAE": 12}
    assert summary.examples_used_ci["DDaCLAE"] == pytest.approx(
        12.7062 * np.std([60, 30], ddof=1) / np.sqrt(2), rel=1e-4
    )


def test_items_are_matched_by_id(tmp_path):
    ids = np.concatenate([getattr(TASK, split).ids for split in ("train", "validation", "test")])
    values = np.random.default_rng(0).integers(0, 2, (4, ids.size)).astype(np.int8)
    start = 0
    for split in ("train", "validation", "test"):
        part = slice(start, start := start + len(getattr(TASK, split).ids))
        responses = irtjax.ResponseMatrix(values[:, part], ["a", "b", "c", "d"], ids[part])
        irtjax.write_responses(responses, tmp_path / f"responses_{split}.npz")
    whole = crowd.load_responses(tmp_path)
    np.testing.assert_array_equal(whole.values, values)
    (tmp_path / "vague").mkdir()
    table = pd.DataFrame({"item_id": ids, "difficulty": 0.0, "proportion_correct": values.mean(axis=0)})
    table.to_csv(tmp_path / "vague" / "items.csv", index=False)
    wanted = TASK.test.ids[::-1]
    items = difficulty.load_items(tmp_path, "vague", wanted)
    assert list(items.index) == list(wanted)
    at = pd.Index(whole.item_ids).get_indexer(wanted)
    np.testing.assert_allclose(items.proportion_correct, whole.values.mean(axis=0)[at], rtol=1e-5)


def test_fits_that_warn_alike_are_one_warning(monkeypatch):
    def doubtful(responses, priors, seed, description):
        warnings.warn(f"{responses.num_subjects} subjects are few", FitWarning, stacklevel=2)
        return types.SimpleNamespace(difficulty=-responses.values.mean(axis=0))

    values = np.random.default_rng(0).integers(0, 2, (6, 8)).astype(np.int8)
    ids = (np.array([f"{kind}{number}" for number in range(size)]) for kind, size in (("s", 6), ("i", 8)))
    monkeypatch.setattr(difficulty, "fit", doubtful)
    with pytest.warns(FitWarning) as caught:
        difficulty.run(DEFAULTS, ResponseMatrix(values, *ids))
    assert [str(one.message) for one in caught] == ["6 subjects are few (and 3 fits more that warned of the same)"]
