"""Labels of annotators, one row for each, or in a table of people by items."""

import numpy as np
import pandas as pd
import pytest

from irtjax import InputError
from irtjax.soft_labels.annotations import of_codes, read_annotations
from irtjax.soft_labels.labels import divergence_by_number


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(["yes", "no", "na", ""], (12, 9), p=[0.2, 0.2, 0.3, 0.3]))
    table.iloc[0] = "no"
    return table.set_axis([f"item {i}" for i in range(9)], axis=1).set_axis([f"w{j}" for j in range(12)])


def test_rows_of_labels_are_the_table_of_people_by_items(cells, tmp_path):
    cells.to_csv(tmp_path / "wide.csv", index_label="person")
    rows = cells.stack().rename("label").rename_axis(["worker", "item_id"]).reset_index()
    rows.sample(frac=1, random_state=1).assign(seconds=3).to_csv(tmp_path / "long.csv", index=False)
    wide, long = (read_annotations(tmp_path / f"{name}.csv") for name in ("wide", "long"))
    number_of = {"no": 0, "yes": 2}
    counts = pd.DataFrame(long.as_classes(number_of).counts(3), long.item_ids)
    expected = wide.as_classes(number_of).counts(3)
    np.testing.assert_array_equal(counts.loc[wide.item_ids], expected)
    np.testing.assert_array_equal(expected[:, 0], (cells == "no").sum())
    assert (expected[:, 1] == 0).all()
    assert (wide.num_people, long.num_people, len(long.people)) == (12, 12, int(cells.isin(["no", "yes"]).sum().sum()))


def test_divergence_of_single_labels_is_that_of_the_table():
    codes = np.random.default_rng(1).integers(-1, 3, (30, 8))
    numbers = np.array([1, 4, 30])
    one, other = (divergence_by_number(given, 3, numbers, runs=3, seed=2) for given in (codes, of_codes(codes)))
    pd.testing.assert_frame_equal(one, other)
    assert np.allclose(one.loc[one["people"] == 30, ["reverse", "unseen"]], 0, atol=1e-12)
    alone = np.full((2, 1), -1)
    alone[0] = 1
    found = divergence_by_number(alone, 3, np.array([1, 2]), runs=8)
    assert found.loc[found["people"] == 1, "reverse"].isna().any()  # of the one who labelled nothing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("who,item,label\na,1,x\na,1,y\n", r"who 'a' labelled item '1' more than once \(1 such\)"),
        ("who,item,label\na,1,x\n,1,y\n", "row 2 has no who"),
        ("who,item,label\na,,x\n", "row 1 has no item"),
        ("who,item,label\na,1,\n", "there is no label"),
        ("who,item,label\na,1,x\na,2,x,3\n", "Expected 3 fields in line 3, saw 4"),
        ("who,item,label\na,1,\xff\n", "is not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(text, message, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=rf"labels\.csv: .*{message}"):
        read_annotations(path)
