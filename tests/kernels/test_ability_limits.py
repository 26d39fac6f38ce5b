"""Maximum likelihood in several dimensions: is there a maximum, and in which dimensions? Against linear programming."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import expit, log_expit

from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.kernels.ability_limits import separation
from irtjax.kernels.models import ItemParameters
from irtjax.scoring.abilities import abilities

separations = jax.jit(jax.vmap(separation, (0, None)))


def items_of(slope, intercept, lower=-np.inf, upper=np.inf):
    number = len(slope)
    ends = (np.broadcast_to(np.asarray(end, float), number) for end in (lower, upper))
    return ItemParameters(np.asarray(slope, float), np.asarray(intercept, float), *ends)


def signed(slope, row):
    return slope * np.where(row == 1, 1, -1)[:, None]


def held_by_programming(slope, row):
    """Answers that no direction d with s a·d >= 0 for all has s a·d > 0 for, and the dimensions that these settle."""
    seen = np.flatnonzero((row >= 0) & (slope != 0).any(axis=1))
    held = np.zeros(len(row), bool)
    if seen.size:
        rows, dims = signed(slope, row)[seen], slope.shape[1]
        found = linprog(
            np.r_[np.zeros(dims), -np.ones(seen.size)],
            A_ub=np.c_[-rows, np.eye(seen.size)],
            b_ub=np.zeros(seen.size),
            bounds=[(None, None)] * dims + [(0, 1)] * seen.size,
        )
        held[seen] = found.x[dims:] < 0.5  # they are 0 or 1: a direction may be of any length
    return held


def settled(slope, held):
    """Dimensions whose unit vector is a combination of the slopes of these items."""
    if not held.any():
        return np.zeros(slope.shape[1], bool)
    _, sizes, right = np.linalg.svd(slope[held])
    rest = right[(sizes > 1e-9 * sizes[0]).sum() :]
    return (np.abs(rest) < 1e-9).all(axis=0)


def slopes(kind, size, dims, rng):
    return [
        rng.lognormal(0, 0.5, (size, dims)),
        rng.normal(size=(size, dims)),
        rng.integers(-1, 2, (size, dims)).astype(float),
        np.eye(dims)[rng.integers(0, dims, size)] * rng.lognormal(0, 0.5, (size, 1)),
    ][kind]


def cases(number, sizes):
    """Slopes of all signs, with few values, and of one dimension an item; answers by chance, or nearly separated."""
    rng = np.random.default_rng(0)
    for dims in (2, 3, 5):
        for size in sizes:
            for kind in range(4):
                slope = slopes(kind, size, dims, rng)
                rows = rng.integers(-1, 2, (number, size))
                theta = rng.normal(0, 2, (number, dims))
                near = (theta @ slope.T > rng.normal(0, 0.3, size)).astype(int)
                some = np.arange(number)[:, None] < 0.7 * number
                yield slope, np.where(some & (rng.random(rows.shape) > 0.1), near, rows)


@pytest.mark.parametrize("sizes", [(8,), pytest.param((3, 8, 20), marks=pytest.mark.slow)])
def test_separated_answers_are_those_of_linear_programming(sizes):
    found, total = 0, 0
    with jax.enable_x64(True):
        for slope, rows in cases(15, sizes):
            limit = jax.tree.map(np.asarray, separations(jnp.asarray(rows.astype(np.int8)), jnp.asarray(slope)))
            for row, held, direction in zip(rows, limit.held, limit.direction, strict=True):
                expected = held_by_programming(slope, row)
                np.testing.assert_array_equal(held, expected)
                assert not (direction[settled(slope, expected)]).any()
                gone = (row >= 0) & (slope != 0).any(axis=1) & ~expected
                assert gone.any() == direction.any()
                found, total = found + gone.any(), total + 1
    assert 0.3 * total < found < 0.9 * total


@pytest.mark.parametrize("dims", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ml_is_finite_where_a_maximum_exists(dims):
    rng = np.random.default_rng(dims)
    kinds = set()
    for kind in range(4):
        slope, intercept = slopes(kind, 12, dims, rng), rng.normal(size=12)
        theta = rng.normal(size=(40, dims))
        rows = (rng.random((40, 12)) < expit(theta @ slope.T + intercept)).astype(np.int8)
        rows[rng.random(rows.shape) < 0.3] = -1
        rows[:3, 2:] = -1
        found = abilities(rows, items_of(slope, intercept), "ml")
        for row, ability, error in zip(rows, found.ability, found.standard_error, strict=True):
            held = held_by_programming(slope, row)
            finite = settled(slope, held)
            seen = (row >= 0) & (slope != 0).any(axis=1)
            np.testing.assert_array_equal(np.isfinite(ability), finite)
            np.testing.assert_array_equal(np.isfinite(error), finite)
            np.testing.assert_array_equal(np.isinf(ability), np.isinf(error))
            if not (seen & ~held).any():
                assert not np.isinf(ability).any()
            kinds |= set(np.select([np.isnan(ability), np.isinf(ability)], ["open", "infinite"], "finite"))
            if finite.any():
                rows_held, x0 = signed(slope, row)[held], intercept[held] * np.where(row[held] == 1, 1, -1)
                best = minimize(
                    lambda z, a=rows_held, x=x0: -log_expit(a @ z + x).sum(),
                    np.zeros(dims),
                    jac=lambda z, a=rows_held, x=x0: -a.T @ expit(-(a @ z + x)),
                    options={"gtol": 1e-10},
                )
                weight = expit(rows_held @ best.x + x0) * expit(-(rows_held @ best.x + x0))
                information = (rows_held * weight[:, None]).T @ rows_held
                np.testing.assert_allclose(ability[finite], best.x[finite], atol=1e-4, rtol=1e-4)
                expected = np.sqrt(np.diagonal(np.linalg.pinv(information, 1e-10)))
                np.testing.assert_allclose(error[finite], expected[finite], rtol=1e-3)
    assert kinds == {"open", "infinite", "finite"}


SEPARATED = np.array([[2.2, 0.0], [0.6, 0.8], [1.3, 2.6]])


def test_answers_that_a_combination_separates():
    """Neither all right nor all wrong: along (2, -1.2) each answer becomes ever more probable."""
    slope, items = SEPARATED, items_of(SEPARATED, [2.7, 0.8, 2.5])
    rows = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0], [1, -1, -1], [-1, -1, -1]], np.int8)
    far = signed(slope, rows[0]) @ np.array([2.0, -1.2])
    assert (far > 0).all()
    found = abilities(rows, items, "ml")
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(found.ability, [[inf, -inf], [inf, inf], [-inf, -inf], [inf, nan], [nan, nan]])
    np.testing.assert_array_equal(found.standard_error, [[inf, inf]] * 3 + [[inf, nan], [nan, nan]])


@pytest.mark.slow
def test_an_adaptive_test_goes_by_the_mode_where_answers_are_separated():
    items = items_of(SEPARATED, [2.7, 0.8, 2.5])
    test, by_mode = (adaptive_test(items, rule="determinant", ability=method, stop=Stop(3)) for method in ("ml", "map"))
    states = [one.update(one.init(jax.random.key(0)), jnp.arange(3), jnp.array([1, 1, 0])) for one in (test, by_mode)]
    np.testing.assert_array_equal(states[0].ability, states[1].ability)
    np.testing.assert_array_equal(states[0].standard_error, states[1].standard_error)
    assert np.isfinite(states[0].ability).all()


@pytest.mark.slow
def test_items_of_one_direction_leave_the_others_open():
    """Two items that ask for the sum of two abilities say nothing of either."""
    items = items_of([[1.0, 1.0], [1.0, 1.0], [0.0, 2.0]], [0.5, -0.5, 0.3])
    found = abilities(np.array([[1, 0, -1], [0, 1, 1]], np.int8), items, "ml")
    assert np.isnan(found.ability[0]).all()
    assert np.isnan(found.standard_error[0]).all()
    np.testing.assert_array_equal(found.ability[1], [-np.inf, np.inf])  # the sum is held at 0


@pytest.mark.slow
def test_far_maxima_are_found():
    """The limit of a search in the median item's logits was no limit of the likelihood."""
    slope = np.array([[30.0, 0.0]] * 9 + [[0.2, 0.0]] + [[0.0, 1.0]] * 2)
    intercept = np.r_[np.zeros(9), -1.0, 1.0, -1.0]
    row = np.r_[np.ones(9), 0, 1, 0].astype(np.int8)
    line = np.linspace(0, 3, 300_001)
    expected = line[(9 * log_expit(30 * line) + log_expit(-(0.2 * line - 1))).argmax()]
    found = abilities(row[None], items_of(slope, intercept), "ml").ability[0]
    np.testing.assert_allclose(found, [expected, 0.0], atol=1e-4)


