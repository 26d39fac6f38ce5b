"""Numbers that are passed as arguments are what they must be, or refused in one line."""

import re

import numpy as np
import pytest

from irtjax import InputError
from irtjax.arguments import not_negative, whole_number


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
