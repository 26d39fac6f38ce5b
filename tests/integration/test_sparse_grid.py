"""SparseGrid of nodes against all nodes."""

import dataclasses

import jax
import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit, logsumexp
from simulation import draw, probability

import irtjax
from irtjax.estimation.quadrature import observed_information, score_moments
from irtjax.estimation.specify import specify
from irtjax.integration import rules as node_rules
from irtjax.integration import sparse_grid
from irtjax.integration.e_step import condensed, e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import everywhere, levels
from irtjax.kernels.formulation import OF_BACKEND, formulated_for
from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import rectangular
from irtjax.populations.normal import Population

CASES = [(1, 241, 0.0), (1, 100, 0.4), (2, 61, 0.4), (3, 21, 0.0)]


def long_test(dims: int, missing: float):
    """Steep items, and one with asymptotes, that 90 subjects answered; posteriors are narrow."""
    rng = np.random.default_rng(dims)
    slope = rng.normal(1, 1.5, (60, dims))
    slope[:3] *= 20  # all but steps
    slope[:dims] = np.tril(slope[:dims])
    intercept, infinite = rng.normal(0, 1.5, 60), np.full(60, np.inf)
    items = ItemParameters(slope, intercept, -infinite, infinite)
    items.lower[5], items.upper[5] = -1.0, 2.0
    theta = rng.normal(size=(90, dims))
    values = draw(rng, probability(items, theta), missing)
    return items, Population(rng.normal(0, 0.1, dims), rng.uniform(0.9, 1.1, dims)), values


@pytest.mark.parametrize(("dims", "number", "missing"), CASES)
def test_windows_equal_all_nodes(dims, number, missing):
    items, population, values = long_test(dims, missing)
    everyone = everywhere(rectangular(number, dims=dims))
    with jax.enable_x64(True):
        answers = to_answers(values)
        whole = e_step(items, population, answers, everyone)
        *_, level = levels(items, population, answers, number)
        placed = sparse_grid.active_tiles(level)
        found = e_step(items, population, answers, placed)
    assert len(placed.tile) > 1
    assert 0 <= found.boundary_mass < 1e-6
    np.testing.assert_allclose(level.log_likelihoods, whole.log_likelihoods, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.log_likelihoods, whole.log_likelihoods, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-8)
    np.testing.assert_allclose(found.sd, whole.sd, atol=1e-8)
    # the same nodes, but for those that no one is near, in another order
    order, given = (np.lexsort(np.round(one.nodes.nodes.T, 6)) for one in (everyone, placed))
    keys = [tuple(node) for node in np.round(everyone.nodes.nodes[order], 6)]
    at = {key: place for key, place in zip(keys, order, strict=True)}
    same = np.array([at[tuple(node)] for node in np.round(placed.nodes.nodes[given], 6)])
    np.testing.assert_allclose(found.statistics[given], whole.statistics[same], atol=1e-8)
    np.testing.assert_allclose(found.observed[given], whole.observed[same], atol=1e-8)
    assert np.delete(whole.observed, same, axis=0).sum() < 1e-6
    nodes = place_nodes(population, everyone.nodes)
    p, q = np.maximum(probabilities(items, nodes), 1e-300)
    joint = (values == 1) @ np.log(p).T + (values == 0) @ np.log(q).T + everyone.nodes.log_weights
    np.testing.assert_allclose(whole.log_likelihoods, logsumexp(joint, axis=1), atol=1e-9)


@pytest.mark.parametrize(
    ("dims", "number", "missing"),
    [pytest.param(*case, marks=[] if case[0] == 1 else [pytest.mark.slow]) for case in CASES],
)
def test_information_in_windows_equals_that_of_all_nodes(dims, number, missing):
    items, population, values = long_test(dims, missing)
    specification = specify(np.where(np.arange(60) == 5, "4pl", "2pl"), dims=dims)
    with jax.enable_x64(True):
        answers = to_answers(values)
        *_, level = levels(items, population, answers, number)
        matrices = []
        for placed in (sparse_grid.active_tiles(level), everywhere(rectangular(number, dims=dims))):
            found = condensed(e_step(items, population, answers, placed, weights=True), placed)
            part = observed_information.Part(answers, *found)
            matrices.append(observed_information.of_all_parameters(items, population, [part], specification))
    np.testing.assert_allclose(*matrices, atol=1e-6 * np.abs(matrices[1]).max())


