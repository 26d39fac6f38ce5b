"""For which kind of device networks formulate their products: the one at hand, unless a caller names another."""

from contextlib import AbstractContextManager

import jax

ACCELERATORS = ("gpu", "tpu")
_named = jax.make_user_context(None)  # part of what compiled programs are remembered by


def formulated_for(backend: str | None) -> AbstractContextManager[None]:
    """Within it, programs are traced as for a backend, "cpu", "gpu" or "tpu"; None for the one at hand.

    So a program for an accelerator can be lowered, counted and tested where there is none.
    """
    return _named(backend)


def for_accelerator() -> bool:
    """Whether products are formulated for a GPU or TPU, else for a CPU."""
    return (_named.value or jax.default_backend()) in ACCELERATORS
