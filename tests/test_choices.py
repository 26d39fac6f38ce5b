"""Names that commands list without loading JAX: those that the library has."""

import pytest

from irtjax import choices
from irtjax.choices import of_each
from irtjax.estimation.specify import TYPES
from irtjax.fitting import NAMES
from irtjax.item_models.listing import MODELS


def test_every_model_is_listed_once():
    assert tuple(MODELS) == choices.OF_OTHERS
    assert choices.OF_RIGHT_WRONG == TYPES
    assert (*TYPES, *MODELS, "auto") == NAMES


@pytest.mark.parametrize("found", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}])
def test_names_that_can_be_chosen_are_those_that_there_are(found):
    assert list(of_each(("b", "a"), {"a": 1, "b": 2})) == ["b", "a"]
    with pytest.raises(ValueError, match="expected in both"):
        of_each(("b", "a"), found)