def test_blocks_taken_together_come_to_the_same(monkeypatch):
    """As on accelerators: posteriors, their statistics, and scores of items with one statistic and with several."""
    items, population, values = long_test(1, 0.4)
    specification = specify(np.where(np.arange(60) == 5, "4pl", "2pl"))
    monkeypatch.setitem(OF_BACKEND, "three blocks", dataclasses.replace(OF_BACKEND["gpu"], numbers=3 * 90 * 60))
    found = []
    with jax.enable_x64(True):
        answers = to_answers(values)
        *_, level = levels(items, population, answers, 61)
        placed = sparse_grid.active_tiles(level)
        for backend in ("cpu", "three blocks"):
            with formulated_for(backend):
                parts = e_step(items, population, answers, placed, weights=True)
                small = condensed(parts, placed)
                part = observed_information.Part(answers, *small)
                information = observed_information.of_all_parameters(items, population, [part], specification)
                products = score_moments.products(small[0].weights, small[1], answers)
                found.append([*parts[:4], information, products])
    for other, expected in zip(*found, strict=True):
        np.testing.assert_allclose(other, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_a_window_that_is_left_is_noticed_and_only_loses():
    items, population, values = long_test(1, 0.0)
    with jax.enable_x64(True):
        answers = to_answers(values)
        *_, level = levels(items, population, answers, 241)
        placed = sparse_grid.active_tiles(level)
        for shift in (0.3, 3.0):
            moved = items._replace(intercept=items.intercept - shift * items.slope[:, 0])
            found = e_step(moved, population, answers, placed)
            whole = e_step(moved, population, answers, everywhere(rectangular(241)))
            lost = np.asarray(whole.log_likelihoods) - np.asarray(found.log_likelihoods)
            assert (lost > -1e-9).all()
            limit = sparse_grid.MOST_BOUNDARY_MASS * len(values)
            assert found.boundary_mass > limit or lost.sum() < limit
    assert found.boundary_mass > 1000 * limit
    assert lost.max() > 1


def test_a_posterior_between_coarse_nodes_of_two_tiles_is_found():
    """Steps between two of the 61 nodes, nearer to the second; the space between belongs to the tile of the first."""
    line = np.linspace(-6, 6, 61)
    between = 0.35 * line[15] + 0.65 * line[16]  # nodes 15 and 16 are in different tiles
    slope = np.full((120, 1), 100.0)
    at = between + np.where(np.arange(120) < 60, -0.02, 0.02)
    items = ItemParameters(slope, -slope[:, 0] * at, np.full(120, -np.inf), np.full(120, np.inf))
    answers = to_answers((np.arange(120) < 60)[None].astype(np.int8))
    population = Population(np.zeros(1), np.ones(1))
    with jax.enable_x64(True):
        *_, level = levels(items, population, answers, 961)
        whole = e_step(items, population, answers, everywhere(rectangular(961)))
    np.testing.assert_allclose(level.log_likelihoods, whole.log_likelihoods, atol=1e-9)


def test_blocks_hold_every_pair_once():
    tile = np.repeat([0, 2, 3], [5, 130, 1])
    tiles, shape, at = sparse_grid.in_blocks(tile, 128)
    assert len(set(at)) == len(tile)
    np.testing.assert_array_equal(tiles[at // shape[1]], tile)
    assert np.prod(shape) >= len(tile)


def test_a_fit_in_windows_is_the_fit_on_all_nodes(monkeypatch):
    rng = np.random.default_rng(2)
    theta, slope = rng.normal(size=(150, 1)), np.exp(rng.normal(0.5, 0.3, 60))
    values = (rng.uniform(size=(150, 60)) < expit(slope * (theta - rng.normal(size=60)))).astype(np.int8)
    fits = []
    for few, worth in ((10_000, 0.5), (50, 10.0)):
        monkeypatch.setattr(node_rules, "FEW_NODES", few)
        monkeypatch.setattr(node_rules, "WORTH", worth)  # posteriors of so few items are wide
        fits.append(irtjax.fit(matrix(values), "2pl", num_nodes=241))
    whole, fit = fits
    assert whole.details["nodes_per_subject"] == 241 != fit.details["nodes_per_subject"]
    assert fit.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(fit.difficulty, whole.difficulty, atol=1e-3)
    np.testing.assert_allclose(fit.difficulty_se, whole.difficulty_se, rtol=1e-3)
    np.testing.assert_allclose(fit.ability, whole.ability, atol=1e-3)
