"""Wrong shapes are caught in the rooms whose signatures have them: the checks of the other tests are on."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError
from type_checks import CHECKED_CALLS

from irtjax.crowd.members import COLUMNS, Members
from irtjax.estimation.diagnostics import item_rest_correlations
from irtjax.kernels.ability_modes import ability_1pl
from irtjax.responses.matrix import counts
from irtjax.scale.multiple_tests import holm
from irtjax.selection.filtering import ranking

CALLS = {
    "responses": lambda: counts(np.zeros(3, np.int8), 0),
    "kernels": lambda: ability_1pl(np.ones(3, np.int8), np.ones(4)),
    "estimation": lambda: item_rest_correlations(np.ones((2, 3))),
    "crowd": lambda: Members(np.arange(2), **{name: np.zeros(3) for name in COLUMNS}),
    "selection": lambda: ranking("AVI", np.zeros(2), np.zeros(3)),
    "scale": lambda: holm(np.zeros((2, 2))),
}


@pytest.mark.parametrize("room", CALLS)
def test_a_wrong_shape_is_caught(room):
    with pytest.raises(TypeCheckError):
        CALLS[room]()


def test_a_wrong_shape_is_caught_after_many_calls():
    for _ in range(CHECKED_CALLS + 1):
        counts(np.zeros((2, 3), np.int8), 0)
    with pytest.raises(TypeCheckError):
        counts(np.zeros(3, np.int8), 0)
