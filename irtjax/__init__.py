"""Item Response Theory at machine-learning scale, in JAX."""

from irtjax.errors import InputError
from irtjax.estimation.compare import likelihood_ratio_test
from irtjax.estimation.cross_validation import Comparison, compare
from irtjax.estimation.diagnostics import FitWarning
from irtjax.estimation.fit import fit
from irtjax.estimation.fit_files import read_items
from irtjax.estimation.result import Fit, load_fit
from irtjax.estimation.scoring import score
from irtjax.responses.formats import read_responses, write_responses
from irtjax.responses.matrix import ResponseMatrix, grade
from irtjax.versions import versions

__all__ = [
    "Comparison",
    "Fit",
    "FitWarning",
    "InputError",
    "ResponseMatrix",
    "compare",
    "fit",
    "grade",
    "likelihood_ratio_test",
    "load_fit",
    "read_items",
    "read_responses",
    "score",
    "versions",
    "write_responses",
]
__version__ = versions()["irtjax"]
