"""Which examples a network trains on, and when: filtering and curricula by item difficulty."""

from irtjax.selection.compare import compare_curricula
from irtjax.selection.curriculum import Curriculum
from irtjax.selection.own_loop import ability, select
from irtjax.selection.sampler import Sampler
from irtjax.selection.strategies import CurriculumOptions
from irtjax.selection.summary import summarise

__all__ = ["Curriculum", "CurriculumOptions", "Sampler", "ability", "compare_curricula", "select", "summarise"]
