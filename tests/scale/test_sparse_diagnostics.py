"""Diagnostics of fits of single answers: those of the whole matrix, which is not made, or one error."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from simulation import simulate

import irtjax
from irtjax import FitWarning, InputError
from irtjax.auditing import second_dimension
from irtjax.plots.fitted_items import places
from irtjax.responses import values
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.scale import answer_means, local_dependence
from irtjax.scale.dimensionality import compare_factors
from irtjax.scale.groups import values_of_subjects
from irtjax.scale.misfit import misfit


@pytest.fixture(scope="module")
def fits():
    """The same fit twice, of single answers and of a matrix; a third of the cells are missing."""
    matrix = simulate(200, 20, seed=3, missing=0.3)[0]
    fit = irtjax.fit(of_matrix(matrix), "1pl")
    return fit, dataclasses.replace(fit, responses=matrix)


@pytest.fixture
def no_matrix(monkeypatch):
    """Single answers are never read as a matrix, nor put into one."""

    def refuse(self):
        raise AssertionError("all cells")

    monkeypatch.setattr(SparseResponses, "read", refuse)
    monkeypatch.setattr(answer_means, "DENSE", 2.0)
    monkeypatch.setattr(local_dependence, "DENSE", 2.0)
    monkeypatch.setattr(second_dimension, "DENSE", 2.0)


def alike(found, expected, **tolerance):
    numbers = expected.select_dtypes("number").columns
    np.testing.assert_allclose(found[numbers], expected[numbers], **tolerance)
    assert found.drop(columns=numbers).equals(expected.drop(columns=numbers))


@pytest.mark.parametrize("name", ["item_fit", "person_fit", "local_dependence"])
def test_statistics_are_those_of_the_matrix(fits, name, request):
    expected = getattr(irtjax, name)(fits[1])
    request.getfixturevalue("no_matrix")
    tolerance = 1e-7 if name == "person_fit" else 1e-8  # modes are found to 1e-8
    alike(getattr(irtjax, name)(fits[0]), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("method", ["mantel_haenszel", "logistic", "score"])
def test_dif_is_that_of_the_matrix(fits, method, request):
    groups = dict(zip(fits[0].responses.subject_ids, np.arange(200) % 2, strict=True))
    expected = irtjax.dif(fits[1].responses, groups, method)
    request.getfixturevalue("no_matrix")
    found = irtjax.dif(fits[0].responses, groups, method)
    alike(found, expected, rtol=1e-8 if method != "score" else 1e-5, atol=1e-8 if method != "score" else 1e-5)


def test_pairs_without_common_subjects_are_left_out_of_long_tests(fits, monkeypatch):
    whole = irtjax.local_dependence(fits[0])
    monkeypatch.setattr(local_dependence, "MANY", 100)
    monkeypatch.setattr(local_dependence, "FEWEST_OF_TEST", 100)
    monkeypatch.setattr(local_dependence, "ENTRIES", 60)  # three items at a time
    some = irtjax.local_dependence(fits[0]).set_index(["first", "second"])
    expected = whole[whole["num_subjects"] >= 100].set_index(["first", "second"])
    assert 0 < len(some) < len(whole)
    np.testing.assert_allclose(some["q3"].loc[expected.index], expected["q3"], rtol=1e-9)
    monkeypatch.setattr(local_dependence, "MOST", 10)
    with pytest.raises(InputError, match="more than 10 pairs of the 20 items have 100 subjects in common"):
        irtjax.local_dependence(fits[0])


def test_forms_of_single_answers_have_s_x2(request):
    matrix = simulate(240, 12, seed=5)[0]
    cells = np.array(matrix.values)
    cells[:120, :4], cells[120:, 8:] = -1, -1
    matrix = ResponseMatrix(cells, matrix.subject_ids, matrix.item_ids)
    fit = irtjax.fit(of_matrix(matrix), "1pl")
    expected = irtjax.item_fit(dataclasses.replace(fit, responses=matrix))
    assert expected["s_x2"].notna().all()
    request.getfixturevalue("no_matrix")
    alike(irtjax.item_fit(fit), expected, rtol=1e-8, atol=1e-8)


def test_an_audit_is_that_of_the_matrix(fits, request):
    expected = irtjax.audit(fits[1])
    request.getfixturevalue("no_matrix")
    found = irtjax.audit(fits[0])
    assert found.items["item_id"].tolist() == expected.items["item_id"].tolist()
    for name in ("p_wrong_key", "evidence", "p_misfit", "mean_response"):
        np.testing.assert_allclose(found.items[name], expected.items[name], rtol=1e-4, atol=1e-5)
    assert found.second.share == pytest.approx(expected.second.share, rel=1e-8)
    assert found.second.expected == pytest.approx(expected.second.expected, rel=0.05)  # of other draws
    assert found.reliability == pytest.approx(expected.reliability, abs=1e-3)
    assert abs(found.shuffled) < 0.35


def test_ratios_and_what_needs_the_matrix(fits, monkeypatch):
    one, other = fits
    more = dataclasses.replace(other, num_parameters=one.num_parameters + 1)
    assert irtjax.likelihood_ratio_test(one, more).degrees_of_freedom == 1
    changed = one.responses.choose_answers(np.arange(one.responses.num_answers) > 0)
    with pytest.raises(InputError, match="two fits of the same responses"):
        irtjax.likelihood_ratio_test(dataclasses.replace(one, responses=changed), more)
    with pytest.raises(InputError, match="needs the whole matrix"):
        np.asarray(one.responses.values)
    found, expected = (values_of_subjects(fit.responses) for fit in fits)
    np.testing.assert_allclose(found["percent_correct"], expected["percent_correct"])
    monkeypatch.setattr(values, "MOST_CELLS", 1000)
    with pytest.raises(InputError, match=r"200 subjects × 20 items with .* answers: this goes through all cells"):
        irtjax.overall_fit(one)


def test_misfit_is_that_of_the_matrix_but_for_nodes(fits):
    found, expected = (misfit(fit) for fit in fits)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wald", "likelihood_ratio", "lord"])
def test_dif_by_fits_is_that_of_the_matrix(method, request):
    matrix = simulate(300, 6, seed=6, missing=0.2)[0]
    groups = dict(zip(matrix.subject_ids, np.arange(300) % 2, strict=True))
    matrix = matrix.with_responses()
    groups = {name: groups[name] for name in matrix.subject_ids}
    expected = irtjax.dif(matrix, groups, method, model="1pl" if method == "lord" else "2pl")
    request.getfixturevalue("no_matrix")
    found = irtjax.dif(of_matrix(matrix), groups, method, model="1pl" if method == "lord" else "2pl")
    alike(found, expected, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def fits_of_grades():
    """The same fit of grades twice, of single answers and of a matrix."""
    right = simulate(200, 20, seed=4, missing=0.3)[0]
    added = np.where((right.values[:, :10] < 0) | (right.values[:, 10:] < 0), np.nan, right.values[:, :10] + 1.0)
    grades = pd.DataFrame(added + right.values[:, 10:], right.subject_ids, right.item_ids[:10])
    fit = irtjax.fit(grades, "graded", sparse=True)
    return fit, dataclasses.replace(fit, responses=fit.responses.read())


def drawn(figure):
    return [[line.get_ydata() for line in ax.lines] + [text.get_text() for text in ax.texts] for ax in figure.axes]


@pytest.mark.parametrize("name", ["categories", "curves", "information", "wright"])
def test_pictures_of_grades_are_those_of_the_matrix(fits_of_grades, name):
    one, other = (drawn(getattr(irtjax.plots, name)(fit)) for fit in fits_of_grades)
    assert any(map(len, one))
    for of_one, of_other in zip(one, other, strict=True):
        for found, expected in zip(of_one, of_other, strict=True):
            assert found == expected if isinstance(found, str) else np.allclose(found, expected, equal_nan=True)


def test_grades_are_not_taken_for_right_and_wrong(fits_of_grades):
    one, other = fits_of_grades
    assert len(places(one)[1]) == 20
    np.testing.assert_array_equal(irtjax.polychoric(one.responses), irtjax.polychoric(other.responses))
    some = one.responses.subject_ids[[7, 3, 5]]
    found, expected = (irtjax.paired(fit.responses, subjects=some) for fit in (one, other))
    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(InputError, match="wrong keys are looked for in a fit of right and wrong answers"):
        irtjax.wrong_keys(one)


def test_statistics_of_grades_are_those_of_the_matrix(fits_of_grades, request):
    names = ("item_fit", "person_fit", "local_dependence")
    expected = [getattr(irtjax, name)(fits_of_grades[1]) for name in names]
    groups = np.arange(200) % 2
    by_scores = irtjax.dif(fits_of_grades[1].responses, groups, "mantel_haenszel")
    request.getfixturevalue("no_matrix")
    for name, table in zip(names, expected, strict=True):
        alike(getattr(irtjax, name)(fits_of_grades[0]), table, rtol=1e-7, atol=1e-7)
    alike(irtjax.dif(fits_of_grades[0].responses, groups, "mantel_haenszel"), by_scores, rtol=1e-8)


@pytest.mark.slow
def test_factors_of_grades_are_not_those_of_right_and_wrong(fits_of_grades):
    one, other = (compare_factors(fit.responses, "graded") for fit in fits_of_grades)
    np.testing.assert_allclose(one.table["log_likelihood"], other.table["log_likelihood"], rtol=1e-6)


@pytest.mark.parametrize("method", ["mantel_haenszel", "logistic", "score"])
def test_subjects_without_an_anchor_are_left_out_of_dif(method, request):
    """As if they had not been there, by answers and by the matrix, with anchors that are given."""
    matrix, groups = simulate(200, 20, seed=3, missing=0.3)[0], np.arange(200) % 2
    cells, without = np.array(matrix.values), np.arange(200) % 7 == 3
    cells[np.ix_(without, np.arange(10))] = -1
    masked, anchors = ResponseMatrix(cells, matrix.subject_ids, matrix.item_ids), matrix.item_ids[:10].tolist()
    options = {"anchors": anchors, "model": "1pl"} if method == "score" else {"anchors": anchors}
    expected = irtjax.dif(masked.choose_subjects(~without), groups[~without], method, **options)
    with pytest.warns(FitWarning, match="29 of 200 subjects answered no anchor item and are left out of the tests"):
        found = irtjax.dif(masked, groups, method, **options)
    pd.testing.assert_frame_equal(found, expected)
    request.getfixturevalue("no_matrix")
    with pytest.warns(FitWarning, match="29 of 200 subjects"):
        found = irtjax.dif(of_matrix(masked), groups, method, **options)
    alike(found, expected, rtol=1e-5, atol=1e-5)


def test_purified_anchors_that_some_subjects_did_not_answer():
    """Each round has the subjects of its anchors; a group of which none is left is refused."""
    matrix, groups = simulate(200, 20, seed=3, missing=0.3)[0], np.arange(200) % 2
    cells = np.array(matrix.values)
    cells[groups == 1, 0] = np.arange(100) % 20 == 0  # far harder for the second group
    cells[6:40:6, 1:] = -1  # who answered nothing else
    masked = ResponseMatrix(cells, matrix.subject_ids, matrix.item_ids)
    for method in ("mantel_haenszel", "score"):
        with pytest.warns(FitWarning, match="of 200 subjects answered no anchor item"):
            found = irtjax.dif(of_matrix(masked), groups, method, model="auto" if method != "score" else "1pl")
        assert not found["anchor"][0]
        left = masked.choose_items(found["anchor"].to_numpy()).counts(axis=1)[1] > 0
        if method == "mantel_haenszel":
            kept, chosen = masked.choose_subjects(left), matrix.item_ids[found["anchor"]].tolist()
            alone = irtjax.dif(kept, groups[left], method, anchors=chosen)
            pd.testing.assert_series_equal(alone["statistic"], found["statistic"])
    cells[groups == 1, :10] = -1
    with pytest.raises(
        InputError, match="no subject of group '1' answered one of these `anchors`, expected 2 or more: give others"
    ):
        irtjax.dif(pd.DataFrame(cells).replace(-1, np.nan), groups, "logistic", anchors=list(map(str, range(10))))
