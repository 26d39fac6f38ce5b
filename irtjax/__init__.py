"""Item Response Theory at machine-learning scale, in JAX."""

import importlib
from typing import TYPE_CHECKING, Any

from irtjax.errors import InputError
from irtjax.versions import versions

if TYPE_CHECKING:
    from irtjax.auditing.audit import audit
    from irtjax.auditing.contamination import contamination
    from irtjax.auditing.labels import difficulty
    from irtjax.auditing.paired import paired
    from irtjax.auditing.ranking import beats, ranking
    from irtjax.auditing.wrong_keys import wrong_keys
    from irtjax.comparison.cross_validation import compare
    from irtjax.comparison.likelihood_ratio import likelihood_ratio_test
    from irtjax.comparison.result import Comparison
    from irtjax.estimation.diagnostics import FitWarning
    from irtjax.estimation.priors import NormalPrior
    from irtjax.fits.fit_files import read_items
    from irtjax.fits.mirt_export import to_mirt_csv
    from irtjax.fits.result import Fit, load_fit
    from irtjax.fitting import fit
    from irtjax.groups.dif import dif
    from irtjax.groups.equating import equate
    from irtjax.groups.linking import link
    from irtjax.responses.formats import open_responses, read_responses, write_responses
    from irtjax.responses.formats.shards import write_shards
    from irtjax.responses.matrix import ResponseMatrix, grade
    from irtjax.responses.sparse import SparseResponses
    from irtjax.responses.stored import StoredResponses
    from irtjax.scale.fit_statistics import item_fit, local_dependence, overall_fit, person_fit
    from irtjax.scale.polychoric import polychoric
    from irtjax.scoring.abilities import score
    from irtjax.scoring.plausible import plausible_values

_PLACES = {  # loaded where they are first used: JAX and pandas take a second to import
    "auditing.audit": ("audit",),
    "auditing.contamination": ("contamination",),
    "auditing.labels": ("difficulty",),
    "auditing.paired": ("paired",),
    "auditing.ranking": ("beats", "ranking"),
    "auditing.wrong_keys": ("wrong_keys",),
    "comparison.cross_validation": ("compare",),
    "comparison.likelihood_ratio": ("likelihood_ratio_test",),
    "comparison.result": ("Comparison",),
    "estimation.diagnostics": ("FitWarning",),
    "estimation.priors": ("NormalPrior",),
    "fits.fit_files": ("read_items",),
    "fits.mirt_export": ("to_mirt_csv",),
    "fits.result": ("Fit", "load_fit"),
    "fitting": ("fit",),
    "groups.dif": ("dif",),
    "groups.equating": ("equate",),
    "groups.linking": ("link",),
    "responses.formats": ("open_responses", "read_responses", "write_responses"),
    "responses.formats.shards": ("write_shards",),
    "responses.matrix": ("ResponseMatrix", "grade"),
    "responses.sparse": ("SparseResponses",),
    "responses.stored": ("StoredResponses",),
    "scale.fit_statistics": ("item_fit", "local_dependence", "overall_fit", "person_fit"),
    "scale.polychoric": ("polychoric",),
    "scoring.abilities": ("score",),
    "scoring.plausible": ("plausible_values",),
}
_PLACE_OF = {name: f"irtjax.{place}" for place, names in _PLACES.items() for name in names}
_ROOMS = (
    "auditing", "comparison", "crowd", "estimation", "evaluation", "explanatory", "fits", "fitting", "groups",
    "integration", "item_models", "joint", "kernels", "networks", "plots", "populations", "pretrained",
    "processes", "responses", "scale", "scoring", "selection", "soft_labels", "storage", "svi", "synthetic", "tasks",
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
    if name in _PLACE_OF:
        found = getattr(importlib.import_module(_PLACE_OF[name]), name)
    elif name in _ROOMS:
        found = importlib.import_module(f"irtjax.{name}")
    else:
        raise AttributeError(f"module 'irtjax' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """What there is, the rooms that have not been imported among it."""
    return sorted({*globals(), *_ROOMS, *_PLACE_OF})
