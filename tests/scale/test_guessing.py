"""Likelihood-ratio tests of guessing, against exact ones."""

import numpy as np
import pytest
from references import matrix, simulated

from irtjax.responses.matrix import ResponseMatrix
from irtjax.scale.guessing import guessing_tests


@pytest.mark.slow
def test_statistics_are_those_of_the_reference(oracle):
    responses, expected = oracle.responses("5_contradiction"), oracle.table("lrt3v2_5_contradiction_exact")
    keep = np.isin(responses.item_ids, expected["item"])
    found = guessing_tests(ResponseMatrix(responses.values[:, keep], responses.subject_ids, responses.item_ids[keep]))
    ratio, exact = found["likelihood_ratio"].to_numpy(), expected["LR"].to_numpy()
    # item 21 (1-based): from the full maximum a higher one of the restricted model is found than the reference has
    better = np.arange(28) == 20
    assert ratio[20] < exact[20]
    np.testing.assert_allclose(ratio[(exact > 1) & ~better], exact[(exact > 1) & ~better], rtol=0.01)
    assert (ratio[exact < 1] < 1).all()  # known to be small is all that is known of them
    assert (ratio[exact < 1] > exact[exact < 1] - 0.02).all()
    assert not (found["p_holm"] < 0.05).any()


@pytest.mark.slow
def test_guessing_is_found_where_it_is():
    rng = np.random.default_rng(0)
    values = simulated(1, np.full(20, 1.8), np.linspace(-2, 2, 20), 2000)
    guessed = np.array([0, 2, 4])
    lucky = rng.random((2000, 3)) < 0.3
    values[:, guessed] = np.maximum(values[:, guessed], lucky)
    found = guessing_tests(matrix(values))
    assert set(np.flatnonzero(found["p_holm"] < 0.05)) == set(guessed)
    np.testing.assert_allclose(found["guessing"][guessed], 0.3, atol=0.08)


def test_progress_is_reported():
    seen = []
    guessing_tests(matrix(simulated(0, np.ones(5), np.zeros(5), 200)), seen.append)
    assert seen == [1, 2, 3, 4, 5]
