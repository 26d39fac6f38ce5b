"""Pictures: drawn from small tables, written whole, and showing what they are asked to show."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from irtjax.plots.difficulty import class_densities, contact_sheet, densities
from irtjax.plots.selection import accuracy_against_share, class_balance, curricula
from irtjax.plots.style import save_figure
from irtjax.selection.summary import interval

RNG = np.random.default_rng(0)


def test_save_writes_a_picture(tmp_path):
    figure = densities({"a": RNG.normal(size=50), "b": np.zeros(5)}, "title")
    save_figure(figure, tmp_path / "a.png")
    pixels = imread(tmp_path / "a.png")
    assert pixels.std() > 0.01
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_contact_sheet_shows_the_extremes_of_each_class():
    images = np.arange(6)[:, None, None, None] * np.ones((1, 4, 4, 1))
    labels, difficulty = np.array([0, 0, 0, 1, 1, 1]), np.array([0.0, -1.0, 2.0, 0.5, -0.5, 0.1])
    figure = contact_sheet(images, labels, "ab", difficulty, "title")
    shown = [axis.get_images()[0].get_array().max() for axis in figure.axes]
    assert shown == [1, 4, 2, 3]  # easiest of 0 and 1, then hardest of 0 and 1
    assert [axis.get_xlabel() for axis in figure.axes] == ["-1.00", "-0.50", "2.00", "0.50"]


def test_lines_are_means_over_seeds():
    table = pd.DataFrame(
        {"strategy": "UB", "share": [0.1, 0.1, 1.0, 1.0], "seed": [0, 1, 0, 1], "test_accuracy": [0.4, 0.6, 0.9, 0.9]}
    )
    line = accuracy_against_share(table, ["UB"]).axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [0.5, 0.9])


def test_evenness_of_classes_by_hand():
    table = pd.DataFrame(
        {
            "strategy": "UB",
            "share": [0.1, 0.1, 1.0, 1.0],
            "class": ["a", "b", "a", "b"],
            "share_of_kept": [1.0, 0.0, 0.5, 0.5],
        }
    )
    line = class_balance(table).axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [0, 1])


def test_every_class_and_every_strategy_has_a_line():
    labels = np.arange(60) % 12
    figure = class_densities(RNG.normal(size=60), labels, "abcdefghijkl", "title")
    lines = figure.axes[0].get_lines()
    assert len(lines) == 12
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12


def test_a_seed_that_stopped_keeps_its_last_value():
    table = pd.DataFrame(
        {
            "strategy": "baseline",
            "seed": [0, 0, 1],
            "epoch": [0, 1, 0],
            "share": 1.0,
            "ability": np.nan,
            "dev_accuracy": [0.1, 0.5, 0.3],
            "test_accuracy": [0.2, 0.6, 0.4],
        }
    )
    line = curricula(table, ["baseline"]).axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [0.3, 0.5])


def test_interval_by_hand():
    # Student's t with 3 degrees of freedom: 3.182
    assert interval([1.0, 2.0, 3.0, 4.0]) == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)
    assert np.isnan(interval([1.0]))
