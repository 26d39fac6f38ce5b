"""Tables of other packages beside responses: ids are in the column of their name, as in files."""

import numpy as np
import pandas as pd
import pytest
from other_packages import Polars, Streamed

from irtjax import InputError
from irtjax.auditing.choices import read_choices
from irtjax.estimation.covariates import as_predictors
from irtjax.estimation.grouping import membership
from irtjax.fits.item_features import item_features, new_items
from irtjax.scoring.abilities import item_table

SUBJECTS, ITEMS = np.array(["a", "b", "c", "d"]), np.array(["x", "y", "z"])
BACKWARDS = pd.DataFrame({"subject_id": SUBJECTS[::-1], "age": [4.0, 3.0, 2.0, 1.0], "group": ["v", "w", "w", "v"]})
OF_ITEMS = pd.DataFrame({"item_id": ITEMS[::-1], "length": [3.0, 2.0, 1.0], "difficulty": [0.3, 0.2, 0.1]})
CHOSEN = pd.DataFrame({"subject_id": ["b", "a"], "x": ["A", "B"], "y": ["C", "A"]})
TABLES = [Streamed, Polars, lambda frame: frame]


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_found_by_the_column_of_ids(table):
    found = as_predictors(table(BACKWARDS[["subject_id", "age"]]), SUBJECTS)
    assert found.names.tolist() == ["age"]
    np.testing.assert_array_equal(found.given[:, 0], [-1.5, -0.5, 0.5, 1.5])
    groups = membership(table(BACKWARDS[["subject_id", "group"]]), SUBJECTS)
    assert groups.names[groups.member].tolist() == ["v", "w", "w", "v"]
    features = item_features({"size": table(OF_ITEMS[["item_id", "length"]])}, ITEMS)
    np.testing.assert_array_equal(features.values[:, 0], [1, 2, 3])
    assert features.names == ("size: length",)
    assert new_items(table(OF_ITEMS[["item_id", "length"]]))[0].tolist() == ITEMS[::-1].tolist()
    assert item_table(table(OF_ITEMS)).difficulty.loc["x"] == 0.1
    choices = read_choices(table(CHOSEN), {"x": "A", "y": "C"})
    assert list(choices.subject_ids) == ["b", "a"]


def test_what_becomes_no_table_is_named():
    missing = ModuleNotFoundError("pyarrow is required for converting to pandas")
    for what, read in (
        ("covariates", lambda one: as_predictors(one, SUBJECTS)),
        ("features", lambda one: item_features(one, ITEMS)),
        ("items", item_table),
    ):
        with pytest.raises(
            InputError, match=rf"^{what} of type Polars become no table of pandas \(pyarrow is required"
        ):
            read(Polars(OF_ITEMS, missing))
