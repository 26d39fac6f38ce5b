"""Curricula compared: one table for all strategies, paired by seed, and what is refused."""

import contextlib

import numpy as np
import pandas as pd
import pytest

from irtjax import InputError, tasks
from irtjax.selection import compare_curricula, summarise
from irtjax.selection.choices import CurriculumOptions
from irtjax.selection.compare import _in_order
from irtjax.selection.ddaclae import History
from irtjax.training.recipe import Recipe

TASK = tasks.load("digits")
DIFFICULTY = np.random.default_rng(0).normal(size=len(TASK.train.labels))
RECIPE = Recipe("mlp", width=8, patience=9, max_epochs=3)


@pytest.fixture(scope="module")
def trained():
    """A table of two schedules, which share one program, and the names for which a context was entered."""
    names = []

    @contextlib.contextmanager
    def on_strategy(name):
        names.append(name)
        yield

    table = compare_curricula(
        TASK,
        pd.Series(DIFFICULTY),
        ("baseline", "CB-linear"),
        recipe=RECIPE,
        options=CurriculumOptions(length=2, initial_share=0.2),
        num_seeds=2,
        first_seed=5,
        on_strategy=on_strategy,
    )
    return table, names


def test_one_row_per_strategy_seed_and_epoch(trained):
    table, names = trained
    assert list(table.columns) == ["strategy", "seed", "epoch", *History._fields]
    index = pd.MultiIndex.from_product([names, [5, 6], [0, 1, 2]])
    assert names == ["baseline", "CB-linear"]
    assert list(zip(table.strategy, table.seed, table.epoch, strict=True)) == list(index)
    linear = table[table.strategy == "CB-linear"].share.to_numpy().reshape(2, 3)
    expected = np.ceil(np.array([0.2, 0.6, 1.0]) * DIFFICULTY.size) / DIFFICULTY.size
    np.testing.assert_allclose(linear, [expected, expected], rtol=1e-6)


def test_the_summary_compares_pairs_of_equal_seeds(trained):
    table, _ = trained
    summary = summarise(table).set_index("strategy")
    assert list(summary.index) == ["baseline", "CB-linear"]
    assert (summary.seeds == 2).all()
    assert summary.accuracy_change_points["baseline"] == 0
    row = summary.loc["CB-linear"]
    assert 0 < row.examples_ratio_low <= row.examples_ratio <= row.examples_ratio_high
    assert row.examples_ratio < 1
    with pytest.raises(InputError, match="no strategy 'baseline' in the table"):
        summarise(table[table.strategy == "CB-linear"])


def test_the_null_is_the_baseline_with_other_seeds():
    def accuracies(strategies, first_seed):
        table = compare_curricula(TASK, DIFFICULTY, strategies, recipe=RECIPE, num_seeds=2, first_seed=first_seed)
        return [rows.dev_accuracy.to_numpy() for _, rows in table.groupby("strategy")]

    baseline, null = accuracies(("baseline", "no-effect"), 5)
    (other,) = accuracies(("baseline",), 7)
    np.testing.assert_array_equal(null, other)
    assert (null != baseline).any()


class Stopped(Exception):
    pass


@pytest.mark.slow
def test_groups_that_have_finished_are_kept(trained, one_device, tmp_path):
    entered = []

    def compare(last=None, **options):
        @contextlib.contextmanager
        def on_strategy(name):
            entered.append(name)
            if name == last:
                raise Stopped
            yield

        return compare_curricula(
            TASK,
            DIFFICULTY,
            ("baseline", "CB-linear"),
            recipe=RECIPE,
            options=CurriculumOptions(length=2, initial_share=0.2),
            num_seeds=2,
            first_seed=5,
            slots=1,
            mesh=one_device,
            on_strategy=on_strategy,
            **options,
        )

    whole = compare()
    assert entered == ["baseline 1/2", "baseline 2/2", "CB-linear 1/2", "CB-linear 2/2"]
    pd.testing.assert_frame_equal(whole.iloc[:, :6], trained[0].iloc[:, :6])
    assert np.abs(whole.test_accuracy - trained[0].test_accuracy).max() < 0.02  # others only by rounding
    entered.clear()
    with pytest.raises(Stopped):
        compare("CB-linear 1/2", checkpoints=tmp_path)
    again = compare(checkpoints=tmp_path)
    assert entered == ["baseline 1/2", "baseline 2/2", "CB-linear 1/2", "CB-linear 1/2", "CB-linear 2/2"]
    pd.testing.assert_frame_equal(again, whole)
    entered.clear()
    pd.testing.assert_frame_equal(compare(checkpoints=tmp_path), whole)
    assert not entered
    with pytest.raises(InputError, match="with other members, data or options"):
        compare(checkpoints=tmp_path, probe_error=0.1)
    (damaged,) = tmp_path.glob("finished/baseline_5*")
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"baseline_5_1\.npz: damaged, .*: remove it"):
        compare(checkpoints=tmp_path)


def test_bad_requests_are_named():
    def refused(message, difficulty=DIFFICULTY, **options):
        with pytest.raises(InputError, match=message):
            compare_curricula(TASK, difficulty, recipe=RECIPE, **options)

    refused("10 difficulties for 1197 training examples of 'digits', expected one each", DIFFICULTY[:10])
    refused("difficulty 3 is not a finite number", np.where(np.arange(DIFFICULTY.size) == 3, np.nan, DIFFICULTY))
    refused("unknown curriculum strategy 'best', expected one of baseline, no-effect, CB-linear", strategies=("best",))
    refused("'CB-root-length' goes by the length of texts; for task 'digits', choose", strategies=("CB-root-length",))
    refused("0 seeds, expected at least 1", num_seeds=0)
    refused("no strategies", strategies=())
    shuffled = pd.Series(DIFFICULTY).sort_values()
    refused("index of the difficulties is neither that of the training examples", shuffled)


def test_difficulties_by_id_are_put_in_order():
    by_id = pd.Series(DIFFICULTY, index=TASK.train.ids).sort_values()
    np.testing.assert_array_equal(_in_order(by_id, TASK), DIFFICULTY)
