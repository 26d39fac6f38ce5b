"""Loops take one block at a time on a CPU, many on accelerators, and find the same."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels.formulation import OF_BACKEND, formulated_for
from irtjax.kernels.loops import added, at_once, items_per_block, mapped


@pytest.fixture(params=["cpu", "three rows", "gpu"])
def backend(request, monkeypatch):
    """One of so little memory that a turn takes three rows of eight numbers, and others."""
    monkeypatch.setitem(OF_BACKEND, "three rows", dataclasses.replace(OF_BACKEND["gpu"], numbers=24))
    return request.param


def turns(program, *arguments):
    """Lengths of the loops of a program."""
    found = [equation for equation in jax.make_jaxpr(program)(*arguments).eqns if equation.primitive.name == "scan"]
    return [equation.params["length"] for equation in found]


def test_how_many_at_once(backend):
    with formulated_for(backend):
        assert at_once(2, 8) == {"cpu": 2, "three rows": 3, "gpu": 2**21}[backend]
        assert at_once(64, 0) >= 64
        assert items_per_block(1000, 100, 1) == 64 if backend == "cpu" else 100


def test_rows_are_mapped(backend):
    rows = np.arange(80.0, dtype=np.float32).reshape(10, 8)

    def program(rows):
        return mapped(lambda row: jnp.cumsum(row), rows, 8)

    with formulated_for(backend):
        np.testing.assert_array_equal(program(rows), np.cumsum(rows, axis=1))
        assert turns(program, rows) == {"cpu": [10], "three rows": [3], "gpu": []}[backend]


@pytest.mark.parametrize("number", [9, 10])
def test_blocks_are_added(backend, number):
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 9, (number, 8)).astype(np.float32), np.array([2, 0, 1, 0, 0, 2, 5, 1, 1, 0][:number])

    def program(blocks):
        return added(
            lambda block: 2 * block[0],
            lambda sums, block, found: sums.at[block[1]].add(found, mode="drop"),
            jnp.ones((3, 8)),
            blocks,
            8,
        )

    expected = 1 + 2 * np.stack([blocks[0][blocks[1] == at].sum(axis=0) for at in range(3)])  # 5 is nowhere
    with formulated_for(backend):
        np.testing.assert_array_equal(program(blocks), expected)
        assert turns(program, blocks) == {"cpu": [number], "three rows": [3], "gpu": [1]}[backend]
