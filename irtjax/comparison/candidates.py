"""What can be compared: models, numbers of dimensions and estimators that go together."""

import itertools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from irtjax.arguments import names, whole_number
from irtjax.errors import InputError
from irtjax.estimation.specify import MOST_DIMS
from irtjax.fitting import ESTIMATORS, MODELS

BY_SVI = ("1pl", "2pl")  # the models that svi fits, in one dimension
ONE_SLOPE = ("rasch", "1pl")  # for all items: these models have one dimension
RATES = "rates"  # the baseline: the share of right answers of each item, for every subject alike
PARAMETERS = {RATES: 0, "rasch": 1, "1pl": 1, "2pl": 2, "3pl": 3, "4pl": 4}  # of each item in one dimension
# in the order of their parameters, where there are more than two categories
OF_GRADES = {"rsm": 1, "pcm": 2, "graded": 3, "gpcm": 3, "nominal": 4}
ABBREVIATED = ("1pl", "2pl", "3pl", "4pl", "rsm", "pcm", "gpcm")


class Candidate(NamedTuple):
    """A model, the number of its dimensions, and the estimator that fits it."""

    model: str
    dims: int = 1
    estimator: str = "mml"

    def __str__(self) -> str:
        if self.model == RATES:
            return "item rates"
        dims = f", {self.dims} dimensions" if self.dims > 1 else ""
        name = "Rasch" if self.model == "rasch" else self.model.upper() if self.model in ABBREVIATED else self.model
        return f"{name}{dims}{' by SVI' if self.estimator == 'svi' else ''}"

    @property
    def complexity(self) -> int:
        """Parameters of each item, or the place of a model of grades among these; 0 of the baseline."""
        return {**PARAMETERS, **OF_GRADES}[self.model] + self.dims - 1


def candidates(
    models: str | Collection[str], dims: int | Collection[int], estimators: str | Collection[str]
) -> tuple[Candidate, ...]:
    """All combinations that can be fitted, each once, and the baseline of item rates.

    Raises:
        InputError: an unknown model or estimator, a number of dimensions out of range, or no combination that can be
            fitted.
    """
    models, estimators = names(models), names(estimators)
    for what, given, known in (("model", models, MODELS), ("estimator", estimators, ESTIMATORS)):
        for name in given:
            if name not in known:
                raise InputError(f"unknown {what} {name!r}, expected one of {', '.join(known)}")
    dims = list(dims) if isinstance(dims, Iterable) else [dims]
    for number in dims:
        whole_number("dims", number, 1, MOST_DIMS)
    every = dict.fromkeys(
        Candidate(model, number, estimator)
        for estimator, number, model in itertools.product(estimators, dims, models)
        if _exists(Candidate(model, number, estimator))
    )
    if not every:
        raise InputError(
            "no candidates: name at least one model; svi fits the 1pl and 2pl with dims 1, mml the 2pl to 4pl with more"
        )
    return (*every, Candidate(RATES))


def _exists(candidate: Candidate) -> bool:
    if candidate.estimator == "svi":
        return candidate.model in BY_SVI and candidate.dims == 1
    return candidate.dims == 1 or candidate.model not in ONE_SLOPE
