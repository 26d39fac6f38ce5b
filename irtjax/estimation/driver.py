"""The one loop that every estimator runs in: steps until a state is at rest, and what it is to go on from then.

An engine knows how to make a step and when the next phase begins; the driver owns the number of steps, the patience
with steps that lead nowhere, the calls back to the user, the clock, and the name of how it ended.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from irtjax.estimation.problem import Specification
from irtjax.fits.joint_covariance import JointCovariance
from irtjax.fits.status import Status
from irtjax.item_models.binary import BINARY
from irtjax.item_models.protocol import ItemModel, Items
from irtjax.populations.kinds import Populations
from irtjax.responses.values import Values
from irtjax.types import Float, Int

PATIENCE = 40  # steps without a smaller change, after which a phase has stalled


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is to be estimated from what.

    Attributes:
        values: (J, I) int8; 1 right, 0 wrong, -1 missing; or as the model has them. Read in parts by the engine for
            long tests; the one for short tests has those of this process's subjects in memory.
        items: parameters to start from; those that are not free are held there.
        specification: what is free or shared, priors, and how the scale is identified.
        model: what a response says of ability; the engine for long tests has right/wrong items alone.
        trials: (J, I) of each response, of models that have any; (N,) of single answers.
        member: (J,) of each subject, the number of its group, where there are several populations.
        predictors: (J, C) of each subject's mean ability, where it depends on covariates.
    """

    values: Values
    items: Items
    specification: Specification
    model: ItemModel = BINARY
    trials: Int[np.ndarray, "..."] | None = None
    member: Int[np.ndarray, " J"] | None = None
    predictors: Float[np.ndarray, "J C"] | None = None


class Estimate(NamedTuple):
    """An estimate, with its errors and the check of its likelihood.

    Attributes:
        items: of I items.
        population: mean and standard deviation (D,), those of G groups, or a regression on covariates.
        covariances: (I, K, K) of each item's parameters, NaN where they are not known.
        ability: (J, D) posterior means.
        ability_se: (J, D) posterior standard deviations.
        log_likelihoods: (J,) marginal, of each subject, by the rule of the fit, in nats.
        log_likelihood: of all, by a finer rule where one was tried.
        log_likelihood_error: what that rule changed, in nats: of the sum, or √Σ change² over the subjects where that is
            more; NaN where none was tried.
        distance: from the maximum, √(gradient' covariance gradient) by the observed information: no parameter is more
            standard errors away; NaN where that is not known.
        integration: "nodes" that all subjects share, "around" each posterior, or "normal" posteriors.
        unbounded: (I,) items whose likelihood has no finite maximum; as far as is known.
        identified: whether the others have one, and not a ridge; as far as is known.
        specification: priors as estimated.
        details: further entries of `fit.json`.
        of_groups: (2 G D + 1, …) covariances of means or coefficients, of log standard deviations, and of the logarithm
            of the slope that items share; 0 of what is fixed. None of one population, or where they are not known.
        joint: covariances of all items together; None where they are not known, or too many to keep.
    """

    items: Items
    population: Populations
    covariances: np.ndarray
    ability: np.ndarray
    ability_se: np.ndarray
    log_likelihoods: np.ndarray
    log_likelihood: float
    log_likelihood_error: float
    distance: float
    integration: str
    unbounded: np.ndarray
    identified: bool
    specification: Specification
    details: dict[str, Any]
    of_groups: Float[np.ndarray, "P P"] | None = None
    joint: JointCovariance | None = None


class Info(NamedTuple):
    """Diagnostics of one step.

    Attributes:
        objective: that the engine climbs, in nats; NaN where it knows none.
        change: how far it is from rest, in standard errors of what is estimated.
        tolerance: the change at which the present phase is at rest.
    """

    objective: float
    change: float
    tolerance: float


@runtime_checkable
class Engine(Protocol):
    """An estimator, as a frozen description of how it works. Its problems, states and estimates are its own."""

    def init(self, problem: Any) -> Any:
        """The state to begin with."""

    def step(self, state: Any) -> tuple[Any, Info]:
        """One iteration."""

    def revise(self, state: Any) -> Any | None:
        """What a state at rest is to go on from: another phase, better nodes, other priors. None if it stands."""

    def finish(self, state: Any) -> Any:
        """What the estimate is, with errors, and with the check of it."""


class Outcome(NamedTuple):
    """How it went.

    Attributes:
        status: how it ended.
        iterations: steps made.
        seconds: wall time, compilation included.
    """

    status: Status
    iterations: int
    seconds: float


def run(
    engine: Engine,
    problem: Any,
    *,
    max_iterations: int,
    patience: int = PATIENCE,
    on_iteration: Callable[[int, Info], bool | None] | None = None,
) -> tuple[Any, Outcome]:
    """Estimates.

    Args:
        engine: how.
        problem: what; a `Problem` for the engines of marginal maximum likelihood.
        max_iterations: steps after which it ends in any case.
        patience: steps in a row without a smaller change after which it ends.
        on_iteration: called with the number of steps made and what the last one came to; True ends it.

    Returns:
        What `engine.finish` makes of the last state, and how it went.
    """
    began = time.perf_counter()
    state, iterations, status = engine.init(problem), 0, Status.OUT_OF_ITERATIONS
    least, since = np.inf, 0
    while iterations < max_iterations:
        state, info = engine.step(state)
        iterations += 1
        least, since = (info.change, 0) if info.change < least else (least, since + 1)
        if on_iteration is not None and on_iteration(iterations, info):
            status = Status.STOPPED
            break
        if info.change < info.tolerance:
            revised = engine.revise(state)
            if revised is None:
                status = Status.CONVERGED
                break
            state, least, since = revised, np.inf, 0
        elif since >= patience:
            status = Status.STALLED
            break
    return engine.finish(state), Outcome(status, iterations, time.perf_counter() - began)
