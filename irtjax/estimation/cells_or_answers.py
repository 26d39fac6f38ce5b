"""Whether a fit goes through responses cell by cell, or answer by answer: the choice, and what it rules out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.integration.rules import MOST_SHARED
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import LARGE, SparseResponses, is_sparse, of_matrix

WHOLE = {"mml": ("features",), "svi": ("batch_items",)}  # options with which fits go through the whole matrix


def wanted(responses: Any, sparse: bool | None, options: Mapping[str, Any], estimator: str) -> bool | None:
    """Whether responses are to be read into single answers; None where that goes by how many cells have one.

    Raises:
        InputError: a fit by single answers is asked for, and an option that goes through the whole matrix.
    """
    whole = _whole(options, estimator)
    if sparse and whole and not isinstance(responses, SparseResponses):
        raise InputError(f"`sparse`: a fit with `{whole[0]}` goes through the whole matrix: leave out one of them")
    return False if whole else sparse


def _whole(options: Mapping[str, Any], estimator: str) -> list[str]:
    """The options for which a fit goes through the whole matrix."""
    whole = [name for name in WHOLE[estimator] if options.get(name) is not None]
    if options.get("dims", 1) > MOST_SHARED:
        whole.append("dims")
    if options.get("integration", "auto") not in ("auto", "nodes"):
        whole.append("integration")
    return whole


def held_for(responses: Any, sparse: bool | None, options: Mapping[str, Any], estimator: str) -> Any:
    """The responses as the fit goes through them: cell by cell, or answer by answer."""
    whole = _whole(options, estimator)
    if sparse is None and not whole and options.get("batch_answers") is not None:
        sparse = True
    if isinstance(responses, SparseResponses):
        return responses if sparse or (sparse is None and not whole) else responses.read()
    if sparse:
        return of_matrix(responses.read())
    in_memory = isinstance(responses, ResponseMatrix | ScaledResponses)
    if sparse is False or whole or not in_memory or responses.values.size <= LARGE:
        return responses
    few = is_sparse(int((np.asarray(responses.values) >= 0).sum()), *responses.values.shape)
    return of_matrix(responses) if few else responses
