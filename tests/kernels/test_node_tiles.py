"""The kernels of an E-step for GPUs, interpreted on a CPU, against products of matrices."""

import functools

import jax
import numpy as np
import pytest

from irtjax.integration.nodes import Answers
from irtjax.item_models.binary import BINARY
from irtjax.kernels import handwritten, node_tiles
from irtjax.kernels.formulation import formulated_for

SIZES = {"odd": (75, 101, 61), "few": (5, 3, 9), "several programs along each side": (300, 70, 130)}


def problem(subjects, items, nodes, complete):
    rng = np.random.default_rng(0)
    values = rng.integers(0 if complete else -1, 2, (subjects, items)).astype(np.int8)
    if not complete:
        values[2], values[:, 1] = -1, -1
        values[values < 0] = rng.integers(-128, 0, (values < 0).sum())
    return values, rng.normal(size=(nodes, items)), rng.normal(size=(nodes, items)), rng.random((subjects, nodes))


def by_numpy(values, eta, log_normalizer, weights):
    right, observed = (values == 1).astype(float), (values >= 0).astype(float)
    return right @ eta.T - observed @ log_normalizer.T, weights.T @ right, weights.T @ observed


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_they_equal_products(size, complete):
    values, eta, log_normalizer, weights = problem(*SIZES[size], complete)
    kernels = (
        functools.partial(kernel, complete=complete, interpret=True)
        for kernel in (node_tiles.at_nodes, node_tiles.of_items)
    )
    at_nodes, of_items = map(jax.jit, kernels)
    with jax.enable_x64(True):
        found = at_nodes(values, eta, log_normalizer), *of_items(weights, values)
    *found, observed = found
    *expected, of_numpy = by_numpy(values, eta, log_normalizer, weights)
    for one, other in zip([*found, np.broadcast_to(observed, of_numpy.shape)], [*expected, of_numpy], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_several_turns_of_a_program(monkeypatch):
    monkeypatch.setattr(node_tiles, "ENOUGH", 1)  # so that one program goes over all subjects
    values, _, _, weights = problem(300, 10, 9, False)
    with jax.enable_x64(True):
        found = node_tiles.of_items(weights, values, complete=False, interpret=True)
    for one, other in zip(found, by_numpy(values, weights.T[:, :10], weights.T[:, :10], weights)[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def both(answers, eta, log_normalizer, weights):
    return answers.log_likelihoods(eta, log_normalizer), *answers.expected(weights)


@pytest.mark.parametrize("complete", [True, False])
def test_an_e_step_for_a_gpu_has_them_and_runs_on_its_host_too(complete, monkeypatch):
    values, *others = problem(20, 6, 9, complete)
    arguments = Answers(values, BINARY, complete), *others
    with jax.enable_x64(True):
        expected = both(*arguments)
        with formulated_for("gpu"):
            traced = jax.jit(both).trace(*arguments)
            found = jax.jit(both)(*arguments)
            assert str(traced.jaxpr).count("pallas_call") == 2
            lowered = traced.lower(lowering_platforms=("cuda",)).as_text()
            assert lowered.count("triton") >= 2
            single = jax.jit(both).trace(
                arguments[0], *(leaf.astype(np.float32) for leaf in others)
            )  # what is not for them
            assert "pallas_call" not in str(single.jaxpr)
            monkeypatch.setattr(handwritten, "available", lambda: False)
            assert "pallas_call" not in str(jax.jit(lambda *some: both(*some)).trace(*arguments).jaxpr)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_they_are_tried_on_a_gpu(monkeypatch):
    monkeypatch.setattr(node_tiles, "at_nodes", functools.partial(node_tiles.at_nodes, interpret=True))
    monkeypatch.setattr(node_tiles, "of_items", functools.partial(node_tiles.of_items, interpret=True))
    assert handwritten.agrees(node_tiles.both_maps, node_tiles.both_by_xla, node_tiles.small_problems)
