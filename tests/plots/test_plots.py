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


def test_at_one_share_intervals_are_drawn():
    table = pd.DataFrame(
        {
            "strategy": ["UB", "LB", "UB", "LB"],
            "share": 0.1,
            "seed": [0, 0, 1, 1],
            "test_accuracy": [0.4, 0.3, 0.6, 0.3],
        }
    )
    axis = accuracy_against_share(table, ["UB", "LB"]).axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["UB", "LB"]
    bars = axis.containers[0][2][0].get_segments()
    expected = 0.5 + np.array([-1, 1]) * 12.7062 * 0.1  # t with one degree of freedom, standard error 0.1
    np.testing.assert_allclose(bars[0][:, 1], expected, rtol=1e-5)
    np.testing.assert_allclose(bars[1][:, 1], 0.3)


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
    axis = class_balance(table[table.share == 0.1]).axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["UB"]
    np.testing.assert_allclose(axis.get_lines()[0].get_ydata(), [0])


def test_every_class_and_every_strategy_has_a_line():
    labels = np.arange(60) % 12
    figure = class_densities(RNG.normal(size=60), labels, "abcdefghijkl", "title")
    lines = figure.axes[0].get_lines()
    assert len(lines) == 12
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12


def test_names_that_fonts_and_formulas_cannot_take_are_drawn_without_a_warning(tmp_path):
    names = ["问题 1", "a$b$c", "two\nlines", "\x1b[31m", "😀"]
    figure = class_densities(RNG.normal(size=50), np.arange(50) % 5, names, "title")
    save_figure(figure, tmp_path / "a.png")
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert shown[0].startswith("□□ 1 (n = 10")
    assert shown[1].startswith(r"a\$b\$c (n")
    assert shown[2].startswith(r"two\nlines (n")
    assert shown[3].startswith(r"\x1b[31m (n")
    assert any("□: a character that the font lacks" in text.get_text() for text in figure.texts)


def test_densities_begin_and_end_at_nothing():
    for figure in (
        densities({"a": RNG.normal(size=50), "b": RNG.uniform(size=20)}, "title"),
        class_densities(RNG.uniform(size=50), np.arange(50) % 2, "ab", "title"),
    ):
        lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 400]
        for line in lines:
            assert max(line.get_ydata()[[0, -1]]) < 0.02 * max(line.get_ydata())


def test_curricula_say_where_seeds_have_stopped():
    rows = [
        ("baseline", seed, epoch, 1.0, 0.5 + 0.1 * epoch) for seed, last in ((0, 2), (1, 4)) for epoch in range(last)
    ]
    table = pd.DataFrame(rows, columns=["strategy", "seed", "epoch", "share", "test_accuracy"])
    accuracy, share = curricula(table.assign(dev_accuracy=table.test_accuracy), ["baseline"]).axes
    running, held, best = accuracy.get_lines()
    np.testing.assert_allclose(running.get_data(), [[1, 2], [0.5, 0.6]])
    np.testing.assert_allclose(held.get_data(), [[2, 3, 4], [0.6, 0.65, 0.7]])
    assert held.get_linestyle() == ":"
    np.testing.assert_allclose(best.get_data(), [[3], [0.7]])
    assert "keep their last value" in share.get_legend().get_title().get_text()


def test_interval_by_hand():
    # Student's t with 3 degrees of freedom: 3.182
    assert interval([1.0, 2.0, 3.0, 4.0]) == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)
    assert np.isnan(interval([1.0]))
