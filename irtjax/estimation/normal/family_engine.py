"""The engine for long tests of items of families: a normal posterior for each subject, as of right and wrong answers.

An iteration is that of `normal.iteration`. With D > 1 the rotation is free in it, and fixed at the end, as there. Then
the marginal likelihood is integrated by adaptive Gauss-Hermite quadrature (Naylor and Smith 1982): by the few nodes of
the fit, and by more, which tell what those are off by.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation import empirical_priors, item_errors
from irtjax.estimation.anchor_scale import anchors_only, categories_alone
from irtjax.estimation.driver import Estimate, Info, Problem
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.normal.ability_step import settled
from irtjax.estimation.normal.damping import Damping, undamped
from irtjax.estimation.normal.family_passes import NUMBER, FamilyPasses, around, passes_over
from irtjax.estimation.normal.iteration import iterate
from irtjax.estimation.normal.scale import LatentScale, by_scale, rotate
from irtjax.estimation.normal.start import component_posterior
from irtjax.estimation.problem import Specification, as_array
from irtjax.integration.normal_posterior import Posterior, root
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.quadrature import Quadrature, gauss_hermite
from irtjax.populations.normal import Population
from irtjax.types import Float

TOLERANCE, TOLERANCE_IN_DIMENSIONS = 0.01, 0.001  # standard errors; with D > 1 it comes to rest more slowly
FINER = {1: 11, 2: 7, 3: 5}  # nodes of a subject in each dimension, by which the likelihood is told at the end
STARTING_STEPS = 8  # of abilities, on the items as they start
MOST_CHANGE, LEAST_UNIT = 1.0, 1e-3  # of an ability in one of these; of their standard deviation after them
FEWEST_ITERATIONS = 2  # before priors are estimated: starting values are alike, and say nothing


class State(NamedTuple):
    """Where the iteration is; numbers in float32.

    Attributes:
        problem: what is estimated.
        passes: over its responses.
        scaled: items, posteriors and population.
        damping: of the steps of items and of subjects.
        specification: what is free; priors.
        steps: made.
    """

    problem: Problem
    passes: FamilyPasses
    scaled: LatentScale
    damping: tuple[Damping, Damping]
    specification: Specification
    steps: int


class Integrated(NamedTuple):
    """Marginal log-likelihoods (J,) in nats, and means and standard deviations (J, D) of the posteriors."""

    log_likelihoods: Float[np.ndarray, " J"]
    mean: Float[np.ndarray, "J D"]
    sd: Float[np.ndarray, "J D"]


@dataclasses.dataclass(frozen=True)
class FamilyPosteriors:
    """Marginal maximum likelihood of items of families with a normal posterior for each subject.

    Attributes:
        tolerance: largest change in one iteration, in standard errors of what changes, at which it has converged; None
            for 0.01, and 0.001 with D > 1.
        standard_errors: whether they are computed.
    """

    tolerance: float | None = None
    standard_errors: bool = True

    def init(self, problem: Problem) -> State:
        """Begins at the items as they are given, with abilities that go with these; with D > 1 at components."""
        dims = problem.specification.dims
        passes = passes_over(problem, NUMBER**dims, np.float32)
        items, specification = _placed((problem.items, problem.specification.without_rotation()))
        if dims == 1:
            scaled = _with_abilities(items, passes, specification, problem.values.shape[0])
        else:
            posterior = component_posterior(np.asarray(problem.values), problem.trials, dims)
            scaled = LatentScale(items, *_placed((posterior, np.zeros(dims), np.ones(dims))))
        damping = undamped(np.asarray(as_array(problem.items))), undamped(scaled.posterior.mean)
        return State(problem, passes, scaled, damping, specification, 0)

    def step(self, state: State) -> tuple[State, Info]:
        """A step of all items, then one of all abilities."""
        priors_fixed = FEWEST_ITERATIONS if state.specification.estimated else 0
        weight = _placed(np.ones(state.problem.values.shape[0]))
        scaled, damping, specification, change = iterate(
            state.scaled,
            state.damping,
            state.passes,
            weight,
            state.specification,
            state.steps >= priors_fixed,
            held=False,
        )
        state = state._replace(scaled=scaled, damping=damping, specification=specification, steps=state.steps + 1)
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = TOLERANCE if state.specification.dims == 1 else TOLERANCE_IN_DIMENSIONS
        return state, Info(np.nan, float(change), tolerance if state.steps > priors_fixed else 0.0)

    def revise(self, state: State) -> State | None:
        """Without the estimated prior of slopes, where responses determine these and intercepts have none either."""
        specification = state.specification
        if (0,) not in specification.estimated or (specification.dims,) in specification.estimated:
            return None
        gradient, information = state.passes.item_sums(state.scaled.items, state.scaled.posterior)
        items, specification = jax.tree.map(np.asarray, (state.scaled.items, specification))
        share = empirical_priors.slopes_determined(items, gradient, information, specification)
        if share <= empirical_priors.DETERMINED:
            return None
        return state._replace(specification=_placed(empirical_priors.without_slopes(specification)))

    def finish(self, state: State) -> Estimate:
        """Covariances of the items, and the log-likelihood on more nodes."""
        passes, specification, problem = state.passes, state.specification, state.problem
        number = problem.values.shape[0]
        sums = passes.subject_sums(state.scaled.items, state.scaled.posterior)
        weight = _placed(np.ones(number))
        scaled = settled(state.scaled, sums, weight, specification, asymptotes=False)
        information = _information(scaled, passes, specification, self.standard_errors)
        anchor_information = None
        if not specification.mean_fixed:
            of_anchors = passes.subject_sums(anchors_only(scaled.items, specification), scaled.posterior)
            anchor_information = np.asarray(by_scale(scaled.posterior, of_anchors)[1], np.float64)
        scaled = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), scaled)
        specification = jax.tree.map(np.asarray, specification)
        if specification.dims > 1:
            scaled, information, specification = rotate(scaled, information, specification)
        items, posterior, *population = scaled
        items = items._replace(top=np.asarray(problem.items.top))
        found = Population(*population)
        base = problem.model.log_base(np.asarray(problem.values), problem.trials)
        of_fit, finer = _integrated(problem, items, posterior, found)
        difference = finer.log_likelihoods - of_fit.log_likelihoods
        return Estimate(
            items=items,
            population=found,
            covariances=information
            if np.isnan(information).all()
            else _covariances(items, found, information, specification, number, anchor_information),
            ability=finer.mean,
            ability_se=finer.sd,
            log_likelihoods=finer.log_likelihoods + base,
            log_likelihood=float((finer.log_likelihoods + base).sum()),
            log_likelihood_error=float(max(abs(difference.sum()), np.sqrt((difference**2).sum()))),
            distance=np.nan,
            integration="normal",
            unbounded=np.zeros(len(items.intercept), bool),
            identified=True,
            specification=specification,
            details={"posteriors": "normal", "nodes": NUMBER**specification.dims}
            | ({"standard_errors": "each item"} if self.standard_errors else {}),
        )


def _placed(tree: Any) -> Any:
    """Numbers in float32, on the device."""

    def one(leaf: Any) -> jax.Array:
        leaf = np.asarray(leaf)
        return jnp.asarray(leaf.astype(np.float32) if leaf.dtype.kind == "f" else leaf)

    return jax.tree.map(one, tree)


def _with_abilities(
    items: PredictorParameters, passes: FamilyPasses, specification: Specification, number: int
) -> LatentScale:
    """Abilities near their modes given the items as they start, by Newton steps; then of mean 0 and variance 1."""
    mean, covariance = np.zeros((number, 1)), np.ones((number, 1, 1))
    for _ in range(STARTING_STEPS):
        gradient, curvature = passes.subject_sums(items, Posterior(mean, covariance))
        covariance = 1 / (1 + curvature)
        mean = mean + np.clip(covariance[:, 0] * (gradient - mean), -MOST_CHANGE, MOST_CHANGE)
    if specification.mean_fixed:
        mean = mean - mean.mean()
        unit = max(float(np.sqrt((mean**2).mean() + covariance.mean())), LEAST_UNIT)
        mean, covariance = mean / unit, covariance / unit**2
    return LatentScale(items, *_placed((Posterior(mean, covariance), np.zeros(1), np.ones(1))))


def _integrated(
    problem: Problem, items: PredictorParameters, posterior: Posterior, population: Population
) -> tuple[Integrated, Integrated]:
    """By the nodes of the fit around each posterior, and by more, in float64."""
    dims = problem.specification.dims
    rules = gauss_hermite(NUMBER, dims), gauss_hermite(FINER[dims], dims)
    theta = np.concatenate([around(posterior, one) for one in rules])
    with jax.enable_x64(True):
        values = np.asarray(passes_over(problem, len(theta), np.float64).log_likelihoods(items, theta))
    mean, sd = (np.asarray(leaf) for leaf in population)
    log_volume = np.log(np.einsum("jkk->jk", root(posterior))).sum(axis=1)

    def by(rows: slice, one: Quadrature) -> Integrated:
        at, weighed = theta[rows], 0.5 * (one.nodes**2).sum(axis=1) + one.log_weights
        log_density = -0.5 * (((at - mean) / sd) ** 2).sum(axis=2) - np.log(sd).sum()
        joint = values[rows] + log_density + weighed[:, None]
        largest = joint.max(axis=0)
        shares = np.exp(joint - largest)
        total = shares.sum(axis=0)
        shares = (shares / total)[:, :, None]
        centre = (shares * at).sum(axis=0)
        spread = np.sqrt((shares * (at - centre) ** 2).sum(axis=0))
        return Integrated(largest + np.log(total) + log_volume, centre, spread)

    few = len(rules[0].nodes)
    return by(slice(0, few), rules[0]), by(slice(few, None), rules[1])


def _information(
    scaled: LatentScale, passes: FamilyPasses, specification: Specification, wanted: bool
) -> Float[np.ndarray, "I K K"]:
    """Of each item by itself, priors included; NaN unless wanted."""
    if not wanted:
        shape = np.asarray(specification.free).shape
        return np.full((*shape, shape[1]), np.nan)
    information = np.array(passes.observed_information(scaled.items, scaled.posterior), np.float64)
    places = np.arange(information.shape[1])
    information[:, places, places] += np.asarray(priors_of(as_array(scaled.items), specification).information)
    return information


def _covariances(
    items: PredictorParameters,
    population: Population,
    information: Float[np.ndarray, "I K K"],
    specification: Specification,
    num_subjects: int,
    anchor_information: Float[np.ndarray, "2 2"] | None,
) -> Float[np.ndarray, "I K K"]:
    """Of each item, and what all share by the scale."""
    covariances = item_errors.item_covariances(
        np.asarray(items.slope),
        information,
        specification,
        np.asarray(population.sd),
        num_subjects,
        anchor_information,
    )
    return covariances + _of_scale(items, specification, num_subjects, anchor_information)


def _of_scale(
    items: PredictorParameters,
    specification: Specification,
    num_subjects: int,
    anchor_information: Float[np.ndarray, "2 2"] | None,
) -> Float[np.ndarray, "I K K"]:
    """What the error of the scale (`item_errors`) adds to slopes and intercepts of categories, 0 for other items."""
    alone, half = categories_alone(specification), items.others.shape[1] // 2
    slopes = np.where(alone[:, None], np.asarray(items.others, np.float64)[:, :half], 0.0)
    moved = np.zeros((*specification.free.shape, 2))
    moved[:, 2 : 2 + half, 1], moved[:, 2 + half : 2 + 2 * half, 0] = slopes, slopes
    if anchor_information is None:
        origin_and_unit = np.diag([1 / num_subjects, 1 / (2 * num_subjects)])
    else:
        origin_and_unit = np.linalg.pinv(anchor_information)
    return moved @ origin_and_unit @ moved.transpose(0, 2, 1)
