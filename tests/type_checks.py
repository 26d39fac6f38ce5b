"""Checks of the annotations of the library, by jaxtyping's import hook and beartype, while the tests run.

The small functions of EM are called a hundred thousand times with the same shapes. Checking every call would take
longer than the tests do, so the first calls of each function are checked, and every later one whose arrays have shapes
or types not seen before. Functions within functions are made anew at each call, and are left out.
"""

import functools
import inspect
import itertools

import jaxtyping

ROOMS = (
    *("responses", "kernels", "populations", "item_models", "integration", "estimation", "explanatory", "fitting"),
    *("comparison", "crowd", "selection", "scale", "evaluation"),
)
CHECKED_CALLS = 500


def install() -> None:
    """Has the annotations of these rooms checked; before they are imported."""
    check = jaxtyping.jaxtyped

    def first_calls(*, typechecker):
        def decorate(target):
            if "<locals>" in target.__qualname__:
                return target
            checked = check(target, typechecker=typechecker)
            if not inspect.isfunction(target):
                return checked
            calls, seen = itertools.count(), set()

            @functools.wraps(target)
            def wrapper(*args, **kwargs):
                arrays = tuple(
                    (value.shape, value.dtype) for value in (*args, *kwargs.values()) if hasattr(value, "dtype")
                )
                if next(calls) < CHECKED_CALLS or arrays not in seen:
                    value = checked(*args, **kwargs)
                    seen.add(arrays)
                    return value
                return target(*args, **kwargs)

            return wrapper

        return decorate

    jaxtyping.jaxtyped = first_calls  # what the import hook decorates functions with
    jaxtyping.install_import_hook([f"irtjax.{room}" for room in ROOMS], "beartype.beartype")
