"""Item Response Theory at machine-learning scale, in JAX."""

import importlib.metadata

from irtjax.errors import InputError
from irtjax.inference import Fit, FitWarning, fit, likelihood_ratio_test, read_items, write_fit
from irtjax.response_files import read_responses, write_responses
from irtjax.responses import ResponseMatrix, grade

__all__ = [
    "Fit",
    "FitWarning",
    "InputError",
    "ResponseMatrix",
    "fit",
    "grade",
    "likelihood_ratio_test",
    "read_items",
    "read_responses",
    "versions",
    "write_fit",
    "write_responses",
]
__version__ = importlib.metadata.version("irtjax")


def versions() -> dict[str, str]:
    """Versions of irtjax and of what its numbers depend on."""
    return {name: importlib.metadata.version(name) for name in ("irtjax", "jax", "jaxlib", "numpyro", "flax", "optax")}
