"""Which examples a network trains on, and when: filtering and curricula by item difficulty."""

from typing import TYPE_CHECKING

from irtjax.lazy import lend

if TYPE_CHECKING:
    from irtjax.selection.choices import CurriculumOptions
    from irtjax.selection.compare import compare_curricula
    from irtjax.selection.curriculum import Curriculum
    from irtjax.selection.own_loop import ability, select
    from irtjax.selection.sampler import Sampler
    from irtjax.selection.summary import summarise

__all__ = [
    "Curriculum",
    "CurriculumOptions",
    "Sampler",
    "ability",
    "compare_curricula",
    "select",
    "summarise",
]
lend(
    __name__,
    {
        "choices": ("CurriculumOptions",),
        "compare": ("compare_curricula",),
        "curriculum": ("Curriculum",),
        "own_loop": ("ability", "select"),
        "sampler": ("Sampler",),
        "summary": ("summarise",),
    },
)
