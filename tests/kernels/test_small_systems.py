"""Elimination against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels.elimination import inverse, solve


@pytest.mark.parametrize("size", [1, 2, 5])
def test_solutions_and_inverses_are_those_of_lapack(size):
    rng = np.random.default_rng(size)
    roots = rng.normal(size=(20, size, 2 * size)) * 10.0 ** rng.uniform(-2, 2, (20, size, 1))  # of different scales
    matrices, vectors = roots @ roots.transpose(0, 2, 1), rng.normal(size=(20, size))
    unit = np.sqrt(np.einsum("jkk->jk", matrices))  # errors are relative to it
    expected = np.linalg.inv(matrices)
    for of in (np.asarray, jnp.asarray):
        with jax.enable_x64(True):
            found = np.asarray(inverse(of(matrices))), np.asarray(solve(of(matrices), of(vectors)))
        off = (found[0] - expected) * unit[:, :, None] * unit[:, None, :]
        assert np.abs(off).max() < 1e-12 * np.abs(expected * unit[:, :, None] * unit[:, None, :]).max()
        np.testing.assert_allclose(
            found[1] * unit, np.linalg.solve(matrices, vectors[..., None])[..., 0] * unit, rtol=1e-10, atol=1e-12
        )


def test_one_system_needs_no_axis_of_systems():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(solve(matrix, np.array([5.0, 10.0])), [1.0, 3.0])
    np.testing.assert_allclose(inverse(matrix), [[0.6, -0.2], [-0.2, 0.4]])
