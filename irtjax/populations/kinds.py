"""The populations that abilities may come from."""

from typing import TypeAlias

from irtjax.populations.groups import Groups
from irtjax.populations.latent_regression import LatentRegression
from irtjax.populations.normal import Population

Populations: TypeAlias = Population | Groups | LatentRegression
