"""Pictures of fits from Python."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from simulation import simulate, simulate_grades

import irtjax
from irtjax import InputError


@pytest.fixture(scope="module")
def fit():
    return irtjax.fit(simulate(300, 12, missing=0.1)[0])  # the shapes of tests/estimation/test_front_door.py


def test_curves_show_the_items_that_are_asked_for(fit, tmp_path):
    def titles(figure):
        return [axis.get_title() for axis in figure.axes if axis.get_visible()]

    order = np.argsort(fit.difficulty)
    assert titles(irtjax.plots.curves(fit)) == fit.responses.item_ids[order].tolist()
    some = irtjax.plots.curves(fit, ["i7", "i2"])
    assert titles(some) == ["i7", "i2"]
    theta, p = some.axes[0].get_lines()[-1].get_data()
    a, b = fit.item_columns["discrimination"][7], fit.difficulty[7]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-a * (theta - b))), rtol=1e-6)
    some.savefig(tmp_path / "curves.png")
    for items, message in ((["i99"], "item 'i99' is not in the fit"), ([], "0 items, expected 1 to 60")):
        with pytest.raises(InputError, match=message):
            irtjax.plots.curves(fit, items)


def test_curves_of_few_subjects_have_bands_and_no_empty_columns():
    few = irtjax.fit(simulate(25, 12)[0], model="1pl")
    figure = irtjax.plots.curves(few, ["i7", "i2"])
    assert len(figure.axes) == 2
    for axis, item in zip(figure.axes, (7, 2), strict=True):
        band = axis.collections[0].get_paths()[0].vertices
        assert np.isfinite(band).all()
        share = axis.get_lines()[0].get_ydata()
        assert len(share) == 5
        # ranges hold about as many subjects each
        assert abs(share.mean() - few.items().proportion_correct[item]) < 0.05


def test_a_ranking_has_the_most_able_first_with_their_intervals(fit, tmp_path):
    figure = irtjax.plots.ranking(fit, 5)
    axis = figure.axes[0]
    order = np.argsort(-fit.ability, kind="stable")[:5]
    shown = [label.get_text().split()[0] for label in axis.get_yticklabels()]
    assert shown == fit.responses.subject_ids[order].tolist()
    points, _, (bars,) = axis.containers[0]
    np.testing.assert_allclose(points.get_xdata(), fit.ability[order])
    low, high = np.array([segment[:, 0] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(high - low, 2 * 1.96 * fit.ability_se[order])
    assert "the 5 most able of 300 subjects" in axis.get_title()
    assert axis.get_legend() is None
    assert axis.get_ylim()[0] > axis.get_ylim()[1]  # the first is at the top
    figure.savefig(tmp_path / "ranking.png")


def test_a_ranking_is_coloured_by_group(fit):
    ids = fit.responses.subject_ids
    by_place = irtjax.plots.ranking(fit, 20, groups=["even" if at % 2 == 0 else "odd" for at in range(len(ids))])
    by_name = irtjax.plots.ranking(fit, 20, groups={name: ("even", "odd")[at % 2] for at, name in enumerate(ids)})
    for figure in (by_place, by_name):
        legend = figure.axes[0].get_legend()
        assert {text.get_text() for text in legend.get_texts()} == {"even", "odd"}
    columns = [container[0].get_xdata().tolist() for container in by_place.axes[0].containers]
    assert columns == [container[0].get_xdata().tolist() for container in by_name.axes[0].containers]
    for arguments, message in (
        ({"most": 0}, "`most` 0, expected a whole number, 1 to 60"),
        ({"groups": {}}, "`groups` lacks subject"),
        ({"groups": ["a"]}, "`groups` of 1 subjects, expected one for each of the 300"),
        ({"groups": [str(at) for at in range(300)]}, "`groups` has 300 groups"),
    ):
        with pytest.raises(InputError, match=message):
            irtjax.plots.ranking(fit, **arguments)


def test_information_is_the_sum_over_items(fit):
    information, error, _ = irtjax.plots.information(fit).axes
    theta, total = information.get_lines()[0].get_data()
    a, b = fit.item_columns["discrimination"][None, :], fit.difficulty[None, :]
    p = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    np.testing.assert_allclose(total, (a**2 * p * (1 - p)).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(error.get_lines()[0].get_ydata(), total**-0.5)


def test_a_wright_map_bears_items_without_a_finite_difficulty(fit):
    columns = dict(fit.item_columns)
    columns["difficulty"] = columns["difficulty"].copy()
    columns["difficulty"][:3] = np.nan, 1e4, -1e4
    odd = irtjax.Fit(**{name: getattr(fit, name) for name in fit.__dataclass_fields__} | {"item_columns": columns})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        people, items = irtjax.plots.wright(odd).axes
    assert len(items.texts) == 11
    low, high = people.get_ylim()
    assert high - low < 20


def test_a_wright_map_names_few_subjects_and_tells_unsolved_items_apart():
    answers = simulate(25, 70)[0].values.copy()
    answers[:, :10], answers[:, 10:12] = 0, 1
    few = irtjax.fit(answers, model="1pl")
    subjects, items = irtjax.plots.wright(few).axes
    assert {text.get_text() for text in subjects.texts} == set(few.responses.subject_ids)
    labels = [text.get_text() for text in items.get_legend().get_texts()]
    assert labels == ["items", "nobody right (10)", "everybody right (2)"]
    assert sum(bar.get_width() for bars in items.containers for bar in bars) == 70


@pytest.fixture(scope="module")
def graded():
    """Grades of four items; nobody was given a 3 of `i2`, and the last item runs the other way."""
    grades = simulate_grades(200, 6)[0]
    grades.loc[grades.i2 == 3, "i2"] = 2
    return irtjax.fit(grades.assign(i5=5 - grades.i5), model="graded")


def test_curves_of_grades_are_expected_grades(graded, tmp_path):
    figure = irtjax.plots.curves(graded, ["i1", "i2", "i5"])
    theta = figure.axes[0].get_lines()[-1].get_xdata()
    table, labels = graded.items().set_index("item_id"), {"i1": [1, 2, 3, 4], "i2": [1, 2, 4], "i5": [1, 2, 3, 4]}
    assert figure.get_supylabel() == "expected grade"
    for axis, item in zip(figure.axes, ("i1", "i2", "i5"), strict=True):
        a = table.discrimination[item]
        above = [expit(a * (theta - table[f"threshold_{k}"][item])) for k in range(1, len(labels[item]))]
        expected = labels[item][0] + np.diff(labels[item]) @ np.array(above)
        np.testing.assert_allclose(axis.get_lines()[-1].get_ydata(), expected, rtol=1e-6)
        # responses lie about the model
        where, share = axis.get_lines()[0].get_data()
        assert np.nanmax(np.abs(share - np.interp(where, theta, expected))) < 0.45
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["1", "2", "3", "4"]
    figure.savefig(tmp_path / "curves.png")


def test_category_curves_have_one_colour_for_a_grade_in_all_items(graded, fit):
    figure = irtjax.plots.categories(graded, ["i1", "i2"])
    first, second = (axis.get_lines() for axis in figure.axes)
    assert [len(first), len(second)] == [4, 3]
    np.testing.assert_allclose(sum(line.get_ydata() for line in second), 1)
    assert np.array_equal(first[3].get_color(), second[2].get_color())  # grade 4
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["1", "2", "3", "4"]
    # at its first threshold the lowest grade has probability 1/2
    place = graded.items().set_index("item_id").threshold_1["i1"]
    assert np.interp(place, *first[0].get_data()) == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(InputError, match=r"no item has grades or categories: irtjax\.plots\.curves"):
        irtjax.plots.categories(fit)


def test_a_wright_map_of_grades_has_their_thresholds(graded):
    _, items = irtjax.plots.wright(graded).axes
    assert items.get_title() == "thresholds of items"
    named = {text.get_text() for text in items.texts}
    assert len(named) == 5 * 3 + 2
    assert {"i1 ≥ 2", "i1 ≥ 3", "i1 ≥ 4", "i2 ≥ 2", "i2 ≥ 4"} <= named


def test_information_of_grades_is_the_variance_of_the_score(graded):
    """I = Σ_k P_k'² / P_k of each item (Samejima 1969), by differences."""
    figure = irtjax.plots.information(graded, "i1")
    theta, total = figure.axes[0].get_lines()[0].get_data()
    own = figure.axes[0].get_lines()[1].get_ydata()
    row, step = graded.items().set_index("item_id").loc["i1"], 1e-5

    def p(theta):
        above = [expit(row.discrimination * (theta - row[f"threshold_{k}"])) for k in (1, 2, 3)]
        return -np.diff(np.array([np.ones_like(theta), *above, np.zeros_like(theta)]), axis=0)

    by = (p(theta + step) - p(theta - step)) / (2 * step)
    np.testing.assert_allclose(own, (by**2 / p(theta)).sum(axis=0), rtol=1e-5)
    assert (total > own).all()


def test_nominal_items_have_categories_and_no_place():
    votes = irtjax.fit(simulate_grades(200, 6)[0].iloc[:, :3], model="nominal", standard_errors=False)
    assert len(irtjax.plots.categories(votes).axes) == 3
    for draw in (irtjax.plots.curves, irtjax.plots.wright):
        with pytest.raises(InputError, match="nominal"):
            draw(votes)
