"""Diagnostics of fits of single answers: those of the whole matrix, or one error where it has too many cells."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError
from irtjax.plots.fitted_items import places
from irtjax.responses import values
from irtjax.responses.sparse import of_matrix


@pytest.fixture(scope="module")
def fits():
    """The same fit twice, of single answers and of a matrix."""
    matrix = simulate(200, 20, seed=3, missing=0.3)[0]
    fit = irtjax.fit(of_matrix(matrix), "1pl")
    return fit, dataclasses.replace(fit, responses=matrix)


@pytest.mark.parametrize("name", ["item_fit", "person_fit", "local_dependence"])
def test_statistics_are_those_of_the_matrix(fits, name, monkeypatch):
    found, expected = (getattr(irtjax, name)(fit) for fit in fits)
    numbers = expected.select_dtypes("number").columns
    np.testing.assert_allclose(found[numbers], expected[numbers], atol=1e-6)
    assert found.drop(columns=numbers).equals(expected.drop(columns=numbers))
    monkeypatch.setattr(values, "MOST_CELLS", 1000)
    with pytest.raises(InputError, match=r"200 subjects × 20 items with .* answers: this goes through all cells"):
        getattr(irtjax, name)(fits[0])


def test_groups_and_ratios(fits, monkeypatch):
    one, other = fits
    groups = dict(zip(one.responses.subject_ids, np.arange(200) % 2, strict=True))
    found, expected = (irtjax.dif(fit.responses, groups, method="mantel_haenszel") for fit in fits)
    np.testing.assert_array_equal(found["p_value"], expected["p_value"])
    more = dataclasses.replace(other, num_parameters=one.num_parameters + 1)
    assert irtjax.likelihood_ratio_test(one, more).degrees_of_freedom == 1
    changed = one.responses.choose_answers(np.arange(one.responses.num_answers) > 0)
    with pytest.raises(InputError, match="two fits of the same responses"):
        irtjax.likelihood_ratio_test(dataclasses.replace(one, responses=changed), more)
    with pytest.raises(InputError, match="needs the whole matrix"):
        np.asarray(one.responses.values)
    monkeypatch.setattr(values, "MOST_CELLS", 1000)
    for call in (lambda: irtjax.audit(one), lambda: irtjax.dif(one.responses, groups)):
        with pytest.raises(InputError, match="this goes through all cells"):
            call()


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
