"""Pictures of sources, methods and sizes beside one another, drawn from small tables."""

import numpy as np
import pandas as pd
import pytest

from irtjax.comparison.training_size import LogOdds
from irtjax.plots.difficulty import against_each_other
from irtjax.plots.evaluation import error_by_size, predicted_scores
from irtjax.plots.new_items import item_map
from irtjax.plots.soft_labels import divergence_by_difficulty
from irtjax.plots.training_size import contours

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("columns", "panels"), [(2, 1), (4, 6), (5, 4), (7, 6)])
@pytest.mark.parametrize("first", [False, True])
def test_many_columns_are_each_against_the_last_or_the_first(columns, panels, first):
    table = pd.DataFrame(RNG.normal(size=(30, columns)), columns=list("abcdefg")[:columns])
    axes = against_each_other(table, None, "title", "{}", first=first).axes
    assert len(axes) == panels
    labels = {(axis.get_xlabel(), axis.get_ylabel()) for axis in axes}
    assert len(labels) == panels
    if columns > 4:
        assert {beside for _, beside in labels} == {table.columns[0 if first else -1]}


def test_few_points_far_out_are_drawn_at_the_edge():
    table = pd.DataFrame({"a": np.append(RNG.normal(size=500), 1000.0), "b": RNG.normal(size=501)})
    (axis,) = against_each_other(table, pd.Series(["x", "y", "z"] * 167), "title").axes
    assert axis.get_xlim()[1] < 10
    assert sum(len(part.get_offsets()) for part in axis.collections) == 501


def test_of_many_points_half_of_each_group_is_outlined():
    x = RNG.normal(size=3000)
    table = pd.DataFrame({"a": x, "b": x + RNG.normal(size=3000)})
    groups = pd.Series(np.where(np.arange(3000) < 1500, "first", "second"))
    figure = against_each_other(table, groups, "title")
    (axis,) = figure.axes
    _, *outlines = axis.collections
    assert len(outlines) == 2
    (path,) = outlines[0].get_paths()
    assert path.contains_points(table[:1500].to_numpy()).mean() == pytest.approx(0.5, abs=0.05)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]


def study(sizes):
    rows = [
        (method, size, seed, off / size + seed, 0.9)
        for method, off in (("variance ridge", 20), ("random mean", 40))
        for size in sizes
        for seed in (0, 1)
    ]
    return pd.DataFrame(rows, columns=["method", "num_items", "seed", "mae", "coverage_90"])


def test_errors_of_several_sizes_are_lines_and_of_one_are_rows():
    methods = ["variance ridge", "random mean"]
    (axis,) = error_by_size(study([10, 20]), methods, "title").axes
    np.testing.assert_allclose(axis.get_lines()[0].get_ydata(), [2.5, 1.5])
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["variance ridge (90%)", "random mean (90%)"]
    (axis,) = error_by_size(study([10]), methods, "title").axes
    assert [label.get_text() for label in axis.get_yticklabels()] == labels
    np.testing.assert_allclose([line.get_xdata() for line in axis.get_lines()[::2]], [[2, 3], [4, 5]])


def test_predictions_have_a_panel_per_size():
    table = pd.DataFrame({"score": [40.0, 61], "low": [30.0, 55], "high": [50.0, 65], "truth": [42.0, 60]})
    axes = predicted_scores({10: table, 20: table}, "title").axes
    assert [axis.get_title() for axis in axes] == ["10 items: 1.50 points off", "20 items: 1.50 points off"]
    np.testing.assert_allclose(axes[0].get_lines()[-2].get_data(), [[42, 60], [40, 61]])


@pytest.mark.parametrize(("number", "shape"), [(1, (1, 2)), (2, (2, 2)), (3, (2, 4)), (6, (3, 4))])
def test_regressions_stand_in_pairs_with_what_was_observed(number, shape):
    models = {f"m{at}": LogOdds(np.array([0.2, -1.0, 0.1, -0.1]), np.eye(4), np.ones(4), 10) for at in range(number)}
    rows = [(title, size, low, low + 1.0, 0.5) for title in models for size in (10, 100) for low in (-1.0, 0.0)]
    figure = contours(models, pd.DataFrame(rows, columns=["title", "size", "low", "high", "share"]))
    panels = [axis for axis in figure.axes if axis.get_title()]
    assert len(panels) == 2 * number
    assert panels[0].get_subplotspec().get_gridspec().get_geometry() == shape
    assert {axis.get_xlim() for axis in panels} == {panels[0].get_xlim()}


def test_a_map_of_many_items_has_means():
    places, difficulty = RNG.uniform(size=(2000, 2)), RNG.normal(size=2000)
    means = item_map(places, difficulty, "title").axes[0].collections[0].get_array()
    assert len(means) < 2000
    assert means.std() < difficulty.std()
    few = item_map(places[:100], difficulty[:100], "title")
    assert len(few.axes[0].collections[0].get_array()) == 100
    assert not any(line.get_visible() for line in few.axes[1].get_ygridlines())  # none over the colours of the bar


def test_quarters_of_the_items_have_means():
    table = pd.DataFrame({"difficulty": [*range(8), np.nan], "kl": [0.0, 2, 1, 1, 3, 3, 0, 0, 9]})
    (axis,) = divergence_by_difficulty(table).axes
    np.testing.assert_allclose(np.array(axis.containers[0][0].get_data(), float), [[0.5, 2.5, 4.5, 6.5], [1, 1, 3, 0]])
