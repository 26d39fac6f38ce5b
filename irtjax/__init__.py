"""Item Response Theory at machine-learning scale, in JAX."""

import importlib
from typing import Any

from irtjax.comparison.cross_validation import compare
from irtjax.comparison.likelihood_ratio import likelihood_ratio_test
from irtjax.comparison.result import Comparison
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.estimation.priors import NormalPrior
from irtjax.fits.fit_files import read_items
from irtjax.fits.mirt_export import to_mirt_csv
from irtjax.fits.result import Fit, load_fit
from irtjax.fitting import fit
from irtjax.responses.formats import open_responses, read_responses, write_responses
from irtjax.responses.formats.shards import write_shards
from irtjax.responses.matrix import ResponseMatrix, grade
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.stored import StoredResponses
from irtjax.scale.polychoric import polychoric
from irtjax.scoring.abilities import score
from irtjax.scoring.plausible import plausible_values
from irtjax.versions import versions

_ON_FIRST_USE = dict.fromkeys(("item_fit", "local_dependence", "overall_fit", "person_fit"), "scale.fit_statistics") | {
    "audit": "auditing.audit",
    "beats": "auditing.ranking",
    "contamination": "auditing.contamination",
    "dif": "groups.dif",
    "difficulty": "auditing.labels",
    "equate": "groups.equating",
    "link": "groups.linking",
    "paired": "auditing.paired",
    "ranking": "auditing.ranking",
    "wrong_keys": "auditing.wrong_keys",
}
_ROOMS = (
    "auditing", "crowd", "evaluation", "joint", "networks", "plots", "scale", "selection", "soft_labels", "tasks",
    "tensorboard", "training",
)  # fmt: skip
__all__ = [
    "Comparison",
    "Fit",
    "FitWarning",
    "InputError",
    "NormalPrior",
    "ResponseMatrix",
    "SparseResponses",
    "StoredResponses",
    "audit",
    "beats",
    "compare",
    "contamination",
    "dif",
    "difficulty",
    "equate",
    "fit",
    "grade",
    "item_fit",
    "likelihood_ratio_test",
    "link",
    "load_fit",
    "local_dependence",
    "open_responses",
    "overall_fit",
    "paired",
    "person_fit",
    "plausible_values",
    "polychoric",
    "ranking",
    "read_items",
    "read_responses",
    "score",
    "to_mirt_csv",
    "versions",
    "write_responses",
    "write_shards",
    "wrong_keys",
]
__version__ = versions()["irtjax"]


def __getattr__(name: str) -> Any:
    """What takes long to import, where it is first used, as in `irtjax.plots.curves(fit)`."""
    if name in _ON_FIRST_USE:
        return getattr(importlib.import_module(f"irtjax.{_ON_FIRST_USE[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"irtjax.{name}")
    raise AttributeError(f"module 'irtjax' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is, the rooms that have not been imported among it."""
    return sorted({*globals(), *_ROOMS, *_ON_FIRST_USE})
