"""Ability given known items, against SciPy's root finder and mirt."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit, log_expit

from irtjax.kernels.ability import percentile
from irtjax.kernels.ability_means import ability_eap, nodes_for, shared_eap
from irtjax.kernels.ability_modes import ability_1pl, ability_mode
from irtjax.kernels.ability_nodes import line_nodes
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population

# one program per shape and kind of population, whichever test calls it
one_ability = jax.jit(ability_1pl)
one_mode, one_mean = jax.jit(ability_mode), jax.jit(ability_eap)
abilities = jax.jit(jax.vmap(ability_1pl, (0, None, None)))
modes = jax.jit(jax.vmap(ability_mode, (0, None, None)))
means = jax.jit(jax.vmap(ability_eap, (0, None, None, None)), static_argnums=3)

RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(0, 1.5, 60)


def reference(responses, difficulty, population=None):
    observed = responses >= 0
    y, b = responses[observed], difficulty[observed]

    def slope(theta):
        prior = 0 if population is None else (theta - population.mean) / population.sd**2
        return (y - expit(theta - b)).sum() - prior

    root = brentq(slope, -60, 60, xtol=1e-12)
    p = expit(root - b)
    return root, ((p * (1 - p)).sum() + (0 if population is None else population.sd**-2)) ** -0.5


@pytest.mark.parametrize("population", [None, Population(), Population(-1.0, 0.3)])
@pytest.mark.parametrize("num_right", [1, 3, 20, 34])
@pytest.mark.parametrize("num_missing", [0, 25])
def test_equals_a_root_finder(population, num_right, num_missing):
    responses = np.zeros(60, np.int8)
    responses[:num_right] = 1
    responses[num_right : num_right + num_missing] = -1
    responses = np.random.default_rng(num_right).permutation(responses)
    with jax.enable_x64(True):
        got = one_ability(jnp.asarray(responses), jnp.asarray(DIFFICULTY), population)
    np.testing.assert_allclose(got, reference(responses, DIFFICULTY, population), atol=1e-6)


@pytest.mark.parametrize("start", [-40.0, 0.0, 40.0, np.inf, -np.inf])
def test_converges_from_anywhere(start):
    responses = (DIFFICULTY < 0.7).astype(np.int8)
    with jax.enable_x64(True):
        got = one_ability(jnp.asarray(responses), jnp.asarray(DIFFICULTY), None, start)
    np.testing.assert_allclose(got.ability, reference(responses, DIFFICULTY)[0], atol=1e-6)


def test_identical_items_have_a_closed_form():
    responses = jnp.array([1, 1, 1, 0], jnp.int8)
    got = one_ability(responses, jnp.full(4, 0.4))
    np.testing.assert_allclose(got.ability, 0.4 + np.log(3), rtol=1e-5)  # logit of 3/4 above the difficulty
    np.testing.assert_allclose(got.standard_error, (4 * 3 / 16) ** -0.5, rtol=1e-5)


def test_no_finite_maximum():
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    right, wrong, nothing = (jnp.full(60, value, jnp.int8) for value in (1, 0, -1))
    for responses, ml in ((right, np.inf), (wrong, -np.inf)):
        np.testing.assert_array_equal(one_ability(responses, b), (ml, np.inf))
        estimate = one_ability(responses, b, Population())
        np.testing.assert_allclose(estimate, reference(np.asarray(responses), DIFFICULTY, Population()), atol=1e-4)
    assert np.isnan(one_ability(nothing, b).ability)
    np.testing.assert_allclose(one_ability(nothing, b, Population(0.3, 2.0)), (0.3, 2.0), atol=1e-5)


def test_vmap_equals_one_at_a_time():
    responses = jnp.asarray(RNG.integers(-1, 2, (20, 60)).astype(np.int8))
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    many = abilities(responses, b, None)
    for row in range(20):
        np.testing.assert_allclose(one_ability(responses[row], b).ability, many.ability[row], atol=1e-5)


def test_shift_invariance_and_dtype():
    responses = jnp.asarray((DIFFICULTY < 0).astype(np.int8))
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    here, there = one_ability(responses, b), one_ability(responses, b + 5)
    np.testing.assert_allclose(there.ability - here.ability, 5, atol=1e-4)
    assert here.ability.dtype == jnp.float32


@pytest.mark.parametrize("method", ["ml", "map"])
def test_equals_mirt_on_lsat7(shared, method):
    items = pd.read_csv(shared / "oracle" / "items_lsat7_Rasch.csv")
    scores = pd.read_csv(shared / "oracle" / "scores_lsat7_Rasch.csv")
    responses = pd.read_csv(shared / "oracle" / "lsat7_responses.csv")
    responses = responses[items["item"]].to_numpy(np.int8)
    population = None if method == "ml" else Population(0.0, items.latent_var[0] ** 0.5)
    with jax.enable_x64(True):
        b = jnp.asarray(items.b.to_numpy())
        got = abilities(jnp.asarray(responses[scores["row"] - 1]), b, population)
    expected = scores[method].to_numpy(float)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(np.asarray(got.ability)[finite], expected[finite], atol=1e-4)
    np.testing.assert_array_equal(np.asarray(got.ability)[~finite], expected[~finite])
    np.testing.assert_allclose(
        np.asarray(got.standard_error)[finite], scores[f"{method}_se"].to_numpy(float)[finite], atol=1e-3
    )


def parameters(a, b, c=None, dtype=float):
    a, b = np.atleast_1d(a).astype(dtype), np.atleast_1d(b).astype(dtype)
    lower = np.full(b.shape, -np.inf) if c is None else np.log(c) - np.log1p(-np.asarray(c))
    return ItemParameters(
        *(jnp.asarray(leaf) for leaf in (a[:, None], -a * b, lower.astype(dtype), np.full(b.shape, np.inf, dtype)))
    )


@pytest.mark.parametrize(
    "name", ["lsat7", *(pytest.param(name, marks=pytest.mark.slow) for name in ("5_neutral", "5_contradiction"))]
)
@pytest.mark.parametrize("method", ["ml", "map", "eap"])
def test_2pl_scores_equal_mirt(shared, name, method):
    items = pd.read_csv(shared / "oracle" / f"items_{name}_2PL.csv")
    scores = pd.read_csv(shared / "oracle" / f"scores_{name}_2PL.csv")
    if name == "lsat7":
        table = pd.read_csv(shared / "oracle" / "lsat7_responses.csv")
    else:
        table = pd.read_csv(shared / "human_responses" / "snli_emnlp2016" / "irt_file_5_coded.csv")
    values = jnp.asarray(table[items["item"]].to_numpy(np.int8)[scores["row"] - 1])
    with jax.enable_x64(True):
        known = parameters(items.a.to_numpy(), items.b.to_numpy())
        if method == "eap":
            got = means(values, known, Population(), 61)
        else:
            got = modes(values, known, None if method == "ml" else Population())
    expected, error = scores[method].to_numpy(float), scores[f"{method}_se"].to_numpy(float)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(np.asarray(got.ability)[finite], expected[finite], atol=1e-3)
    np.testing.assert_array_equal(np.asarray(got.ability)[~finite], expected[~finite])
    np.testing.assert_allclose(np.asarray(got.standard_error)[finite], error[finite], atol=1e-3)


@pytest.mark.slow
def test_the_general_mode_equals_the_1pl_one():
    responses = jnp.asarray(RNG.integers(-1, 2, (10, 60)).astype(np.int8))
    with jax.enable_x64(True):
        known = parameters(np.ones(60), DIFFICULTY)
        for population in (None, Population(0.5, 0.7)):
            np.testing.assert_allclose(
                modes(responses, known, population),
                abilities(responses, jnp.asarray(DIFFICULTY), population),
                atol=1e-6,
            )


def test_eap_on_a_long_test_is_not_snapped_to_a_node():
    rng = np.random.default_rng(0)
    b = rng.normal(0, 1, 20_000)
    theta = np.array([-0.537, 0.111, 1.049])
    responses = (rng.uniform(size=(3, b.size)) < expit(theta[:, None] - b)).astype(np.int8)
    with jax.enable_x64(True):
        known = parameters(np.ones(b.size), b)
        for row in responses:
            got = one_mean(jnp.asarray(row), known, Population())
            mode = one_mode(jnp.asarray(row), known, Population())
            # the posterior of a long test is normal: its mean is its mode, its width the information's
            np.testing.assert_allclose(got.ability, mode.ability, atol=1e-4)
            np.testing.assert_allclose(got.standard_error, mode.standard_error, rtol=1e-3)


@pytest.mark.slow
def test_two_dimensions_against_a_grid():
    rng = np.random.default_rng(1)
    slope, intercept = rng.uniform(0.3, 1.5, (25, 2)), rng.normal(0, 1, 25)
    responses = rng.integers(0, 2, 25).astype(np.int8)
    line = np.linspace(-6, 6, 601)
    grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    p = expit(grid @ slope.T + intercept)
    joint = np.log(np.where(responses == 1, p, 1 - p)).sum(1) - 0.5 * (grid**2).sum(1)
    weights = np.exp(joint - joint.max())
    weights /= weights.sum()
    mean = weights @ grid
    with jax.enable_x64(True):
        known = ItemParameters(
            jnp.asarray(slope), jnp.asarray(intercept), jnp.full(25, -jnp.inf), jnp.full(25, jnp.inf)
        )
        mode = one_mode(jnp.asarray(responses), known, Population())
        eap = one_mean(jnp.asarray(responses), known, Population())
    np.testing.assert_allclose(mode.ability, grid[joint.argmax()], atol=0.011)
    np.testing.assert_allclose(eap.ability, mean, atol=1e-4)
    np.testing.assert_allclose(eap.standard_error, np.sqrt(weights @ (grid - mean) ** 2), atol=1e-4)


def test_3pl_modes_are_the_highest_of_a_grid():
    # steep curves with guessing, on which the likelihood need not be concave (Samejima 1973)
    rng = np.random.default_rng(2)
    b, c = rng.normal(0, 1.5, 12), np.full(12, 0.3)
    theta = np.linspace(-8, 8, 32_001)
    p, q = (base + 0.7 * expit(sign * 5 * (theta[:, None] - b)) for base, sign in ((0.3, 1), (0.0, -1)))
    responses = rng.integers(0, 2, (40, 12)).astype(np.int8)
    with jax.enable_x64(True):
        known = parameters(np.full(12, 5.0), b, c)
        got = modes(jnp.asarray(responses), known, Population(0.0, 2.0))
    for row, ability in zip(responses, got.ability, strict=True):
        value = np.log(np.where(row == 1, p, q)).sum(1) - theta**2 / 8
        np.testing.assert_allclose(ability, theta[value.argmax()], atol=1e-3)


def by_quadrature(row, a, b, c, mean=0.0, sd=1.0):
    """Mode, mean and sd of a posterior on two million points: all, and then those around the highest."""
    lines = [np.linspace(mean - 60 * sd, mean + 60 * sd, 1_000_001)]
    for _ in range(2):
        theta = lines[-1]
        x = a * (theta[:, None] - b)
        with np.errstate(divide="ignore"):
            right, wrong = np.logaddexp(np.log(c) + log_expit(-x), log_expit(x)), log_expit(-x)
        value = np.where(row == 1, right, wrong)
        value = value.sum(axis=1, where=row >= 0) - 0.5 * ((theta - mean) / sd) ** 2
        inside = np.flatnonzero(value > value.max() - 40)
        lines.append(np.linspace(theta[max(inside[0] - 1, 0)], theta[min(inside[-1] + 1, theta.size - 1)], 1_000_001))
    weights = np.exp(value - value.max())
    weights /= weights.sum()
    eap = weights @ theta
    return theta[value.argmax()], eap, np.sqrt(weights @ (theta - eap) ** 2)


@pytest.mark.parametrize(
    ("slope", "location", "guessing"),
    [
        pytest.param(1.0, 0.0, 0.0, marks=pytest.mark.slow),
        pytest.param(1.0, 20.0, 0.0, marks=pytest.mark.slow),
        pytest.param(1.0, 1000.0, 0.0, marks=pytest.mark.slow),
        pytest.param(30.0, 0.0, 0.2, marks=pytest.mark.slow),
        pytest.param(500.0, 0.0, 0.0, marks=pytest.mark.slow),
        (1e5, 3.0, 0.0),
    ],
)
def test_posteriors_far_off_and_narrow_equal_brute_force(slope, location, guessing):
    rng = np.random.default_rng(3)
    b = rng.normal(size=5) + location
    a, c = slope * rng.uniform(0.5, 1.5, 5), np.full(5, guessing)
    rows = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0, 1, -1, -1, 1], [-1, -1, -1, -1, -1]])
    with jax.enable_x64(True):
        known = parameters(a, b, c if guessing else None)
        responses = jnp.asarray(rows.astype(np.int8))
        mode, number = modes(responses, known, Population()), nodes_for(a.max())
        assert (number is None) == (slope > 120)
        if number is None:
            line = line_nodes(ItemParameters(*map(np.asarray, known)), 5, 0.0, 1.0)
            mean = shared_eap(responses, known, jnp.asarray(line.nodes), jnp.asarray(line.log_weights))
        else:
            mean = means(responses, known, Population(), number)
    for at, row in enumerate(rows):
        of_mode, of_mean, sd = by_quadrature(row, a, b, c)
        step = 1e-4 + 2e-4 * abs(of_mode)
        np.testing.assert_allclose(mode.ability[at], of_mode, atol=step)
        np.testing.assert_allclose(mean.ability[at], of_mean, atol=1e-6 + 1e-3 * sd)
        np.testing.assert_allclose(mean.standard_error[at], sd, rtol=1e-3)


@pytest.mark.parametrize("dims", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_origin_and_unit_of_the_scale_do_not_matter(dims):
    rng = np.random.default_rng(4)
    slope, intercept = rng.uniform(0.3, 2.0, (30, dims)), rng.normal(size=30)
    responses = jnp.asarray(rng.integers(-1, 2, (8, 30)).astype(np.int8)).at[0].set(1)
    asymptotes = np.full(30, -np.inf), np.full(30, np.inf)
    mean, sd = 500.0, 100.0
    moved = slope / sd, intercept - slope.sum(axis=1) * mean / sd
    with jax.enable_x64(True):
        here, there = (ItemParameters(*map(jnp.asarray, (*two, *asymptotes))) for two in ((slope, intercept), moved))
        for function, ours, theirs in (
            (modes, None, None),
            (modes, Population(), Population(mean, sd)),
            (lambda *arguments: means(*arguments, 61), Population(), Population(mean, sd)),
        ):
            if theirs is None and dims > 1:
                continue  # the origin of several dimensions is that of the scale
            one, other = function(responses, here, ours), function(responses, there, theirs)
            np.testing.assert_allclose(mean + sd * one.ability, other.ability, atol=1e-4)
            np.testing.assert_allclose(sd * one.standard_error, other.standard_error, rtol=1e-5)


def test_no_ability_where_no_answer_depends_on_it():
    with jax.enable_x64(True):
        known = parameters(np.array([0.0, 0.0, 1.0]), np.zeros(3))
        of_flat, of_all = modes(jnp.asarray([[1, 0, -1], [1, 0, 1]], dtype=jnp.int8), known, None).ability
        np.testing.assert_array_equal([of_flat, of_all], [np.nan, np.inf])


@pytest.mark.slow
def test_a_flat_item_holds_back_an_ability_far_beyond_steep_ones():
    """The unit of a search is that of the median item: 25 of its logits are 0.6 here, the maximum is at 1.13."""
    a, b = np.r_[np.full(20, 40.0), 0.5], np.r_[np.linspace(-1, 1, 20), 2.0]
    y = np.r_[np.ones(20, int), 0]
    grid = np.linspace(-3, 3, 60001)
    x = a * (grid[:, None] - b)
    highest = grid[np.where(y == 1, -np.logaddexp(0, -x), -np.logaddexp(0, x)).sum(axis=1).argmax()]
    with jax.enable_x64(True):
        rows = jnp.asarray(np.stack([y, 1 - y, np.ones_like(y)]).astype(np.int8))
        found = np.asarray(modes(rows, parameters(a, b), None).ability)
        turned = np.asarray(modes(rows[1:2], parameters(-a, b), None).ability)
    np.testing.assert_allclose([found[0], turned[0]], highest, atol=1e-4)  # -a turns every answer around
    assert np.isfinite(found[1])
    assert found[2] == np.inf


def test_where_guessing_explains_all_the_ability_is_infinite():
    """A right answer to the hardest item and wrong ones to easy items: no ability is as likely as one of -inf."""
    a, b, c = np.full(6, 2.0), np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 3.0]), np.full(6, 0.25)
    y = np.array([0, 0, 0, 0, 0, 1])
    grid = np.linspace(-40, 10, 50001)[:, None]
    p = c + (1 - c) / (1 + np.exp(-a * (grid - b)))
    likelihood = np.where(y == 1, np.log(p), np.log1p(-p)).sum(axis=1)
    limit = np.log(0.25) + 5 * np.log(0.75)
    assert likelihood.max() <= limit + 1e-12
    with jax.enable_x64(True):
        rows = jnp.asarray(np.stack([y] * 3).astype(np.int8))
        found = np.asarray(modes(rows, parameters(a, b, c), None).ability)
    np.testing.assert_array_equal(found, -np.inf)


def test_percentile_by_hand():
    np.testing.assert_allclose(percentile(jnp.array([0.0, 1.0, -jnp.inf])), [50, 84.1345, 0], atol=1e-3)
    np.testing.assert_allclose(percentile(jnp.array(3.0), Population(1.0, 2.0)), 84.1345, atol=1e-3)
