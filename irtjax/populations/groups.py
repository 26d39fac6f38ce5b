"""Several groups of subjects, each with a population of its own, on one scale."""

import dataclasses
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.populations.normal import Population
from irtjax.populations.several import SeveralPopulations
from irtjax.types import Float, Int, Shaped


class Groups(NamedTuple):
    """Normal distributions of ability of G groups, on one scale: that of the first, or that of anchor items.

    Nodes stay where they are, in units of the scale, and each group weighs them by its own density.

    Attributes:
        mean: (G, D) in logits; 0 of the first group unless anchors set the scale.
        sd: (G, D) standard deviations; 1 of the first group unless anchors or slopes of 1 set the unit.
    """

    mean: Float[np.ndarray, "G D"]
    sd: Float[np.ndarray, "G D"]

    @property
    def unit(self) -> Float[np.ndarray, " D"]:
        """What nodes are laid out in: logits of the scale."""
        return np.ones(self.mean.shape[1])

    def of(self, group: int) -> Population:
        """The population of one group."""
        return Population(self.mean[group], self.sd[group])

    def place(self, nodes: Float[np.ndarray, "Q D"]) -> Float[np.ndarray, "Q D"]:
        """Nodes of a standard normal distribution on the scale of ability: where they are."""
        return nodes

    def log_weights(
        self, nodes: Float[np.ndarray, "Q D"], log_weights: Float[np.ndarray, " Q"]
    ) -> Float[np.ndarray, "Q G"]:
        """Of the nodes for each group: those of a standard normal distribution times the ratio of the densities."""
        z = (nodes[:, None, :] - self.mean) / self.sd
        ratio = 0.5 * (nodes**2).sum(axis=1)[:, None] - 0.5 * (z**2).sum(axis=2) - np.log(self.sd).sum(axis=1)
        return log_weights[:, None] + ratio

    def rescaled(self, origin: float, unit: float) -> "Groups":
        """On a scale of ability whose origin and unit are these of the present one; the first group has its own."""
        mean, sd = (self.mean - origin) / unit, self.sd / unit
        mean[0], sd[0] = self.mean[0], self.sd[0]
        return Groups(mean, sd)

    def on(self, shift: float, unit: float) -> "Groups":
        """Of abilities so many times as large, and then shifted."""
        return Groups(unit * self.mean + shift, unit * self.sd)

    def of_scale(
        self, moments: Float[np.ndarray, "J two_D"], member: Int[np.ndarray, " J"]
    ) -> Float[np.ndarray, "first two_D"]:
        """Means of the posteriors and of squares, of the group that the scale is that of."""
        return moments[member == 0]

    def score(
        self, moments: Float[np.ndarray, "J two_D"], member: Int[np.ndarray, " J"]
    ) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
        """Gradient and information of complete data, in the means and then the log standard deviations: P = 2 G D.

        Sums over the subjects of a group, of E(θ - μ)/σ² and E(θ - μ)²/σ² - 1, and their number over σ² and twice it.

        Args:
            moments: means of the posteriors, and of squares.
            member: of each subject, the number of its group.
        """
        number = np.bincount(member, minlength=len(self.mean)).astype(float)[:, None]
        sums = np.zeros((len(self.mean), moments.shape[1]))
        np.add.at(sums, member, moments)
        first, second = np.split(sums, 2, axis=1)
        by_mean = (first - number * self.mean) / self.sd**2
        by_log_sd = (second - 2 * self.mean * first + number * self.mean**2) / self.sd**2 - number
        information = number / self.sd**2, np.broadcast_to(2 * number, self.sd.shape)
        return tuple(np.concatenate([one.ravel() for one in both]) for both in ((by_mean, by_log_sd), information))  # type: ignore[return-value]


@dataclasses.dataclass(frozen=True, eq=False)
class FittedGroups(SeveralPopulations):
    """The populations of a fit of several groups, with standard errors.

    Attributes:
        names: (G,) of the groups, the first of which sets the scale.
        member: (J,) of each subject, the number of its group.
        means: (G, D) in logits of the scale that is reported.
        means_se: (G, D) standard errors; 0 where the scale fixes a mean, NaN where they are not known.
        sds: (G, D) standard deviations of ability.
        sds_se: (G, D) their standard errors.
    """

    names: Shaped[np.ndarray, " G"]
    member: Int[np.ndarray, " J"]
    means: Float[np.ndarray, "G D"]
    means_se: Float[np.ndarray, "G D"]
    sds: Float[np.ndarray, "G D"]
    sds_se: Float[np.ndarray, "G D"]

    @property
    def first(self) -> Population:
        """That of the first group, which sets the scale."""
        return self.of(str(self.names[0]))

    def of(self, name: str) -> Population:
        """That of one group.

        Raises:
            InputError: there is no such group.
        """
        if name not in self.names:
            raise InputError(f"no group {name!r}, expected one of {', '.join(self.names.tolist())}")
        at = self.names.tolist().index(name)
        return Population(self.means[at], self.sds[at])

    @property
    def why_several(self) -> str:
        """What a user is told who asks for the population of all subjects."""
        return f"this needs a fit of one population, and this fit has {len(self.names)} groups: fit without `groups`"
