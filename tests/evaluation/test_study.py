"""Scores of held-out subjects, by every form and prediction."""

import numpy as np
import pytest
from benchmarks_at_hand import simulate

from irtjax.errors import InputError
from irtjax.evaluation.study import hold_out


@pytest.fixture(scope="module")
def simulated():
    return simulate(150)


@pytest.fixture(scope="module")
def errors(simulated):
    said = []
    table = hold_out(
        simulated.responses,
        simulated.scores,
        num_items=(4, 12),
        seeds=1,
        calibration=(60,),
        forms=("random", "variance"),
        predictors=("mean", "calibrated"),
        on_progress=lambda *step: said.append(step),
    )
    return table, said


def test_one_row_per_method_size_and_number_of_subjects(errors):
    table, said = errors
    assert len(table) == 2 * 2 * 2
    assert not table.duplicated(["method", "num_items", "seed", "calibration"]).any()
    assert set(table.calibration) == {60}
    assert set(table.predicted) == {30}
    assert said[0][:2] == (0, 4)
    assert said[-1][:2] == (4, 4)


def test_errors_are_in_points_and_fall_with_the_number_of_items(errors, simulated):
    table, _ = errors
    assert (table.mae <= table.rmse).all()
    assert 0.75 < table.coverage_90.mean() < 1  # of the same 30 subjects in all rows
    spread = np.abs(simulated.scores - simulated.scores.mean()).mean()
    means = table.groupby("num_items").mae.mean()
    assert means[12] < means[4] < spread


def test_the_same_seed_gives_the_same_table(errors, simulated):
    table, _ = errors
    again = hold_out(
        simulated.responses,
        simulated.scores,
        num_items=(4,),
        seeds=1,
        calibration=(60,),
        forms=("random",),
        predictors=("mean",),
    )
    row = table[(table.num_items == 4) & (table.method == "random mean")]
    assert again.iloc[0].mae == row.iloc[0].mae


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_items": (30,)}, "`num_items` 30, expected a whole number, 1 to 24"),
        ({"forms": ("best",)}, "`forms` 'best', expected names of random"),
        ({"predictors": ("best",)}, "`predictors` 'best'"),
        ({"held_out": 0.95}, "142 to predict and 8 to calibrate, expected at least 1 and 13"),
        ({"calibration": (500,)}, "`calibration` 500, expected 13 to 120 subjects, or all"),
    ],
)
def test_what_cannot_be_held_out_is_refused(simulated, options, message):
    with pytest.raises(InputError, match=message):
        hold_out(simulated.responses, simulated.scores, **({"num_items": (5,)} | options))
