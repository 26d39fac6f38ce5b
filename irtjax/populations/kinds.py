"""The populations that abilities may come from."""

from typing import TypeAlias

from irtjax.populations.groups import Groups
from irtjax.populations.normal import Population
from irtjax.populations.regression import Regression

Populations: TypeAlias = Population | Groups | Regression
