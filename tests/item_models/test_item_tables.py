"""Parameters from the columns of tables, ours and those of other programs."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from irtjax.errors import InputError
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import probabilities


def test_items_from_a_table():
    table = pd.DataFrame({"difficulty": [0.5, -1.0], "discrimination": [2.0, 1.0], "guessing": [0.2, 0.0]})
    items = from_columns(table)
    np.testing.assert_allclose(items.intercept, [-1.0, 1.0])
    np.testing.assert_allclose(expit(items.lower), [0.2, 0.0])
    assert np.isposinf(items.upper).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"difficulty": [0.0, np.inf]}, "column difficulty: an infinite number for item 'y'"),
        ({"difficulty": [0.0, 1.0], "discrimination": [-np.inf, 1.0]}, "column discrimination: an infinite number"),
        ({"difficulty": [0.0, np.nan]}, "column difficulty: no number for item 'y'"),
        ({"discrimination_2": [1.0, 1.0], "intercept": [0.0, 0.0]}, "expected discrimination_1"),
    ],
)
def test_items_that_are_none_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        from_columns(pd.DataFrame(columns, index=["x", "y"]))


def test_one_item_of_several_dimensions():
    table = pd.DataFrame({"discrimination_1": [1.0], "discrimination_2": [0.5], "intercept": [0.2]}, index=["x"])
    assert from_columns(table).slope.shape == (1, 2)


@pytest.mark.parametrize("scaling", [1.0, 1.7, np.array([1.7, 1.702])])
def test_the_scaling_constant_of_other_programs(scaling):
    """P = c + (1 - c) σ(D a (θ - b)), with a and without."""
    a, b, c, theta = np.array([0.8, 1.4]), np.array([-0.5, 1.2]), np.array([0.2, 0.0]), np.linspace(-3, 3, 7)[:, None]
    table = pd.DataFrame({"difficulty": b, "discrimination": a, "guessing": c}).assign(D=scaling)
    expected = c + (1 - c) / (1 + np.exp(-np.asarray(scaling) * a * (theta - b)))
    np.testing.assert_allclose(probabilities(from_columns(table), theta)[0], expected, rtol=1e-12)
    flat = from_columns(table[["difficulty", "D"]])
    np.testing.assert_allclose(probabilities(flat, theta)[0], expit(np.asarray(scaling) * (theta - b)), rtol=1e-12)


def test_scaling_constants_that_are_none_are_refused():
    one = pd.DataFrame({"difficulty": [0.0, 1.0]}, index=["x", "y"])
    for bad in (0.0, -1.7, np.nan, np.inf, "logic"):
        with pytest.raises(InputError, match="column D: item 'y' has no number above 0"):
            from_columns(one.assign(D=np.array([1.7, bad], object)))
    several = pd.DataFrame({"discrimination_1": [1.0], "discrimination_2": [0.5], "intercept": [0.2]}, index=["x"])
    assert from_columns(several.assign(D=1.0)).slope.tolist() == [[1.0, 0.5]]
    with pytest.raises(InputError, match="column D with an intercept, which may be scaled or not"):
        from_columns(several.assign(D=1.7))