@pytest.mark.parametrize("upper", [pytest.param(np.inf, marks=pytest.mark.slow), 2.5])
def test_with_asymptotes_of_one_dimension_each_it_is_one_dimension_at_a_time(upper):
    """Where guessing explains the answers best, as on a line of each dimension, to its ends."""
    rng = np.random.default_rng(0)
    size = 14
    of = np.arange(size) % 2
    steep, place = rng.uniform(1, 3, size), rng.normal(size=size)
    items = items_of(np.eye(2)[of] * steep[:, None], -steep * place, -1.1, upper)
    rows = rng.integers(0, 2, (60, size)).astype(np.int8)
    found = abilities(rows, items, "ml")
    line = np.concatenate([[-1e4], np.linspace(-15, 15, 60_001), [1e4]])
    c, d = expit(-1.1), expit(upper)
    infinite, right = 0, []
    for dimension in range(2):
        some = of == dimension
        logit = steep[some] * (line[:, None] - place[some])
        p, q = c + (d - c) * expit(logit), 1 - d + (d - c) * expit(-logit)
        for row, ability in zip(rows[:, some], found.ability[:, dimension], strict=True):
            with np.errstate(divide="ignore"):
                value = np.log(np.where(row == 1, p, q)).sum(axis=1)
            best, end = value[1:-1].max(), max(value[0], value[-1])
            if best > end + 1e-6:
                right.append(np.isfinite(ability) and abs(np.interp(ability, line, value) - best) < 1e-6)
            elif best < end + 1e-9:
                right.append(ability == (np.inf if value[-1] > value[0] else -np.inf))
                infinite += 1
    assert 5 < infinite < 115
    assert np.mean(right) > 0.95  # the others are at the lower one of two maxima
