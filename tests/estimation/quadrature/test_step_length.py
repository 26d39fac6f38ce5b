"""How far each item is taken by a step."""

import jax
import numpy as np
import pytest
from conftest import matrix

from irtjax.estimation.problem import layout
from irtjax.estimation.quadrature import step_length
from irtjax.estimation.quadrature.point import evaluate, moved_by
from irtjax.estimation.specify import specify
from irtjax.integration.encode import to_answers
from irtjax.integration.rules import SharedNodes
from irtjax.item_models.binary import BINARY
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population

STEEP, FLAT = 0, 1  # items: a curve like a step, and an ordinary one


@pytest.fixture(scope="module")
def at():
    """A point, what is free there, and how to get to others: ten 2PL items, of which the first is like a step."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=400)
    slope, difficulty = np.r_[60.0, np.full(9, 1.5)], np.r_[-0.9, np.linspace(-1, 1, 9)]  # the step between two nodes
    right = rng.random((400, 10)) < 1 / (1 + np.exp(-np.clip(slope * (theta[:, None] - difficulty), -30, 30)))
    specification = specify(("2pl",) * 10)
    items = ItemParameters(slope[:, None], -slope * difficulty, np.full(10, -np.inf), np.full(10, np.inf))
    population = Population(np.zeros(1), np.ones(1))
    with jax.enable_x64(True):
        answers = to_answers(matrix(right.astype(np.int8)).values, BINARY, None, None, None)
        grid = SharedNodes(61, 1).lay_out(items, population, answers)

        def evaluate_at(items, population):
            return evaluate(items, population, answers, grid, specification)

        yield evaluate_at(items, population), specification, evaluate_at


def along(specification, item, slope, intercept):
    """A step of one item alone."""
    places = layout(specification)
    step = np.zeros(places.size)
    step[places.items[item, :2]] = slope, intercept
    return step


def test_what_an_expansion_foresees_is_left_as_it_is(at):
    point, specification, _ = at
    places = layout(specification)
    small = along(specification, FLAT, 0.3, -0.2)
    steeper = along(specification, STEEP, 15.0, 15.0)  # the curve stays where it is, and nearly as it is
    for step in (small, steeper):
        assert step_length.shortened_where_unforeseen(step, point, specification, places) is step


def test_only_the_item_whose_curve_leaves_what_is_foreseen_is_shortened(at):
    point, specification, evaluate_at = at
    places = layout(specification)
    step = along(specification, STEEP, 0.0, 25.0) + along(specification, FLAT, 0.3, -0.2)  # the step moves by 0.4
    found = step_length.shortened_where_unforeseen(step, point, specification, places)
    own, others = places.items[STEEP, :2], np.delete(np.arange(places.size), places.items[STEEP, :2])
    np.testing.assert_array_equal(found[others], step[others])
    assert 0 < found[own[1]] < 0.5 * step[own[1]]
    with jax.enable_x64(True):
        whole, shortened = (evaluate_at(*moved_by(point, one, places)).objective for one in (step, found))
    assert shortened > whole + 1


def test_slopes_and_intercepts_may_go_a_share_of_their_values():
    """The logit of an asymptote may not: at -100 it says the same as at -200, and would run off."""
    specification = specify(("3pl",) * 2)
    places = layout(specification)
    values = np.where(np.arange(places.size) == places.items[0, 0], 1.0, -100.0)
    most = step_length.longest(values, specification, places)
    own, least = 100 * step_length.MOST_SHARE, step_length.MOST_CHANGE
    assert most[places.items[0, :3]].tolist() == [least, own, least]
    assert most[places.items[1, :3]].tolist() == [own, own, least]
