"""Pictures of fits from Python."""

import warnings

import numpy as np
import pytest
from simulation import simulate

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
