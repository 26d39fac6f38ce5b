"""Artificial crowds: networks whose scored answers stand in for those of people."""

from typing import TYPE_CHECKING

from irtjax.lazy import lend

if TYPE_CHECKING:
    from irtjax.crowd.choices import CrowdDesign
    from irtjax.crowd.members import Members, default_design, read_members, sample_members
    from irtjax.crowd.train import Crowd, train_crowd

__all__ = [
    "Crowd",
    "CrowdDesign",
    "Members",
    "default_design",
    "read_members",
    "sample_members",
    "train_crowd",
]
lend(
    __name__,
    {
        "choices": ("CrowdDesign",),
        "members": ("Members", "default_design", "read_members", "sample_members"),
        "train": ("Crowd", "train_crowd"),
    },
)
