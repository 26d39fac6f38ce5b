"""Which examples a network trains on, and when: filtering and curricula by item difficulty."""

from irtjax.selection.compare import compare_curricula
from irtjax.selection.summary import summarise

__all__ = ["compare_curricula", "summarise"]
