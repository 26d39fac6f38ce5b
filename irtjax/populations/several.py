"""What fits with more than one population of ability have in common."""

import abc
import dataclasses
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from irtjax.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class SeveralPopulations(abc.ABC):
    """Arrays that say what the populations are.

    What asks for the mean and the standard deviation of the one population of a fit gets an error that says why there
    is none.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        pairs = [(leaf, getattr(other, name)) for name, leaf in self._asdict().items()]
        return all(np.array_equal(one, another, equal_nan=one.dtype.kind == "f") for one, another in pairs)

    def __hash__(self) -> int:
        names, *_ = self._asdict().values()
        return hash(tuple(names.tolist()))

    def _asdict(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    @abc.abstractmethod
    def why_several(self) -> str:
        """What a user is told who asks for the only one."""

    @property
    def mean(self) -> NoReturn:
        """There is none of all subjects."""
        raise InputError(self.why_several)

    @property
    def sd(self) -> NoReturn:
        """There is none of all subjects."""
        raise InputError(self.why_several)

    def __iter__(self) -> Iterator[Any]:
        raise InputError(self.why_several)
