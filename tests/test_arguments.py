"""Numbers that are passed as arguments are what they must be, or refused in one line."""

import dataclasses
import re

import numpy as np
import pytest

from irtjax import InputError
from irtjax.arguments import bounded, descriptions, not_negative, require_bounds, whole_number
from irtjax.crowd.choices import CrowdDesign
from irtjax.selection.choices import CurriculumOptions
from irtjax.tasks.options import TaskOptions
from irtjax.training.choices import Recipe


def test_numbers_of_any_kind_are_taken():
    for value in (2, np.int8(2), np.array(2)):
        number = whole_number("dims", value, 1, 6)
        assert (number, type(number)) == (2, int)
    for value in (2, 2.0, np.float32(2.0)):  # and 0
        number = not_negative("tolerance", value)
        assert (number, type(number)) == (2.0, float)


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.nan, [2], 0, 7, -(10**30)], ids=repr)
def test_what_is_no_whole_number_in_its_range_is_named(value):
    shown = f"{value:,}" if type(value) is int else repr(value)
    with pytest.raises(InputError, match=re.escape(f"`dims` {shown}, expected a whole number, 1 to 6")):
        whole_number("dims", value, 1, 6)


def test_a_range_may_have_no_end():
    with pytest.raises(InputError, match="`max_iterations` 0, expected a whole number, at least 1"):
        whole_number("max_iterations", 0, 1)


@pytest.mark.parametrize("value", [False, -1e-9, -1.0, np.nan, np.inf, "0.1", None, 1j], ids=repr)
def test_what_is_negative_or_no_number_is_named(value):
    with pytest.raises(InputError, match=re.escape(f"`tolerance` {value!r}, expected a number that is not negative")):
        not_negative("tolerance", value)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is counted.

    Attributes:
        width: of a layer; at most
            as wide as a net.
        least: the smallest `width`.
        rate: of steps.
        kind: of them.
        other: without bounds.
    """

    width: int = bounded(8, 1, 64)
    least: int | None = bounded(None, 1, "width")
    rate: float = bounded(0.1, positive=True)
    kind: str = bounded("up", choices=("up", "down"))
    other: int = 0

    def __post_init__(self):
        require_bounds(self)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "`width`=0: expected 1 to 64"),
        ({"least": 9}, "`least`=9: expected 1 to 8"),
        ({"rate": float("nan")}, "`rate`=nan: expected a positive number"),
        ({"rate": float("inf")}, "`rate`=inf: expected a positive number"),
        ({"kind": "left"}, "`kind`=left: expected one of up, down"),
    ],
)
def test_fields_of_dataclasses_have_bounds(change, message):
    assert Sizes(width=64, least=64, kind="down", other=-1).least == 64
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Sizes(**change)


def test_docstrings_describe_fields():
    found = descriptions(Sizes)
    assert found["width"] == "of a layer; at most as wide as a net"
    assert list(found) == ["width", "least", "rate", "kind", "other"]
    for owner in (Recipe, CrowdDesign, CurriculumOptions, TaskOptions):
        assert set(descriptions(owner)) == {field.name for field in dataclasses.fields(owner)}
