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
