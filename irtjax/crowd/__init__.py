"""Artificial crowds: networks whose scored answers stand in for those of people."""

from irtjax.crowd.members import CrowdDesign, Members, default_design, read_members, sample_members
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
