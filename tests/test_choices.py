"""Names that commands list without loading JAX: those that the library has."""

from irtjax import choices
from irtjax.estimation.specify import TYPES
from irtjax.fitting import NAMES
from irtjax.item_models.listing import MODELS


def test_every_model_is_listed_once():
    assert tuple(MODELS) == choices.OF_OTHERS
    assert choices.OF_RIGHT_WRONG == TYPES
    assert (*TYPES, *MODELS, "auto") == NAMES
