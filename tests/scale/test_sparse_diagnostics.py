"""Diagnostics of fits of single answers: those of the whole matrix, or one error where it has too many cells."""

import dataclasses

import numpy as np
import pytest
from simulation import simulate

import irtjax
from irtjax import InputError
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
