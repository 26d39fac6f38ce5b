"""What fits, readers of responses and networks there are, by name; commands list it without loading JAX."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

AUTO = "auto"  # what the responses are
OF_RIGHT_WRONG = ("rasch", "1pl", "2pl", "3pl", "4pl")
OF_OTHERS = (  # of `irtjax.item_models.listing.MODELS`
    "graded", "gpcm", "pcm", "rsm", "nominal", "binomial", "binomial_1pl", "binomial_3pl", "binomial_4pl",
    "beta_binomial", "beta", "ordered_beta",
)  # fmt: skip
MODELS = (*OF_RIGHT_WRONG, *OF_OTHERS, AUTO)
ESTIMATORS = ("mml", "svi")
INTEGRATION = ("auto", "nodes", "around", "normal")  # `irtjax.integration.rules`

LAST = "last"  # of several answers of a subject to an item
USUAL = {"subject": "subject_id", "item": "item_id", "response": "response"}  # columns by role
TRIALS, FACET = "trials", "facet"  # of counts: how many each is of; who judged, or what else a response depends on
ROLES = (*USUAL, TRIALS, FACET)

NETWORKS = (  # `irtjax.networks.ours`
    "mlp", "lenet", "vgg16", "resnet", "lstm", "cnn", "nse", "esim", "bert", "lenet_study", "lstm_study", "cnn_study",
)  # fmt: skip


def of_each(names: Sequence[str], found: Mapping[str, T]) -> dict[str, T]:
    """What each of the names stands for, in their order.

    Raises:
        ValueError: when it is imported, not when it is used: a name is missing, or one too many.
    """
    if set(names) != set(found):
        raise ValueError(f"{sorted(set(names) ^ set(found))}: expected in both {list(names)} and {list(found)}")
    return {name: found[name] for name in names}
