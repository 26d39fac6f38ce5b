"""Pictures: drawn from small tables, written whole, and showing what they are asked to show."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from irtjax import InputError
from irtjax.kernels.models import ItemParameters
from irtjax.plots.curricula import curricula, forest, numbers_in_full
from irtjax.plots.difficulty import class_densities, contact_sheet, densities, suspect_sheet
from irtjax.plots.filtering import accuracy_against_share, accuracy_dots, class_balance
from irtjax.plots.scale import precision
from irtjax.plots.strategies import LOOKS, looks
from irtjax.plots.style import save_figure
from irtjax.scale.information import information_table
from irtjax.selection.choices import FILTERS, STRATEGIES
from irtjax.selection.summary import interval, summarise

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


def test_suspects_have_their_label_and_another():
    images = np.arange(10)[:, None, None, None] * np.ones((1, 4, 4, 1))
    figure = suspect_sheet(images, ["cat"] * 10, ["dog"] * 9 + [""], "title")
    assert [axis.get_images()[0].get_array().max() for axis in figure.axes] == list(range(10))
    assert {axis.get_title() for axis in figure.axes[:9]} == {"cat\ndog?"}
    assert figure.axes[9].get_title() == "cat"


def test_lines_are_means_over_seeds():
    table = pd.DataFrame(
        {"strategy": "UB", "share": [0.1, 0.1, 1.0, 1.0], "seed": [0, 1, 0, 1], "test_accuracy": [0.4, 0.6, 0.9, 0.9]}
    )
    line = accuracy_against_share(table, ["UB"]).axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), [0.5, 0.9])


def test_at_one_share_strategies_are_rows_with_intervals_that_end_at_0_and_1():
    table = pd.DataFrame(
        {
            "strategy": ["UB", "LB", "AVI"] * 2,
            "share": 0.1,
            "seed": [0] * 3 + [1] * 3,
            "test_accuracy": [0.49, 0.3, 0.5, 0.51, 0.3, 0.9],
        }
    )
    axis = accuracy_against_share(table, ["UB", "LB", "AVI"]).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["UB", "LB", "AVI"]
    ends = [line.get_xdata() for line in axis.get_lines()[::2]]
    half = 12.7062 * 0.01  # t with one degree of freedom, standard error 0.01
    np.testing.assert_allclose(ends, [[0.5 - half, 0.5 + half], [0.3, 0.3], [0, 1]], rtol=1e-5)


def test_dots_have_a_panel_per_share_and_a_line_at_the_random_choice():
    cells = pd.DataFrame(
        [
            (strategy, share, 0.5 + 0.1 * share, 0.05)
            for share in (0.1, 0.2, 0.5, 0.8, 1.0)
            for strategy in ("random", "AVI, median", "mine")
        ],
        columns=["strategy", "share", "mean", "half"],
    )
    figure = accuracy_dots(cells, "title")
    assert [axis.get_title() for axis in figure.axes] == [f"{share}% of the data" for share in (10, 20, 50, 80, 100)]
    assert figure.axes[1].get_lines()[0].get_xdata() == [0.52, 0.52]


def test_a_strategy_looks_the_same_beside_any_others():
    def colours(strategies):
        table = pd.DataFrame({"strategy": strategies, "share": 0.1, "seed": 0, "test_accuracy": 0.5})
        both = pd.concat([table, table.assign(share=0.5)])
        return {line.get_label(): line.get_color() for line in accuracy_against_share(both, strategies).axes[0].lines}

    few, many = colours(["AVI", "random"]), colours(["LB", "random", "UB", "AVI"])
    assert {name: many[name] for name in few} == few
    assert looks(["DDaCLAE", "mine", "baseline"])["DDaCLAE"] == looks(["DDaCLAE"])["DDaCLAE"]
    assert looks(STRATEGIES).keys() | looks(FILTERS).keys() <= LOOKS.keys()
    assert len(set(looks(["a", "b", "c"]).values())) == 3
    assert len({look for name, look in LOOKS.items() if name in STRATEGIES}) == len(STRATEGIES)


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


def trainings():
    """Two seeds of a baseline and of a strategy that uses half of the data, 0.1 better; one seed stops earlier."""
    rows = [
        (name, seed, epoch, share, 100 * share, 0.5 + 0.1 * epoch + gain)
        for name, share, gain in (("baseline", 1.0, 0.0), ("DDaCLAE", 0.5, 0.1))
        for seed, last in ((0, 2), (1, 4))
        for epoch in range(last)
    ]
    columns = ["strategy", "seed", "epoch", "share", "examples_used", "test_accuracy"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(dev_accuracy=table.test_accuracy, items_asked=0)


def test_curricula_compare_accuracies_after_as_many_examples():
    figure = curricula(trainings(), ["baseline", "DDaCLAE"])
    panels = {axis.get_ylabel(): axis for axis in figure.axes}
    change = panels["test accuracy − baseline's, points (log beyond ±5)"]
    running, held = change.get_lines()[2:]
    # after 100 examples, the first seed of the strategy has ended with 0.7 and the second has 0.7, the baseline 0.5
    np.testing.assert_allclose([running.get_xdata()[-1], running.get_ydata()[-1]], [100, 20])
    # after 200, they have 0.7 and 0.9, the baseline 0.6
    np.testing.assert_allclose([held.get_xdata()[-1], held.get_ydata()[-1]], [200, 20], rtol=0.05)
    assert (running.get_linestyle(), held.get_linestyle()) == ("-", ":")
    assert running.get_color() == held.get_color() == LOOKS["DDaCLAE"].color
    accuracy = panels["test accuracy (logit scale)"]
    best = accuracy.get_lines()[2].get_data()
    np.testing.assert_allclose(best, [[(200 * 400) ** 0.5], [0.7]])
    np.testing.assert_allclose(accuracy.get_lines()[0].get_xdata()[[0, -1]], [100, 200])
    low, high = change.get_ylim()
    assert low > -20
    assert high < 60  # the interval of two seeds is wider
    with pytest.raises(InputError, match="no strategy 'baseline'"):
        curricula(trainings(), ["DDaCLAE"])


def test_curricula_of_one_epoch_and_of_strategies_that_select_nothing_are_drawn(tmp_path):
    short = trainings().query("epoch == 0")
    starved = trainings()
    starved.loc[starved.strategy == "DDaCLAE", "examples_used"] = 0
    for table in (short, short.query("seed == 0"), starved):
        save_figure(curricula(table, ["baseline", "DDaCLAE"]), tmp_path / "a.png")


def test_a_forest_shows_the_summary():
    control = trainings().query("strategy == 'baseline'").replace("baseline", "no-effect")
    summary = summarise(pd.concat([trainings(), control], ignore_index=True))
    figure = forest(summary)
    examples, _, change = figure.axes
    assert [label.get_text() for label in examples.get_yticklabels()] == ["DDaCLAE", "no-effect (null control)"]
    np.testing.assert_allclose(examples.get_lines()[2].get_xdata(), [0.5])  # after the line at 1 and the interval
    assert examples.get_xlim()[0] < 0.5
    np.testing.assert_allclose(change.get_lines()[2].get_xdata(), [10])
    assert len(forest(summary.drop(columns="reach_ratio")).axes) == 2
    never = forest(summary.assign(reached=summary.reached.where(summary.strategy != "DDaCLAE", 0))).axes[1]
    assert [text.get_text() for text in never.texts] == [f"0 of {summary.seeds[0]}"]
    assert len(never.get_lines()) == len(examples.get_lines()) - 2  # neither an interval nor a mark
    with pytest.raises(InputError, match="the baseline alone"):
        forest(summary[summary.strategy == "baseline"])


def test_interval_by_hand():
    # Student's t with 3 degrees of freedom: 3.182
    assert interval([1.0, 2.0, 3.0, 4.0]) == pytest.approx(3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-6)
    assert np.isnan(interval([1.0]))


def test_precision_without_the_item_that_tells_most():
    slope, ends = np.array([[3.0], [1.0], [1.0]]), np.full(3, np.inf)
    items, ids = ItemParameters(slope, np.zeros(3), -ends, ends), np.array(["steep", "b", "c"])
    full, others = information_table(items, ids), information_table(items.take(np.array([1, 2])), ids[1:])
    figure = precision(full, full, others, "steep", "three items")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["scale, 3 items", "short form, 3 items", "without steep, 2 items"]


@pytest.mark.parametrize(("high", "expected"), [(50_000, "20,000"), (5_000_000, "")])
def test_numbers_between_powers_of_ten_are_written_as_those_are(high, expected):
    axis = Figure().subplots()
    axis.set(xscale="log", xlim=(9_000, high))
    numbers_in_full(axis)
    assert axis.xaxis.get_major_formatter()(10_000) == "10,000"
    assert axis.xaxis.get_minor_formatter()(20_000) == expected
    assert axis.xaxis.get_minor_formatter()(30_000) == ""
