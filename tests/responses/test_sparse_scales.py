"""What responses on scales come to, by sums over single answers: as of the matrix."""

import numpy as np
import pandas as pd
import pytest

from irtjax.errors import InputError
from irtjax.fits.reading import read
from irtjax.item_models import principal_axes
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.listing import model_of
from irtjax.responses import sparse_scales
from irtjax.responses.convert import as_given
from irtjax.responses.formats import data_frames, given_rows, long_csv, parquet
from irtjax.responses.kinds import kinds_of
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.scaling import COUNTED, ORDERED, SHARED, UNORDERED, as_scaled, as_sparse
from irtjax.responses.sparse import SparseResponses, of_matrix

SCALES = (Scale((1, 2, 4)), Scale(("low", "mid", "high", "top")), Scale((0, 1)), Scale(), Scale())


@pytest.fixture(scope="module")
def matrix():
    """Grades of which the highest of item 1 was never given, right and wrong, counts, and counts of one trial."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(0, top + 1, 60) for top in (2, 2, 1, 4, 1)], axis=1).astype(np.int32)
    trials = np.ones(values.shape, np.int32)
    trials[:, 3] = rng.integers(4, 7, 60)
    values[rng.random(values.shape) < 0.6] = -1
    values[:, 0] = np.where((values < 0).all(axis=1), 1, values[:, 0])
    trials[values < 0] = 1
    return ScaledResponses(values, np.arange(60).astype(str), np.array(list("abcde")), SCALES, trials, averaged=3)


@pytest.fixture(scope="module")
def single(matrix):
    return of_matrix(matrix)


def test_totals_are_those_of_the_matrix(matrix, single):
    assert single.num_trials == matrix.num_trials
    np.testing.assert_allclose(single.worths(), matrix.worths()[single.subjects, single.items])
    for axis in (0, 1):
        np.testing.assert_allclose(single.mean(axis), matrix.mean(axis))
        for own, other in zip(single.counts(axis), matrix.counts(axis), strict=True):
            np.testing.assert_allclose(own, other)
    categorical = np.array([scale.labels is not None for scale in SCALES])
    np.testing.assert_array_equal(
        single.choose_items(categorical).frequencies(), matrix.choose_items(categorical).frequencies()
    )
    for own, other in zip(single.answered(~categorical), matrix.answered(~categorical), strict=True):
        np.testing.assert_array_equal(own, other)
    assert single.averaged == single.read().averaged == 3


def test_categories_that_nobody_was_given_are_taken_out(matrix, single):
    for but in (None, np.arange(5) == 1):
        assert single.given_only(but).read() == matrix.given_only(but)
    assert single.given_only().scales[1].labels == ("low", "mid", "high")


def test_columns_hold_the_answers_to_each_item(matrix, single, monkeypatch):
    items = np.array([0, 3])
    values, trials = single.columns(items)
    for k, item in enumerate(items):
        there = matrix.values[:, item] >= 0
        np.testing.assert_array_equal(values[values[:, k] >= 0, k], matrix.values[there, item])
        np.testing.assert_array_equal(trials[values[:, k] >= 0, k], matrix.trials[there, item])
    monkeypatch.setattr(sparse_scales, "OF_EACH", 10)
    few = single.columns(items)[0]
    assert few.shape == (10, 2)
    assert (few >= 0).all()


def test_start_values_are_by_single_answers_as_by_the_matrix(matrix, single, monkeypatch):
    items = np.array([0, 1, 2])
    both = [principal_axes.principal_means(one.categories(items), 3, 2) for one in (matrix, single)]
    monkeypatch.setattr(principal_axes, "DENSE", 0)
    both.append(principal_axes.principal_means(single.categories(items), 3, 2))
    for means, counts in both[1:]:
        np.testing.assert_array_equal(counts, both[0][1])
        sign = np.sign((means * both[0][0]).sum(axis=(0, 2)))[None, :, None]
        np.testing.assert_allclose(sign * means, both[0][0], atol=1e-8)


def test_counts_are_numbered_as_in_the_matrix(matrix, single):
    model, top = model_of(("gpcm", "gpcm", "gpcm", "beta_binomial", "beta_binomial"), np.array([2, 3, 1, 1, 1])), None
    top = np.array([2, 3, 1, 1, 1])
    whole = coded(model, matrix.values, matrix.trials, top)
    found = coded(model, single.answers, single.trials, top, single.items)
    assert found.model == whole.model
    np.testing.assert_array_equal(found.top, whole.top)
    np.testing.assert_array_equal(found.values, np.asarray(whole.values)[single.subjects, single.items])


def test_what_was_given_becomes_single_answers_without_a_matrix():
    rng = np.random.default_rng(1)
    subjects, items = rng.integers(0, 4000, 8000), rng.integers(0, 1500, 8000)
    for cells, wanted in (
        (rng.integers(1, 6, 8000), ORDERED),
        (rng.choice(["a", "b", "c"], 8000), UNORDERED),
        (rng.integers(0, 2, 8000), COUNTED),
        (rng.random(8000).round(3), SHARED),
    ):
        rows = pd.DataFrame({"subject_id": subjects, "item_id": items, "response": cells})
        rows = rows if wanted == COUNTED else rows.drop_duplicates(["subject_id", "item_id"])
        given = as_given(rows)
        kinds = [wanted] * len(given.item_ids)
        single, whole = as_sparse(given, kinds), as_scaled(given, kinds)
        assert single.read() == whole
        assert of_matrix(whole) == single
        model = {UNORDERED: "nominal"}.get(wanted, "auto")
        assert isinstance(read(rows, model, sparse=None)[0], SparseResponses)
        assert read(rows.iloc[:50], model, sparse=None)[0] == read(rows.iloc[:50], model)[0]


def test_means_and_trials_are_those_of_pairs():
    rows = pd.DataFrame(
        {
            "subject_id": list("aabbbc"),
            "item_id": list("xxyxxy"),
            "response": [1, 2, 3, 1, 1, 3],
            "trials": [3, 3, 3, 2, 3, 4],
        }
    )
    counts = as_sparse(as_given(rows), [COUNTED, COUNTED])
    np.testing.assert_array_equal(counts.answers, [3, 2, 3, 3])
    np.testing.assert_array_equal(counts.trials, [6, 5, 3, 4])
    means = as_sparse(as_given(rows.drop(columns="trials")), [ORDERED, ORDERED])
    assert means.averaged == 2
    np.testing.assert_array_equal(means.answers, [1, 0, 2, 2])  # 1.5 is as near to 1 as to 2: the higher
    with pytest.raises(InputError, match="subject 'a' answers item 'x' 2 times, the first of 2 such"):
        as_sparse(as_given(rows.drop(columns="trials")), [UNORDERED, UNORDERED])
    with pytest.raises(InputError, match="subject 'a', item 'x': 3 successes of 2 trials"):
        as_sparse(as_given(rows.drop(columns="trials")), [COUNTED, COUNTED])


def long_table(cells):
    subjects, items = np.divmod(np.random.default_rng(7).permutation(len(cells)), 5)
    return pd.DataFrame({"subject_id": subjects, "item_id": items, "response": cells}).astype({"subject_id": str})


@pytest.mark.parametrize("kind", ["csv", "quote", "parquet", "frame"])
def test_many_different_numbers_are_held_as_numbers(tmp_path, monkeypatch, kind):
    table = long_table(np.round(np.random.default_rng(8).random(200), 9))
    table.loc[3, "response"] = np.nan
    expected = as_sparse(as_given(table), [SHARED] * 5)
    monkeypatch.setattr(given_rows, "MOST_DIFFERENT", 50)
    monkeypatch.setattr(long_csv, "BLOCK", 400)
    monkeypatch.setattr(data_frames, "AT_ONCE", 30)
    monkeypatch.setattr(given_rows, "AT_ONCE", 30)
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 30)
    if kind == "quote":  # within a cell, where Arrow's reader does not go
        table["subject_id"] = table["subject_id"].str.replace("39", '39"')
    source = tmp_path / f"table.{'parquet' if kind == 'parquet' else 'csv'}"
    if kind == "parquet":
        table.to_parquet(source, index=False)
    else:
        table.to_csv(source, index=False, quoting=3 if kind == "quote" else 0, escapechar="\\")
        source.write_text(source.read_text().replace("\\", ""))
    given = as_given(table if kind == "frame" else str(source))
    assert given.cells.at is None
    assert kinds_of(given) == kinds_of(as_given(table)) == ["shares"] * 5
    found = as_sparse(given, [SHARED] * 5)
    np.testing.assert_array_equal(found.answers, expected.answers)
    np.testing.assert_array_equal(found.items, expected.items)
    assert found.trials is None


def test_a_text_among_many_numbers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(given_rows, "MOST_DIFFERENT", 50)
    monkeypatch.setattr(long_csv, "BLOCK", 400)
    table = long_table(np.random.default_rng(8).random(200).round(6)).astype({"response": str})
    table.loc[190, "response"] = "a lot"
    table.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(InputError, match=r"table.csv: line 192: 'a lot' is not a number, and there are more than 50"):
        as_given(str(tmp_path / "table.csv"))
    table.loc[2, "response"] = "a lot"  # where texts were there before, all cells are kept
    table.to_csv(tmp_path / "table.csv", index=False)
    assert as_given(str(tmp_path / "table.csv")).cells.tolist() == table["response"].tolist()
